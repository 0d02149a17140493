"""The options of a watched folder."""

from dataclasses import dataclass

from resumes.analyzer import DEFAULT_FORMAT, Format
from resumes.external_analyzer import ExternalAnalyzer
from resumes.filesystems import DISK_FLOOR_BYTES


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes and times that users need not change. Tests use smaller values."""

    batch_files: int = 200
    batch_bytes: int = 16 * 1024 * 1024
    """A transaction is full when either limit is reached."""
    slice_items: int = 100
    slice_bytes: int = 4 * 1024 * 1024
    """The same limits for the slice of a bundle that is committed at once."""
    helper_from: int = 1_000
    """The number of waiting files at which a helper process is started."""
    write_timeout_s: float = 2.0
    """How long a write waits for its turn; a short time, so that stopping the importer is quick."""
    first_back_off_s: float = 0.5
    longest_back_off_s: float = 30.0
    """The pause after the first failure, and the longest pause after several failures in a row."""


DEFAULT_TUNING = Tuning()


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum sizes of what is read from a file."""

    max_bytes: int
    """The maximum size of one resume (`Format.max_bytes`)."""
    max_file_bytes: int
    """The maximum decompressed size of a file; for a zip, the sum of all members to import."""
    max_parts: int = 100_000
    """The maximum number of resumes in a bundle."""
    max_members: int = 10_000
    """The maximum number of zip members, including skipped ones, or of streams in a gzip file."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an importer. They do not change while it runs."""

    account: str | None = None
    """The name of the account that owns the files directly in ROOT."""
    once: bool = False
    """Import all files and exit, instead of watching the folder."""
    adopts: bool = False
    """Take ROOT over if it belongs to another store."""
    dry_run: bool = False
    """Report what would happen to the files, without changing anything."""
    settle_s: float = 5.0
    """Seconds for which an incomplete or invalid file must be unchanged before it is judged."""
    scan_s: float = 2.0
    """The seconds between scans. If scans are slow, the interval is longer."""
    poll: bool = False
    """Find new files only by scans, without the system's file events."""
    done_keep_days: int | None = None
    """The days after which imported files are deleted; None means never."""
    on_import: str | None = None
    """A shell command that runs after each batch of files."""
    format: Format = DEFAULT_FORMAT
    max_file_bytes: int = 64 * 1024 * 1024
    """The maximum size of a bundle in bytes, decompressed."""
    disk_floor_bytes: int = DISK_FLOOR_BYTES
    """The space in bytes that must stay free on a disk to which files are copied."""
    analyzer: ExternalAnalyzer | None = None
    """The user's analyzer, which turns documents into resumes."""
    analyzers: int = 1
    """The maximum number of documents that are analyzed at the same time."""
    tuning: Tuning = DEFAULT_TUNING

    @property
    def limits(self) -> Limits:
        return Limits(self.format.max_bytes, self.max_file_bytes)
