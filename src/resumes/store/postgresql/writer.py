"""Writer threads for PostgreSQL.

One thread at a time commits the waiting create requests of several accounts together, but skips
accounts that another transaction has locked. Requests that were skipped or rolled back return to the
queue. Like all other writes, they are then written account by account (docs/decisions/0027).

Each caller is promised:
- If a write is known to be rolled back because of a lost server or a race, it is retried until its
  deadline, or MAX_RACES times. Each account of a failed batch is retried alone, and then each of its
  writes, so that no write can make others fail (pitfalls S7). Writes to retry occupy no thread.
- A batch that waits for a server or an account delays other accounts by at most a second, if a
  thread is free. The accounts of a batch whose server process is frozen wait until it goes on.
- A write never overtakes an earlier change of its account.
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
from sqlalchemy import Engine

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import migrations
from resumes.store.locks import retry
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    RETRY_DELAYS_S,
    ErrorClass,
    classify_error,
    explain,
    retry_delay_s,
)
from resumes.store.statements import driver
from resumes.store.store import refuse_if_closed
from resumes.store.write_queue import (
    BUSY,
    SKIPPED,
    Write,
    WriteQueue,
    apply_all,
    deliver,
    was_committed,
)

logger = logging.getLogger("resumes.store")

THREADS: Final = 4
"""The number of writer threads of a process, each of which has its own connection."""

SHARDED_THREADS: Final = 16
"""The same for a sharded store, in which a frozen worker keeps a thread waiting for each account."""

RETRY_INTERVAL_S: Final = 0.05
"""The interval at which an idle thread checks whether a write can now be done."""

MAX_RACES: Final = 20
"""How many lost races are retried. The next one fails only the write, not its account (pitfalls S7)."""

SHARED_ACCOUNTS: Final = 16
"""The maximum number of accounts in a transaction: all of them wait if its server process is frozen."""

SLOW_S: Final = 1.0
"""How long a batch may take before others stop waiting for it. Also how long the server may take to
lock the accounts of a shared batch, which waits for no row, before another connection is tried."""

ALONE_S: Final = 10.0
"""For how long an account shares no transaction after a row was refused, which undoes a shared one."""

PROOF_TIMEOUT_S: Final = 15.0
"""For how long after its deadline the outcome of an unanswered write is still checked."""

FULL: Final = "The database's disk is full, so nothing was done; try again when there is room"

# After a crash or a failover, a server may assign a transaction number again, because it has lost
# what was not yet on its disk. If both of these times are the same, this has not happened: every
# recovery from a crash resets the second time.
SERVER: Final = (
    "concat(extract(epoch FROM pg_postmaster_start_time()), ' ', "
    "extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()))"
)
# Read by the statement that inserts, which locks its tables before it takes its snapshot: either a
# copy that closes the store waits for this transaction, or this sees the closing (pitfalls S13).
BEFORE_COMMIT: Final = (
    # One scan of the few facts takes less time to plan than two look-ups.
    "SELECT max(value) FILTER (WHERE name = 'oldest_program'),"
    " max(value) FILTER (WHERE name = 'closed_for' AND value != ''),"
    f" pg_current_xact_id_if_assigned()::text, {SERVER} FROM store_facts"
)
FIND_STATUS: Final = f"SELECT pg_xact_status(%s::xid8), {SERVER}"


class PostgresWriter(WriteQueue):
    """The queue and its threads. No two threads write for the same account at the same time. The
    transactions of `engine` wait for locks only briefly."""

    def __init__(self, engine: Engine, label: str, *, is_sharded: bool = False) -> None:
        threads = SHARDED_THREADS if is_sharded else THREADS
        super().__init__(*(f"store-writer-{number}" for number in range(1, threads + 1)))
        self._engine = engine
        self._label = label
        self._is_sharded = is_sharded
        self._revisions = migrations.list_revisions()
        self._batches: list[tuple[float, list[Write]]] = []
        """The batches being written, each with its start time on the monotonic clock."""
        self._is_paused = False
        self._alone_until: dict[str | None, float] = {}
        """Until when an account shares no transaction, on the monotonic clock."""
        for thread in self.threads:
            thread.start()

    def submit(self, write: Write) -> None:
        # In a sharded store, a transaction must not span nodes.
        if self._is_sharded or time.monotonic() < self._alone_until.get(write.account_id, 0.0):
            write.apply_shared = None
        super().submit(write)

    def wake(self) -> None:
        with self._changed:
            # One thread, which wakes the next one: each takes the interpreter from others.
            if any(self._iter_next()):
                self._changed.notify()

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
        while batch := self._take_batch():
            began_s = time.monotonic()
            try:
                self._commit_batch(batch, self._commit)
                self.observe(len(batch), time.monotonic() - began_s)
            except BaseException:  # noqa: BLE001 - logged
                self._outlive()
            finally:
                deliver(self._end_batch(batch))

    def _explain(self, error: Exception) -> Exception:
        return explain(error, self._label) if isinstance(error, DRIVER_ERRORS) else error

    def _take_batch(self) -> list[Write]:
        """Wait for writes of accounts for which no thread is writing, and return the writes. Return
        an empty list if the queue is closed and empty."""
        with self._changed:
            while True:
                self.expire()
                if batch := [] if self._is_paused else self._take(self._iter_next()):
                    self._batches.append((time.monotonic(), batch))
                    self.wake()
                    return batch
                if self._is_closing and not self._waiting:
                    return []
                # No thread is woken for a create request while others are being committed.
                self._changed.wait(RETRY_INTERVAL_S if self._waiting else SLOW_S)

    def _iter_next(self) -> Iterator[Write]:
        """Yield the creates that may share the next transaction, or the writes of one account."""
        now = time.monotonic()
        slow = now - SLOW_S
        may_share = not any(began > slow and some[0].may_share for began, some in self._batches)
        # One thread remains for accounts whose rows are not locked.
        waits = 1 + sum(some[0].tries > 0 or began < slow for began, some in self._batches)
        behind = {write.owner for _, some in self._batches for write in some}
        shared: set[object] = set()
        for write in self._waiting:
            if (owner := write.owner) in behind:
                continue
            is_due = write.not_before <= now and (waits < len(self.threads) or not write.tries)
            has_room = owner in shared or len(shared) < SHARED_ACCOUNTS
            if is_due and write.may_share and may_share and has_room:
                shared.add(owner)
                yield write
            elif is_due and not (write.may_share or shared):
                yield from (one for one in self._waiting if one.owner == owner)
                return
            else:
                behind.add(owner)

    def _end_batch(self, batch: list[Write]) -> list[Write]:
        """Return the writes that are done, and put skipped writes back into the queue."""
        with self._changed:
            self._batches = [other for other in self._batches if other[1] is not batch]
            done = [write for write in batch if write.outcome is not SKIPPED]
            self._give_back([write for write in batch if write.outcome is SKIPPED])
            if self._is_paused or self._is_closing:
                self._changed.notify_all()
        return done

    # One batch

    def _commit(self, batch: list[Write]) -> list[Any]:
        """Commit the batch and return its outcomes, which are all SKIPPED if it will be retried. Raises
        any other error after the transaction was rolled back."""
        try:
            return self._try(batch)
        except OutcomeUnknown:
            raise
        except Exception as error:
            error_class = classify_error(error)
            is_gone = error_class is ErrorClass.UNAVAILABLE
            is_race = error_class is ErrorClass.RACE and batch[0].races < MAX_RACES
            if is_gone or is_race or len({write.account_id for write in batch}) > 1:
                logger.info("Rolled back, retrying: %s", type(error).__name__)
                not_before = time.monotonic() + retry_delay_s(max(write.tries for write in batch))
                for write in batch:
                    write.not_before = not_before
                    write.races += is_race
                    # Any other error of a shared transaction may be another account's.
                    if is_gone or not batch[0].may_share:
                        write.failure = explain(error, self._label)
                return [SKIPPED] * len(batch)
            if reason := {ErrorClass.BUSY: BUSY, ErrorClass.DISK_FULL: FULL}.get(error_class):
                raise StoreUnavailable(reason) from error
            if error_class is ErrorClass.REFUSED:
                self._alone_until[batch[0].account_id] = time.monotonic() + ALONE_S
            raise

    def _try(self, batch: list[Write]) -> list[Any]:
        """Commit the batch and return its outcomes. Raises OutcomeUnknown, and any other error after
        the transaction was rolled back."""
        is_shared = batch[0].may_share
        is_committing = False
        try:
            with self._engine.begin() as connection:
                raw = driver(connection)
                raw.first_timeout_s = SLOW_S if is_shared else None
                outcomes = apply_all(connection, batch, is_shared=is_shared)
                oldest, closed_for, number, server = raw.run_with_later(BEFORE_COMMIT)
                if oldest not in self._revisions:  # the store was upgraded meanwhile (pitfalls S25)
                    raise StoreUnavailable(migrations.describe_newer(self._label, oldest))
                refuse_if_closed(closed_for, batch)
                is_committing = True
        except Exception as error:
            answers = (ErrorClass.RACE, ErrorClass.REFUSED)  # to COMMIT
            if not is_committing or classify_error(error) in answers:
                raise
            if not self._was_committed(batch, outcomes, number, server):
                raise psycopg.OperationalError("COMMIT was not done") from error
        return outcomes

    def _was_committed(
        self, batch: list[Write], outcomes: list[Any], number: str | None, server: str
    ) -> bool:
        """Return whether a COMMIT without an answer was done. Raises OutcomeUnknown if neither the
        server nor the stored rows prove it.

        `number` identifies the transaction on `server`. It is None if nothing was changed.
        """
        if number is None and not self._is_sharded:
            return True
        logger.warning("No response to a commit (writes: %d); checking its outcome", len(batch))
        verdict: bool | None = None
        ends_at = max(write.deadline for write in batch) + PROOF_TIMEOUT_S
        with contextlib.suppress(Exception):  # none proves anything
            verdict = retry(
                partial(self._prove, batch, outcomes, number, server),
                is_retryable=lambda _: True,
                timeout_s=ends_at - time.monotonic(),
                delays_s=RETRY_DELAYS_S,
            )
        if verdict is None:
            logger.error("Outcome unknown; writes affected: %d", len(batch))
            raise OutcomeUnknown
        return verdict

    def _prove(
        self, batch: list[Write], outcomes: list[Any], number: str | None, server: str
    ) -> bool | None:
        """Return whether the transaction was committed, or None if this cannot be found out. Raises
        an error if a later attempt may find it out."""
        with self._engine.begin() as connection:
            if not self._is_sharded:  # else the number is another node's
                try:
                    ((status, same),) = driver(connection).execute(FIND_STATUS, [number])
                except psycopg.errors.InvalidParameterValue:
                    return False  # this server has not assigned that number yet
                if status == "in progress":
                    raise TimeoutError("the transaction has not ended yet")
                if status == "aborted":
                    return False
                if status == "committed" and same == server:
                    return True
            return was_committed(connection, batch, outcomes)
