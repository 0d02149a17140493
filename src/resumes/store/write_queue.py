"""The write queue: pending writes, their deadlines, and the callers that wait for them.

A write is a request and the function that applies requests of its kind. Requests of one kind in a
batch are applied in one call. The function returns a result for each request: a `ResumesError` for a
request that is refused and has written nothing. Most writes are rare: their request is a change, a
function of the connection, and each is run in its own savepoint (`apply_changes`). Only creates have
a function that applies many at once.

A change may be run more than once, after a race or with a batch that failed; only what its last run
wrote is committed.

Engines that lock rows do the writes of an account one after the other. Only creates of several accounts
share a transaction there: it waits for no account, but skips those that are locked (pitfalls S8).
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
from typing import Any, Final

from sqlalchemy import Connection

from resumes.errors import InvalidArgument, OutcomeUnknown, ResumesError, StoreUnavailable

logger = logging.getLogger("resumes.store")

Apply = Callable[[Connection, Sequence[Any]], Sequence[Any]]
"""Applies requests of one kind inside the transaction; one result each, in order."""

Proof = Callable[[Connection, Any, Any], bool | None]
"""Returns whether a transaction was committed, by looking for the effects of one of its requests, given
with its result; None if that request proves nothing. Called in another transaction, after the first
has ended."""

BATCH_LIMIT: Final = 512
"""The maximum number of requests in one transaction, so that a commit takes milliseconds."""

COMMIT_GRACE_S: Final = 20.0
"""How long after its deadline a caller waits for the outcome of a write that was begun."""

EXPIRY_INTERVAL_S: Final = 0.25
"""How often an event loop, or an idle thread, looks for expired writes; cheaper than a timer for each
write."""

QUIET_ITERATIONS: Final = 2
"""A turn begins once this many iterations of the event loop have brought no more writes."""

ENOUGH_WRITES: Final = 64
"""A turn begins immediately when this many writes wait. A commit costs as much as several writes, so
committing two instead of thirty at once would cost them more time than the short wait."""

ERROR_DELAY_S: Final = 0.05
"""The delay after an unexpected error in a writer thread."""

CLOSED: Final = "The store is closed"
THREAD_ENDED: Final = (
    "A thread that the store depends on has ended, so nothing was done. Start this program again"
)
BUSY: Final = "The store is busy, so nothing was done; try again"

PENDING: Final = object()
"""The outcome of a write that has none yet; None is an outcome."""

SKIPPED: Final = object()
"""The result of a request whose account another transaction has locked."""


class LostRace(Exception):
    """Raised when data has changed since it was read: the transaction is rolled back and retried."""


@dataclass(slots=True, eq=False)
class Write:
    """A request in the queue. `deadline` is on the monotonic clock.

    `account_id` is the account that it concerns; None for several, or none. With `apply_alone` it may
    share a transaction with other accounts; if its result is SKIPPED there, that function applies it.
    With `ignores_closed` it is done even in a store that is closed for a copy (`resumes.store.store`).
    The caller of `submit` sets the waiter, which is given the write when it has its outcome.
    """

    apply: Apply
    request: Any
    _: KW_ONLY
    deadline: float
    account_id: str | None = None
    apply_alone: Apply | None = None
    proof: Proof | None = None
    ignores_closed: bool = False
    waiter: "ThreadWaiter | LoopWriter | None" = None
    outcome: Any = PENDING

    @property
    def was_skipped(self) -> bool:
        """True if it was given back, to be applied alone."""
        return self.apply is self.apply_alone

    @property
    def may_share(self) -> bool:
        """True if it may share a transaction with other accounts."""
        return self.apply_alone is not None and not self.was_skipped


class ThreadWaiter:
    """Lets a thread wait for all of its writes at once, so that it is woken once."""

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
        """Wait until all writes are done; return False if they are not within the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._left <= 0, timeout_s)


