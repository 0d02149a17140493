"""A store in a SQLite file: its connections, its identity, and checkpoints that keep its log short."""

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import sqlalchemy
from sqlalchemy import Connection, Engine, NullPool

from resumes.clock import Clock
from resumes.errors import ResumesError, StoreIncompatible, StoreUnavailable
from resumes.filesystems import free_bytes
from resumes.store.locks import FileLock
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.place import LOGS, describe_second_name, logs_of
from resumes.store.sqlite.writer import DRIVER_ERRORS, LogOnce, SqliteWriter
from resumes.store.statements import driver
from resumes.store.store import Row, Size, Store
from resumes.store.write_queue import not_text

logger = logging.getLogger("resumes.store")

CHECKPOINT_BYTES = 4 * 1024 * 1024
"""A log that has grown to this size is copied into the store."""

CHECKPOINT_INTERVAL_S = 0.5
"""The minimum interval: the log's file keeps its size, so its size alone would always ask for it."""

MIN_FREE_BYTES = 64 * 1024
"""With less free space, a store cannot even be opened: its log and index need some."""

TRUNCATE_BYTES = 32 * 1024 * 1024
"""A log that has grown to this size is truncated as well."""

TRUNCATE_INTERVAL_S = 1.0
"""The minimum interval between two truncations."""

BUSY_TIMEOUT_MS = 2_000
"""How long SQLite itself waits for a writer that does not use the file lock (a shell, a backup)."""

INTERRUPT_INTERVAL_S = 0.05
"""How long `close` waits for a reading thread before it interrupts the thread again."""

CACHE_BYTES = 16_000 * 1024
"""The maximum size of a connection's page cache."""


