"""File locks between the processes of one store.

`flock` belongs to the open file, ends with the process however it ends, and is the sole
authority: nobody reads a pid to decide who holds a lock. Lock files are never removed.
"""

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

R = TypeVar("R")


def retry(
    action: Callable[[], R],
    *,
    is_retryable: Callable[[Exception], bool],
    timeout_s: float,
    delays_s: Sequence[float],
) -> R:
    """Return what the action returns, after further tries within `timeout_s` seconds; 0 tries once.

    Each further try comes after the next of the delays, the last of which repeats. Raises what the
    action raises: a retryable error when the time is over, any other at once.
    """
    ends_at = time.monotonic() + timeout_s
    tries = 0
    while True:
        try:
            return action()
        except Exception as error:
            if not is_retryable(error) or time.monotonic() >= ends_at:
                raise
            time.sleep(delays_s[min(tries, len(delays_s) - 1)])
            tries += 1


LOCK_DELAYS_S = (0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_6, 0.002)
"""Before each further try: usually the lock is free within microseconds, or not for long."""


class FileLock:
    """A lock on a file, which is created if need be. One thread at a time may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, *, shared: bool = False, timeout_s: float) -> bool:
        """Return True if the lock was acquired within `timeout_s` seconds; 0 tries once.

        Waits by trying again, never in the kernel: a stopped process may hold it (pitfalls S9).
        Held shared, it can be acquired exclusively, and the other way round; the change is not
        atomic, another process may come in between.
        """
        operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        try:
            retry(
                lambda: fcntl.flock(self._descriptor, operation),
                is_retryable=lambda error: isinstance(error, BlockingIOError),
                timeout_s=timeout_s,
                delays_s=LOCK_DELAYS_S,
            )
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock. Without effect if it is not held."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def check_writable(self) -> None:
        """Raise OSError if the file cannot be opened for writing now."""
        os.close(os.open(self.path, os.O_RDWR | os.O_CLOEXEC))

    def close(self) -> None:
        """Release the lock and close the file."""
        os.close(self._descriptor)

    def holders(self) -> list[int]:
        """Return the ids of the other processes that hold the file's lock, as far as the system tells."""
        return sorted(find_holders(self.path) - {os.getpid()})


def find_holders(path: Path) -> set[int]:
    """Return the process ids in the system's lock table for this file; empty where there is no table."""
    try:
        inode = path.stat().st_ino
        table = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return set()
    # A line ends so: kind of lock, ADVISORY, READ or WRITE, pid, device and inode, range.
    rows = (line.split() for line in table.splitlines() if "->" not in line)
    return {int(row[4]) for row in rows if len(row) > 5 and row[5].endswith(f":{inode}")}
