"""A store in PostgreSQL: a connection for each thread that reads, and the lanes that write."""

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, text

from resumes.store.addresses import PostgresAddress, parse_address
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    Trouble,
    connect,
    explain,
    is_usable,
    postgres_engine,
    trouble_of,
)
from resumes.store.postgresql.loop_reader import LoopReader
from resumes.store.postgresql.writer import AccountLanes
from resumes.store.statements import Prepared, driver
from resumes.store.store import Row, Size
from resumes.store.write_queue import not_text

READ_PATIENCE_S: Final = 30.0
"""How long a statement that reads may take: people count millions of rows with some."""

WRITE_PATIENCE_S: Final = 6.0
"""How long each statement of a write may take before its server is taken for frozen: a second more
than the server itself gives it, whose word is the better one."""

# Said at each beginning, since a pooler keeps no settings (pitfalls S18). Whoever stops in the
# middle of a transaction does not hold an account's row for long.
BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    "SET LOCAL lock_timeout = '2s';"
    "SET LOCAL statement_timeout = '5s';"
    "SET LOCAL idle_in_transaction_session_timeout = '15s'"
)


class PostgresDatabase:
    """An open database of a server, or of several of which one can be written to."""

    path = None
    waits_for_network = True

    def __init__(
        self, address: PostgresAddress, *, read_patience_s: float = READ_PATIENCE_S
    ) -> None:
        self._address = address
        self._readers = threading.local()
        # Weak, so that a thread that ends takes its connection along.
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._read_engine = postgres_engine(address, patience_s=read_patience_s)
        self._connect = partial(connect, address, patience_s=read_patience_s)
        self._loop_readers: dict[asyncio.AbstractEventLoop, LoopReader] = {}
        self._making_readers = threading.Lock()
        writing = postgres_engine(address, patience_s=WRITE_PATIENCE_S, begin=BEGIN)
        self.lane = AccountLanes(writing, address.label)

    @property
    def url(self) -> str:
        """The address that opens this store again, with what stands in it."""
        return self._address.url

    @property
    def label(self) -> str:
        """Servers and name."""
        return self._address.label

    @property
    def engine(self) -> Mapping[str, str]:
        """Its name alone: the version is the server's to tell."""
        return {"engine": "postgresql"}

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A block with a connection of this thread's own, on which each statement stands for
        itself. Errors of the driver become StoreUnavailable."""
        try:
            connection = self.reader()
        except DRIVER_ERRORS as error:
            raise explain(error, self.label) from error
        try:
            yield connection
        except DRIVER_ERRORS as error:
            if trouble_of(error) is Trouble.GONE or self._is_reader_lost():
                self.drop_reader()
            raise explain(error, self.label) from error
        except UnicodeEncodeError as error:
            raise not_text(error) from error

    async def fetch_soon(self, statement: Prepared, values: Mapping[str, Any]) -> Sequence[Row]:
        """The rows of a statement, together with what others of this event loop ask for. Raises
        StoreUnavailable."""
        reader = self._loop_reader(asyncio.get_running_loop())
        return await reader.fetch(*statement.bound(self._read_engine.dialect, values))

    def _loop_reader(self, loop: asyncio.AbstractEventLoop) -> LoopReader:
        reader = self._loop_readers.get(loop)
        if reader is None:
            reader = LoopReader(self._connect, self.label, loop)
            with self._making_readers:
                for gone in [one for one in self._loop_readers if one.is_closed()]:
                    self._loop_readers.pop(gone).close()
                self._loop_readers[loop] = reader
        return reader

    def reader(self) -> Connection:
        """This thread's reading connection, opened when first asked for or when it has ended."""
        connection: Connection | None = getattr(self._readers, "connection", None)
        if connection is not None and not is_usable(driver(connection)):
            self.drop_reader()
            connection = None
        if connection is None:
            connection = self._read_engine.connect()
            self._readers.connection = connection
            self._connections.add(connection)
        return connection

    def _is_reader_lost(self) -> bool:
        """Whether this thread's connection has ended, whatever the server called that."""
        connection: Connection = self._readers.connection
        return connection.invalidated or bool(driver(connection).closed)

    def drop_reader(self) -> None:
        """This thread's reading connection is closed."""
        connection: Connection = self._readers.connection
        self._readers.connection = None
        self._connections.discard(connection)
        with contextlib.suppress(*DRIVER_ERRORS):
            connection.invalidate()
            connection.close()

    def read_version(self) -> int | None:
        """Return None: the server has no such number."""
        return None

    def measure(self) -> Size:
        """What the server says of the whole database; its log is the server's own."""
        with self.read() as connection:
            size = connection.execute(text("SELECT pg_database_size(current_database())"))
            return Size(size.scalar_one(), None)

    def close(self) -> None:
        """Waiting writes are done, connections are closed."""
        self.lane.close()
        for loop_reader in self._loop_readers.values():
            loop_reader.close()
        for connection in [*self._connections]:
            with contextlib.suppress(*DRIVER_ERRORS):
                connection.close()
        self._read_engine.dispose()


PATIENCE_S: Final = 60.0

BEGIN_SNAPSHOT: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    # Between two statements the rows of the last one are being put away.
    "SET LOCAL idle_in_transaction_session_timeout = 0"
)


@contextlib.contextmanager
def snapshot_of(url: str) -> Iterator[Connection]:
    """A connection whose statements all see the same moment, and write nothing. Raises
    StoreUnavailable."""
    address = parse_address(url)
    assert isinstance(address, PostgresAddress)
    engine = postgres_engine(address, patience_s=PATIENCE_S, begin=BEGIN_SNAPSHOT)
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    except DRIVER_ERRORS as error:
        raise explain(error, address.label) from error
    finally:
        engine.dispose()
