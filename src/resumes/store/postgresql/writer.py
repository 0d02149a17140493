"""Writer threads for PostgreSQL: a queue for each account, and how a batch is committed.

What is promised to each caller:
- Until its deadline, what is known to be rolled back is tried again: a lost server, a race. So is
  each write of a batch that failed, alone, so that one of them cannot fail the others (pitfalls S7).
- A COMMIT without an answer is neither repeated nor reported as failed: what it has left behind
  tells, asked with the account's row locked, which waits for it to end (pitfalls S2).
"""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Engine

from resumes.errors import OutcomeUnknown, ResumesError, StoreUnavailable
from resumes.store.closed import refuse_if_closed
from resumes.store.locks import retry
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    ErrorClass,
    classify_error,
    explain,
    is_usable,
    jittered,
)
from resumes.store.statements import driver
from resumes.store.write_queue import (
    BATCH_LIMIT,
    BUSY,
    EXPIRY_INTERVAL_S,
    Write,
    WriteQueue,
    apply_all,
    deliver,
    was_committed,
)

logger = logging.getLogger("resumes.store")

THREADS: Final = 4
"""Writer threads of a process, each with its own connection."""

RETRY_DELAYS_S: Final = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Before each retry; the last one repeats. Jitter is added, for races."""

MAX_RACES: Final = 20
"""How often a lost race is tried again."""

PROOF_TIMEOUT_S: Final = 15.0
"""How long after its deadline the outcome of a write without an answer is looked for."""

FULL: Final = "The disk of the database is full; nothing was done, try again when there is room"


class _Unanswered(Exception):
    """COMMIT had no answer. `outcomes` is what the writes come to if it was done."""

    def __init__(self, outcomes: list[Any]) -> None:
        super().__init__()
        self.outcomes = outcomes


class Writer:
    """One thread's connection, and how it commits a batch."""

    def __init__(self, engine: Engine, label: str) -> None:
        self._engine = engine
        self._label = label
        self._connection: Connection | None = None

    def write(self, batch: list[Write]) -> None:
        """Commit the batch, or find out why not; each of the writes has its outcome then."""
        try:
            outcomes = self._commit(batch)
        except ResumesError as error:
            outcomes = [error] * len(batch)
        except Exception as error:  # noqa: BLE001 - rolled back, whatever it is, and handed on
            if len(batch) > 1:
                logger.warning(
                    "A batch of %d writes was rolled back; retrying them one by one", len(batch)
                )
                for write in batch:
                    self.write([write])
                return
            is_driver = isinstance(error, DRIVER_ERRORS)
            outcomes = [explain(error, self._label) if is_driver else error]
        for write, outcome in zip(batch, outcomes, strict=True):
            write.outcome = outcome

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with contextlib.suppress(*DRIVER_ERRORS):
                self._connection.close()
            self._connection = None

    def _commit(self, batch: list[Write]) -> list[Any]:
        """Return the outcomes, committed. Raises what the batch is refused with, or its own error:
        then it is rolled back."""
        ends_at = max(write.deadline for write in batch)
        tries = races = 0
        cause: BaseException
        while True:
            try:
                return self._try(batch)
            except _Unanswered as unanswered:
                if self._was_committed(batch, unanswered.outcomes, ends_at + PROOF_TIMEOUT_S):
                    return unanswered.outcomes
                error_class = ErrorClass.UNAVAILABLE
                cause = unanswered.__cause__ or unanswered
            except Exception as error:  # noqa: BLE001 - rolled back, whatever it is
                cause, error_class = error, classify_error(error)
            races += error_class is ErrorClass.RACE
            if error_class is ErrorClass.OTHER or races > MAX_RACES:
                raise cause
            if error_class is ErrorClass.BUSY:
                raise StoreUnavailable(BUSY) from cause
            if error_class is ErrorClass.DISK_FULL:
                raise StoreUnavailable(FULL) from cause
            delay_s = jittered(RETRY_DELAYS_S, tries)
            tries += 1
            if time.monotonic() + delay_s >= ends_at:
                raise explain(cause, self._label) from cause
            logger.info("Rolled back, retrying: %s", type(cause).__name__)
            time.sleep(delay_s)

    def _try(self, batch: list[Write]) -> list[Any]:
        """Return the outcomes, committed. Raises _Unanswered, and any other error once the transaction
        is rolled back."""
        connection: Connection | None = None
        try:
            connection = self._usable_connection()
            transaction = connection.begin()
            outcomes = apply_all(connection, batch)
            refuse_if_closed(connection, batch)
        except BaseException as error:
            self._drop(connection, error)
            raise
        try:
            transaction.commit()
        except Exception as error:
            # Whatever it was: what may still be open must not be committed with the next.
            self._discard()
            if classify_error(error) is ErrorClass.RACE:
                raise
            raise _Unanswered(outcomes) from error
        return outcomes

    def _was_committed(self, batch: list[Write], outcomes: list[Any], ends_at: float) -> bool:
        """Return whether a COMMIT without an answer was done. Raises OutcomeUnknown if nobody can
        tell."""
        logger.warning("No answer to a commit of %d writes; checking its outcome", len(batch))
        verdict: bool | None = None
        with contextlib.suppress(*DRIVER_ERRORS):
            verdict = retry(
                lambda: self._prove(batch, outcomes),
                is_retryable=lambda error: isinstance(error, DRIVER_ERRORS),
                timeout_s=ends_at - time.monotonic(),
                delays_s=RETRY_DELAYS_S,
            )
        if verdict is None:
            logger.error("The outcome of %d writes is unknown", len(batch))
            raise OutcomeUnknown
        return verdict

    def _prove(self, batch: list[Write], outcomes: list[Any]) -> bool | None:
        """Return whether the COMMIT was done; None if what it would have left behind cannot tell."""
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
        """Roll back the transaction; a connection that failed is not used again."""
        if connection is None:
            return
        if classify_error(error) is ErrorClass.UNAVAILABLE:
            self._discard()
            return
        driver(connection).forget()
        try:
            connection.rollback()
        except DRIVER_ERRORS:
            self._discard()

    def _discard(self) -> None:
        """Close the connection, and with it the transaction that was open."""
        if self._connection is not None:
            with contextlib.suppress(*DRIVER_ERRORS):
                self._connection.invalidate()
        self.close()


