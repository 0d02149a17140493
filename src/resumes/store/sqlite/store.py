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
"""The size at which the log is copied into the store."""

CHECKPOINT_INTERVAL_S = 0.5
"""The minimum interval between checkpoints: the log file does not shrink after a checkpoint."""

MIN_FREE_BYTES = 64 * 1024
"""The minimum free space to open a store, because its log and the log's index need some."""

TRUNCATE_BYTES = 32 * 1024 * 1024
"""The size above which the log is also truncated."""

TRUNCATE_INTERVAL_S = 1.0
"""The minimum interval between two truncations."""

BUSY_TIMEOUT_MS = 2_000
"""How long SQLite waits for a writer without the file lock, such as a shell or a backup."""

INTERRUPT_INTERVAL_S = 0.05
"""How long `close` waits for a reading thread before it interrupts its statement again."""

CACHE_BYTES = 16_000 * 1024
"""The maximum size of a connection's page cache."""


class Identity:
    """The files of an open store at the time of opening it. Any thread may check them.

    A file that was removed or replaced is treated as lost permanently, because another program may
    have created or changed the file that is there now.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = str(path)
        logs = [str(log) for log in logs_of(path) if log.exists()]
        self._ids = {name: _id_of(name) for name in (self._name, *logs)}
        self._noticing = threading.Lock()
        self._lost: str | None = None
        self._doubled: str | None = None
        """The file that had a second name at the last check, or None."""

    def check_in_place(self) -> int:
        """Return the number of hard links of the file.

        Raises StoreUnavailable if the open file no longer has this name. Its writes would be lost,
        so all calls fail until a restart.
        """
        return self._check(self._name)

    def check(self) -> None:
        """Raise StoreUnavailable if the file has lost its name, or while it has a second name."""
        if self.check_in_place() > 1 or self._doubled is not None:
            self.check_all()

    def check_all(self) -> None:
        """Check the file, its log and the log's index, if these existed. Raises StoreUnavailable.

        If only the log or its index is lost, closing the store still copies the log into the file.
        """
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
        """Raise StoreUnavailable if an earlier check found that a file is lost."""
        if self._lost is not None:
            raise StoreUnavailable(self._lost)

    def _check(self, name: str) -> int:
        """Return the number of hard links of the file."""
        self.check_known()
        try:
            found = os.stat(name)  # noqa: PTH116  (twice for every commit)
            if (found.st_dev, found.st_ino) == self._ids[name]:
                return found.st_nlink
        except FileNotFoundError:
            what = "removed or renamed"
        except OSError as error:  # such an error may be temporary
            raise StoreUnavailable(
                f"The store {self._path} cannot be checked ({error.strerror}), so nothing was "
                "done; try again"
            ) from error
        else:
            what = "replaced by another file"
        remedy = "put the file back or restore a backup of the store, "
        if name != self._name:
            self.check_in_place()  # its error is more helpful if that file is lost too
            remedy = ""
        with self._noticing:
            if self._lost is None:  # always raise the first error
                self._lost = (
                    f"{name} was {what} while the store was in use, so nothing is read or written "
                    f"anymore. Stop every program that uses it, {remedy}then start them again"
                )
                logger.error("%s", self._lost)
        raise StoreUnavailable(self._lost)


def _id_of(name: str) -> tuple[int, int]:
    """Return the device and the inode, by which SQLite also identifies files."""
    found = os.stat(name)  # noqa: PTH116  (as in Identity)
    return found.st_dev, found.st_ino


class SqliteStore(Store):
    """A store in a file. The shared lock `life` is held while it is open.

    After a check has found that the file was removed or replaced, all reads and writes raise
    StoreUnavailable.
    """

    engine_info = {"sqlite": str(dbapi.sqlite_version)}  # noqa: RUF012
    path: Path

    def __init__(
        self, path: Path, *, life: FileLock, clock: Clock, read_cache_bytes: int = CACHE_BYTES
    ) -> None:
        self.path = path
        self._log = path.with_name(path.name + LOGS[0])
        self._life = life
        # SQLite must not wait for other writers: the writer thread waits itself, and an event loop
        # that begins a turn must not wait.
        self._write_connection = sqlite_engine(path, transactions=True, waits=False).connect()
        self._identity = Identity(path)  # created now because the log exists
        self._reading = _Reading(path, self._identity, read_cache_bytes)
        self._write_lock = FileLock(path.with_name(path.name + ".writer"))
        self._checked_s = self._truncated_s = 0.0
        """The monotonic times when the log was last checked and last truncated."""
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
        # No thread is needed, because reading a file hardly blocks.
        return self.fetch(statement, **values)

    def read_version(self) -> int:
        with self._reading as connection:
            (version,) = driver(connection).execute("PRAGMA data_version").fetchone()
        return int(version)

    def _maintain(self) -> None:
        """Keep the log short. The writer thread calls this after each batch. It never raises."""
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
            return  # the check has logged it, and the next write will fail

    def _checkpoint(self, size_bytes: int) -> None:
        """Copy the log into the store (pitfalls S10).

        A passive checkpoint never resets the log while there is always a reader. So above a limit,
        which is rarely reached, the log is truncated, which waits briefly for readers.
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
        # Measured without opening the files, since closing them would drop this process's locks.
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
    """A thread's connection. `in_use` is held while the thread reads, because closing the
    connection during a statement would crash the process."""

    connection: Connection
    in_use: threading.RLock = field(default_factory=threading.RLock)


