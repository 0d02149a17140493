"""The write queue: pending writes, their deadlines, and the callers that wait for them.

A write consists of a request and a function that applies requests of this kind. Consecutive
requests of one kind in a batch are applied in one call, which returns one result per request. The
result is a `ResumesError` if the request was rejected and has written nothing. Requests of the most
common kind, create requests, are applied together. The request of every other write is a change: a
function of the connection, which runs in its own savepoint (`apply_changes`).

A change may run more than once, after a lost race or because its batch failed; only the effects of
its last run are committed.

PostgreSQL, which locks rows, runs the writes of one account one at a time. Only create requests of
several accounts share a transaction there; it does not wait for locked accounts, but skips them
(pitfalls S8).
"""

import asyncio
import contextlib
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import Connection

from resumes.errors import InvalidArgument, OutcomeUnknown, ResumesError, StoreUnavailable

logger = logging.getLogger("resumes.store")

Apply = Callable[[Connection, Sequence[Any]], Sequence[Any]]
"""Applies requests of one kind inside the transaction, and returns one result each, in order."""

Proof = Callable[[Connection, Any, Any], bool | None]
"""Returns whether a transaction was committed, or None if that cannot be proved. It is called in a
later transaction with one request of the first transaction and its result, and looks for their
effects."""

BATCH_LIMIT: Final = 512
"""The maximum number of requests in one transaction, so that a commit takes milliseconds."""

COMMIT_GRACE_S: Final = 20.0
"""How long a caller waits after the deadline for the outcome of a write that has begun."""

EXPIRY_INTERVAL_S: Final = 0.25
"""How often an event loop or an idle thread checks for expired writes. This is cheaper than a timer
for each write."""

QUIET_ITERATIONS: Final = 2
"""A turn begins after this many iterations of the event loop without new writes."""

ENOUGH_WRITES: Final = 64
"""A turn begins immediately when this many writes are waiting. A turn with fewer writes waits
briefly for more, because a commit costs as much as several writes."""

ERROR_DELAY_S: Final = 0.05
"""The delay after an unexpected error in a writer thread."""

CLOSED: Final = "The store is closed"
THREAD_ENDED: Final = (
    "A thread that the store depends on has ended, so nothing was done. Start this program again"
)
BUSY: Final = "The store is busy, so nothing was done; try again"

PENDING: Final = object()
"""The placeholder for an outcome that is not known yet; None is a possible outcome."""

SKIPPED: Final = object()
"""The result of a request that was skipped or rolled back and must be tried again, for example
because another transaction has locked its account or the server does not answer."""


class LostRace(Exception):
    """Raised if data has changed since it was read; the transaction is rolled back and retried."""

    sqlstate = "40001"
    """The code of PostgreSQL's own error in this case."""


@dataclass(slots=True, eq=False)
class Write:
    """A request in the queue. `deadline` is on the monotonic clock.

    `account_id` is the account that the write concerns, or None if it concerns several accounts or
    none. With `apply_shared`, the first try may share a transaction with other accounts, in which
    this function applies the write. With `ignores_closed`, the write runs even if the store is closed
    for a copy (`resumes.store.store`). The caller of `submit` sets the waiter, to which the write is
    delivered when it has an outcome. `tries` is the number of tries after which the write was put back
    into the queue, `failure` the error of the last of them, `races` the number of races that it lost, and
    `not_before` the earliest time of the next try.
    """

    apply: Apply
    request: Any
    _: KW_ONLY
    deadline: float
    account_id: str | None = None
    apply_shared: Apply | None = None
    proof: Proof | None = None
    ignores_closed: bool = False
    waiter: "ThreadWaiter | LoopWriter | None" = None
    tries: int = 0
    races: int = 0
    failure: ResumesError | None = None
    not_before: float = 0.0
    outcome: Any = PENDING

    @property
    def owner(self) -> object:
        """The account whose writes are done in order, or the write itself if it has no account."""
        return self.account_id or self

    @property
    def may_share(self) -> bool:
        """Whether it may share a transaction with other accounts."""
        return self.apply_shared is not None and not self.tries


