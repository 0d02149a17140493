"""The write lane: how one process writes to SQLite.

A turn takes what is waiting, enters the file lock that the processes of a store share, and
commits everything in one transaction: with many callers a durable commit costs each a fraction
(group commit). Turns are the lane's thread's; an event loop whose coroutines write may begin one
itself when the lane is free, and leave only the commit to the thread (`resumes.store.write_queue`). The
file lock is for fairness and bounded waiting; that writes exclude one another rests on BEGIN
IMMEDIATE.

What the lane promises each caller:
- A request that was not taken by its deadline is withdrawn: nothing was done (pitfalls S3).
- What was taken gets its true outcome. A batch that is known to be rolled back is run again,
  request by request, so that one of them cannot fail the others (pitfalls S7).
- A failed COMMIT is proved gone by a later successful one, or reported as unknown (pitfalls S2).
- What was committed to a file that is not the store's any more is not reported as done.
"""

import contextlib
import errno
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError

from resumes.errors import OutcomeUnknown, ResumesError, StoreUnavailable
from resumes.store.closed import refuse_if_closed
from resumes.store.locks import FileLock, keep_trying
from resumes.store.sqlite.driver import dbapi
from resumes.store.write_queue import (
    BATCH_LIMIT,
    BUSY,
    PENDING,
    Listener,
    Write,
    apply_all,
    deliver,
)


class Complaints:
    """What was told and is not over. One thread at a time may use it."""

    def __init__(self, over: str) -> None:
        self._over = over
        """What is told when all of it is over."""
        self._told: set[str] = set()

    def tell(self, what: str, cause: BaseException) -> None:
        """The log has a line on it, with the cause's words; none while the same is still told of."""
        sentence = f"{what}: {words_of(cause)}"
        if sentence not in self._told:
            self._told.add(sentence)
            logger.warning("%s", sentence)

    def end(self) -> None:
        """All of it is over, and would be told again. The log says so if anything was told."""
        if self._told:
            self._told.clear()
            logger.warning("%s", self._over)


def words_of(error: BaseException) -> str:
    """What the driver said; without the statement, which SQLAlchemy adds."""
    return str(getattr(error, "orig", error))


logger = logging.getLogger("resumes.store")

BUSY_S = 2.0
"""How long the thread waits for a writer that does not use the lane (a shell, a backup),"""

BUSY_PAUSES_S = (0.002,)
"""looking so often whether it has ended."""

AGAIN_S = 0.05
"""A pause after an error that the lane does not know, which may come again at once."""

DRIVER_ERRORS = (DBAPIError, dbapi.Error)
"""A driver's error as SQLAlchemy passes it on, and as it comes from statements run beside it."""

FULL = "The disk of the store is full; nothing was done, try again when there is room"
READ_ONLY = "The disk of the store is read-only; nothing was done, try again when it can be written"


class _Applied(NamedTuple):
    """A transaction that waits for its commit, and what its writes come to once that is done."""

    transaction: RootTransaction
    outcomes: list[Any]


class _Begun(NamedTuple):
    """A turn that waits for its commit; one that could not be applied is done again."""

    batch: list["Write"]
    applied: _Applied | None
    began_s: float