class AccountQueues(WriteQueue):
    """A queue for each account, and threads that commit them. The transactions of `engine` wait for
    locks a short while only."""

    def __init__(self, engine: Engine, label: str, *, threads: int = THREADS) -> None:
        super().__init__(*(f"store-writer-{number}" for number in range(1, threads + 1)))
        self._engine = engine
        self._label = label
        self._queues: dict[Hashable, deque[Write]] = {}
        """What waits, by account. A queue stays while a thread writes for its account."""
        self._ready: deque[Hashable] = deque()
        """The accounts that no thread writes for, in the order in which they came."""
        self._waiting = 0
        self._working = 0
        self._is_paused = False
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        return self._waiting

    def _add(self, write: Write) -> None:
        # No thread is woken yet: what is submitted together is written together.
        account: Hashable = write.account_id or object()
        queue = self._queues.get(account)
        if queue is None:
            queue = self._queues[account] = deque()
            self._ready.append(account)
        queue.append(write)
        self._waiting += 1

    def wake(self) -> None:
        with self._changed:
            # No more than have something to do: a thread that wakes takes the interpreter from others.
            self._changed.notify(len(self._ready))

    def withdraw(self, write: Write) -> bool:
        with self._changed:
            for queue in self._queues.values():
                if write in queue:
                    queue.remove(write)
                    self._waiting -= 1
                    return True
        return False

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        with self._changed:
            self._is_paused = True
            self._changed.wait_for(lambda: self._working == 0)
        try:
            yield
        finally:
            with self._changed:
                self._is_paused = False
                self._changed.notify_all()

    def _run(self) -> None:
        writer = Writer(self._engine, self._label)
        while (taken := self._take()) is not None:
            account, batch = taken
            began_s = time.monotonic()
            try:
                writer.write(batch)
                self.observe(len(batch), time.monotonic() - began_s)
            except BaseException:
                # The thread outlives any error (pitfalls S7).
                logger.exception("Unexpected error in a writer thread")
            finally:
                self._leave(account)
                deliver(batch)
        writer.close()

    def _take(self) -> tuple[Hashable, list[Write]] | None:
        """Wait for an account that no thread writes for, and return it with its writes; None when the
        queue is closed and empty."""
        with self._changed:
            while True:
                self._expire()
                if self._ready and not self._is_paused:
                    account = self._ready.popleft()
                    queue = self._queues[account]
                    batch = [queue.popleft() for _ in range(min(len(queue), BATCH_LIMIT))]
                    if batch:
                        self._waiting -= len(batch)
                        self._working += 1
                        return account, batch
                    del self._queues[account]  # what waited was withdrawn, or has expired
                elif self._is_closing and not self._waiting:
                    return None
                else:
                    self._changed.wait(EXPIRY_INTERVAL_S if self._waiting else None)

    def _leave(self, account: Hashable) -> None:
        with self._changed:
            self._working -= 1
            if self._queues[account]:
                self._ready.append(account)
            else:
                del self._queues[account]
            # Nobody else is woken: the thread that leaves takes the next account itself.
            if self._is_paused or self._is_closing:
                self._changed.notify_all()

    def _expire(self) -> None:
        """Withdraw the writes whose deadline has passed. Called with `_changed` held."""
        now = time.monotonic()
        overdue: list[Write] = []
        for queue in self._queues.values():
            while queue and queue[0].deadline <= now:
                overdue.append(queue.popleft())
        for write in overdue:
            write.outcome = StoreUnavailable(BUSY)
        self._waiting -= len(overdue)
        deliver(overdue)
