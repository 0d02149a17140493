"""The options of a watched folder."""

from dataclasses import dataclass

from resumes.analyzer import DEFAULT_FORMAT, Format
from resumes.filesystems import DISK_FLOOR_BYTES


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes and times that suit everybody; tests have smaller ones."""

    batch_files: int = 200
    batch_bytes: int = 16 * 1024 * 1024
    """A transaction is full with either."""

    slice_items: int = 100
    slice_bytes: int = 4 * 1024 * 1024
    """The same for the part of a file of several resumes that is committed at once."""

    helper_from: int = 1_000
    """A backlog of this many files is worth a helper process."""

    write_timeout_s: float = 2.0
    """How long a write waits for its turn: whoever stops the importer does not wait for the store."""

    first_back_off_s: float = 0.5
    longest_back_off_s: float = 30.0
    """How long nothing is tried after the first failure, and after many in a row."""


DEFAULT_TUNING = Tuning()


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a file is taken."""

    max_bytes: int
    """Of one resume (`Format.max_bytes`)."""

    max_file_bytes: int
    """Of the whole file, inflated; of a zip, of all members that are opened together."""

    max_parts: int = 100_000
    """Resumes in a file."""

    max_members: int = 10_000
    """Members of a zip, whatever they are; streams of a gzip file."""


@dataclass(frozen=True, slots=True)
class Options:
    """Chosen once, for as long as the folder is watched."""

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
    """The largest file of several resumes, inflated."""

    disk_floor_bytes: int = DISK_FLOOR_BYTES
    """What stays free on a disk that files are copied to."""

    tuning: Tuning = DEFAULT_TUNING

    @property
    def limits(self) -> Limits:
        """How much is unpacked of one file."""
        return Limits(self.format.max_bytes, self.max_file_bytes)
