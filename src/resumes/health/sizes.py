"""How large the store is, and whether its log is kept short."""

from resumes.health.findings import Finding, notice
from resumes.store.database import Size

LARGE_LOG_BYTES = 256 * 1024 * 1024
"""Four times what the store lets a log keep: something has held it back for long."""


def check_size(size: Size) -> Finding:
    """Whether the log, which every reader looks through, is short enough."""
    if size.log_bytes is None:
        return Finding("size", in_bytes(size.data_bytes))
    text = f"{in_bytes(size.data_bytes)}, and {in_bytes(size.log_bytes)} of log"
    if size.log_bytes < LARGE_LOG_BYTES:
        return Finding("size", text)
    return notice(
        "size",
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
