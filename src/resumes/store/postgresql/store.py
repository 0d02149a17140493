"""A store in PostgreSQL: a connection for each thread that reads, one for each event loop.

Exactly one of the processes that open it creates or upgrades it.
"""

import contextlib
import logging
import threading
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, Engine, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from resumes.clock import Clock
from resumes.errors import OutcomeUnknown, StoreIncompatible, StoreUnavailable
from resumes.store import migrations
from resumes.store.addresses import PostgresAddress
from resumes.store.locks import retry
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    ErrorClass,
    ThreadConnection,
    classify_error,
    connect_async,
    explain,
    postgres_engine,
)
from resumes.store.postgresql.loop_reader import LoopReader
from resumes.store.postgresql.writer import PostgresWriter
from resumes.store.schema import account_usage, metadata
from resumes.store.statements import Prepared
from resumes.store.store import PerLoop, Row, Size, Store
from resumes.store.write_queue import not_text

logger = logging.getLogger("resumes.store")

READ_TIMEOUT_S: Final = 30.0
"""How long a reading statement may take; counting millions of rows takes long."""

WRITE_TIMEOUT_S: Final = 6.0
"""How long each statement of a write may take before its server counts as frozen: a second more than
the server's own timeout, whose error says more."""

LONG_TIMEOUT_S: Final = 60.0
"""How long each statement of a transaction that reads or fills a whole store may take."""

# Sent with each BEGIN, since a pooler keeps no settings (pitfalls S18). A process that is stopped in
# the middle of a transaction does not hold an account's row for long.
BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    "SET LOCAL lock_timeout = '2s';"
    "SET LOCAL statement_timeout = '5s';"
    "SET LOCAL idle_in_transaction_session_timeout = '15s'"
)

# Prevents default timeouts of a role or a database from ending long transactions. Servers before 17 do
# not have the last setting.
UNLIMITED: Final = (
    "SET LOCAL statement_timeout = 0;"
    "SET LOCAL idle_in_transaction_session_timeout = 0;"
    "SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'"
)

BEGIN_SNAPSHOT: Final = (
    # Between two statements the rows of the first one are being stored elsewhere.
    f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;{UNLIMITED}"
)

BEGIN_LOADING: Final = (
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;{UNLIMITED};"
    "SET LOCAL lock_timeout = '5s';"
    # Between two statements the source is read. The timeout is finite, since the server may never notice
    # that a copy's machine is gone, whose locks would block the next copy.
    "SET LOCAL idle_in_transaction_session_timeout = '1h'"
)


class PostgresStore(Store):
    """A store in a database of a server, or of a group of servers of which one is writable."""

    engine_info = {"engine": "postgresql"}  # noqa: RUF012  (its version is not ours to report)

    def __init__(
        self, address: PostgresAddress, *, clock: Clock, read_timeout_s: float = READ_TIMEOUT_S
    ) -> None:
        writing = postgres_engine(address, timeout_s=WRITE_TIMEOUT_S, begin=BEGIN)
        writer = PostgresWriter(writing, address.label)
        super().__init__(writer, url=address.url, label=address.label, clock=clock)
        self._readers = threading.local()
        # Weak, so that the connection of a thread that ends is closed.
        self._connections: weakref.WeakSet[ThreadConnection] = weakref.WeakSet()
        self._read_engine = postgres_engine(address, timeout_s=read_timeout_s)
        connect_reader = partial(connect_async, address, timeout_s=read_timeout_s)
        dialect = self._read_engine.dialect
        self._loop_readers = PerLoop(
            partial(LoopReader, connect_reader, dialect, address.label), LoopReader.close
        )

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        own: ThreadConnection | None = getattr(self._readers, "own", None)
        if own is None:
            own = self._readers.own = ThreadConnection(self._read_engine)
            self._connections.add(own)
        try:
            yield own.get()
        except DRIVER_ERRORS as error:
            if classify_error(error) is ErrorClass.UNAVAILABLE:
                own.discard()
            raise explain(error, self.label) from error
        except UnicodeEncodeError as error:
            raise not_text(error) from error

    def snapshot(self) -> contextlib.AbstractContextManager[Connection]:
        return _transaction(PostgresAddress(self.url), BEGIN_SNAPSHOT)

    async def fetch_async(self, statement: Any, /, **values: Any) -> Sequence[Row]:
        reader = self._loop_readers.get()
        prepared = statement if isinstance(statement, Prepared) else Prepared(statement)
        return await reader.fetch(prepared, values)

    def measure(self) -> Size:
        # The whole database; its log is the server's own.
        ((size,),) = self.fetch(select(func.pg_database_size(func.current_database())))
        return Size(size, None)

    def _disconnect(self) -> None:
        self._loop_readers.discard_all()
        for own in [*self._connections]:
            own.discard()


