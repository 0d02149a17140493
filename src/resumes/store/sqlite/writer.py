"""The writer thread: how one process writes to SQLite.

A turn takes the waiting writes, acquires the file lock that the processes of a store share, and
commits everything in one transaction: with many callers a durable commit costs each only a fraction
(group commit). Turns belong to the thread; an event loop whose coroutines write may begin a turn
itself when none is running, and leave only the commit to the thread (decision 0008). The file lock is
for fairness and bounded waiting; mutual exclusion of writes comes from BEGIN IMMEDIATE.

Each caller is promised:
- A request that was not begun by its deadline is withdrawn: nothing was done (pitfalls S3).
- A request that was begun gets its true outcome. A batch that is known to be rolled back is run
  again, request by request, so that none can make the others fail (pitfalls S7).
- A failed COMMIT is proved gone by a later successful one, or reported as unknown (pitfalls S2).
- A write to a file that is no longer the store's is not reported as done.
"""

import contextlib
import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError

from resumes.errors import OutcomeUnknown, StatementRefused, StoreUnavailable
from resumes.store.locks import FileLock, retry
from resumes.store.sqlite.driver import dbapi
from resumes.store.statements import driver
from resumes.store.store import refuse_if_closed
from resumes.store.write_queue import LoopWriter, Write, WriteQueue, apply_all, deliver

logger = logging.getLogger("resumes.store")

BUSY_TIMEOUT_S = 2.0
"""How long the thread waits for a writer that does not use the file lock (a shell, a backup)."""

BUSY_DELAYS_S = (0.002,)
"""The delay before checking again whether such a writer has ended."""

FILE_LOCK_TIMEOUT_S: Final = 0.05
"""How long the thread waits for the file lock before it looks for expired writes."""

DRIVER_ERRORS: Final = (DBAPIError, dbapi.Error)
"""A driver's error, as SQLAlchemy wraps it and as statements that bypass SQLAlchemy raise it."""

REFUSALS: Final = ("SQLITE_CONSTRAINT", "SQLITE_TOOBIG", "SQLITE_MISMATCH")
"""The beginnings of the names of errors that only the values cause."""

FIND_CLOSED_FOR: Final = (
    "SELECT (SELECT value FROM store_facts WHERE name = 'closed_for' AND value != '')"
)

FULL: Final = "The store's disk is full, so nothing was done; try again when there is room"
READ_ONLY: Final = (
    "The store's disk is read-only, so nothing was done; try again when it is writable"
)


class LogOnce:
    """Logs an error once for as long as it persists. One thread at a time may use it."""

    def __init__(self, recovered: str) -> None:
        self._recovered = recovered
        """The message to log when all errors have ended."""
        self._logged: set[str] = set()

    def warn(self, what: str, cause: BaseException) -> None:
        """Log what happened with the cause's message, unless it was logged since the last `recover`."""
        sentence = f"{what}: {message_of(cause)}"
        if sentence not in self._logged:
            self._logged.add(sentence)
            logger.warning("%s", sentence)

    def recover(self) -> None:
        """Log that the errors have ended, if any were logged; later errors are logged again."""
        if self._logged:
            self._logged.clear()
            logger.warning("%s", self._recovered)


class _Applied(NamedTuple):
    """A transaction that waits for its commit, and the outcomes of its writes after it."""

    transaction: RootTransaction
    outcomes: list[Any]


class _Begun(NamedTuple):
    """A batch that waits for its commit; if `applied` is None, it has to be applied first."""

    batch: list[Write]
    applied: _Applied | None
    began_s: float


class _CommitFailed(Exception):
    """Raised when COMMIT itself failed; the cause is the driver's error."""


