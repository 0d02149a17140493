"""How large the store is, and whether its log is kept short."""

from dataclasses import dataclass
from pathlib import Path

from resumes.health.findings import Finding, notice

SUBJECT = "size"
LARGE_LOG_BYTES = 256 * 1024 * 1024
"""Four times what the store lets a log keep: something has held it back for long."""


@dataclass(frozen=True, slots=True)
class StoreSize:
    """The bytes on the disk of the store's file and of its log; 0 for one that is not there."""

    file_bytes: int
    log_bytes: int


def measure_store(path: Path) -> StoreSize:
    """The sizes now. No file is opened: closing it would drop this process's locks on it."""
    return StoreSize(_size_bytes(path), _size_bytes(path.with_name(path.name + "-wal")))


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def check_size(size: StoreSize) -> Finding:
    """Whether the log, which every reader looks through, is short enough."""
    text = f"{in_bytes(size.file_bytes)}, and {in_bytes(size.log_bytes)} of log"
    if size.log_bytes < LARGE_LOG_BYTES:
        return Finding(SUBJECT, text)
    return notice(
        SUBJECT,
        text,
        "End programs that have been reading the database for long, such as a shell or a backup: "
        "the log is cut with the next writes",
    )


def in_bytes(count: int) -> str:
    """`512 B`, `1.5 KiB`, `12 MiB`, `1,024 GiB`: in the largest unit of which there is one."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        amount = count / 1_024**power
        if amount >= 1:
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"
    return f"{count} B"
