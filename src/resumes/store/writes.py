"""Writes on their way to the engine: what is to be done, until when, and who waits for it.

A write is a request and the function that applies requests of its kind. Requests of one kind
that meet in a batch are applied in one call. The function gives a result for each request, a
`ResumesError` among them for a request that is refused and has written nothing.

A request that concerns one account has an `account_id`. Engines that lock rows do the writes of an
account one after the other, and hold no two accounts in one transaction (pitfalls S8).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any, Protocol

from sqlalchemy import Connection

Apply = Callable[[Connection, Sequence[Any]], Sequence[Any]]
"""Applies requests of one kind inside the transaction; one result each, in order."""

Proof = Callable[[Connection, Sequence[Any], Sequence[Any]], bool | None]
"""Whether a transaction was committed, by what it has left behind: given some of its requests and
what they came to. None: these cannot tell. Asked in another transaction, after the first has ended."""

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
    """A request on its way to the engine. `deadline` is on the monotonic clock."""

    __slots__ = ("apply", "deadline", "mailbox", "outcome", "request", "waiter")

    def __init__(
        self, apply: Apply, request: Any, *, deadline: float, mailbox: Mailbox, waiter: Any
    ) -> None:
        self.apply = apply
        self.request = request
        self.deadline = deadline
        self.mailbox = mailbox
        self.waiter = waiter
        self.outcome: Any = PENDING

    @property
    def account_id(self) -> str | None:
        """The account that the request concerns; None for several, or none."""
        return getattr(self.request, "account_id", None)


class ThreadMailbox:
    """Wakes threads that wait on a `threading.Event`."""

    def deliver(self, writes: Sequence[Write]) -> None:
        """Each waiting thread goes on."""
        for write in writes:
            waiter: threading.Event = write.waiter
            waiter.set()


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


_PROOFS: dict[Apply, Proof] = {}


def proved_by(proof: Proof) -> Callable[[Apply], Apply]:
    """Says how to find out whether a transaction with such writes was committed."""

    def register(apply: Apply) -> Apply:
        _PROOFS[apply] = proof
        return apply

    return register


def was_committed(
    connection: Connection, batch: Sequence[Write], outcomes: Sequence[Any]
) -> bool | None:
    """Whether the batch's transaction was committed; None when nothing of it can tell."""
    for write, outcome in zip(batch, outcomes, strict=True):
        proof = _PROOFS.get(write.apply)
        verdict = None if proof is None else proof(connection, [write.request], [outcome])
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