class SqliteWriter(WriteQueue):
    """The queue and its thread. From now on `connection` is used only during a turn.

    `check` raises StoreUnavailable if a commit would not be in the store's file. `maintain` is called
    after each batch, inside the file lock, and bounds the write-ahead log. Neither raises other
    errors.
    """

    def __init__(
        self,
        connection: Connection,
        file_lock: FileLock,
        *,
        check: Callable[[], None],
        maintain: Callable[[], None],
    ) -> None:
        super().__init__("store-writer")
        self._connection = connection
        self._file_lock = file_lock
        self._check = check
        self._maintain = maintain
        self._log = LogOnce("Writes to the store succeed again")
        self._turn = threading.Lock()
        """The holder of this lock may use the connection. Release it with `_changed` held, or a waiter may
        miss the wake-up. The attributes below change with `_changed` held."""
        self._begun: _Begun | None = None
        self._is_woken = False
        self._loop_writers: set[LoopWriter] = set()
        """The event loops that wait to begin the next turn."""
        self._is_in_doubt = False
        """Whether the outcome of a commit is unknown, and none has succeeded since."""
        for thread in self.threads:
            thread.start()

    def wake(self) -> None:
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self._turn.acquire()
        try:
            yield
        finally:
            self._end_turn()

    # A turn that an event loop begins

    def begin_turn(self, loop_writer: LoopWriter) -> None:
        """Apply the waiting writes in this thread if no turn is running; the writer thread commits them.

        Never blocks. If a turn is running, `loop_writer` is called when it has ended; if another process
        holds the file lock or the store, the thread waits for that and does the rest.
        """
        with self._changed:
            if self._is_closing:
                return  # the thread finishes the waiting writes before it ends
            if not self._turn.acquire(blocking=False):
                self._loop_writers.add(loop_writer)
                return
        is_begun = False
        try:
            is_begun = self._begin_batch()
        finally:
            if not is_begun:
                self._end_turn()

    def _begin_batch(self) -> bool:
        """Return whether a batch was handed to the thread, and with it the turn."""
        try:
            is_locked = self._file_lock.acquire(timeout_s=0)
        except OSError:
            is_locked = False  # the thread meets the same error, and logs it
        if not is_locked:
            self.wake()
            return False
        batch: list[Write] = []
        applied: _Applied | None = None
        is_begun = False
        try:
            batch = self._take_batch()
            if batch:
                began_s = time.monotonic()
                # If this fails, it is rolled back; the thread repeats it and logs why.
                with contextlib.suppress(Exception):
                    applied = self._apply(batch, timeout_s=0)
                with self._changed:
                    self._begun = _Begun(batch, applied, began_s)
                    is_begun = True
                    self._changed.notify_all()
        finally:
            if not is_begun:
                if applied is not None:
                    self._roll_back(applied.transaction)
                deliver(batch)
                self._file_lock.release()
        return is_begun

    # The thread

    def _run(self) -> None:
        while self._wait_for_turn():
            try:
                begun, self._begun = self._begun, None
                self._run_turn(begun)
            except BaseException:  # noqa: BLE001 - logged
                # Writes that were begun have their outcomes; the others are done in another turn.
                self._outlive()
                if self._waiting:
                    self.wake()
            finally:
                self._end_turn()

    def _wait_for_turn(self) -> bool:
        """Wait until the thread has a turn. Return False when the queue is closed and empty."""
        with self._changed:
            while True:
                if self._begun is not None:
                    return True
                is_wanted = self._is_woken or (self._is_closing and self._waiting)
                if is_wanted and self._turn.acquire(blocking=False):
                    self._is_woken = False
                    return True
                if self._is_closing and not is_wanted and not self._turn.locked():
                    return False
                self._changed.wait()

    def _end_turn(self) -> None:
        with self._changed:
            self._turn.release()
            loop_writers, self._loop_writers = self._loop_writers, set()
            self._changed.notify_all()
        for loop_writer in loop_writers:
            loop_writer.plan_turn()

    def _run_turn(self, begun: _Begun | None) -> None:
        """Commit the batch that an event loop has begun, or else one of the waiting writes."""
        while begun is None and not self._file_lock.acquire(timeout_s=FILE_LOCK_TIMEOUT_S):
            self.expire()
            if not self._waiting:
                return
        try:
            batch, applied, began_s = begun or _Begun(self._take_batch(), None, time.monotonic())
            if batch:
                try:
                    # Only the whole batch is applied already; parts of it are applied after a rollback.
                    self._commit_batch(
                        batch, lambda some: self._commit(some, applied if some is batch else None)
                    )
                finally:
                    deliver(batch)
                self.observe(len(batch), time.monotonic() - began_s)
                self._maintain()
        finally:
            self._file_lock.release()

    def _take_batch(self) -> list[Write]:
        with self._changed:
            self.expire()
            batch = self._take(self._waiting)
            self._is_woken |= bool(self._waiting)
            return batch

    # One batch

    def _commit(self, batch: list[Write], applied: _Applied | None = None) -> list[Any]:
        """Apply the batch, unless that is done, commit it, and return its outcomes.

        Raises the error by which the batch is refused or failed, after rolling it back.
        """
        applied = applied or self._apply(batch, timeout_s=BUSY_TIMEOUT_S)
        try:
            return self._settle(applied)
        except _CommitFailed as failed:
            self._warn("A commit failed and will be retried", failed.__cause__ or failed)
        # The pages of a failed commit may have reached the disk and would count after a crash. A commit
        # that succeeds now overwrites them in the log, which proves them gone.
        try:
            return self._settle(self._apply(batch, timeout_s=BUSY_TIMEOUT_S))
        except Exception as error:  # no error proves anything
            self._is_in_doubt = True
            cause = error.__cause__ if isinstance(error, _CommitFailed) else None
            self._warn("The outcome of a batch of writes is unknown", cause or error)
            raise OutcomeUnknown from error

    def _apply(self, batch: list[Write], *, timeout_s: float) -> _Applied:
        """Apply the batch in a transaction that waits for its commit; roll it back on any error.

        Waits up to `timeout_s` for a process that writes without the file lock.
        """
        transaction = self._begin(timeout_s)
        try:
            (closed_for,) = driver(self._connection).execute(FIND_CLOSED_FOR).fetchone()
            refuse_if_closed(closed_for, batch)
            return _Applied(transaction, apply_all(self._connection, batch))
        except BaseException:
            self._roll_back(transaction)
            raise

    def _begin(self, timeout_s: float) -> RootTransaction:
        if self._is_in_doubt:
            self._check_disk()
        try:
            return retry(
                self._connection.begin,
                is_retryable=lambda error: _name_of(error).startswith("SQLITE_BUSY"),
                timeout_s=timeout_s,
                delays_s=BUSY_DELAYS_S,
            )
        except DRIVER_ERRORS as error:
            raise self._explain(error) from error

    def _check_disk(self) -> None:
        """Raise StoreUnavailable if the disk has become read-only.

        A write that is not begun is certainly not done; if its commit fails, that is not certain.
        """
        try:
            os.close(os.open(self._file_lock.path, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            if error.errno == errno.EROFS:
                refusal = StoreUnavailable(READ_ONLY)
                self._log.warn("Writes to the store are refused", refusal)
                raise refusal from error

    def _settle(self, applied: _Applied) -> list[Any]:
        """Commit the transaction and return its outcomes.

        On failure it is rolled back: raises StoreUnavailable if that is certain, else _CommitFailed.
        """
        try:
            self._check()
            applied.transaction.commit()
        except BaseException as error:
            self._roll_back(applied.transaction)
            if _name_of(error) == "SQLITE_FULL":
                # The log had no room for its pages; the page that commits is the last one.
                raise StoreUnavailable(FULL) from error
            if isinstance(error, StoreUnavailable) or not isinstance(error, Exception):
                raise
            raise _CommitFailed from error
        try:
            self._check()
            # While an error makes ext4 read-only, a sync may report success although its data is lost.
            self._file_lock.touch()
            self._log.recover()
        except Exception as error:
            # The commit went to a file that is not the store's, or may not be on the disk. In neither
            # case is it known to have been rolled back.
            raise OutcomeUnknown from error
        self._is_in_doubt = False
        return applied.outcomes

    def _roll_back(self, transaction: RootTransaction) -> None:
        with contextlib.suppress(*DRIVER_ERRORS):  # SQLite may have rolled back already
            transaction.rollback()
        # After a failed COMMIT SQLAlchemy considers the transaction ended, but SQLite may not.
        connection = driver(self._connection)
        if connection.in_transaction:
            connection.rollback()

    def _explain(self, error: Exception) -> Exception:
        if not isinstance(error, DRIVER_ERRORS):
            return error
        if _name_of(error).startswith(REFUSALS):
            return StatementRefused(f"The store refused the values: {message_of(error)}")
        return StoreUnavailable(
            f"The store could not be written to ({message_of(error)}), so nothing was done; try again"
        )

    def _warn(self, what: str, error: BaseException) -> None:
        """Log the error, on one line if its message says everything."""
        if isinstance(error, (*DRIVER_ERRORS, StoreUnavailable)):
            self._log.warn(what, error)
        else:
            logger.warning("%s", what, exc_info=error)


def message_of(error: BaseException) -> str:
    """Return the driver's message, without the statement that SQLAlchemy adds."""
    return str(getattr(error, "orig", error))


def _name_of(error: BaseException) -> str:
    return getattr(getattr(error, "orig", error), "sqlite_errorname", None) or ""