class ThreadWaiter:
    """Lets a thread wait for all of its writes together, so that it is woken only once."""

    def __init__(self, writes: int) -> None:
        self._left = writes
        self._changed = threading.Condition()

    def deliver(self, writes: Sequence[Write]) -> None:
        """Record that these writes are done."""
        with self._changed:
            self._left -= len(writes)
            if self._left <= 0:
                self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until all writes are done; return False if the timeout expires first."""
        with self._changed:
            return self._changed.wait_for(lambda: self._left <= 0, timeout_s)


class WriteQueue(ABC):
    """The writes of one process, and the writer threads that commit them in batches."""

    def __init__(self, *thread_names: str) -> None:
        self.observe: Callable[[int, float], None] = lambda count, took_s: None
        """Called by the writer thread after each batch, with the number of writes and the seconds
        from the beginning to the commit. It must not raise or block."""
        self._changed = threading.Condition()
        self._is_closing = False
        self._waiting: dict[Write, None] = {}
        """The writes that have not begun, in order. Change it only with `_changed` held."""
        self._never = threading.Event()
        self.threads = [
            threading.Thread(target=self._run, name=name, daemon=True) for name in thread_names
        ]

    @property
    def waiting(self) -> int:
        """Return the number of writes that have not begun."""
        return len(self._waiting)

    @property
    def is_alive(self) -> bool:
        """Return whether writes are accepted."""
        return not self._is_closing and all(thread.is_alive() for thread in self.threads)

    def submit(self, write: Write) -> None:
        """Add the write, which may stay in the queue until `wake` or `begin_turn` is called.

        Raises StoreUnavailable if the queue is closed or a writer thread has ended.
        """
        with self._changed:
            if not self.is_alive:
                raise StoreUnavailable(CLOSED if self._is_closing else THREAD_ENDED)
            self._waiting[write] = None

    @abstractmethod
    def wake(self) -> None:
        """Wake the writer threads to run the waiting writes."""

    def begin_turn(self, loop_writer: "LoopWriter") -> None:
        """Begin the waiting writes of an event loop without blocking.

        If this must be tried again later, `loop_writer.plan_turn` is called then.
        """
        self.wake()

    def withdraw(self, write: Write) -> None:
        """Remove the write from the queue, unless it has begun."""
        with self._changed:
            self._waiting.pop(write, None)

    def expire(self) -> None:
        """Remove the writes whose deadline has passed, and give their callers an error."""
        with self._changed:
            now = time.monotonic()
            overdue = [write for write in self._waiting if write.deadline <= now]
            for write in overdue:
                del self._waiting[write]
                write.outcome = write.failure or StoreUnavailable(BUSY)
        deliver(overdue)

    def _take(self, writes: Iterable[Write]) -> list[Write]:
        """Remove at most a batch of these writes from the queue, and return them.

        Call it with `_changed` held.
        """
        batch = list(islice(writes, BATCH_LIMIT))
        for write in batch:
            del self._waiting[write]
        return batch

    def _give_back(self, skipped: Sequence[Write]) -> None:
        """Put these writes back at the front of the queue. Call it with `_changed` held."""
        for write in skipped:
            write.tries += 1
            write.outcome = PENDING
        waiting = [*skipped, *self._waiting]
        self._waiting.clear()
        self._waiting.update(dict.fromkeys(waiting))

    @abstractmethod
    def paused(self) -> AbstractContextManager[None]:
        """Wait until running writes have ended, and run no other writes during the block.

        The process can then be suspended during the block (pitfalls S9).
        """

    def write_all(self, writes: Sequence[Write]) -> list[Any]:
        """Submit the writes, and return their outcomes or errors. Blocks the thread."""
        waiter = ThreadWaiter(len(writes))
        for write in writes:
            write.waiter = waiter
            self.submit(write)
        self.wake()
        ends_at = max((write.deadline for write in writes), default=0.0)
        if not waiter.wait(ends_at - time.monotonic()):
            self.expire()
            waiter.wait(COMMIT_GRACE_S)
        return [OutcomeUnknown() if write.outcome is PENDING else write.outcome for write in writes]

    def _commit_batch(self, batch: list[Write], commit: Callable[[list[Write]], list[Any]]) -> None:
        """Commit the batch and give each write its outcome.

        `commit` returns the outcomes, or rolls back all writes and raises. Writes that were rolled
        back are retried one by one, so that no write can make others fail (pitfalls S7).
        """
        try:
            outcomes = commit(batch)
        except ResumesError as error:
            outcomes = [error] * len(batch)
        except Exception as error:  # noqa: BLE001 - every error is passed on
            if len(batch) > 1:
                self._warn("A batch of writes was rolled back; retrying them one by one", error)
                for number, write in enumerate(batch, 1):
                    self._commit_batch([write], commit)
                    if write.outcome is SKIPPED:
                        # Later writes, perhaps of the same account, must not overtake it.
                        for later in batch[number:]:
                            later.outcome = SKIPPED
                        return
                return
            outcomes = [self._explain(error)]
        for write, outcome in zip(batch, outcomes, strict=True):
            write.outcome = outcome

    def _warn(self, what: str, error: BaseException) -> None:
        """Log what happened, and the error as far as it contains no data that was to be written."""
        logger.warning("%s", what)

    @abstractmethod
    def _explain(self, error: Exception) -> Exception:
        """Return the exception to raise in the caller of a failed write."""

    def _outlive(self) -> None:
        """Log the error that is being handled, and pause, because it may occur again immediately.

        Never raises: a writer thread must survive every error (pitfalls S7), and logging or waiting
        may fail for the same reason.
        """
        with contextlib.suppress(BaseException):
            logger.exception("Unexpected error in a writer thread")
        with contextlib.suppress(BaseException):
            self._never.wait(ERROR_DELAY_S)

    def close(self) -> None:
        """Finish the waiting writes and stop the threads. This may be called twice."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self.threads:
            thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Commit batches until the queue is closed and empty. A writer thread runs this."""


class LoopWriter:
    """The writes of one event loop. `deliver` and `plan_turn` may be called from any thread."""

    def __init__(self, queue: WriteQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._queue = queue
        self._loop = loop
        self._pending: dict[Write, asyncio.Future[Any]] = {}
        self._is_turn_due = False
        self._seen_writes = self._quiet_iterations = 0
        """The number of waiting writes, and the number of iterations since it last grew."""
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, write: Write) -> Any:
        """Submit the write and return its outcome, or an error if it failed.

        If the coroutine is cancelled, the write is withdrawn unless it has already begun.
        """
        waiter: asyncio.Future[Any] = self._loop.create_future()
        write.waiter = self
        self._queue.submit(write)
        self._pending[write] = waiter
        self._plan_turn()
        if self._timer is None:
            self._timer = self._loop.call_later(EXPIRY_INTERVAL_S, self._expire)
        try:
            return await waiter
        except asyncio.CancelledError:
            self._queue.withdraw(write)
            self._pending.pop(write, None)
            raise

    def _plan_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        waiting = self._queue.waiting
        if waiting and self._is_gathering(waiting):
            self._loop.call_soon(self._begin_turn)
            return
        self._seen_writes = self._quiet_iterations = 0
        self._is_turn_due = False
        if waiting:
            self._queue.begin_turn(self)

    def _is_gathering(self, waiting: int) -> bool:
        if waiting > self._seen_writes:
            self._seen_writes, self._quiet_iterations = waiting, 0
        else:
            self._quiet_iterations += 1
        return waiting < ENOUGH_WRITES and self._quiet_iterations < QUIET_ITERATIONS

    def plan_turn(self) -> None:
        """Schedule a turn for the waiting writes. This is called when the last turn has ended."""
        try:
            self._loop.call_soon_threadsafe(self._plan_turn)
        except RuntimeError:
            self._queue.wake()  # this loop is closed, but other callers may wait

    def deliver(self, writes: Sequence[Write]) -> None:
        """Wake the coroutines that still wait for these writes."""
        try:
            self._loop.call_soon_threadsafe(self._settle_all, writes)
        except RuntimeError:
            # The loop is closed and its requests are gone, but the writes have their outcomes.
            logger.warning("%d writes finished after their event loop was closed", len(writes))

    def _settle_all(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._settle(write, write.outcome)

    def _settle(self, write: Write, outcome: Any) -> None:
        # The outcome is passed on now: the queue may change it before the coroutine continues.
        waiter = self._pending.pop(write, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(outcome)

    def _expire(self) -> None:
        self._queue.expire()
        unanswered_since = time.monotonic() - COMMIT_GRACE_S
        for write in [each for each in self._pending if each.deadline <= unanswered_since]:
            self._settle(write, OutcomeUnknown())
        self._timer = (
            self._loop.call_later(EXPIRY_INTERVAL_S, self._expire) if self._pending else None
        )


def deliver(writes: Iterable[Write]) -> None:
    """Wake the callers of these writes. Writes without an outcome get OutcomeUnknown.

    Never raises or blocks.
    """
    by_waiter: dict[ThreadWaiter | LoopWriter, list[Write]] = {}
    for write in writes:
        if write.outcome is PENDING:
            write.outcome = OutcomeUnknown()
        if write.waiter is not None:
            by_waiter.setdefault(write.waiter, []).append(write)
    for waiter, finished in by_waiter.items():
        waiter.deliver(finished)


def apply_all(
    connection: Connection, batch: Sequence[Write], *, is_shared: bool = False
) -> list[Any]:
    """Apply the writes of a batch inside the transaction, and return their results.

    `is_shared` tells whether accounts share the transaction.
    """
    outcomes: list[Any] = []
    for apply, group in groupby(batch, attrgetter("apply_shared" if is_shared else "apply")):
        requests = [write.request for write in group]
        results = apply(connection, requests)
        if len(results) != len(requests):
            raise AssertionError("a write has to give one result for each request")
        outcomes.extend(results)
    return outcomes


def apply_changes(
    connection: Connection, changes: Sequence[Callable[[Connection], Any]]
) -> list[Any]:
    """Run the changes, and return the result of each, or the ResumesError that it raised.

    Each change has its own savepoint, so a change that raises a ResumesError has written nothing.
    """
    results: list[Any] = []
    for change in changes:
        try:
            with connection.begin_nested():
                results.append(change(connection))
        except ResumesError as error:
            results.append(error)
        except UnicodeEncodeError as error:
            results.append(not_text(error))
    return results


def not_text(error: UnicodeEncodeError) -> InvalidArgument:
    """Return the error for a command-line word that is not UTF-8."""
    return InvalidArgument(f"Not UTF-8 text: {error.object[:80]!r}")


def was_committed(
    connection: Connection, batch: Sequence[Write], outcomes: Sequence[Any]
) -> bool | None:
    """Return whether the batch's transaction was committed, or None if no write can prove it."""
    for write, outcome in zip(batch, outcomes, strict=True):
        verdict = write.proof and write.proof(connection, write.request, outcome)
        if verdict is not None:
            return verdict
    return None
