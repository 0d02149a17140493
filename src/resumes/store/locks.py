"""File locks between the processes of one store, and the names of these processes in messages.

A `flock` belongs to an open file and is released when its process ends, even after a crash. Only
the `flock` determines whether a lock is held, never a stored process ID. Lock files are never
removed.
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
    """Run the action, with retries for up to `timeout_s` seconds (0: none); return its result.

    The delays before retries are used in order; the last delay is repeated. Raises a retryable
    error of the action after the timeout, and any other error immediately.
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
"""The delays before retries. Most locks are free within microseconds; others stay locked long."""


class FileLock:
    """A lock on a file, which is created if missing. Threads must not use it at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, *, shared: bool = False, timeout_s: float) -> bool:
        """Return whether the lock was acquired within `timeout_s` seconds (0: try only once).

        It polls instead of waiting in the kernel, because a suspended process may hold the lock
        (pitfalls S9). A shared lock can be made exclusive and vice versa, but not atomically:
        another process may get the lock in between.
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
        """Update the file's times. Raises OSError if its file system has become read-only."""
        os.utime(self._descriptor)

    def keep_across_exec(self) -> None:
        """Keep the lock if this process executes another program, until that program ends."""
        os.set_inheritable(self._descriptor, True)

    def close(self) -> None:
        """Release the lock and close the file."""
        os.close(self._descriptor)

    def holders(self) -> list[int]:
        """Return the IDs of other processes that hold the file's lock, if the system shows them."""
        return sorted(find_holders(self.path) - {os.getpid()})


# Messages name the command that a user typed. If they named its child processes (workers, or the
# API and the importer of `resumes up`) and users stopped these, they would only be started again.
# On systems without /proc, messages contain only process IDs.

PROGRAM: Final = "resumes"
MODULE: Final = ("-m", "cli")
PROC: Final = Path("/proc")


def find_holders(path: Path, *, proc: Path = PROC) -> set[int]:
    """Return the process IDs for this file in the system's lock table, or none without a table."""
    try:
        key = _lock_key(path)
        table = (proc / "locks").read_text(encoding="ascii")
    except OSError:
        return set()
    # A line contains: number, kind of lock, ADVISORY, READ or WRITE, pid, device and inode, range.
    rows = (line.split() for line in table.splitlines() if "->" not in line)
    return {int(row[4]) for row in rows if len(row) > 5 and row[5] == key}


def _lock_key(path: Path) -> str:
    """Return the name of the file in the lock table: `fd:01:1234`. Raises OSError.

    It contains the mount's device, which on btrfs and some others is not the device in `stat`.
    """
    # O_PATH works without permission to read the file. Only Linux has it and the lock table.
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
    """Return the processes to stop: `2329 (resumes up), 6380 (resumes tui)`, or `unknown`."""
    typed = sorted({_find_typed(pid, proc) for pid in pids})
    commands = ((pid, _find_command(pid, proc)) for pid in typed)
    names = (f"{pid} ({command})" if command else str(pid) for pid, command in commands)
    return ", ".join(names) or "unknown"


def _find_typed(pid: int, proc: Path) -> int:
    """Return the topmost ancestor that runs this program, usually the process itself."""
    found = pid
    while (parent := _find_parent(found, proc)) and _find_command(parent, proc):
        found = parent
    return found


def _find_parent(pid: int, proc: Path) -> int | None:
    try:
        status = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The state and the parent follow the name, which may contain anything but ends at the last `)`.
    return int(status.rpartition(")")[2].split()[1])


def _find_command(pid: int, proc: Path) -> str | None:
    """Return the command, such as `resumes up`, or None if the process does not run this program.

    Options and arguments are left out because they may contain a password.
    """
    try:
        line = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    words = [os.fsdecode(word) for word in line.split(b"\0")]
    at = 0
    if Path(words[0]).name.startswith("python"):
        at = next((at for at, word in enumerate(words) if at and not word.startswith("-")), 0)
    # If `at` is 0, words[at - 1] is the last word, which is empty because the line ends with a NUL.
    if Path(words[at]).name != PROGRAM and (words[at - 1], words[at]) != MODULE:
        return None
    is_value = False
    for word in words[at + 1 :]:
        if not is_value and not word.startswith("-"):
            return f"{PROGRAM} {word}".rstrip()
        is_value = word in ("--home", "--database")
    return PROGRAM
