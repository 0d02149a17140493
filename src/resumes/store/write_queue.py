"""Writes on their way to the engine: what is to be done, until when, and who waits for it.

A write is a request and the function that applies requests of its kind. Requests of one kind that
meet in a batch are applied in one call. The function returns a result for each request, a
`ResumesError` among them for a request that is refused and has written nothing. Most writes are
rare: their request is a change, a function of the connection, and each is run in a savepoint of its
own (`apply_changes`). Only creates are worth a function that applies many at once.

A change may be run more than once, after a race or with a batch that failed; only what its last run
wrote is committed.

Engines that lock rows do the writes of an account one after the other, and hold no two accounts in
one transaction (pitfalls S8).
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any, Protocol

from sqlalchemy import Connection

from resumes.errors import InvalidArgument, OutcomeUnknown, ResumesError, StoreUnavailable

Apply = Callable[[Connection, Sequence[Any]], Sequence[Any]]
"""Applies requests of one kind inside the transaction; one result each, in order."""


class Request(Protocol):
    """A request of a write that is applied with others."""

    @property
    def account_id(self) -> str:
        """The account that it concerns."""


Change = Callable[[Connection], Any]
"""The request of a rare write: writes, and returns the result. Must be repeatable."""

Proof = Callable[[Connection, Any, Any], bool | None]
"""Returns whether a transaction was committed, by what it has left behind: given one of its requests
and what that came to. None: this one cannot tell. Asked in another transaction, after the first has
ended."""

BATCH_LIMIT = 512
"""Requests in one transaction at most, so that a commit stays a matter of milliseconds."""

BUSY = "The store is busy; nothing was done, try again"


class LostRace(Exception):
    """What was read is true no more: the transaction is undone, and tried again."""


PENDING = object()
"""The outcome of a write that has none yet; None is an outcome."""


class Mailbox(Protocol):
    """Where finished writes are delivered, by whoever had the turn."""

    def deliver(self, writes: "Sequence[Write]") -> None:
        """Each write has its `outcome`; tell its waiter. Must not raise or block."""


class Write:
    """A request on its way to the engine. `deadline` is on the monotonic clock.

    `account_id` is the account that it concerns; None for several, or none. `ignores_closed`: it is
    done whatever the marks of a copy say (`resumes.store.closed`). Who waits sets `mailbox` and
    `waiter` before the write is offered.
    """

    __slots__ = (
        "account_id",
        "apply",
        "deadline",
        "ignores_closed",
        "mailbox",
        "outcome",
        "proof",
        "request",
        "waiter",
    )

    def __init__(
        self,
        apply: Apply,
        request: Any,
        *,
        deadline: float,
        account_id: str | None = None,
        proof: Proof | None = None,
        ignores_closed: bool = False,
    ) -> None:
        self.apply = apply
        self.request = request
        self.deadline = deadline
        self.account_id = account_id
        self.proof = proof
        self.ignores_closed = ignores_closed
        self.mailbox: Mailbox
        self.waiter: Any
        self.outcome: Any = PENDING


class ThreadWaiter:
    """Where a thread waits for all of its writes at once, so that it is woken once."""

    def __init__(self, writes: int) -> None:
        self._left = writes
        self._changed = threading.Condition()

    def count_down(self, writes: int = 1) -> None:
        """Note that so many writes are done."""
        with self._changed:
            self._left -= writes
            if self._left <= 0:
                self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until all writes are done; return False if they are not within the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._left <= 0, timeout_s)


class ThreadMailbox:
    """Wakes threads that wait on a `ThreadWaiter`."""

    def deliver(self, writes: Sequence[Write]) -> None:
        """Let each thread go on whose writes are all done."""
        waiters: Counter[ThreadWaiter] = Counter(write.waiter for write in writes)
        for waiter, count in waiters.items():
            waiter.count_down(count)


class Listener(Protocol):
    """Who wants to begin a turn."""

    def lane_is_free(self) -> None:
        """A turn has ended. Called in whatever thread it ended in; must not raise or block."""


class Lane(Protocol):
    """How a process writes to an engine, many callers' writes in one transaction."""

    observe: Callable[[int, float], None]
    """Called after each batch with its writes and the seconds from its beginning to the end of
    its commit, in the thread that wrote; must not raise or block."""

    @property
    def waiting(self) -> int:
        """How many writes wait for their turn."""

    @property
    def is_alive(self) -> bool:
        """Whether writes are being taken."""

    def offer(self, write: Write) -> None:
        """The write waits for a turn, which whoever offers it has to begin or to ask for. Raises
        StoreUnavailable once the lane is closed."""

    def ask(self) -> None:
        """What waits gets its turn as soon as can be."""

    def begin_turn(self, listener: Listener) -> None:
        """What waits is begun here and now where that waits for nobody; otherwise as `ask`."""

    def withdraw(self, write: Write) -> bool:
        """Whether the write was still waiting; then it will not happen."""

    def left(self) -> AbstractContextManager[None]:
        """No write runs during the block, so the process may be stopped in it (pitfalls S9)."""

    def close(self) -> None:
        """What was waiting is written. Safe to call twice."""


