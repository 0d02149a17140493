"""What is counted while requests are answered, in memory that the processes of a server share.

That takes 0.3 µs a request. prometheus_client's multiprocess mode takes 3.6 µs, which is more than 3 % of
reading a resume. A name has its places in `Counters`; how they become the Prometheus format is
`exposition`'s.
"""

import contextlib
import fcntl
import http
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
        """Take a slot that no living process has, with what its last owner counted.

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
        """Return each place added up over all slots."""
        size = self._size
        slots = [self._all[at * size : (at + 1) * size] for at in range(self._slot_count)]
        return [sum(places) for places in zip(*slots, strict=True)]

    def close(self) -> None:
        """Free the slot for another process. Safe to call twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock_free_slot(descriptor: int, slot_count: int) -> int:
    """Lock and return the first slot whose byte nobody has locked, until this process ends."""
    for slot in range(slot_count):
        with contextlib.suppress(BlockingIOError, PermissionError):  # as POSIX lets systems say
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            return slot
    raise BlockingIOError(f"All {slot_count} slots for metrics are taken")


@contextlib.contextmanager
def shared_counters(folder: Path, *, workers: int) -> Iterator[SharedCounters]:
    """Make a file for the counters of this process's workers, and remove it after the block.

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


OPERATIONS = ("list", "create", "get", "delete", "pdf", "health", "ready", "metrics", "")
"""All that can be asked for, by the names of `Request.operation`; last what is none of these."""

STATUSES = tuple(map(int, http.HTTPStatus))
"""The statuses that are counted each on its own,"""

OTHERS = len(STATUSES)
"""the place behind them is for requests whose client left before an answer."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of what requests and commits take."""

WRITES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
"""Upper bounds of the writes in a batch."""


class Spread(NamedTuple):
    """The places of a histogram: one for each bound, one for what is above them all, the sum."""

    at: int
    bounds: Sequence[float]

    @property
    def sum_at(self) -> int:
        """The place of the sum."""
        return self.at + len(self.bounds) + 1

    @property
    def end(self) -> int:
        """The first place behind it."""
        return self.sum_at + 1


class Places:
    """Where everything is, counted from the beginning of a slot."""

    started = 0
    """Requests that have begun."""
    connections = 1
    waiting_writes = 2
    dropped_lines = 3
    requests = 4
    """For each operation, for each status and the others: requests that are over."""

    durations: Sequence[Spread]
    """For each operation."""

    def __init__(self) -> None:
        end = self.requests + len(OPERATIONS) * (OTHERS + 1)
        durations = []
        for _ in OPERATIONS:
            durations.append(Spread(end, SECONDS))
            end = durations[-1].end
        self.durations = durations
        self.commits = Spread(end, SECONDS)
        self.batches = Spread(self.commits.end, WRITES)
        self.size = self.batches.end

    def requests_of(self, operation: int, status: int) -> int:
        """Return the place for the operation of this number and the status of that."""
        return self.requests + operation * (OTHERS + 1) + status


PLACES = Places()


class _Of(NamedTuple):
    """The places of one operation, as they are needed for every request."""

    by_status: dict[int, int]
    others: int
    durations: int
    sum: int


class Metrics:
    """Counts. Requests belong to the event loop's thread, batches to a writer thread's."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self._mine = counters.mine
        self._of = {name: _places_of(number) for number, name in enumerate(OPERATIONS)}
        self._of_none = self._of[""]
        # What a predecessor in this slot had begun or held went with it.
        self._mine[PLACES.started] = self._finished()
        self._dropped_before = self._mine[PLACES.dropped_lines]
        for place in (PLACES.connections, PLACES.waiting_writes):
            self._mine[place] = 0.0

    def _finished(self) -> float:
        return sum(self._mine[PLACES.requests : PLACES.durations[0].at])

    def begin(self) -> None:
        """Count a request that has begun; `end` is called for each once."""
        self._mine[0] += 1.0

    @property
    def started(self) -> float:
        """How many requests have begun."""
        return self._mine[PLACES.started]

    def end(self, operation: str, status: int, took_s: float) -> None:
        """Count a request that is over, by its status; 0: its client left before an answer."""
        mine = self._mine
        of = self._of.get(operation, self._of_none)
        mine[of.by_status.get(status, of.others)] += 1.0
        mine[of.durations + bisect_left(SECONDS, took_s)] += 1.0
        mine[of.sum] += took_s

    def observe_batch(self, writes: int, took_s: float) -> None:
        """Count a batch of writes that was committed, or failed."""
        _observe(self._mine, PLACES.batches, writes)
        _observe(self._mine, PLACES.commits, took_s)

    def put(self, *, connections: int, waiting_writes: int, dropped_lines: int) -> None:
        """Set a value as it is at this moment, for whichever process is asked."""
        self._mine[PLACES.connections] = connections
        self._mine[PLACES.waiting_writes] = waiting_writes
        self._mine[PLACES.dropped_lines] = self._dropped_before + dropped_lines


def _observe(places: "memoryview[float]", spread: Spread, value: float) -> None:
    places[spread.at + bisect_left(spread.bounds, value)] += 1.0
    places[spread.sum_at] += value


def _places_of(operation: int) -> _Of:
    durations = PLACES.durations[operation]
    return _Of(
        {status: PLACES.requests_of(operation, at) for at, status in enumerate(STATUSES)},
        PLACES.requests_of(operation, OTHERS),
        durations.at,
        durations.sum_at,
    )
