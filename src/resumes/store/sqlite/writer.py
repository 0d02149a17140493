"""The writer thread: how one process writes to SQLite.

A turn acquires the file lock that the processes of a store share, and commits the waiting writes in
one transaction, so that many writes share the cost of a durable commit (group commit). The writer
thread runs the turns. If none is running, an event loop may begin a turn for its coroutines and
leave only the commit to the thread (decision 0008). The file lock makes waiting fair and limits it;
BEGIN IMMEDIATE is what prevents simultaneous writes.

Callers can rely on the following:
- If a request has not begun by its deadline, it is withdrawn, and nothing was done (pitfalls S3).
- If a request has begun, its caller gets its true outcome. If a batch is certainly rolled back, it
  is retried one request at a time, so that no request can make others fail (pitfalls S7).
- If a COMMIT fails, a later successful COMMIT proves that its pages are gone; otherwise, the
  outcome is reported as unknown (pitfalls S2).
- If the file is no longer the store's file, a write to it is not reported as done.
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
"""How long the thread waits for a writer without the file lock, such as a shell or a backup."""

BUSY_DELAYS_S = (0.002,)
"""The delay between checks whether such a writer has finished."""

FILE_LOCK_TIMEOUT_S: Final = 0.05
"""How long the thread waits for the file lock before it checks for expired writes."""

DRIVER_ERRORS: Final = (DBAPIError, dbapi.Error)
"""Driver errors, both wrapped by SQLAlchemy and raised by statements that bypass SQLAlchemy."""

REFUSALS: Final = ("SQLITE_CONSTRAINT", "SQLITE_TOOBIG", "SQLITE_MISMATCH")
"""The prefixes of the names of errors that are caused only by the values."""

FIND_CLOSED_FOR: Final = (
    "SELECT (SELECT value FROM store_facts WHERE name = 'closed_for' AND value != '')"
)

FULL: Final = "The store's disk is full, so nothing was done; try again when there is room"
READ_ONLY: Final = (
    "The store's disk is read-only, so nothing was done; try again when it is writable"
)


class LogOnce:
    """Logs an error only once while it persists. Threads must not use it at the same time."""

    def __init__(self, recovered: str) -> None:
        self._recovered = recovered
        """The message to log when the errors have ended."""
        self._logged: set[str] = set()

    def warn(self, what: str, cause: BaseException) -> None:
        """Log `what` with the cause's message, unless it was logged since the last `recover`."""
        sentence = f"{what}: {message_of(cause)}"
        if sentence not in self._logged:
            self._logged.add(sentence)
            logger.warning("%s", sentence)

    def recover(self) -> None:
        """Log that the errors have ended, if any were logged; repeated errors are logged again."""
        if self._logged:
            self._logged.clear()
            logger.warning("%s", self._recovered)


class _Applied(NamedTuple):
    """A transaction that waits for its commit, and the outcomes of its writes once it commits."""

    transaction: RootTransaction
    outcomes: list[Any]


class _Begun(NamedTuple):
    """A batch that waits for its commit. If `applied` is None, it must be applied first."""

    batch: list[Write]
    applied: _Applied | None
    began_s: float


class _CommitFailed(Exception):
    """Raised if COMMIT itself fails; the cause is the driver's error."""


