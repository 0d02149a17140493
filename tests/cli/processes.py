"""Processes of a command, while they start and end."""

from pathlib import Path

from tests.waiting import wait_until as wait_until


def is_alive(process_id: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