@contextlib.contextmanager
def load_transaction(address: PostgresAddress) -> Iterator[Connection]:
    """Yield a connection in one transaction, however long, that is committed after the block.

    Raises StoreUnavailable when nothing was done, and OutcomeUnknown when COMMIT had no answer.
    """
    with _transaction(address, BEGIN_LOADING) as connection:
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
def _transaction(address: PostgresAddress, begin: str) -> Iterator[Connection]:
    engine = postgres_engine(address, timeout_s=LONG_TIMEOUT_S, begin=begin)
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    except DRIVER_ERRORS as error:
        raise explain(error, address.label) from error


# Opening

RANDOM_PAGE_COST: Final = "1.1"
"""The cost of a random page for solid state disks, where a sequential one costs 1."""


def set_page_cost(connection: Connection) -> None:
    """Lower the planner's cost of random pages for this role in this database, in the caller's
    transaction.

    Do nothing if a value is set already, or if the role may not change it.
    """
    source = text("SELECT source FROM pg_settings WHERE name = 'random_page_cost'")
    try:
        with connection.begin_nested():
            if connection.execute(source).scalar() != "default":
                return
            name = connection.execute(text("SELECT current_database()")).scalar_one()
            quoted = connection.dialect.identifier_preparer.quote_identifier(name)
            # Set a default of the role, since a pooler may not pass on settings of a session.
            connection.exec_driver_sql(
                f"ALTER ROLE CURRENT_USER IN DATABASE {quoted} "
                f"SET random_page_cost = {RANDOM_PAGE_COST}"
            )
    except DBAPIError as error:
        logger.info("Could not set random_page_cost: %s", error.orig)


CREATE_LOCK: Final = (
    "CREATE TABLE IF NOT EXISTS schema_lock (id integer PRIMARY KEY)",
    "INSERT INTO schema_lock (id) VALUES (1) ON CONFLICT DO NOTHING",
)
CREATED_MEANWHILE: Final = ("23505", "42P07", "42710", "40001", "40P01", "XX000")
"""The errors when processes create the same table at the same time; at the next try it exists."""

LOCK_TIMEOUT_S: Final = 5.0
LOCK_DELAYS_S: Final = (0.1,)
"""How long creating the lock's table is retried, and the delay before each retry."""

BEGIN_UPGRADE: Final = (
    # One process migrates; the others wait for it for this long.
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;{UNLIMITED};SET LOCAL lock_timeout = '60s'"
)

TABLES_TIMEOUT: Final = "SET LOCAL lock_timeout = '5s'"
"""How long an upgrade waits for the users of each table, since all other users queue behind it."""

CHECK_TIMEOUT_S: Final = 15.0
"""How long each statement that only examines the store, or creates the lock, may take."""

UPGRADE_TIMEOUT_S: Final = 3_600.0
"""How long each statement of a migration may take."""