class WriteQueue(ABC):
    """The writes of one process, and the writer threads that commit them in batches."""

    def __init__(self, *thread_names: str) -> None:
        self.observe: Callable[[int, float], None] = lambda count, took_s: None
        """Called after each batch, in its writer thread, with the number of writes and the seconds
        from beginning to commit; must not raise or block."""
        self._changed = threading.Condition()
        self._is_closing = False
        self._waiting: dict[Write, None] = {}
        """The writes that no thread has begun, in order. Changes with `_changed` held."""
        self._never = threading.Event()
        self.threads = [
            threading.Thread(target=self._run, name=name, daemon=True) for name in thread_names
        ]

    @property
    def waiting(self) -> int:
        """The number of writes that no thread has begun."""
        return len(self._waiting)

    @property
    def is_alive(self) -> bool:
        """True if writes are accepted."""
        return not self._is_closing and all(thread.is_alive() for thread in self.threads)

    def submit(self, write: Write) -> None:
        """Add the write; it may stay in the queue until `wake` or `begin_turn` is called. Raise
        StoreUnavailable once the queue is closed."""
        with self._changed:
            if not self.is_alive:
                raise StoreUnavailable(CLOSED if self._is_closing else THREAD_ENDED)
            self._waiting[write] = None

    @abstractmethod
    def wake(self) -> None:
        """Wake the writer threads to do the waiting writes."""

    def begin_turn(self, loop_writer: "LoopWriter") -> None:
        """Begin the waiting writes, for an event loop, without blocking; `loop_writer.plan_turn` is called
        if it has to be tried again later."""
        self.wake()

    def withdraw(self, write: Write) -> None:
        """Remove the write from the queue, unless it has begun."""
        with self._changed:
            self._waiting.pop(write, None)

    def expire(self) -> None:
        """Withdraw the writes whose deadline has passed, and tell their callers."""
        with self._changed:
            now = time.monotonic()
            overdue = [write for write in self._waiting if write.deadline <= now]
            for write in overdue:
                del self._waiting[write]
                write.outcome = StoreUnavailable(BUSY)
        deliver(overdue)

    def _take(self, writes: Iterable[Write]) -> list[Write]:
        """Return the first of these writes, a batch at most, as begun. Called with `_changed` held."""
        batch = list(islice(writes, BATCH_LIMIT))
        for write in batch:
            del self._waiting[write]
        return batch

    def _give_back(self, skipped: Sequence[Write]) -> None:
        """Let these writes wait again, before all others, to be applied alone. Called with `_changed` held."""
        for write in skipped:
            assert write.apply_alone is not None
            write.apply, write.outcome = write.apply_alone, PENDING
        waiting = [*skipped, *self._waiting]
        self._waiting.clear()
        self._waiting.update(dict.fromkeys(waiting))

    @abstractmethod
    def paused(self) -> AbstractContextManager[None]:
        """Let no write run during the block, so that the process may be stopped in it (pitfalls S9).
        Wait first until the writes under way have ended."""

    def write_all(self, writes: Sequence[Write]) -> list[Any]:
        """Submit the writes and return their outcomes, an error for each that failed. Blocks this
        thread."""
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
        """Give each write its outcome: `commit` returns them, committed, or has rolled all back.

        Writes that were rolled back are committed again one by one, so that none can make the others
        fail (pitfalls S7).
        """
        try:
            outcomes = commit(batch)
        except ResumesError as error:
            outcomes = [error] * len(batch)
        except Exception as error:  # noqa: BLE001 - rolled back, whatever it is, and handed on
            if len(batch) > 1:
                self._warn("A batch of writes was rolled back; retrying them one by one", error)
                for write in batch:
                    self._commit_batch([write], commit)
                return
            outcomes = [self._explain(error)]
        for write, outcome in zip(batch, outcomes, strict=True):
            write.outcome = outcome

    def _warn(self, what: str, error: BaseException) -> None:
        """Log what happened, with the error as far as it does not contain the data to be written."""
        logger.warning("%s", what)

    @abstractmethod
    def _explain(self, error: Exception) -> Exception:
        """Return the exception to raise for an error of a write."""

    def _outlive(self) -> None:
        """Log the error that is being handled, and pause, as it may come again immediately.

        Never raises: a writer thread survives any error (pitfalls S7), and logging or waiting may fail
        for the same reason.
        """
        with contextlib.suppress(BaseException):
            logger.exception("Unexpected error in a writer thread")
        with contextlib.suppress(BaseException):
            self._never.wait(ERROR_DELAY_S)

    def close(self) -> None:
        """Finish the waiting writes and end the threads. Safe to call twice."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self.threads:
            thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Commit batches until the queue is closed and empty; the body of a writer thread."""


class LoopWriter:
    """The writes of one event loop. `deliver` and `plan_turn` may be called from any thread."""

    def __init__(self, queue: WriteQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._queue = queue
        self._loop = loop
        self._pending: dict[Write, asyncio.Future[Any]] = {}
        self._is_turn_due = False
        self._seen_writes = self._quiet_iterations = 0
        """How many writes waited in the last iteration, and how many iterations brought no more."""
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, write: Write) -> Any:
        """Submit the write and return its outcome, an error if it failed.

        If the coroutine is cancelled, the write is withdrawn unless it has begun.
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
        """Begin a turn for the waiting writes, from any thread, after the last turn has ended."""
        try:
            self._loop.call_soon_threadsafe(self._plan_turn)
        except RuntimeError:
            self._queue.wake()  # this loop is closed, but other callers may wait

    def deliver(self, writes: Sequence[Write]) -> None:
        """Wake the coroutines that wait for these writes, from any thread; skip those that are gone."""
        try:
            self._loop.call_soon_threadsafe(self._settle_all, writes)
        except RuntimeError:
            # The loop is closed: its requests were abandoned, but the writes have their outcomes.
            logger.warning("%d writes finished after their event loop was closed", len(writes))

    def _settle_all(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._settle(write, write.outcome)

    def _settle(self, write: Write, outcome: Any) -> None:
        # The outcome is copied: the queue may set another one before the coroutine continues.
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
    """Wake the callers that wait for these writes; a write without an outcome gets OutcomeUnknown. Never
    raises or blocks."""
    by_waiter: dict[ThreadWaiter | LoopWriter, list[Write]] = {}
    for write in writes:
        if write.outcome is PENDING:
            write.outcome = OutcomeUnknown()
        if write.waiter is not None:
            by_waiter.setdefault(write.waiter, []).append(write)
    for waiter, finished in by_waiter.items():
        waiter.deliver(finished)


def apply_all(connection: Connection, batch: Sequence[Write]) -> list[Any]:
    """Return the result of each write of a batch, inside the transaction."""
    outcomes: list[Any] = []
    for apply, group in groupby(batch, key=lambda write: write.apply):
        requests = [write.request for write in group]
        results = apply(connection, requests)
        if len(results) != len(requests):
            raise AssertionError("a write has to give one result for each request")
        outcomes.extend(results)
    return outcomes


def apply_changes(
    connection: Connection, changes: Sequence[Callable[[Connection], Any]]
) -> list[Any]:
    """Return the result of each change, or the ResumesError with which it was refused.

    Each change has its own savepoint: one that raises a ResumesError has written nothing.
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
    """Return whether the batch's transaction was committed; None if none of its writes proves it."""
    for write, outcome in zip(batch, outcomes, strict=True):
        verdict = write.proof and write.proof(connection, write.request, outcome)
        if verdict is not None:
            return verdict
    return None