class SqliteWriter(WriteQueue):
    """The queue and its thread. Once it exists, `connection` is used only during a turn.

    `check` raises StoreUnavailable if a commit would not reach the store's file. `maintain` is
    called after each batch, with the file lock held, and limits the write-ahead log. Neither raises
    other errors.
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
        """The holder of this lock may use the connection. Release it, and change the attributes
        below, only with `_changed` held, or a waiter may miss the wake-up."""
        self._begun: _Begun | None = None
        self._is_woken = False
        self._loop_writers: set[LoopWriter] = set()
        """The event loops that are waiting to begin a turn."""
        self._is_in_doubt = False
        """Whether the outcome of a commit is unknown and no commit has succeeded since."""
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
        """If no turn is running, apply the waiting writes, which the writer thread then commits.

        Never blocks. If a turn is running, `loop_writer.plan_turn` is called after that turn. If
        another process holds the file lock or is writing, the writer thread waits for it and does
        the rest.
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
        """Begin a batch; return whether the batch and the turn were handed over to the thread."""
        try:
            is_locked = self._file_lock.acquire(timeout_s=0)
        except OSError:
            is_locked = False  # the thread will get the same error and log it
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
                # If this fails, it is rolled back, and the thread tries again and logs errors.
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
                # Writes that had begun have their outcomes; the others get another turn.
                self._outlive()
                if self._waiting:
                    self.wake()
            finally:
                self._end_turn()

    def _wait_for_turn(self) -> bool:
        """Wait until the thread has the turn; return False if the queue is closed and empty."""
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
        """Commit the batch that an event loop has begun, or else a batch of waiting writes."""
        while begun is None and not self._file_lock.acquire(timeout_s=FILE_LOCK_TIMEOUT_S):
            self.expire()
            if not self._waiting:
                return
        try:
            batch, applied, began_s = begun or _Begun(self._take_batch(), None, time.monotonic())
            if batch:
                try:
                    # Only the complete batch may be applied already; after a rollback, parts of it
                    # are applied and committed separately.
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
        """Apply the batch unless `applied` is given, commit it, and return its outcomes.

        If the batch is rejected or fails, roll it back and raise the error.
        """
        applied = applied or self._apply(batch, timeout_s=BUSY_TIMEOUT_S)
        try:
            return self._settle(applied)
        except _CommitFailed as failed:
            self._warn("A commit failed and will be retried", failed.__cause__ or failed)
        # Pages of the failed commit may have reached the disk, and would take effect after a crash.
        # If a commit succeeds now, it has overwritten them in the log.
        try:
            return self._settle(self._apply(batch, timeout_s=BUSY_TIMEOUT_S))
        except Exception as error:  # no error proves that the pages are gone
            self._is_in_doubt = True
            cause = error.__cause__ if isinstance(error, _CommitFailed) else None
            self._warn("The outcome of a batch of writes is unknown", cause or error)
            raise OutcomeUnknown from error

    def _apply(self, batch: list[Write], *, timeout_s: float) -> _Applied:
        """Apply the batch in a transaction that is not committed yet; roll it back on any error.

        Wait up to `timeout_s` seconds for a process that writes without the file lock.
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

        This is checked before a write begins, because a failed commit has an unknown outcome.
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

        If that fails, roll it back, and raise StoreUnavailable if the rollback is certain,
        otherwise _CommitFailed.
        """
        try:
            self._check()
            applied.transaction.commit()
        except BaseException as error:
            self._roll_back(applied.transaction)
            if _name_of(error) == "SQLITE_FULL":
                # The log had no room. The committing page comes last, so nothing was committed.
                raise StoreUnavailable(FULL) from error
            if isinstance(error, StoreUnavailable) or not isinstance(error, Exception):
                raise
            raise _CommitFailed from error
        try:
            self._check()
            # While an error turns ext4 read-only, a sync may report success although data was lost.
            self._file_lock.touch()
            self._log.recover()
        except Exception as error:
            # The commit went to another file, or may not be on the disk. In both cases it may
            # nevertheless have been committed.
            raise OutcomeUnknown from error
        self._is_in_doubt = False
        return applied.outcomes

    def _roll_back(self, transaction: RootTransaction) -> None:
        with contextlib.suppress(*DRIVER_ERRORS):  # SQLite may have rolled back already
            transaction.rollback()
        # After a failed COMMIT, the transaction may have ended for SQLAlchemy, but not for SQLite.
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
        """Log the error, without a traceback if its message is sufficient."""
        if isinstance(error, (*DRIVER_ERRORS, StoreUnavailable)):
            self._log.warn(what, error)
        else:
            logger.warning("%s", what, exc_info=error)


def message_of(error: BaseException) -> str:
    """Return the driver's message without the statement that SQLAlchemy adds."""
    return str(getattr(error, "orig", error))


def _name_of(error: BaseException) -> str:
    return getattr(getattr(error, "orig", error), "sqlite_errorname", None) or ""