def find_state(connection: Connection, label: str) -> str:
    """Return what `migrations.find_state` returns, but "current" for a newer store that this program may
    use, while its nodes are being replaced one by one.

    Raises StoreIncompatible also for a database of another program, and for an empty one that cannot
    keep every character.
    """
    # Read all tables at once, since another process may create the store between two reads.
    tables = set(inspect(connection).get_table_names())
    if "alembic_version" not in tables:
        if strangers := sorted(set(metadata.tables) & tables):
            raise StoreIncompatible(
                f"{label} belongs to another program: it has a table {strangers[0]}. Choose "
                "another database with --database"
            )
        encoding = connection.execute(text("SHOW server_encoding")).scalar()
        if (
            encoding != "UTF8"
        ):  # SQL_ASCII keeps all characters, but its JSON functions refuse \u00e9
            raise StoreIncompatible(
                f"{label} has the encoding {encoding}, which lacks characters of resumes. Create a "
                "database with `createdb --template template0 --encoding UTF8 --locale C.UTF-8 NAME`"
            )
        return "empty"
    try:
        return migrations.find_state(connection, label)
    except StoreIncompatible:
        oldest = text("SELECT value FROM store_facts WHERE name = 'oldest_program'")
        if "store_facts" in tables and (
            connection.execute(oldest).scalar() in migrations.list_revisions()
        ):
            return "current"
        raise


def lock_tables(connection: Connection) -> None:
    """Wait for the transactions that use the store's tables, and lock all tables for this one.

    At the end of each write, a program reads whether it may write to the store: before this lock, which
    then waits for its commit, or after the upgrade (pitfalls S25).
    """
    names = {*inspect(connection).get_table_names()} & {*metadata.tables}
    if names:
        # In the order of writes, which lock the account's row first, so that few deadlock.
        ordered = sorted(names, key=lambda name: (name != account_usage.name, name))
        connection.exec_driver_sql(f"LOCK TABLE {', '.join(ordered)} IN ACCESS EXCLUSIVE MODE")


def upgrade_database(locking: Engine, upgrading: Engine, label: str) -> None:
    """Bring the store to the newest revision, unless another process does so first.

    The first engine creates the lock, with a shorter timeout. On any error the store is unchanged.
    """

    def create_lock() -> None:
        with locking.begin() as connection:
            for statement in CREATE_LOCK:
                connection.execute(text(statement))

    retry(
        create_lock,
        is_retryable=lambda error: (
            getattr(getattr(error, "orig", None), "sqlstate", None) in CREATED_MEANWHILE
        ),
        timeout_s=LOCK_TIMEOUT_S,
        delays_s=LOCK_DELAYS_S,
    )

    def upgrade() -> None:
        with upgrading.begin() as connection:
            connection.execute(text("SELECT id FROM schema_lock WHERE id = 1 FOR UPDATE")).one()
            # This sees what other processes have committed meanwhile: each statement has a new snapshot.
            if find_state(connection, label) != "current":
                connection.execute(text(TABLES_TIMEOUT))
                lock_tables(connection)
                migrations.run(connection)
                set_page_cost(connection)

    retry(
        upgrade,
        is_retryable=lambda error: classify_error(error) is ErrorClass.RACE,  # a deadlock
        timeout_s=LOCK_TIMEOUT_S,
        delays_s=LOCK_DELAYS_S,
    )


def open_server(
    address: PostgresAddress, *, clock: Clock, upgrade: bool, read_timeout_s: float | None = None
) -> PostgresStore:
    """Open the store in a database, created or upgraded first when `upgrade` allows.

    Raises StoreIncompatible and StoreUnavailable.
    """
    label = address.label
    plain = postgres_engine(address, timeout_s=CHECK_TIMEOUT_S)
    try:
        with plain.connect() as connection:
            state = find_state(connection, label)
        if state != "current" and not upgrade:
            what = "empty" if state == "empty" else "older than this program"
            raise StoreIncompatible(f"The store {label} is {what}. Run `resumes db upgrade`")
        if state != "current":
            locking, upgrading = (
                postgres_engine(address, timeout_s=timeout_s, begin=BEGIN_UPGRADE)
                for timeout_s in (CHECK_TIMEOUT_S, UPGRADE_TIMEOUT_S)
            )
            upgrade_database(locking, upgrading, label)
    except DRIVER_ERRORS as error:
        if classify_error(error) is ErrorClass.BUSY:
            raise StoreUnavailable(
                f"The store {label} must be upgraded, but is in use. Stop everything that uses it first"
            ) from error
        raise explain(error, label) from error
    return PostgresStore(address, clock=clock, read_timeout_s=read_timeout_s or READ_TIMEOUT_S)