def apply_all(connection: Connection, batch: Sequence[Write]) -> list[Any]:
    """What each write of a batch came to, inside the transaction."""
    outcomes: list[Any] = []
    for apply, group in groupby(batch, key=lambda write: write.apply):
        requests = [write.request for write in group]
        results = apply(connection, requests)
        if len(results) != len(requests):
            raise AssertionError("a write has to give one result for each request")
        outcomes.extend(results)
    return outcomes


def apply_changes(connection: Connection, changes: Sequence[Change]) -> list[Any]:
    """Return what each of the changes returned, or the ResumesError with which it was refused.

    Each has a savepoint of its own: one that raises a ResumesError has written nothing.
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
    """Return the refusal of a word from a command line that is not UTF-8."""
    return InvalidArgument(f"Not UTF-8 text: {error.object[:80]!r}")


def was_committed(
    connection: Connection, batch: Sequence[Write], outcomes: Sequence[Any]
) -> bool | None:
    """Return whether the batch's transaction was committed; None when nothing of it can tell."""
    for write, outcome in zip(batch, outcomes, strict=True):
        verdict = write.proof and write.proof(connection, write.request, outcome)
        if verdict is not None:
            return verdict
    return None


def deliver(writes: Sequence[Write]) -> None:
    """Each mailbox gets its writes in one call."""
    for mailbox, mine in _by_mailbox(writes):
        mailbox.deliver(mine)


def _by_mailbox(writes: Sequence[Write]) -> Iterator[tuple[Mailbox, list[Write]]]:
    mailboxes: dict[int, tuple[Mailbox, list[Write]]] = {}
    for write in writes:
        mailboxes.setdefault(id(write.mailbox), (write.mailbox, []))[1].append(write)
    yield from mailboxes.values()


logger = logging.getLogger("resumes.store")

QUIET_ROUNDS = 2
"""A turn is begun when so many rounds of the loop have brought no further write,"""

ENOUGH_WRITES = 64
"""or so many wait. A commit costs as much as several writes, and one for two in the place of one
for thirty costs all of them more than the little while."""

LOOK_AFTER_S = 0.25
"""How often writes are looked for whose time is over: cheaper than a timer for each."""


class SoonWriter:
    """The writes of one event loop. Its methods are for that loop, but for those that say so."""

    def __init__(
        self, lane: Lane, loop: asyncio.AbstractEventLoop, *, commit_grace_s: float
    ) -> None:
        self._lane = lane
        self._loop = loop
        self._commit_grace_s = commit_grace_s
        self._pending: set[Write] = set()
        self._is_turn_due = False
        self._seen_writes = self._quiet_rounds = 0
        """What waited in the last round, and how many rounds brought no more."""
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, write: Write) -> Any:
        """Return what the write came to: its result or its error, StoreUnavailable when it was not
        taken by the deadline, or OutcomeUnknown when it was and its commit takes too long.

        Cancelled while it waits, it is withdrawn if it was not taken.
        """
        waiter: asyncio.Future[Any] = self._loop.create_future()
        write.mailbox, write.waiter = self, waiter
        self._lane.offer(write)
        self._pending.add(write)
        self._plan_turn()
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_AFTER_S, self._look_after)
        try:
            return await waiter
        except asyncio.CancelledError:
            self._lane.withdraw(write)
            self._pending.discard(write)
            raise

    def _plan_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        waiting = self._lane.waiting
        if waiting and self._is_gathering(waiting):
            self._loop.call_soon(self._begin_turn)
            return
        self._seen_writes = self._quiet_rounds = 0
        self._is_turn_due = False
        if waiting:
            self._lane.begin_turn(self)

    def _is_gathering(self, waiting: int) -> bool:
        if waiting > self._seen_writes:
            self._seen_writes, self._quiet_rounds = waiting, 0
        else:
            self._quiet_rounds += 1
        return waiting < ENOUGH_WRITES and self._quiet_rounds < QUIET_ROUNDS

    def deliver(self, writes: Sequence[Write]) -> None:
        """Each waiting coroutine goes on; those that are gone are skipped. From any thread."""
        try:
            self._loop.call_soon_threadsafe(self._wake, writes)
        except RuntimeError:
            # The loop is closed: its requests were abandoned, and the writes stand.
            logger.warning("%d writes finished after their event loop", len(writes))

    def lane_is_free(self) -> None:
        """What waits gets its turn. From any thread."""
        try:
            self._loop.call_soon_threadsafe(self._plan_turn)
        except RuntimeError:
            self._lane.ask()  # the loop is closed, and others may wait

    def _wake(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._settle(write, write.outcome)

    def _settle(self, write: Write, outcome: Any) -> None:
        # Handed over at once: the lane may come to another outcome before the coroutine goes on.
        self._pending.discard(write)
        if not write.waiter.done():
            write.waiter.set_result(outcome)

    def _look_after(self) -> None:
        now = time.monotonic()
        overdue = [write for write in self._pending if write.deadline <= now]
        for write in overdue:
            if self._lane.withdraw(write):
                self._settle(write, StoreUnavailable(BUSY))
            elif write.deadline + self._commit_grace_s <= now:
                self._settle(write, OutcomeUnknown())
        self._timer = (
            self._loop.call_later(LOOK_AFTER_S, self._look_after) if self._pending else None
        )
