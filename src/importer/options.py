"""The options of a watched folder."""

from dataclasses import dataclass

from resumes.analyzer import DEFAULT_FORMAT, Format
from resumes.external_analyzer import ExternalAnalyzer
from resumes.filesystems import DISK_FLOOR_BYTES


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes and times that users need not change; tests use smaller ones."""

    batch_files: int = 200
    batch_bytes: int = 16 * 1024 * 1024
    """A transaction is full at either limit."""
    slice_items: int = 100
    slice_bytes: int = 4 * 1024 * 1024
    """The same limits for the part of a bundle that is committed at once."""
    helper_from: int = 1_000
    """The size of a backlog, in files, for which a helper process is started."""
    write_timeout_s: float = 2.0
    """How long a write waits for its turn; short, so that stopping the importer does not take long."""
    first_back_off_s: float = 0.5
    longest_back_off_s: float = 30.0
    """The pause after the first failure, and the longest pause after many in a row."""


DEFAULT_TUNING = Tuning()


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum sizes of what is read from a file."""

    max_bytes: int
    """The limit for one resume (`Format.max_bytes`)."""
    max_file_bytes: int
    """The limit for the whole file, decompressed; for a zip, the sum of all members to import."""
    max_parts: int = 100_000
    """The limit for the resumes in a bundle."""
    max_members: int = 10_000
    """The limit for the members of a zip, including skipped ones, and the streams of a gzip file."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an importer, which do not change while it runs."""

    account: str | None = None
    """The name of the account that owns files directly in ROOT."""
    once: bool = False
    """Drain the folder and end, instead of watching it."""
    adopts: bool = False
    """Take ROOT over, should it belong to another store."""
    dry_run: bool = False
    """Report what would happen to the files, without changing anything."""
    settle_s: float = 5.0
    """Seconds a file must be unchanged before it is checked, unless it is a complete, valid resume."""
    scan_s: float = 2.0
    """Seconds between scans; automatically longer if scans are slow."""
    poll: bool = False
    """Find new files by scans alone, without the system's events."""
    done_keep_days: int | None = None
    """Imported files are deleted after this many days; None keeps them."""
    on_import: str | None = None
    """A shell command that runs after each quiet batch."""
    format: Format = DEFAULT_FORMAT
    max_file_bytes: int = 64 * 1024 * 1024
    """The maximum size of a bundle, decompressed, in bytes."""
    disk_floor_bytes: int = DISK_FLOOR_BYTES
    """The space in bytes that stays free on a disk that files are copied to."""
    analyzer: ExternalAnalyzer | None = None
    """The user's analyzer, which turns documents into resumes."""
    analyzers: int = 1
    """How many documents are given to it at once."""
    tuning: Tuning = DEFAULT_TUNING

    @property
    def limits(self) -> Limits:
        return Limits(self.format.max_bytes, self.max_file_bytes)
