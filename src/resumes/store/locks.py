"""File locks between the processes of one store, and the names of those processes for people.

`flock` belongs to the open file, ends with the process however it ends, and is the sole authority: no
pid is read to decide which process holds a lock. Lock files are never removed.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

R = TypeVar("R")


def retry(
    action: Callable[[], R],
    *,
    is_retryable: Callable[[Exception], bool],
    timeout_s: float,
    delays_s: Sequence[float],
) -> R:
    """Return what the action returns, after retries within `timeout_s` seconds; 0 tries once.

    Each retry comes after the next of the delays; the last delay repeats. Raises what the action
    raises: a retryable error when the time is over, any other immediately.
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
"""The delays before each retry: usually the lock is free within microseconds, or not for long."""


class FileLock:
    """A lock on a file, which is created if it is missing. One thread at a time may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, *, shared: bool = False, timeout_s: float) -> bool:
        """Return True if the lock was acquired within `timeout_s` seconds; 0 tries once.

        It waits by retrying, never in the kernel, since a stopped process may hold the lock (pitfalls
        S9). A shared lock can be made exclusive, and the other way round; this is not atomic, so another
        process may get the lock in between.
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
        """Release the lock. Do nothing if it is not held."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def touch(self) -> None:
        """Change the file's times. Raises OSError if its file system has become read-only."""
        os.utime(self._descriptor)

    def keep_across_exec(self) -> None:
        """Keep the lock when this process executes another program, until that ends."""
        os.set_inheritable(self._descriptor, True)

    def close(self) -> None:
        """Release the lock and close the file."""
        os.close(self._descriptor)

    def holders(self) -> list[int]:
        """Return the ids of the other processes that hold the file's lock, as far as the system knows."""
        return sorted(find_holders(self.path) - {os.getpid()})


# People know a process of this program by the command that they typed. A process that another one has
# started (workers, the API and the importer of `resumes up`) would only be started again when it is
# ended, so the typed command stands for it. Systems without /proc only have numbers.

PROGRAM: Final = "resumes"
MODULE: Final = ("-m", "cli")
PROC: Final = Path("/proc")


def find_holders(path: Path, *, proc: Path = PROC) -> set[int]:
    """Return the process ids in the system's lock table for this file; empty where there is no table."""
    try:
        key = _lock_key(path)
        table = (proc / "locks").read_text(encoding="ascii")
    except OSError:
        return set()
    # A line ends with: kind of lock, ADVISORY, READ or WRITE, pid, device and inode, range.
    rows = (line.split() for line in table.splitlines() if "->" not in line)
    return {int(row[4]) for row in rows if len(row) > 5 and row[5] == key}


def _lock_key(path: Path) -> str:
    """Return how the lock table names the file: `fd:01:1234`. Raises OSError.

    The device is that of its mount: on btrfs and others it differs from that of `stat`.
    """
    # O_PATH needs no right to read the file. Only Linux has it, and the lock table.
    descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
    try:
        inode = os.fstat(descriptor).st_ino
        info = (PROC / f"self/fdinfo/{descriptor}").read_text(encoding="ascii")
    finally:
        os.close(descriptor)
    (mount_id,) = (line.split()[1] for line in info.splitlines() if line.startswith("mnt_id:"))
    for line in (
        (PROC / "self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    ):
        if line.split(maxsplit=1)[0] == mount_id:
            major, minor = map(int, line.split()[2].split(":"))
            return f"{major:02x}:{minor:02x}:{inode}"
    raise FileNotFoundError(mount_id)


def name_processes(pids: Iterable[int], *, proc: Path = PROC) -> str:
    """Return the processes to end: `2329 (resumes up), 6380 (resumes tui)`; `unknown` for no ids."""
    typed = sorted({_find_typed(pid, proc) for pid in pids})
    commands = ((pid, _find_command(pid, proc)) for pid in typed)
    names = (f"{pid} ({command})" if command else str(pid) for pid, command in commands)
    return ", ".join(names) or "unknown"


def _find_typed(pid: int, proc: Path) -> int:
    """Return the first process of this program from which the process descends; mostly itself."""
    found = pid
    while (parent := _find_parent(found, proc)) and _find_command(parent, proc):
        found = parent
    return found


def _find_parent(pid: int, proc: Path) -> int | None:
    try:
        status = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # State and parent follow the name, which may contain anything and ends at the last parenthesis.
    return int(status.rpartition(")")[2].split()[1])


def _find_command(pid: int, proc: Path) -> str | None:
    """Return `resumes up`; None for a process that is gone, or of another program.

    Options and arguments are left out, since they may contain a password.
    """
    try:
        line = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    words = [os.fsdecode(word) for word in line.split(b"\0")]
    at = 0
    if Path(words[0]).name.startswith("python"):
        at = next((at for at, word in enumerate(words) if at and not word.startswith("-")), 0)
    # Before the first word is the last one, which is empty: the line ends with a NUL.
    if Path(words[at]).name != PROGRAM and (words[at - 1], words[at]) != MODULE:
        return None
    is_value = False
    for word in words[at + 1 :]:
        if not is_value and not word.startswith("-"):
            return f"{PROGRAM} {word}".rstrip()
        is_value = word in ("--home", "--database")
    return PROGRAM
