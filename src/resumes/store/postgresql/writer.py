"""Writing a batch to PostgreSQL: committed, tried again, or found out about.

What a writer promises:
- Until its deadline, what is known to be undone is tried again: a lost server, a race. So is each
  write of a batch that failed, alone, that one of them cannot fail the others (pitfalls S7).
- A COMMIT without an answer is neither repeated nor reported as failed: what it has left behind
  tells, asked with the account's row locked, which waits for it to end (pitfalls S2).
"""

import contextlib
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Engine

from resumes.errors import OutcomeUnknown, ResumesError, StoreUnavailable
from resumes.store.closed import refuse_if_closed
from resumes.store.locks import keep_trying
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    Trouble,
    explain,
    is_usable,
    trouble_of,
)
from resumes.store.statements import driver
from resumes.store.write_queue import (
    BATCH_LIMIT,
    BUSY,
    PENDING,
    Listener,
    Write,
    apply_all,
    deliver,
    was_committed,
)

logger = logging.getLogger("resumes.store")

PAUSES_S: Final = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Before each further try; the last one goes on. A little chance is added, for races."""

RACES: Final = 20
"""So often a lost race is tried again."""

FIND_OUT_S: Final = 15.0
"""How long after its deadline a write without an answer is inquired after."""

FULL: Final = "The disk of the database is full; nothing was done, try again when there is room"


class _Undone(Exception):
    """The transaction is known to be undone; its cause says why."""


class _Unanswered(Exception):
    """COMMIT had no answer. `outcomes` is what the writes come to if it was done."""

    def __init__(self, outcomes: list[Any]) -> None:
        super().__init__()
        self.outcomes = outcomes


class Writer:
    """One thread's connection, and how it settles a batch."""

    def __init__(self, engine: Engine, label: str) -> None:
        self._engine = engine
        self._label = label
        self._connection: Connection | None = None

    def write(self, batch: list[Write]) -> None:
        """Each of the writes has its outcome."""
        try:
            outcomes = self._commit(batch)
        except ResumesError as error:
            outcomes = [error] * len(batch)
        except Exception as error:  # noqa: BLE001 - undone, whatever it is, and handed on
            if len(batch) > 1:
                logger.warning("A batch of %d writes was rolled back; one by one", len(batch))
                for write in batch:
                    self.write([write])
                return
            is_driver = isinstance(error, DRIVER_ERRORS)
            outcomes = [explain(error, self._label) if is_driver else error]
        for write, outcome in zip(batch, outcomes, strict=True):
            write.outcome = outcome

    def close(self) -> None:
        """The connection is given back."""
        if self._connection is not None:
            with contextlib.suppress(*DRIVER_ERRORS):
                self._connection.close()
            self._connection = None

    def _commit(self, batch: list[Write]) -> list[Any]:
        """The outcomes, committed. Raises what the batch is refused with, and what is wrong with
        it: then it is undone."""
        ends_at = max(write.deadline for write in batch)
        tries = races = 0
        while True:
            try:
                return self._try(batch)
            except _Unanswered as unanswered:
                if self._find_out(batch, unanswered.outcomes, ends_at + FIND_OUT_S):
                    return unanswered.outcomes
                trouble: Trouble = Trouble.GONE
                cause: BaseException = unanswered.__cause__ or unanswered
            except _Undone as undone:
                cause = undone.__cause__ or undone
                trouble = trouble_of(cause)
            races += trouble is Trouble.RACE
            if trouble is Trouble.OTHER or races > RACES:
                raise cause
            if trouble is Trouble.BUSY:
                raise StoreUnavailable(BUSY) from cause
            if trouble is Trouble.FULL:
                raise StoreUnavailable(FULL) from cause
            pause_s = PAUSES_S[min(tries, len(PAUSES_S) - 1)] * random.uniform(0.5, 1.5)
            tries += 1
            if time.monotonic() + pause_s >= ends_at:
                raise explain(cause, self._label) from cause
            logger.info("Undone and tried again: %s", type(cause).__name__)
            time.sleep(pause_s)

    def _try(self, batch: list[Write]) -> list[Any]:
        """The outcomes, committed. Raises _Undone and _Unanswered."""
        connection: Connection | None = None
        try:
            connection = self._usable_connection()
            transaction = connection.begin()
            outcomes = apply_all(connection, batch)
            refuse_if_closed(connection, batch)
        except BaseException as error:
            self._drop(connection, error)
            if isinstance(error, Exception):
                raise _Undone from error
            raise
        try:
            transaction.commit()
        except Exception as error:
            # Whatever it was: what may still be open must not be committed with the next.
            self._discard()
            if trouble_of(error) is Trouble.RACE:
                raise _Undone from error
            raise _Unanswered(outcomes) from error
        return outcomes

    def _find_out(self, batch: list[Write], outcomes: list[Any], ends_at: float) -> bool:
        """Whether a COMMIT without an answer was done. Raises OutcomeUnknown when none can say."""
        logger.warning("A commit of %d writes had no answer; finding out", len(batch))
        verdict: bool | None = None
        with contextlib.suppress(*DRIVER_ERRORS):
            verdict = keep_trying(
                lambda: self._ask(batch, outcomes),
                is_passing=lambda error: isinstance(error, DRIVER_ERRORS),
                within_s=ends_at - time.monotonic(),
                pauses_s=PAUSES_S,
            )
        if verdict is None:
            logger.error("The outcome of %d writes is unknown", len(batch))
            raise OutcomeUnknown
        return verdict

    def _ask(self, batch: list[Write], outcomes: list[Any]) -> bool | None:
        """Whether the COMMIT was done; None: what it would have left behind cannot tell."""
        connection: Connection | None = None
        try:
            connection = self._usable_connection()
            with connection.begin():
                return was_committed(connection, batch, outcomes)
        except DRIVER_ERRORS as error:
            self._drop(connection, error)
            raise

    def _usable_connection(self) -> Connection:
        if self._connection is not None and not is_usable(driver(self._connection)):
            self.close()
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _drop(self, connection: Connection | None, error: BaseException) -> None:
        """The transaction is undone; a connection that failed is not used again."""
        if connection is None:
            return
        if trouble_of(error) is Trouble.GONE:
            self._discard()
            return
        driver(connection).forget()
        try:
            connection.rollback()
        except DRIVER_ERRORS:
            self._discard()

    def _discard(self) -> None:
        """The connection is closed, and with it the transaction that was open."""
        if self._connection is not None:
            with contextlib.suppress(*DRIVER_ERRORS):
                self._connection.invalidate()
        self.close()


