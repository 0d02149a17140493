"""A store in a SQLite file: connections that read, one that writes, and the log kept short."""

import shutil
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import sqlalchemy
from sqlalchemy import Connection, Engine, NullPool

from resumes.errors import ResumesError, StoreIncompatible, StoreUnavailable
from resumes.store.database import Row, Size, not_text
from resumes.store.locks import FileLock
from resumes.store.sqlite.complaints import Complaints
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.identity import LOGS, Identity
from resumes.store.sqlite.lane import DRIVER_ERRORS, SqliteLane
from resumes.store.statements import Prepared, driver

APPLICATION_ID = 0x52534D45
"""Stamped into the file's header ("RSME"), so that a stranger's database is told from ours."""

CHECKPOINT_BYTES = 4 * 1024 * 1024
"""A log that has grown to this is copied into the store,"""

CHECKPOINT_EVERY_S = 0.5
"""looked at so often: its file keeps its size, so size alone would ask for it every time."""

LEAST_ROOM_BYTES = 64 * 1024
"""With less, a store cannot even be opened: its log and index have no room."""

TRUNCATE_BYTES = 32 * 1024 * 1024
TRUNCATE_EVERY_S = 1.0

BUSY_TIMEOUT_MS = 2_000
"""How long SQLite itself waits for a writer that does not use the lane (a shell, a backup)."""

CACHE_BYTES = 16_000 * 1024
"""Pages that a connection keeps at most."""


class SqliteDatabase:
    """An open file. `life` is held shared as long as it is open.

    Once the file turns out to have been removed or replaced, all reads and writes are refused with
    StoreUnavailable.
    """

    waits_for_network = False

    def __init__(self, path: Path, *, life: FileLock, read_cache_bytes: int = CACHE_BYTES) -> None:
        self.path = path
        self._log = path.with_name(path.name + LOGS[0])
        self._life = life
        self._readers = threading.local()
        # Weak, so that a thread that ends takes its connection along.
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._read_engine = sqlite_engine(
            path, transactions=False, query_only=True, cache_bytes=read_cache_bytes
        )
        # The lane waits for others itself, and an event loop that begins a turn must not.
        self._write_engine = sqlite_engine(path, transactions=True, waits=False)
        self._lane_connection = self._write_engine.connect()
        self._identity = Identity(path)
        self._lane_file = FileLock(path.with_name(path.name + ".lane"))
        self._last_look = self._last_truncate = 0.0
        self._complaints = Complaints("The store's log is copied into it again")
        self.lane = SqliteLane(
            self._lane_connection,
            self._lane_file,
            check=self._identity.check,
            maintain=self._maintain,
        )

    @property
    def url(self) -> str:
        """The address that opens this store again."""
        return f"sqlite:///{self.path}"

    @property
    def label(self) -> str:
        """The same: no secret stands in it."""
        return self.url

    @property
    def engine(self) -> Mapping[str, str]:
        """The version of the library: the program brings it along."""
        return {"sqlite": str(dbapi.sqlite_version)}

    def read(self) -> "_Reading":
        """A block with a connection of this thread's own that cannot write.

        Each statement sees what is committed when it starts; no transaction outlives it, so
        that readers never hold back the log.
        """
        return _Reading(self)

    def read_version(self) -> int | None:
        """Return a number that changes when another connection than this thread's has committed."""
        with self.read() as connection:
            (version,) = driver(connection).execute("PRAGMA data_version").fetchone()
        return int(version)

    async def fetch_soon(self, statement: Prepared, values: Mapping[str, Any]) -> Sequence[Row]:
        """The rows of a statement, read here and now: the file is as near as the memory."""
        with self.read() as connection:
            rows: Sequence[Row] = statement.run(connection, **values).fetchall()
        return rows

    def reader(self) -> Connection:
        """This thread's reading connection, opened when first asked for."""
        self._identity.check_known()
        connection: Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            # Another file under the name is not even opened: it would be given this one's log.
            self._identity.check_in_place()
            connection = self._read_engine.connect()
            self._readers.connection = connection
            self._connections.add(connection)
        return connection

    def _maintain(self) -> None:
        """The log is kept short. Runs in the lane, and raises nothing: what cannot be done now is
        done after another batch."""
        now = time.monotonic()
        if now - self._last_look < CHECKPOINT_EVERY_S:
            return
        self._last_look = now
        try:
            self._identity.check_all()
            size_bytes = _size_bytes(self._log)
            if size_bytes >= CHECKPOINT_BYTES:
                self._checkpoint(size_bytes)
                self._complaints.end()
        except DRIVER_ERRORS as error:
            self._complaints.tell("The store's log cannot be copied into it", error)
        except StoreUnavailable:
            return  # the log of the program has it, and the next write is refused

    def _checkpoint(self, size_bytes: int) -> None:
        """The log is copied into the store (pitfalls S10).

        A passive checkpoint never resets the log while readers overlap, so above a limit it is
        truncated: that waits for readers, briefly and not often.
        """
        connection = driver(self._lane_connection)
        now = time.monotonic()
        if size_bytes <= TRUNCATE_BYTES or now - self._last_truncate <= TRUNCATE_EVERY_S:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            return
        self._last_truncate = now
        connection.execute("PRAGMA busy_timeout=50")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.execute("PRAGMA busy_timeout=0")

    def measure(self) -> Size:
        """The sizes of the files. None is opened: closing it would drop this process's locks."""
        return Size(_size_bytes(self.path), _size_bytes(self._log))

    def close(self) -> None:
        """Waiting writes are done, connections and locks are free."""
        self.lane.close()
        for connection in [*self._connections, self._lane_connection]:
            connection.close()
        self._write_engine.dispose()
        self._read_engine.dispose()
        self._lane_file.close()
        self._life.close()


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class _Reading:
    """The block of `SqliteDatabase.read`. A class and no generator: every request comes here."""

    __slots__ = ("_database",)

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def __enter__(self) -> Connection:
        try:
            return self._database.reader()
        except DRIVER_ERRORS as error:
            raise explain(error, self._database.path) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            return
        if isinstance(error, DRIVER_ERRORS):
            raise explain(error, self._database.path) from error
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
    """To the file, which is there, if empty. Without `transactions` each statement stands for
    itself, as readers want it. Unless it `waits`, SQLite says at once that somebody else is
    writing; only opening always waits."""
    pragmas = (
        "synchronous=FULL",
        "foreign_keys=ON",
        "trusted_schema=OFF",
        "temp_store=MEMORY",
        f"cache_size=-{cache_bytes // 1024}",
        "wal_autocheckpoint=0",
        "journal_size_limit=67108864",
        # It reads, so the log is there from now on, whatever the others did.
        "schema_version",
        *(("query_only=ON",) if query_only else ()),
        # Last: opening may meet somebody who recovers the log of a process that was killed.
        *(() if waits else ("busy_timeout=0",)),
    )
    engine = sqlalchemy.create_engine(
        "sqlite://",
        creator=partial(_connect, path, pragmas),
        module=dbapi,
        poolclass=NullPool,
        # The text of an error ends in logs; what was to be written is personal data.
        hide_parameters=True,
    )
    if not transactions:
        return engine.execution_options(isolation_level="AUTOCOMMIT")

    @sqlalchemy.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Immediate: a transaction that reads first and writes later would fail, not wait.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _connect(path: Path, pragmas: Iterable[str]) -> Any:
    # isolation_level None: the driver never begins a transaction of its own accord. rw: a file that
    # is not there is not made, which SQLite would do by the umask, and of something that was lost.
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
        # Left to the garbage collector, it would be closed when another file has the name, and
        # take that one's log for its own to clear away.
        connection.close()
        raise
    return connection


UNREADABLE: Final = "Could not decode to UTF-8"
"""So begins what the driver says of a text that a bit was lost of."""


NO_TEXT: Final = "JSON cannot hold BLOB values"
"""Says the driver of a page of the list where bytes have the place of a text."""


def explain(error: Exception, path: Path) -> ResumesError:
    """What the driver's error is to those who use the store."""
    cause = getattr(error, "orig", error)
    text = str(cause)
    if text.startswith(UNREADABLE):
        # The rest of what the driver says is the text: somebody's resume.
        return _damaged(path, "text that is no UTF-8")
    if "not a database" in text or "malformed" in text or text == NO_TEXT:
        return _damaged(path, text)
    if "I/O" in text and _has_no_room(path):
        text = "its disk is full"
    return StoreUnavailable(f"The store {path} cannot be used now: {text}")


def _damaged(path: Path, why: str) -> StoreIncompatible:
    return StoreIncompatible(
        f"The store {path} is damaged or no SQLite database ({why}). Restore a backup, or "
        "name another file with --database"
    )


def _has_no_room(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < LEAST_ROOM_BYTES
    except OSError:
        return False
