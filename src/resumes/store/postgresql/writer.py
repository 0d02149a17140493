"""Writer threads for PostgreSQL.

One thread at a time commits the waiting creates of all accounts together, without waiting for an account
that another transaction has locked. Those of such accounts go back to the queue, and are written as all
other writes are: for one account at a time (docs/decisions/0027).

Each caller is promised:
- Until its deadline, a write that is known to be rolled back is retried, after a lost server or a
  race. The accounts of a failed batch are retried alone, and then each of its writes, so that none can
  make the others fail (pitfalls S7).
- A write overtakes no earlier change of its account.
- A COMMIT without an answer is neither repeated nor reported as failed until the server reports the
  outcome of its transaction (pitfalls S2).
"""

import contextlib
import logging
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import psycopg
from sqlalchemy import Connection, Engine

from resumes.errors import OutcomeUnknown, ResumesError, StoreUnavailable
from resumes.store import migrations
from resumes.store.locks import retry
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    ErrorClass,
    ThreadConnection,
    classify_error,
    explain,
    jittered,
)
from resumes.store.statements import driver
from resumes.store.store import refuse_if_closed
from resumes.store.write_queue import (
    BUSY,
    EXPIRY_INTERVAL_S,
    SKIPPED,
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
"""The delays before each retry; the last one repeats. Jitter is added because of races."""

MAX_RACES: Final = 20
"""How often a lost race is retried."""

PROOF_TIMEOUT_S: Final = 15.0
"""How long after its deadline the outcome of an unanswered write is looked for."""

FULL: Final = "The database's disk is full, so nothing was done; try again when there is room"


# After a crash or a failover, a server may assign a transaction number twice, as it forgets what was not
# yet on its disk. These two times identify an unchanged server: every recovery from a crash resets the
# second one.
SERVER: Final = (
    "concat(extract(epoch FROM pg_postmaster_start_time()), ' ', "
    "extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()))"
)
# Read by the statement that inserts, which locks its tables before it takes its snapshot: either a copy
# that closes the store waits for this transaction, or this sees that it is closed (pitfalls S13).
BEFORE_COMMIT: Final = (
    # One scan of the few facts takes less time to plan than two look-ups.
    "SELECT max(value) FILTER (WHERE name = 'oldest_program'),"
    " max(value) FILTER (WHERE name = 'closed_for' AND value != ''),"
    f" pg_current_xact_id_if_assigned()::text, {SERVER} FROM store_facts"
)
FIND_STATUS: Final = f"SELECT pg_xact_status(%s::xid8), {SERVER}"


class _Unanswered(Exception):
    """Raised when a COMMIT had no answer.

    `number` identifies the transaction on `server`, None if it has changed nothing. `outcomes` are those
    of its writes if it is committed.
    """

    def __init__(self, number: str | None, server: str, outcomes: list[Any]) -> None:
        super().__init__()
        self.number = number
        self.server = server
        self.outcomes = outcomes


class _StillOpen(Exception):
    """Raised while the transaction is neither committed nor rolled back."""


class PostgresWriter(WriteQueue):
    """The queue and its threads. No two threads write for one account at the same time. The transactions
    of `engine` wait for locks only briefly."""

    def __init__(self, engine: Engine, label: str) -> None:
        super().__init__(*(f"store-writer-{number}" for number in range(1, THREADS + 1)))
        self._engine = engine
        self._label = label
        self._revisions = migrations.list_revisions()
        self._busy: set[str | None] = set()
        """The accounts that threads write for."""
        self._batches: list[list[Write]] = []
        """The batches that threads write."""
        self._is_paused = False
        for thread in self.threads:
            thread.start()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify(self._count_next())

    def _count_next(self) -> int:
        """Return how many threads have something to do: each one takes the interpreter from others."""
        is_sharing = self._is_sharing
        return len(
            {
                write.apply if write.may_share else write.account_id or write
                for write in self._waiting
                if write.account_id not in self._busy and not (write.may_share and is_sharing)
            }
        )

    @property
    def _is_sharing(self) -> bool:
        return any(batch[0].may_share for batch in self._batches)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        with self._changed:
            self._is_paused = True
            self._changed.wait_for(lambda: not self._batches)
        try:
            yield
        finally:
            with self._changed:
                self._is_paused = False
                self._changed.notify_all()

    def _run(self) -> None:
        own = ThreadConnection(self._engine)
        while batch := self._take_batch():
            began_s = time.monotonic()
            try:
                self._commit_batch(batch, partial(self._commit, own))
                self.observe(len(batch), time.monotonic() - began_s)
            except BaseException:  # noqa: BLE001 - logged
                self._outlive()
            finally:
                deliver(self._end_batch(batch))
        own.discard()

    def _explain(self, error: Exception) -> Exception:
        return explain(error, self._label) if isinstance(error, DRIVER_ERRORS) else error

    def _take_batch(self) -> list[Write]:
        """Wait for writes of accounts that no thread writes for, and return them; empty when the queue is
        closed and empty."""
        with self._changed:
            while True:
                self.expire()
                if batch := [] if self._is_paused else self._take(self._iter_next()):
                    self._batches.append(batch)
                    self._busy.update(write.account_id for write in batch)
                    self._busy.discard(None)
                    return batch
                if self._is_closing and not self._waiting:
                    return []
                self._changed.wait(EXPIRY_INTERVAL_S if self._waiting else None)

    def _iter_next(self) -> Iterator[Write]:
        """Yield the creates that may share the next transaction, the writes of the next account, or a
        single write without an account."""
        may_share = not self._is_sharing
        # One thread remains for accounts whose rows are not locked.
        may_wait = sum(batch[0].was_skipped for batch in self._batches) < THREADS - 1
        is_shared = False
        behind = set(self._busy)
        for write in self._waiting:
            if write.account_id in behind:
                continue
            if write.may_share and may_share:
                is_shared = True
                yield write
            elif is_shared or write.may_share or (write.was_skipped and not may_wait):
                if write.account_id is not None:
                    behind.add(write.account_id)
            elif write.account_id is None:
                yield write
                return
            else:
                yield from (one for one in self._waiting if one.account_id == write.account_id)
                return

    def _end_batch(self, batch: list[Write]) -> list[Write]:
        """Return the writes that are done; those that were skipped wait again."""
        with self._changed:
            self._batches = [other for other in self._batches if other is not batch]
            self._busy.difference_update(write.account_id for write in batch)
            skipped = [write for write in batch if write.outcome is SKIPPED]
            self._give_back(skipped)
            if self._is_paused or self._is_closing:
                self._changed.notify_all()
            else:
                self._changed.notify(max(0, self._count_next() - 1))  # this thread does the first
        return [write for write in batch if write not in skipped] if skipped else batch

    # One batch, on the thread's own connection

    def _commit(self, own: ThreadConnection, batch: list[Write]) -> list[Any]:
        """Commit the batch and return its outcomes. Raises the error by which it is refused or failed,
        after rolling it back."""
        ends_at = max(write.deadline for write in batch)
        tries = races = 0
        cause: BaseException
        while True:
            try:
                return self._try(own, batch)
            except _Unanswered as unanswered:
                if self._was_committed(own, batch, unanswered, ends_at):
                    return unanswered.outcomes
                error_class = ErrorClass.UNAVAILABLE
                cause = unanswered.__cause__ or unanswered
            except Exception as error:  # noqa: BLE001 - rolled back, whatever it is
                cause, error_class = error, classify_error(error)
            races += error_class is ErrorClass.RACE
            is_lasting = error_class in (ErrorClass.REFUSED, ErrorClass.OTHER) or races > MAX_RACES
            is_of_several = len({write.account_id for write in batch}) > 1
            if is_of_several and (is_lasting or error_class is ErrorClass.BUSY):
                if isinstance(cause, ResumesError):
                    raise cause
                self._warn("Creates were rolled back; retrying each account alone", cause)
                return [SKIPPED] * len(batch)
            if is_lasting:
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

    def _try(self, own: ThreadConnection, batch: list[Write]) -> list[Any]:
        """Commit the batch and return its outcomes. Raises _Unanswered, and any other error once the
        transaction is rolled back."""
        try:
            connection = own.get()
            transaction = connection.begin()
            outcomes = apply_all(connection, batch)
            oldest, closed_for, number, server = driver(connection).run_with_later(BEFORE_COMMIT)
            if oldest not in self._revisions:  # the store was upgraded meanwhile (pitfalls S25)
                raise StoreUnavailable(migrations.describe_newer(self._label, oldest))
            refuse_if_closed(closed_for, batch)
        except BaseException as error:
            _roll_back(own, error)
            raise
        try:
            transaction.commit()
        except Exception as error:
            # A transaction that may still be open must not be committed with the next one.
            own.discard()
            if classify_error(error) in (ErrorClass.RACE, ErrorClass.REFUSED):
                raise  # the server has answered, and rolled back
            raise _Unanswered(number, server, outcomes) from error
        return outcomes

    def _was_committed(
        self, own: ThreadConnection, batch: list[Write], unanswered: _Unanswered, ends_at: float
    ) -> bool:
        """Return whether an unanswered COMMIT was done. Raises OutcomeUnknown if neither the server nor the
        stored rows prove it."""
        if unanswered.number is None:
            return True

        def prove() -> bool | None:
            try:
                connection = own.get()
                with connection.begin():
                    return _find_verdict(connection, batch, unanswered)
            except DRIVER_ERRORS as error:
                _roll_back(own, error)
                raise

        logger.warning("No response to a commit (writes: %d); checking its outcome", len(batch))
        verdict: bool | None = None
        with contextlib.suppress(*DRIVER_ERRORS, _StillOpen):
            verdict = retry(
                prove,
                is_retryable=lambda error: isinstance(error, (*DRIVER_ERRORS, _StillOpen)),
                timeout_s=ends_at + PROOF_TIMEOUT_S - time.monotonic(),
                delays_s=RETRY_DELAYS_S,
            )
        if verdict is None:
            logger.error("Outcome unknown; writes affected: %d", len(batch))
            raise OutcomeUnknown
        return verdict


def _find_verdict(
    connection: Connection, batch: list[Write], unanswered: _Unanswered
) -> bool | None:
    """Return whether the transaction was committed; None if that is unknown. Raises _StillOpen."""
    try:
        ((status, server),) = driver(connection).run(FIND_STATUS, [unanswered.number])
    except psycopg.errors.InvalidParameterValue:
        return False  # this server has not assigned that number yet
    match status:
        case "in progress":
            raise _StillOpen
        case "aborted":
            return False
        case "committed" if server == unanswered.server:
            return True
    return was_committed(connection, batch, unanswered.outcomes)


def _roll_back(own: ThreadConnection, error: BaseException) -> None:
    """Roll back the transaction; a connection that failed is not used again."""
    connection = own.connection
    if connection is None or classify_error(error) is ErrorClass.UNAVAILABLE:
        own.discard()
        return
    try:
        connection.rollback()
    except DRIVER_ERRORS:
        own.discard()