WRITERS: Final = 4
"""Threads that write, and so connections, of a process."""

EXPIRE_S: Final = 0.25
"""How often threads without work look for writes whose time is over."""


class AccountLanes:
    """Threads that write, over an engine whose transactions wait for locks a short while only."""

    def __init__(self, engine: Engine, label: str, *, writers: int = WRITERS) -> None:
        self.observe: Callable[[int, float], None] = lambda writes, took_s: None
        self._engine = engine
        self._label = label
        self._queues: dict[Hashable, deque[Write]] = {}
        """What waits, by account. A queue stays while somebody works for its account."""
        self._ready: deque[Hashable] = deque()
        """The accounts that nobody works for, in the order in which they came."""
        self._waiting = 0
        self._working = 0
        self._changed = threading.Condition()
        self._is_left = False
        self._closing = False
        self._threads = [
            threading.Thread(target=self._live, name=f"store-lane-{number}", daemon=True)
            for number in range(1, writers + 1)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """How many writes wait for their turn."""
        return self._waiting

    @property
    def is_alive(self) -> bool:
        """Whether writes are being taken."""
        return not self._closing and any(thread.is_alive() for thread in self._threads)

    def offer(self, write: Write) -> None:
        """The write waits until a thread is free, or `ask` wakes one: what comes together is written
        together. Raises StoreUnavailable once this is closed."""
        with self._changed:
            if self._closing:
                raise StoreUnavailable("The store is closed")
            account: Hashable = write.account_id or object()
            queue = self._queues.get(account)
            if queue is None:
                queue = self._queues[account] = deque()
                self._ready.append(account)
            queue.append(write)
            self._waiting += 1

    def ask(self) -> None:
        """What was offered is being done, as far as there are threads."""
        with self._changed:
            # No more than have something to do: a thread that wakes takes the interpreter from others.
            self._changed.notify(len(self._ready))

    def begin_turn(self, listener: Listener) -> None:
        """As `ask`: nothing here is done by the caller."""
        self.ask()

    def withdraw(self, write: Write) -> bool:
        """Whether the write was still waiting; then it will not happen."""
        with self._changed:
            for queue in self._queues.values():
                if write in queue:
                    queue.remove(write)
                    self._waiting -= 1
                    return True
        return False

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """No write runs during the block, so the process may be stopped in it (pitfalls S9)."""
        with self._changed:
            self._is_left = True
            self._changed.wait_for(lambda: self._working == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_left = False
                self._changed.notify_all()

    def close(self) -> None:
        """What was waiting is written, and the threads have ended. Safe to call twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._engine.dispose()

    def _live(self) -> None:
        writer = Writer(self._engine, self._label)
        while (taken := self._take()) is not None:
            account, batch = taken
            began_s = time.monotonic()
            try:
                writer.write(batch)
                self.observe(len(batch), time.monotonic() - began_s)
            except BaseException:
                # Whatever it was, the thread outlives it (pitfalls S7).
                logger.exception("A write lane met an error it does not know")
            finally:
                for write in batch:
                    if write.outcome is PENDING:
                        write.outcome = OutcomeUnknown()
                self._leave(account)
                deliver(batch)
        writer.close()

    def _take(self) -> tuple[Hashable, list[Write]] | None:
        """The next account's writes, which are this thread's now; None when all is over."""
        while True:
            with self._changed:
                overdue = self._expired()
                if not overdue:
                    if self._ready and not self._is_left:
                        account = self._ready.popleft()
                        if batch := self._begin(account):
                            return account, batch
                        continue  # all that waited there was withdrawn, or is over
                    if self._closing and not self._waiting:
                        return None
                    self._changed.wait(EXPIRE_S if self._waiting else None)
                    continue
            deliver(overdue)

    def _begin(self, account: Hashable) -> list[Write]:
        queue = self._queues[account]
        batch = [queue.popleft() for _ in range(min(len(queue), BATCH_LIMIT))]
        self._waiting -= len(batch)
        if batch:
            self._working += 1
        else:
            del self._queues[account]
        return batch

    def _leave(self, account: Hashable) -> None:
        with self._changed:
            self._working -= 1
            if self._queues[account]:
                self._ready.append(account)
            else:
                del self._queues[account]
            # Whoever leaves takes the next account itself.
            if self._is_left or self._closing:
                self._changed.notify_all()

    def _expired(self) -> list[Write]:
        """Writes whose time is over wait no longer. Called with `_changed` held."""
        now = time.monotonic()
        overdue: list[Write] = []
        for queue in self._queues.values():
            while queue and queue[0].deadline <= now:
                overdue.append(queue.popleft())
        for write in overdue:
            write.outcome = StoreUnavailable(BUSY)
        self._waiting -= len(overdue)
        return overdue