class Identity:
    """The files of an open store, as they are when this is created. Any thread may check them.

    A file that was removed or replaced once counts as lost for good, since another program may have
    created or changed the present file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = str(path)
        logs = [str(log) for log in logs_of(path) if log.exists()]
        self._ids = {name: _id_of(name) for name in (self._name, *logs)}
        self._noticing = threading.Lock()
        self._lost: str | None = None
        self._doubled: str | None = None
        """The file that had a second name at the last check; None if none had."""

    def check_in_place(self) -> int:
        """Return how many hard links the file has. Raises StoreUnavailable if the name is no longer that of
        the open file: writes to it would be lost, so no call succeeds until a restart."""
        return self._check(self._name)

    def check(self) -> None:
        """Raise StoreUnavailable unless the file has its name, and no other. A second name is an error for
        as long as it exists."""
        if self.check_in_place() > 1 or self._doubled is not None:
            self.check_all()

    def check_all(self) -> None:
        """Check the log and the log's index too, if there were any. Raises StoreUnavailable; if only these
        are lost, closing the store still copies the log into the file."""
        links = [(self._check(name), name) for name in self._ids]
        doubled = next((name for count, name in links if count > 1), None)
        with self._noticing:
            is_new = doubled != self._doubled
            self._doubled = doubled
        if doubled is not None:
            sentence = describe_second_name(Path(doubled))
            if is_new:
                logger.error("%s", sentence)
            raise StoreUnavailable(sentence)
        if is_new:
            logger.warning("The files of the store %s no longer have a second name", self._path)

    def check_known(self) -> None:
        """Raise StoreUnavailable if an earlier check found a file lost, without another check."""
        if self._lost is not None:
            raise StoreUnavailable(self._lost)

    def _check(self, name: str) -> int:
        """Return how many hard links the file has."""
        self.check_known()
        try:
            found = os.stat(name)  # noqa: PTH116  (twice for every commit)
            if (found.st_dev, found.st_ino) == self._ids[name]:
                return found.st_nlink
        except FileNotFoundError:
            what = "removed or renamed"
        except OSError as error:  # any of them may be temporary
            raise StoreUnavailable(
                f"The store {self._path} cannot be checked ({error.strerror}), so nothing was "
                "done; try again"
            ) from error
        else:
            what = "replaced by another file"
        remedy = "put the file back or restore a backup of the store, "
        if name != self._name:
            self.check_in_place()  # which says more, if it is gone by now
            remedy = ""
        with self._noticing:
            if self._lost is None:  # the first error is raised each time
                self._lost = (
                    f"{name} was {what} while the store was in use, so nothing is read or written "
                    f"anymore. Stop every program that uses it, {remedy}then start them again"
                )
                logger.error("%s", self._lost)
        raise StoreUnavailable(self._lost)


def _id_of(name: str) -> tuple[int, int]:
    """Return device and inode, by which SQLite identifies files too."""
    found = os.stat(name)  # noqa: PTH116  (as in Identity)
    return found.st_dev, found.st_ino


class SqliteStore(Store):
    """A store in a file. `life` is held shared as long as it is open.

    Once a check finds the file removed or replaced, all reads and writes raise StoreUnavailable.
    """

    engine_info = {"sqlite": str(dbapi.sqlite_version)}  # noqa: RUF012
    path: Path

    def __init__(
        self, path: Path, *, life: FileLock, clock: Clock, read_cache_bytes: int = CACHE_BYTES
    ) -> None:
        self.path = path
        self._log = path.with_name(path.name + LOGS[0])
        self._life = life
        # The writer thread waits for other writers itself; an event loop that begins a turn must not.
        self._write_connection = sqlite_engine(path, transactions=True, waits=False).connect()
        self._identity = Identity(path)  # now that the log exists
        self._reading = _Reading(path, self._identity, read_cache_bytes)
        self._write_lock = FileLock(path.with_name(path.name + ".writer"))
        self._checked_s = self._truncated_s = 0.0
        """When the log was last checked, and truncated, on the monotonic clock."""
        self._checkpoint_log = LogOnce("The store's log can be checkpointed again")
        writer = SqliteWriter(
            self._write_connection,
            self._write_lock,
            check=self._identity.check,
            maintain=self._maintain,
        )
        url = f"sqlite:///{path}"
        super().__init__(writer, url=url, label=url, clock=clock)

    def read(self) -> "_Reading":
        return self._reading

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Connection]:
        with self._reading as connection:
            driver(connection).execute("BEGIN")
            try:
                yield connection
            finally:
                driver(connection).execute("ROLLBACK")

    async def fetch_async(self, statement: Any, /, **values: Any) -> Sequence[Row]:
        # Without a thread, since reading the file hardly blocks.
        return self.fetch(statement, **values)

    def read_version(self) -> int:
        with self._reading as connection:
            (version,) = driver(connection).execute("PRAGMA data_version").fetchone()
        return int(version)

    def _maintain(self) -> None:
        """Keep the log short. Called by the writer thread; never raises: if it fails, it is repeated after
        another batch."""
        now = time.monotonic()
        if now - self._checked_s < CHECKPOINT_INTERVAL_S:
            return
        self._checked_s = now
        try:
            self._identity.check_all()
            size_bytes = _size_bytes(self._log)
            if size_bytes >= CHECKPOINT_BYTES:
                self._checkpoint(size_bytes)
                self._checkpoint_log.recover()
        except DRIVER_ERRORS as error:
            self._checkpoint_log.warn("The store's log cannot be checkpointed", error)
        except StoreUnavailable:
            return  # the identity check has logged it, and the next write is refused

    def _checkpoint(self, size_bytes: int) -> None:
        """Copy the log into the store (pitfalls S10).

        A passive checkpoint never resets the log while readers overlap, so above a limit the log is
        truncated, which waits for readers, briefly and rarely.
        """
        connection = driver(self._write_connection)
        now = time.monotonic()
        if size_bytes <= TRUNCATE_BYTES or now - self._truncated_s <= TRUNCATE_INTERVAL_S:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            return
        self._truncated_s = now
        connection.execute("PRAGMA busy_timeout=50")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.execute("PRAGMA busy_timeout=0")

    def clear_log(self) -> bool:
        with sqlite_engine(self.path, transactions=False).connect() as connection:
            (is_busy, *_) = driver(connection).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def measure(self) -> Size:
        # By name: opening and closing a file would drop this process's locks.
        return Size(_size_bytes(self.path), _size_bytes(self._log))

    def _disconnect(self) -> None:
        self._reading.close()
        self._write_connection.close()
        self._write_lock.close()
        self._life.close()


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Reader:
    """A thread's connection. `in_use` is held while the thread reads: closing a connection during a
    statement would crash the process."""

    connection: Connection
    in_use: threading.RLock = field(default_factory=threading.RLock)


class _Reading:
    """The block of `SqliteStore.read`; each thread has its own connection. It is not a generator, which
    would be slower: every request comes here."""

    def __init__(self, path: Path, identity: Identity, cache_bytes: int) -> None:
        self._path = path
        self._identity = identity
        self._engine = sqlite_engine(
            path, transactions=False, query_only=True, cache_bytes=cache_bytes
        )
        self._own = threading.local()
        # Weak, so that the connection of a thread that ends is closed.
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._closing = threading.Lock()
        self._is_closed = False

    def __enter__(self) -> Connection:
        self._identity.check_known()
        reader: _Reader = getattr(self._own, "reader", None) or self._open()
        reader.in_use.acquire()
        if self._is_closed:
            reader.in_use.release()
            raise self._closed()
        return reader.connection

    def _open(self) -> _Reader:
        # Another file with the name is not opened: SQLite would apply this file's log to it.
        self._identity.check_in_place()
        try:
            reader = _Reader(self._engine.connect())
        except DRIVER_ERRORS as error:
            raise explain(error, self._path) from error
        with self._closing:
            if self._is_closed:
                reader.connection.close()
                raise self._closed()
            self._own.reader = reader
            self._readers.add(reader)
        return reader

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable("The store is closed")

    def close(self) -> None:
        """Interrupt running statements, wait for reading threads, and close all connections."""
        with self._closing:
            self._is_closed = True
        for reader in [*self._readers]:
            # Repeatedly, since a statement that has not begun is not interrupted.
            while not reader.in_use.acquire(timeout=INTERRUPT_INTERVAL_S):
                driver(reader.connection).interrupt()
            reader.connection.close()
            reader.in_use.release()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._own.reader.in_use.release()
        if error is None:
            return
        if isinstance(error, DRIVER_ERRORS):
            raise explain(error, self._path) from error
        if isinstance(error, UnicodeEncodeError):
            raise not_text(error) from error


def sqlite_engine(
    path: Path,
    *,
    transactions: bool,
    query_only: bool = False,
    waits: bool = True,
    cache_bytes: int = CACHE_BYTES,
) -> Engine:
    """Return an engine for a file, which has to exist.

    Without `transactions` each statement is its own transaction, as readers need it. Unless it `waits`,
    SQLite reports immediately that another process is writing; only opening always waits.
    """
    pragmas = (
        "synchronous=FULL",
        "foreign_keys=ON",
        "trusted_schema=OFF",
        "temp_store=MEMORY",
        f"cache_size=-{cache_bytes // 1024}",
        "wal_autocheckpoint=0",
        "journal_size_limit=67108864",
        # This reads, so the log exists from now on, even if another process removed it.
        "schema_version",
        # What is deleted is overwritten, so that it is not in the file's free pages (pitfalls S27).
        "query_only=ON" if query_only else "secure_delete=ON",
        # Last, since opening may have to wait for a process that recovers the log of a killed one.
        *(() if waits else ("busy_timeout=0",)),
    )
    engine = sqlalchemy.create_engine(
        "sqlite://",
        creator=partial(_connect, path, pragmas),
        module=dbapi,
        poolclass=NullPool,
        # The text of an error may be logged, and the parameters are personal data.
        hide_parameters=True,
    )
    if not transactions:
        return engine.execution_options(isolation_level="AUTOCOMMIT")

    @sqlalchemy.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A deferred transaction that reads first and writes later would fail instead of waiting.
        driver(connection).execute("BEGIN IMMEDIATE")

    return engine


def _connect(path: Path, pragmas: Iterable[str]) -> Any:
    # isolation_level None: the driver never begins a transaction on its own. rw: SQLite must not create
    # a missing file, which would have the umask's mode, and might hide a loss.
    connection = dbapi.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_TIMEOUT_MS / 1_000,
    )
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        # The garbage collector might close it when another file has the name, and SQLite would remove
        # that file's log.
        connection.close()
        raise
    return connection


UNREADABLE: Final = "Could not decode to UTF-8"
"""The beginning of the driver's message for a text that is not UTF-8."""

NOT_UTF8: Final = "text that is not UTF-8"

NO_TEXT: Final = "JSON cannot hold BLOB values"
"""The driver's message for a page of the list with bytes instead of a text."""


def describe(error: Exception) -> str:
    """Return the driver's message, without data from the store."""
    text = str(getattr(error, "orig", error))
    # The rest of the driver's message is the text, which is part of a resume.
    return NOT_UTF8 if text.startswith(UNREADABLE) else text


def explain(error: Exception, path: Path) -> ResumesError:
    """Return the store's error for an error of the driver."""
    text = describe(error)
    if not ("not a database" in text or "malformed" in text or text in (NOT_UTF8, NO_TEXT)):
        if "I/O" in text:
            with contextlib.suppress(OSError):
                text = "its disk is full" if free_bytes(path.parent) < MIN_FREE_BYTES else text
        return StoreUnavailable(f"The store {path} is unavailable: {text}")
    return StoreIncompatible(
        f"The store {path} is damaged or not a SQLite database ({text}). Restore a backup, or "
        "choose another file with --database"
    )
