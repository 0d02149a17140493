"""File locks between the processes of one store.

`flock` belongs to the open file, ends with the process however it ends, and is the sole
authority: nobody reads a pid to decide who holds a lock. Lock files are never removed.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

R = TypeVar("R")


def keep_trying(
    action: Callable[[], R],
    *,
    is_passing: Callable[[Exception], bool],
    within_s: float,
    pauses_s: Sequence[float],
) -> R:
    """What the action gives, at once or tried again within so many seconds; 0 tries once.

    Each further try comes after the next of the pauses, of which the last one goes on. Raises what
    the action raises: an error that is passing when the time is over, any other at once.
    """
    ends_at = time.monotonic() + within_s
    tries = 0
    while True:
        try:
            return action()
        except Exception as error:
            if not is_passing(error) or time.monotonic() >= ends_at:
                raise
            time.sleep(pauses_s[min(tries, len(pauses_s) - 1)])
            tries += 1


PAUSES_S = (0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_6, 0.002)
"""Before each further try: mostly it is had soon, or not for long."""


class FileLock:
    """A lock on a file that is made when first used. One thread at a time may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, *, shared: bool = False, wait_s: float) -> bool:
        """Whether the lock was had within `wait_s` seconds; 0 tries once.

        Waits by trying again, never in the kernel: a stopped process may hold it (pitfalls S9).
        Held shared, it can be acquired exclusively, and the other way round; the change is not
        atomic, another process may come in between.
        """
        operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        try:
            keep_trying(
                lambda: fcntl.flock(self._descriptor, operation),
                is_passing=lambda error: isinstance(error, BlockingIOError),
                within_s=wait_s,
                pauses_s=PAUSES_S,
            )
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """The lock is free. Without effect when it was not held."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def held(self, *, wait_s: float) -> Iterator[bool]:
        """Whether the lock was had, for the length of a block."""
        acquired = self.acquire(wait_s=wait_s)
        try:
            yield acquired
        finally:
            if acquired:
                self.release()

    def check_writable(self) -> None:
        """Raise OSError if the file cannot be opened for writing now."""
        os.close(os.open(self.path, os.O_RDWR | os.O_CLOEXEC))

    def close(self) -> None:
        """The lock is free, and the file is no longer used."""
        os.close(self._descriptor)

    def holders(self) -> list[int]:
        """The ids of the other processes that hold the file's lock, as far as the system tells."""
        return sorted(find_holders(self.path) - {os.getpid()})


def find_holders(path: Path) -> set[int]:
    """The process ids in the system's lock table for this file; empty where there is no table."""
    try:
        inode = path.stat().st_ino
        table = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return set()
    # A line ends so: kind of lock, ADVISORY, READ or WRITE, pid, device and inode, range.
    rows = (line.split() for line in table.splitlines() if "->" not in line)
    return {int(row[4]) for row in rows if len(row) > 5 and row[5].endswith(f":{inode}")}
