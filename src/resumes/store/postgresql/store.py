"""A store in PostgreSQL: a connection for each thread that reads, one for each event loop."""

import contextlib
import threading
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, Engine, func, select

from resumes.clock import Clock
from resumes.errors import OutcomeUnknown
from resumes.store.addresses import PostgresAddress, parse_address
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    ErrorClass,
    Session,
    classify_error,
    connect,
    explain,
    postgres_engine,
)
from resumes.store.postgresql.loop_reader import LoopReader
from resumes.store.postgresql.writer import PostgresWriter
from resumes.store.statements import Prepared
from resumes.store.store import PerLoop, Row, Size, Store
from resumes.store.write_queue import not_text

READ_TIMEOUT_S: Final = 30.0
"""How long a statement that reads may take: counting millions of rows takes some of it."""

WRITE_TIMEOUT_S: Final = 6.0
"""How long each statement of a write may take before its server counts as frozen: a second more
than the server itself allows, whose error says more."""

LONG_TIMEOUT_S: Final = 60.0
"""How long each statement may take of a transaction that reads or fills a whole store."""

# Sent with each BEGIN, since a pooler keeps no settings (pitfalls S18). Whoever stops in the
# middle of a transaction does not hold an account's row for long.
BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    "SET LOCAL lock_timeout = '2s';"
    "SET LOCAL statement_timeout = '5s';"
    "SET LOCAL idle_in_transaction_session_timeout = '15s'"
)

BEGIN_SNAPSHOT: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    # Between two statements the rows of the last one are being stored elsewhere.
    "SET LOCAL idle_in_transaction_session_timeout = 0"
)

BEGIN_LOADING: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    "SET LOCAL lock_timeout = '5s';"
    "SET LOCAL statement_timeout = 0;"
    # Between two statements the source is read. Not without end: the server may never hear that the
    # machine of a copy is gone, whose locks would keep the next copy out.
    "SET LOCAL idle_in_transaction_session_timeout = '1h'"
)


class PostgresStore(Store):
    """A store in a database of a server, or of several of which one can be written to."""

    is_remote = True
    engine_info = {"engine": "postgresql"}  # noqa: RUF012  (its version is not ours to report)

    def __init__(
        self, address: PostgresAddress, *, clock: Clock, read_timeout_s: float = READ_TIMEOUT_S
    ) -> None:
        writing = postgres_engine(address, timeout_s=WRITE_TIMEOUT_S, begin=BEGIN)
        writer = PostgresWriter(writing, address.label)
        super().__init__(writer, url=address.url, label=address.label, clock=clock)
        self._readers = threading.local()
        # Weak, so that the connection of a thread that ends is closed.
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._read_engine = postgres_engine(address, timeout_s=read_timeout_s)
        connect_reader = partial(connect, address, timeout_s=read_timeout_s)
        self._loop_readers = PerLoop(
            partial(LoopReader, connect_reader, address.label), LoopReader.close
        )

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        session: Session | None = getattr(self._readers, "session", None)
        if session is None:
            session = self._readers.session = Session(self._read_engine)
            self._sessions.add(session)
        try:
            yield session.get()
        except DRIVER_ERRORS as error:
            if classify_error(error) is ErrorClass.UNAVAILABLE:
                session.discard()
            raise explain(error, self.label) from error
        except UnicodeEncodeError as error:
            raise not_text(error) from error

    async def fetch_async(self, statement: Prepared, /, **values: Any) -> Sequence[Row]:
        reader = self._loop_readers.get()
        return await reader.fetch(*statement.bound(self._read_engine.dialect, values))

    def measure(self) -> Size:
        # The whole database; its log is the server's own.
        ((size,),) = self.fetch(select(func.pg_database_size(func.current_database())))
        return Size(size, None)

    def _disconnect(self) -> None:
        self._loop_readers.discard_all()
        for session in [*self._sessions]:
            session.discard()


@contextlib.contextmanager
def snapshot_of(url: str) -> Iterator[Connection]:
    """Yield a connection whose statements all see the same moment, and write nothing. Raises
    StoreUnavailable."""
    address = parse_address(url)
    assert isinstance(address, PostgresAddress)
    engine = postgres_engine(address, timeout_s=LONG_TIMEOUT_S, begin=BEGIN_SNAPSHOT)
    with _transaction(engine, address.label) as connection:
        yield connection


@contextlib.contextmanager
def load_transaction(address: PostgresAddress) -> Iterator[Connection]:
    """Yield a connection in one transaction, however long, that is committed after the block.

    Raises StoreUnavailable when nothing was done, and OutcomeUnknown when COMMIT had no answer.
    """
    engine = postgres_engine(address, timeout_s=LONG_TIMEOUT_S, begin=BEGIN_LOADING)
    with _transaction(engine, address.label) as connection:
        yield connection
        try:
            connection.commit()
        except DRIVER_ERRORS as error:
            connection.invalidate()
            raise OutcomeUnknown(
                f"Outcome unknown: {address.label} may contain everything. Run the same command again "
                "to find out"
            ) from error


@contextlib.contextmanager
def _transaction(engine: Engine, label: str) -> Iterator[Connection]:
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    except DRIVER_ERRORS as error:
        raise explain(error, label) from error
