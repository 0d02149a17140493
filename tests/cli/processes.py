"""Processes of a command, while they start and end."""

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(is_so: Callable[[], bool], *, within_s: float = 20) -> None:
    """It is so, or the test fails."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(process_id: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