class SqliteLane:
    """The thread that writes. `connection` is used by it, and who begins turns, alone from now on.

    `check` raises StoreUnavailable where what is committed would not be in the store's file.
    `maintain` is called after each batch, inside the file lock, and bounds the write-ahead log;
    neither raises anything else.
    """

    def __init__(
        self,
        connection: Connection,
        file_lock: FileLock,
        *,
        check: Callable[[], None],
        maintain: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._file_lock = file_lock
        self._check = check
        self._maintain = maintain
        self._complaints = Complaints("Writes to the store succeed again")
        self.observe: Callable[[int, float], None] = lambda writes, took_s: None
        """Called after each batch with its writes and the seconds from its beginning to the end
        of its commit, in the lane's thread; must not raise or block."""
        self._waiting: deque[Write] = deque()
        self._changed = threading.Condition()
        self._turn = threading.Lock()
        """Whoever holds it has the connection. It is let go of with `_changed` held, so that
        nobody who finds it held can miss its end; what follows changes with `_changed` held."""
        self._begun: _Begun | None = None
        self._is_asked = False
        self._is_in_doubt = False
        """Whether what became of a commit is unknown, and none has succeeded since."""
        self._listeners: set[Listener] = set()
        self._closing = False
        self._thread = threading.Thread(target=self._live, name="store-lane", daemon=True)
        self._thread.start()

    def offer(self, write: Write) -> None:
        """The write waits for a turn, which whoever offers it has to begin or to ask for. Raises
        StoreUnavailable once the lane is closed or dead."""
        with self._changed:
            if self._closing or not self._thread.is_alive():
                raise StoreUnavailable("The store is closed")
            self._waiting.append(write)

    def ask(self) -> None:
        """The thread takes a turn as soon as it can."""
        with self._changed:
            self._is_asked = True
            self._changed.notify_all()

    def begin_turn(self, listener: Listener) -> None:
        """What waits is applied here and now if the lane is free, and the thread commits it.

        Never waits. If somebody has the turn, the listener is told when it has ended; if another
        process has the file lock or the store, the thread waits for that and does the rest.
        """
        with self._changed:
            if self._closing:
                return  # the thread takes what waits before it ends
            if not self._turn.acquire(blocking=False):
                self._listeners.add(listener)
                return
        is_begun = False
        try:
            is_begun = self._begin_batch()
        finally:
            if not is_begun:
                self._end_turn()

    def _begin_batch(self) -> bool:
        """Whether a batch was applied, which the thread commits now."""
        if not self._try_to_enter():
            self.ask()
            return False
        batch: list[Write] = []
        applied: _Applied | None = None
        is_begun = False
        try:
            batch = self._take()
            if batch:
                began_s = time.monotonic()
                applied = self._try_apply(batch)
                with self._changed:
                    self._begun = _Begun(batch, applied, began_s)
                    is_begun = True
                    self._changed.notify_all()
        finally:
            if not is_begun:
                if applied is not None:
                    self._roll_back(applied.transaction)
                self._answer(batch)
                self._file_lock.release()
        return is_begun

    def _try_to_enter(self) -> bool:
        try:
            return self._file_lock.acquire(wait_s=0)
        except OSError:
            return False  # the thread meets the same, and says so

    def _try_apply(self, batch: list[Write]) -> _Applied | None:
        try:
            return self._apply(batch, wait_s=0)
        except Exception:  # noqa: BLE001  (rolled back; the thread does it again and says why)
            return None

    def withdraw(self, write: Write) -> bool:
        """Whether the write was still waiting; then it will not happen."""
        with self._changed:
            try:
                self._waiting.remove(write)
            except ValueError:
                return False
            return True

    @property
    def waiting(self) -> int:
        """How many writes wait for their turn."""
        return len(self._waiting)

    @property
    def is_alive(self) -> bool:
        """Whether writes are being taken."""
        return self._thread.is_alive() and not self._closing

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """No write runs during the block, so the process may be stopped in it (pitfalls S9)."""
        self._turn.acquire()
        try:
            yield
        finally:
            self._end_turn()

    def close(self) -> None:
        """What was waiting is written, and the thread has ended. Safe to call twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _live(self) -> None:
        while self._wait_for_turn():
            try:
                begun, self._begun = self._begun, None
                if begun is None:
                    self._run_turn()
                else:
                    self._finish_turn(begun)
            except BaseException:
                # Whatever it was, the lane outlives it (pitfalls S7): what it had taken was
                # answered, and what it had not is taken in another turn.
                logger.exception("The write lane met an error it does not know")
                time.sleep(AGAIN_S)
                if self._waiting:
                    self.ask()
            finally:
                self._end_turn()

    def _wait_for_turn(self) -> bool:
        """Whether there is one more turn, which is the thread's now; else the lane is closed."""
        with self._changed:
            while True:
                if self._begun is not None:
                    return True
                is_wanted = self._is_asked or (self._closing and self._waiting)
                if is_wanted and self._turn.acquire(blocking=False):
                    self._is_asked = False
                    return True
                if self._closing and not is_wanted and not self._turn.locked():
                    return False
                self._changed.wait()

    def _end_turn(self) -> None:
        with self._changed:
            self._turn.release()
            listeners, self._listeners = self._listeners, set()
            self._changed.notify_all()
        for listener in listeners:
            listener.lane_is_free()

    def _run_turn(self) -> None:
        if not self._enter():
            return
        try:
            batch = self._take()
            if batch:
                began_s = time.monotonic()
                try:
                    self._commit(batch)
                finally:
                    self._answer(batch)
                self._look_after(batch, began_s)
        finally:
            self._file_lock.release()

    def _finish_turn(self, begun: _Begun) -> None:
        batch = begun.batch
        try:
            try:
                if begun.applied is None:
                    self._commit(batch)
                else:
                    self._try_to_settle(batch, begun.applied)
            finally:
                self._answer(batch)
            self._look_after(batch, begun.began_s)
        finally:
            self._file_lock.release()

    def _look_after(self, batch: list[Write], began_s: float) -> None:
        self.observe(len(batch), time.monotonic() - began_s)
        self._maintain()

    @staticmethod
    def _answer(batch: list[Write]) -> None:
        for write in batch:
            if write.outcome is PENDING:
                write.outcome = OutcomeUnknown()
        deliver(batch)

    def _enter(self) -> bool:
        """Whether the file lock was had before everything that waits was overdue."""
        while not self._file_lock.acquire(wait_s=0.05):
            self._expire()
            with self._changed:
                if not self._waiting:
                    return False
        return True

    def _expire(self) -> None:
        now = time.monotonic()
        with self._changed:
            overdue = [write for write in self._waiting if write.deadline <= now]
            for write in overdue:
                self._waiting.remove(write)
        for write in overdue:
            write.outcome = StoreUnavailable(BUSY)
        deliver(overdue)

    def _take(self) -> list[Write]:
        self._expire()
        with self._changed:
            count = min(len(self._waiting), BATCH_LIMIT)
            self._is_asked |= len(self._waiting) > count
            return [self._waiting.popleft() for _ in range(count)]

    def _commit(self, batch: list[Write]) -> None:
        """The batch is applied and committed; each of its writes has its outcome."""
        try:
            applied = self._apply(batch, wait_s=BUSY_S)
        except StoreUnavailable as error:
            self._refuse(batch, error)
        except Exception as error:  # noqa: BLE001 - rolled back, whatever it is, and handed on
            if len(batch) == 1:
                batch[0].outcome = self._explain(error)
                return
            self._tell("A batch of writes was rolled back, and is done one by one", error)
            for write in batch:
                self._commit([write])
        else:
            self._try_to_settle(batch, applied)

    def _try_to_settle(self, batch: list[Write], applied: _Applied) -> None:
        """What was applied is committed, or each of its writes has the outcome that says why not."""
        try:
            self._settle(batch, applied)
        except StoreUnavailable as error:
            self._refuse(batch, error)
        except _CommitFailed as failed:
            self._commit_again(batch, failed.reason)

    @staticmethod
    def _refuse(batch: list[Write], error: StoreUnavailable) -> None:
        for write in batch:
            write.outcome = error

    def _apply(self, batch: list[Write], *, wait_s: float) -> _Applied:
        """The batch waits for its commit; otherwise it is rolled back. Waits so long for somebody
        who writes to the store beside the lane."""
        transaction = self._begin(wait_s)
        try:
            refuse_if_closed(self._connection, batch)
            return _Applied(transaction, apply_all(self._connection, batch))
        except BaseException:
            self._roll_back(transaction)
            raise

    def _settle(self, batch: list[Write], applied: _Applied) -> None:
        """The transaction is committed, and only now its writes have their outcomes. Otherwise it
        is rolled back: raises StoreUnavailable when that is certain, and _CommitFailed."""
        try:
            self._check()
            applied.transaction.commit()
        except BaseException as error:
            self._roll_back(applied.transaction)
            if is_full(error):
                # The log had no room for its pages, of which the one that commits is the last.
                raise StoreUnavailable(FULL) from error
            if isinstance(error, StoreUnavailable) or not isinstance(error, Exception):
                raise
            raise _CommitFailed(error) from error
        is_stored = self._is_stored()
        for write, outcome in zip(batch, applied.outcomes, strict=True):
            write.outcome = outcome if is_stored else OutcomeUnknown()
        if is_stored:
            self._is_in_doubt = False
            self._complaints.end()

    def _is_stored(self) -> bool:
        """Whether the commit went to the store's file; if not, nobody knows who will see it."""
        try:
            self._check()
        except StoreUnavailable:
            return False
        return True

    def _roll_back(self, transaction: RootTransaction) -> None:
        with contextlib.suppress(*DRIVER_ERRORS):  # SQLite may have rolled back by itself
            transaction.rollback()
        # After a COMMIT that failed SQLAlchemy takes the transaction for ended; SQLite may not.
        connection: Any = self._connection.connection.driver_connection
        if connection.in_transaction:
            connection.rollback()

    def _begin(self, wait_s: float) -> RootTransaction:
        if self._is_in_doubt:
            self._check_disk()
        try:
            return keep_trying(
                self._connection.begin,
                is_passing=is_busy,
                within_s=wait_s,
                pauses_s=BUSY_PAUSES_S,
            )
        except DRIVER_ERRORS as error:
            raise StoreUnavailable(
                f"The store could not be written to ({getattr(error, 'orig', error)}); nothing was done, try again"
            ) from error

    def _check_disk(self) -> None:
        """Raise StoreUnavailable if the disk has become read-only.

        A write that is not begun is known not to be done; one whose commit fails is not.
        """
        try:
            self._file_lock.check_writable()
        except OSError as error:
            if error.errno == errno.EROFS:
                refusal = StoreUnavailable(READ_ONLY)
                self._complaints.tell("Writes to the store are refused", refusal)
                raise refusal from error

    def _commit_again(self, batch: list[Write], reason: BaseException) -> None:
        """The batch after a COMMIT that failed.

        The failed commit's pages may have reached the disk and would count after a crash. A
        commit that succeeds now takes their place in the log: it proves them gone.
        """
        self._tell("A commit failed, and is tried once more", reason)
        try:
            self._settle(batch, self._apply(batch, wait_s=BUSY_S))
        except Exception as error:  # noqa: BLE001  (whatever it is, it proves nothing)
            for write in batch:
                write.outcome = OutcomeUnknown()
            self._is_in_doubt = True
            again = error.reason if isinstance(error, _CommitFailed) else error
            self._tell("Whether the writes of a batch are stored is unknown", again)

    def _tell(self, what: str, error: BaseException) -> None:
        """The log has it: in a line where the words of the error say it all."""
        if isinstance(error, (*DRIVER_ERRORS, StoreUnavailable)):
            self._complaints.tell(what, error)
        else:
            logger.warning("%s", what, exc_info=error)

    @staticmethod
    def _explain(error: BaseException) -> ResumesError | BaseException:
        if isinstance(error, DRIVER_ERRORS):
            cause = getattr(error, "orig", error)
            return StoreUnavailable(
                f"The store could not write ({cause}); nothing was done, try again"
            )
        return error


def is_full(error: BaseException) -> bool:
    """Whether the driver says that there is no room."""
    return _name_of(error) == "SQLITE_FULL"


def is_busy(error: BaseException) -> bool:
    """Whether the driver says that somebody else is writing."""
    return _name_of(error).startswith("SQLITE_BUSY")


def _name_of(error: BaseException) -> str:
    return getattr(getattr(error, "orig", error), "sqlite_errorname", None) or ""


class _CommitFailed(Exception):
    """COMMIT itself failed."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason
