"""Opening a store, and what a store is to those who use it: reads, and writes through the lane."""

import asyncio
import contextlib
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Connection, Engine, NullPool

from resumes.clock import Clock, system_clock
from resumes.errors import (
    InvalidArgument,
    OutcomeUnknown,
    ResumesError,
    StoreIncompatible,
    StoreUnavailable,
)
from resumes.store import migrations
from resumes.store.driver import dbapi
from resumes.store.lane import BUSY, DRIVER_ERRORS, Lane, ThreadMailbox, Write
from resumes.store.locks import FileLock
from resumes.store.soon import SoonWriter

Q = TypeVar("Q")
R = TypeVar("R")

APPLICATION_ID = 0x52534D45
"""Stamped into the file's header ("RSME"), so that a stranger's database is told from ours."""

OPEN_WAIT_S = 20.0
"""How long opening waits for another process that is making or migrating the store."""

WRITE_DEADLINE_S = 10.0
"""How long a write waits for its turn when nobody says otherwise."""

COMMIT_GRACE_S = 20.0
"""How much longer the true outcome of a write that was taken is waited for."""

DELIVERY_S = 0.1
"""What the lane gets beyond a deadline, to say itself that it has passed."""

CHECKPOINT_BYTES = 4 * 1024 * 1024
"""A log that has grown to this is copied into the store,"""

CHECKPOINT_EVERY_S = 0.5
"""at most this often: its file keeps its size, so size alone would ask for it every time."""

LEAST_ROOM_BYTES = 64 * 1024
"""With less, a store cannot even be opened: its log and index have no room."""

TRUNCATE_BYTES = 32 * 1024 * 1024
TRUNCATE_EVERY_S = 1.0


CACHE_BYTES = 16_000 * 1024
"""Pages that a connection keeps at most."""


class Store:
    """An open store. Threads and event loops may share it; processes each open their own."""

    def __init__(
        self, path: Path, *, clock: Clock, life: FileLock, read_cache_bytes: int = CACHE_BYTES
    ) -> None:
        self.path = path
        self.clock = clock
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
        self._lane_file = FileLock(path.with_name(path.name + ".lane"))
        self._last_checkpoint = self._last_truncate = 0.0
        self.lane = Lane(self._lane_connection, self._lane_file, maintain=self._bound_log)
        self._threads = ThreadMailbox()
        self._making_writers = threading.Lock()
        self._soon_writers: dict[asyncio.AbstractEventLoop, SoonWriter] = {}
        self._closed = False

    @property
    def url(self) -> str:
        """The address that opens this store again."""
        return f"sqlite:///{self.path}"

    def read(self) -> "_Reading":
        """A block with a connection of this thread's own that cannot write.

        Each statement sees what is committed when it starts; no transaction outlives it, so
        that readers never hold back the log. Errors of the driver become StoreUnavailable.
        """
        return _Reading(self)

    def reader(self) -> Connection:
        """This thread's reading connection, opened when first asked for."""
        connection: Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._read_engine.connect()
            self._readers.connection = connection
            self._connections.add(connection)
        return connection

    def write(
        self,
        apply: Callable[[Connection, Sequence[Q]], Sequence[R | ResumesError]],
        request: Q,
        *,
        deadline_s: float = WRITE_DEADLINE_S,
    ) -> R:
        """The result of the request, committed. Blocks this thread.

        Raises what the request was refused with; StoreUnavailable when nothing was done within
        `deadline_s`; OutcomeUnknown when a commit neither succeeded nor failed for certain.
        """
        done = threading.Event()
        write = Write(
            apply,
            request,
            deadline=time.monotonic() + deadline_s,
            mailbox=self._threads,
            waiter=done,
        )
        self.lane.submit(write)
        if not done.wait(deadline_s + DELIVERY_S):
            if self.lane.withdraw(write):
                raise StoreUnavailable(BUSY)
            if not done.wait(COMMIT_GRACE_S):
                raise OutcomeUnknown
        result: R = _result(write.outcome)
        return result

    async def write_soon(
        self,
        apply: Callable[[Connection, Sequence[Q]], Sequence[R | ResumesError]],
        request: Q,
        *,
        deadline_s: float = WRITE_DEADLINE_S,
    ) -> R:
        """`write` for coroutines: their event loop goes on meanwhile.

        A coroutine that is cancelled while it waits withdraws its write if the lane has not
        taken it.
        """
        writer = self._soon_writer(asyncio.get_running_loop())
        result: R = _result(await writer.write(apply, request, deadline_s=deadline_s))
        return result

    def _soon_writer(self, loop: asyncio.AbstractEventLoop) -> SoonWriter:
        writer = self._soon_writers.get(loop)
        if writer is None:
            writer = SoonWriter(self.lane, loop, commit_grace_s=COMMIT_GRACE_S)
            with self._making_writers:
                for gone in [one for one in self._soon_writers if one.is_closed()]:
                    del self._soon_writers[gone]
                self._soon_writers[loop] = writer
        return writer

    def _bound_log(self) -> None:
        """The write-ahead log is kept short (pitfalls S10). Runs in the lane.

        A passive checkpoint never resets the log while readers overlap, so above a limit it is
        truncated: that waits for readers, briefly and not often.
        """
        now = time.monotonic()
        if now - self._last_checkpoint < CHECKPOINT_EVERY_S:
            return
        try:
            size_bytes = self.path.with_name(self.path.name + "-wal").stat().st_size
        except FileNotFoundError:
            return
        if size_bytes < CHECKPOINT_BYTES:
            return
        self._last_checkpoint = now
        driver_connection: Any = self._lane_connection.connection.driver_connection
        if size_bytes > TRUNCATE_BYTES and now - self._last_truncate > TRUNCATE_EVERY_S:
            self._last_truncate = now
            driver_connection.execute("PRAGMA busy_timeout=50")
            try:
                driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                driver_connection.execute("PRAGMA busy_timeout=0")
        else:
            driver_connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Waiting writes are done, connections and locks are free. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self.lane.close()
        for connection in [*self._connections, self._lane_connection]:
            connection.close()
        self._write_engine.dispose()
        self._read_engine.dispose()
        self._lane_file.close()
        self._life.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Reading:
    """The block of `Store.read`. A class and no generator: every request comes through it."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> Connection:
        try:
            return self._store.reader()
        except DRIVER_ERRORS as error:
            raise _explain(error, self._store.path) from error

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if error is None:
            return
        if isinstance(error, DRIVER_ERRORS):
            raise _explain(error, self._store.path) from error
        if isinstance(error, UnicodeEncodeError):
            raise _not_text(error) from error


def _result(outcome: Any) -> Any:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def each(
    apply_one: Callable[[Connection, Q], R],
) -> Callable[[Connection, Sequence[Q]], list[R | ResumesError]]:
    """Makes a write out of a function for one request, for writes that are rare.

    Each request has a savepoint of its own: one that raises a ResumesError has written nothing.
    """

    @wraps(apply_one)
    def apply(connection: Connection, requests: Sequence[Q]) -> list[R | ResumesError]:
        results: list[R | ResumesError] = []
        for request in requests:
            try:
                with connection.begin_nested():
                    results.append(apply_one(connection, request))
            except ResumesError as error:
                results.append(error)
            except UnicodeEncodeError as error:
                results.append(_not_text(error))
        return results

    return apply


BUSY_TIMEOUT_MS = 2_000
"""How long SQLite itself waits for a writer that does not use the lane (a shell, a backup)."""


def sqlite_engine(
    path: Path,
    *,
    transactions: bool,
    query_only: bool = False,
    waits: bool = True,
    cache_bytes: int = CACHE_BYTES,
) -> Engine:
    """Without `transactions` each statement stands for itself, as readers want it. Unless it
    `waits`, SQLite says at once that somebody else is writing; only opening always waits."""

    def connect() -> Any:
        # isolation_level None: the driver never begins a transaction of its own accord.
        connection = dbapi.connect(
            path, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_MS / 1_000
        )
        for pragma in (
            "synchronous=FULL",
            "foreign_keys=ON",
            "trusted_schema=OFF",
            "temp_store=MEMORY",
            f"cache_size=-{cache_bytes // 1024}",
            "wal_autocheckpoint=0",
            "journal_size_limit=67108864",
            *(("query_only=ON",) if query_only else ()),
            # Last: opening may meet somebody who recovers the log of a process that was killed.
            *(() if waits else ("busy_timeout=0",)),
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine = sqlalchemy.create_engine(
        "sqlite://",
        creator=connect,
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


def sqlite_path(url: str) -> Path:
    """The file that a `sqlite:///PATH` address names. Raises InvalidArgument for other addresses."""
    scheme, separator, rest = url.partition("://")
    engine = scheme.partition("+")[0]
    if separator and engine == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return Path(rest[1:]).absolute()
    if engine in ("postgresql", "postgres"):
        raise InvalidArgument(
            "Invalid database: this version stores in SQLite only; use sqlite:///PATH"
        )
    shown = url if "@" not in url else f"{scheme}://…"
    raise InvalidArgument(f'Invalid database "{shown}": use sqlite:///PATH')


def open_store(
    url: str,
    *,
    clock: Clock = system_clock,
    upgrade: bool = True,
    read_cache_bytes: int = CACHE_BYTES,
) -> Store:
    """The store at an address, made or brought up to date first when `upgrade` allows.

    `read_cache_bytes` is what each thread that reads keeps of it at most.

    Several processes may open a new store at once; one of them makes it. Raises InvalidArgument
    for an address that cannot be used, StoreIncompatible for a file that is no store of ours, is
    damaged or newer than this program, and StoreUnavailable when it cannot be had now.
    """
    path = sqlite_path(url)
    if not path.parent.is_dir():
        raise StoreUnavailable(
            f"Folder not found: {path.parent}. Create it, or name another database"
        )
    if path.is_dir():
        raise StoreUnavailable(f"The database {path} is a folder; name a file")
    if not upgrade and not path.exists():
        raise StoreUnavailable(f"Database not found: {path}. `resumes up` makes one")
    _refuse_strangers(path)
    try:
        life = FileLock(path.with_name(path.name + ".lock"))
    except OSError as error:
        raise StoreUnavailable(f"Cannot write in {path.parent}: {error.strerror}") from error
    try:
        _prepare(path, life, upgrade=upgrade)
        return Store(path, clock=clock, life=life, read_cache_bytes=read_cache_bytes)
    except DRIVER_ERRORS as error:
        life.close()
        raise _explain(error, path) from error
    except OSError as error:
        life.close()
        raise StoreUnavailable(f"Cannot open {path}: {error.strerror}") from error
    except BaseException:
        life.close()
        raise


def _refuse_strangers(path: Path) -> None:
    """Raises StoreIncompatible for a file that is no store, before lock files lie beside it.

    Without the lock another process may be making the store: what it cannot say now is left to
    be asked again inside the lock.
    """
    if not path.exists() or path.stat().st_size == 0:
        return
    engine = sqlite_engine(path, transactions=False)
    try:
        _state(engine, path)
    except DRIVER_ERRORS as error:
        explained = _explain(error, path)
        if isinstance(explained, StoreIncompatible):
            raise explained from error
    finally:
        engine.dispose()


def _prepare(path: Path, life: FileLock, *, upgrade: bool) -> None:
    """The file exists, is ours and current, and `life` is held shared."""
    deadline = time.monotonic() + OPEN_WAIT_S
    while True:
        if not life.acquire(shared=True, wait_s=OPEN_WAIT_S):
            raise StoreUnavailable(
                f"The store {path} is being migrated or restored; try again later"
            )
        engine = sqlite_engine(path, transactions=False)
        try:
            is_file = path.exists() and path.stat().st_size > 0
            state = _state(engine, path) if is_file else "empty"
            if state == "current":
                return
            if not upgrade:
                what = "empty" if state == "empty" else "older than this program"
                raise StoreIncompatible(f"The store {path} is {what}. Run `resumes db upgrade`")
            if life.acquire(wait_s=0):
                _make_file(path)
                if _state(engine, path) != "current":
                    _stamp(engine)
                    migrations.upgrade(sqlite_engine(path, transactions=True), path)
                life.acquire(shared=True, wait_s=0)
                return
        finally:
            engine.dispose()
        # Someone else holds it: perhaps another new process that wants the same. Let go, so
        # that one of us gets it.
        holders = life.holders()
        life.release()
        if time.monotonic() > deadline:
            pids = ", ".join(map(str, holders)) or "unknown"
            raise StoreUnavailable(
                f"The store {path} must be upgraded, and is in use by process {pids}. Stop it first"
            )
        time.sleep(0.02)


def _make_file(path: Path) -> None:
    # Before SQLite makes it with the umask's mode: the store and its log hold personal data.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _state(engine: Engine, path: Path) -> str:
    """Whether the file is "empty", "older" or "current". Raises StoreIncompatible otherwise."""
    with engine.connect() as connection:
        application_id = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema").scalar_one()
        if application_id == 0 and tables == 0:
            return "empty"
        if application_id != APPLICATION_ID:
            raise StoreIncompatible(
                f"{path} is a database of another program; name another file with --database"
            )
        return migrations.state(connection, path)


def _stamp(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        connection.exec_driver_sql("PRAGMA journal_mode=WAL").fetchall()


def _not_text(error: UnicodeEncodeError) -> InvalidArgument:
    """What a word from a command line that is not UTF-8 is answered with."""
    return InvalidArgument(f"Not UTF-8 text: {error.object[:80]!r}")


def _explain(error: Exception, path: Path) -> ResumesError:
    cause = getattr(error, "orig", error)
    text = str(cause)
    if "not a database" in text or "malformed" in text:
        return StoreIncompatible(
            f"The store {path} is damaged or no SQLite database ({text}). Restore a backup, or "
            "name another file with --database"
        )
    if "I/O" in text and _has_no_room(path):
        text = "its disk is full"
    return StoreUnavailable(f"The store {path} cannot be used now: {text}")


def _has_no_room(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < LEAST_ROOM_BYTES
    except OSError:
        return False
