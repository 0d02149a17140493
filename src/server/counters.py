"""Numbers that the processes of one server count, each in a slot of its own, in memory they share.

A slot is an array of doubles, exact for whole numbers up to 2^53. A process writes only to its own
slot, and each place in it from one thread, so that nothing need be locked; whoever is asked adds
up all slots. What a process that died has counted stays, and its successor counts on.
"""

import contextlib
import fcntl
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from server.shared_memory import map_shared

DOUBLE_BYTES = 8
FILE_NAME = "metrics-{}"


@dataclass(frozen=True, slots=True)
class SharedCounters:
    """A file for the counters of a supervisor's workers."""

    path: Path
    slot_count: int


class Counters:
    """The slots of a server, and the one of this process."""

    def __init__(self, memory: mmap.mmap, *, size: int, slot: int, slot_count: int) -> None:
        self._memory = memory
        self._all = memoryview(memory).cast("d")
        self._size = size
        self._slot_count = slot_count
        self.mine = self._all[slot * size : (slot + 1) * size]
        """The places of this process; only it writes there."""
        self._lock: int | None = None

    @classmethod
    def alone(cls, size: int) -> "Counters":
        """Counters of `size` places, at zero, for a server of one process."""
        return cls(mmap.mmap(-1, size * DOUBLE_BYTES), size=size, slot=0, slot_count=1)

    @classmethod
    def share(cls, shared: SharedCounters, size: int) -> "Counters":
        """A slot that no living process has, with what its last owner counted.

        Raises OSError, BlockingIOError among them when all slots are taken.
        """
        memory = map_shared(shared.path, shared.slot_count * size * DOUBLE_BYTES)
        # Opened after the memory was: closing any descriptor of a file drops a process's locks.
        descriptor = os.open(shared.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            slot = _lock_free_slot(descriptor, shared.slot_count)
        except OSError:
            os.close(descriptor)
            raise
        counters = cls(memory, size=size, slot=slot, slot_count=shared.slot_count)
        counters._lock = descriptor
        return counters

    def sums(self) -> Sequence[float]:
        """Each place added up over all slots."""
        size = self._size
        slots = [self._all[at * size : (at + 1) * size] for at in range(self._slot_count)]
        return [sum(places) for places in zip(*slots, strict=True)]

    def close(self) -> None:
        """The slot is free for another process. Safe to call twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock_free_slot(descriptor: int, slot_count: int) -> int:
    """The first slot whose byte nobody has locked, locked until this process ends."""
    for slot in range(slot_count):
        with contextlib.suppress(BlockingIOError, PermissionError):  # as POSIX lets systems say
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            return slot
    raise BlockingIOError(f"All {slot_count} slots for metrics are taken")


@contextlib.contextmanager
def shared_counters(folder: Path, *, workers: int) -> Iterator[SharedCounters]:
    """A new file for the counters of this process's workers, which is gone after the block.

    Files that killed supervisors left there go as well. A slot more than there are workers, for
    a successor that starts before its predecessor has ended. Raises OSError.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_abandoned(folder)
    path = folder / FILE_NAME.format(os.getpid())
    path.unlink(missing_ok=True)  # of a process that had our id
    try:
        yield SharedCounters(path, workers + 1)
    finally:
        path.unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(FILE_NAME.format("*")):
        owner = path.name.rpartition("-")[2]
        if owner.isdigit() and not _is_running(int(owner)):
            path.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