class _Reading:
    """The context manager of `SqliteStore.read`, with a connection for each thread.

    It is used for every request, so it is not a generator, which would be slower.
    """

    def __init__(self, path: Path, identity: Identity, cache_bytes: int) -> None:
        self._path = path
        self._identity = identity
        self._engine = sqlite_engine(
            path, transactions=False, query_only=True, cache_bytes=cache_bytes
        )
        self._own = threading.local()
        # Weak references, so that the connection of a thread is closed when the thread ends.
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
        # Never open another file at this path: SQLite would apply this store's log to it.
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
        """Interrupt running statements, wait for reading threads, then close all connections."""
        with self._closing:
            self._is_closed = True
        for reader in [*self._readers]:
            # Interrupt repeatedly: an interrupt has no effect on a statement that begins later.
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
    """Return an engine for a file, which must exist.

    Without `transactions`, each statement is its own transaction, as readers need it. If `waits` is
    False, SQLite reports immediately that another process is writing, except while opening the
    file.
    """
    pragmas = (
        "synchronous=FULL",
        "foreign_keys=ON",
        "trusted_schema=OFF",
        "temp_store=MEMORY",
        f"cache_size=-{cache_bytes // 1024}",
        "wal_autocheckpoint=0",
        "journal_size_limit=67108864",
        # Reads the file, so that the log exists from now on even if another process has removed it.
        "schema_version",
        # Overwrites deleted data, so that none remains in the file's free pages (pitfalls S27).
        "query_only=ON" if query_only else "secure_delete=ON",
        # Comes last: opening may have to wait while another process recovers a log after a crash.
        *(() if waits else ("busy_timeout=0",)),
    )
    engine = sqlalchemy.create_engine(
        "sqlite://",
        creator=partial(_connect, path, pragmas),
        module=dbapi,
        poolclass=NullPool,
        # Error messages may be logged, and parameters contain personal data.
        hide_parameters=True,
    )
    if not transactions:
        return engine.execution_options(isolation_level="AUTOCOMMIT")

    @sqlalchemy.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A deferred transaction that reads before it writes may fail instead of waiting.
        driver(connection).execute("BEGIN IMMEDIATE")

    return engine


def _connect(path: Path, pragmas: Iterable[str]) -> Any:
    # With isolation level None, the driver never begins a transaction itself. With mode rw, SQLite
    # never creates a missing file: its permissions would be wrong, and it might hide a loss.
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
        # If the garbage collector closed it later, another file might have the name by then, and
        # SQLite would remove that file's log.
        connection.close()
        raise
    return connection


UNREADABLE: Final = "Could not decode to UTF-8"
"""The beginning of the driver's message for text that is not UTF-8."""

NOT_UTF8: Final = "text that is not UTF-8"

NO_TEXT: Final = "JSON cannot hold BLOB values"
"""The driver's message for a list page that contains bytes instead of text."""


def describe(error: Exception) -> str:
    """Return the driver's message, without data from the store."""
    text = str(getattr(error, "orig", error))
    # The rest of the driver's message contains the text, which may be part of a resume.
    return NOT_UTF8 if text.startswith(UNREADABLE) else text


def explain(error: Exception, path: Path) -> ResumesError:
    """Return the store's error for a driver error."""
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
