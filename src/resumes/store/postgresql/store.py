"""A store in PostgreSQL: connection pools for threads, and one connection for each event loop.

If several processes open the store, exactly one of them creates or upgrades it.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from psycopg.errors import DeadlockDetected
from sqlalchemy import Connection, func, inspect, select, text

from resumes.clock import Clock
from resumes.errors import OutcomeUnknown, StoreIncompatible, StoreUnavailable
from resumes.store import migrations
from resumes.store.addresses import PostgresAddress
from resumes.store.locks import retry
from resumes.store.postgresql.connection import (
    DRIVER_ERRORS,
    RETRY_DELAYS_S,
    ErrorClass,
    classify_error,
    explain,
    postgres_engine,
)
from resumes.store.postgresql.loop_reader import LoopReader
from resumes.store.postgresql.writer import PostgresWriter
from resumes.store.schema import account_usage, metadata
from resumes.store.statements import Prepared, driver
from resumes.store.store import PerLoop, Row, Size, Store
from resumes.store.write_queue import not_text

logger = logging.getLogger("resumes.store")

READ_TIMEOUT_S: Final = 30.0
"""How long a reading statement may take, such as one that counts millions of rows."""

WRITE_TIMEOUT_S: Final = 6.0
"""How long each statement of a write may take before the server is considered frozen: a second more
than the server's own timeout, whose error is more specific."""

LONG_TIMEOUT_S: Final = 60.0
"""How long each statement of a transaction that reads or fills a whole store may take."""

# Send the settings with each BEGIN, because a pooler does not keep them (pitfalls S18). They limit
# how long a process that is stopped during a transaction can lock an account's row.
BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    "SET LOCAL lock_timeout = '2s';"
    "SET LOCAL statement_timeout = '5s';"
    "SET LOCAL idle_in_transaction_session_timeout = '15s'"
)

# Prevent default timeouts of a role or a database from ending long transactions. Servers older than
# version 17 do not have the last setting.
UNLIMITED: Final = (
    "SET LOCAL statement_timeout = 0;"
    "SET LOCAL idle_in_transaction_session_timeout = 0;"
    "SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'"
)

# Unlimited, because storing the rows of one statement elsewhere may delay the next statement.
BEGIN_SNAPSHOT: Final = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;{UNLIMITED}"

BEGIN_LOADING: Final = (
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;{UNLIMITED};"
    "SET LOCAL lock_timeout = '5s';"
    # The source is read between two statements. The timeout is finite because the server may never
    # notice that a copy's machine is gone, and the locks of that copy would block the next copy.
    "SET LOCAL idle_in_transaction_session_timeout = '1h';"
    # Otherwise Citus rejects ANALYZE after the insertion of rows into the same table.
    "SET LOCAL citus.enable_local_execution = off"
)


class PostgresStore(Store):
    """A store in a database on one server, or on a group of servers with one writable server."""

    engine_info = {"engine": "postgresql"}  # noqa: RUF012  (its version is not ours to report)

    def __init__(
        self, address: PostgresAddress, *, clock: Clock, read_timeout_s: float, is_sharded: bool
    ) -> None:
        # A connection for each thread that uses one at the same time.
        pool = partial(postgres_engine, address, is_sharded=is_sharded, pool_size=0)
        self._write_engine = pool(timeout_s=WRITE_TIMEOUT_S, begin=BEGIN)
        self._read_engine = pool(timeout_s=read_timeout_s)
        writer = PostgresWriter(self._write_engine, address.label, is_sharded=is_sharded)
        super().__init__(writer, url=address.url, label=address.label, clock=clock)
        self.is_sharded = is_sharded
        self._loop_readers = PerLoop(
            partial(LoopReader, address, self._read_engine.dialect, is_sharded), LoopReader.close
        )

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        try:
            with self._read_engine.connect() as connection:
                yield connection
        except DRIVER_ERRORS as error:
            raise explain(error, self.label) from error
        except UnicodeEncodeError as error:
            raise not_text(error) from error
        finally:
            if self._is_closed:  # by another thread
                self._read_engine.pool.dispose()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Connection]:
        with self.read() as connection, connection.begin():
            driver(connection).timeout_s = LONG_TIMEOUT_S
            driver(connection).begin(BEGIN_SNAPSHOT)
            yield connection

    async def fetch_async(self, statement: Any, /, **values: Any) -> Sequence[Row]:
        reader = self._loop_readers.get()
        prepared = statement if isinstance(statement, Prepared) else Prepared(statement)
        return await reader.fetch(prepared, values)

    def measure(self) -> Size:
        # Measure the database, but not the log, which belongs to the server.
        ((size,),) = self.fetch(select(func.pg_database_size(func.current_database())))
        return Size(size, None)

    def _disconnect(self) -> None:
        self._loop_readers.discard_all()
        self._read_engine.pool.dispose()
        self._write_engine.pool.dispose()


@contextlib.contextmanager
def transaction_on(
    address: PostgresAddress, begin: str = BEGIN_LOADING, *, timeout_s: float = LONG_TIMEOUT_S
) -> Iterator[Connection]:
    """Yield a connection in a transaction of any duration, which is committed after the block.

    Raises OutcomeUnknown if COMMIT had no answer, and another ResumesError if nothing was done.
    """
    is_committing = False
    try:
        with postgres_engine(address, timeout_s=timeout_s, begin=begin).begin() as connection:
            yield connection
            is_committing = True
    except DRIVER_ERRORS as error:
        if not is_committing:
            raise explain(error, address.label) from error
        raise OutcomeUnknown(
            f"Outcome unknown: {address.label} may contain everything. Run the same command again "
            "to find out"
        ) from error


# Opening

RANDOM_PAGE_COST: Final = "1.1"
"""The cost of a random page on solid-state disks, relative to the cost of a sequential page."""


def set_page_cost(connection: Connection) -> None:
    """Lower the cost of random pages for this role and database in the caller's transaction.

    Do nothing if a value is already set, or if the role is not allowed to change it.
    """
    alter = text(
        "SELECT format('ALTER ROLE CURRENT_USER IN DATABASE %I"
        f" SET random_page_cost = {RANDOM_PAGE_COST}', current_database())"
        " FROM pg_settings WHERE name = 'random_page_cost' AND source = 'default'"
    )
    try:
        with connection.begin_nested():
            # A default of the role, since a pooler may not pass on settings of a session.
            for statement in connection.execute(alter).scalars():
                driver(connection).execute(statement)
    except DRIVER_ERRORS as error:
        if connection.invalidated:  # the server is gone, and the caller's transaction with it
            raise
        logger.info("Could not set random_page_cost: %s", error)


BEGIN_UPGRADE: Final = (
    # One process migrates the store; other processes wait for it at most this long.
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;{UNLIMITED};SET LOCAL lock_timeout = '60s'"
)

TABLES_TIMEOUT: Final = "SET LOCAL lock_timeout = '5s'"
"""How long an upgrade waits for the users of each table; meanwhile, other users queue behind it."""

CHECK_TIMEOUT_S: Final = 15.0
"""How long each statement that only examines the store may take."""

UPGRADE_TIMEOUT_S: Final = 3_600.0
"""How long each statement of a migration may take."""


def find_state(connection: Connection, label: str) -> str:
    """Return the same as `migrations.find_state`, but "current" for a newer store that this program
    may still use while nodes are being upgraded one by one.

    Also raises StoreIncompatible if the database belongs to another program, or if it is empty and
    cannot store every character.
    """
    # Read all names at once, because another process may create the store between two reads.
    tables = set(inspect(connection).get_table_names())
    if "alembic_version" not in tables:
        if strangers := sorted(set(metadata.tables) & tables):
            raise StoreIncompatible(
                f"{label} belongs to another program: it has a table {strangers[0]}. Choose "
                "another database with --database"
            )
        encoding = connection.execute(text("SHOW server_encoding")).scalar()
        # SQL_ASCII stores all characters, but its JSON functions reject \u00e9.
        if encoding != "UTF8":
            raise StoreIncompatible(
                f"{label} has the encoding {encoding}, which lacks characters of resumes. Create a "
                "database with `createdb --template template0 --encoding UTF8 --locale C.UTF-8 NAME`"
            )
        return "empty"
    try:
        return migrations.find_state(connection, label)
    except StoreIncompatible:
        # Without a version, the copy is incomplete, and this finds no row.
        find = "SELECT value FROM store_facts, alembic_version WHERE name = 'oldest_program'"
        if "store_facts" in tables and (
            connection.execute(text(find)).scalar() in migrations.list_revisions()
        ):
            return "current"
        raise


IS_SHARDED: Final = "SELECT to_regclass('pg_dist_partition') IS NOT NULL"
"""Whether the database has the extension Citus, so that its tables may be sharded at any time."""


def lock_tables(connection: Connection) -> None:
    """Wait for the transactions that use the store's tables, then lock all tables.

    At the end of each write, a program reads whether it may write to the store. It does so either
    before this lock, which then waits for its commit, or after the upgrade (pitfalls S25).
    """
    names = {*inspect(connection).get_table_names()} & {*metadata.tables}
    if names:
        # Use the order of writes, which lock the account's row first, to avoid most deadlocks.
        ordered = sorted(names, key=lambda name: (name != account_usage.name, name))
        connection.exec_driver_sql(f"LOCK TABLE {', '.join(ordered)} IN ACCESS EXCLUSIVE MODE")


def upgrade_database(address: PostgresAddress) -> None:
    """Upgrade the store to the newest revision, unless another process does so first. After any error,
    the store is unchanged."""
    # The name of this table is a lock: other upgrades that create it wait for this transaction.
    begin = f"{BEGIN_UPGRADE};CREATE TABLE upgrade_lock ();DROP TABLE upgrade_lock"
    engine = postgres_engine(address, timeout_s=UPGRADE_TIMEOUT_S, begin=begin)

    def upgrade() -> None:
        with engine.begin() as connection:
            # This sees what other processes have committed meanwhile: each statement has a new snapshot.
            if find_state(connection, address.label) != "current":
                connection.execute(text(TABLES_TIMEOUT))
                lock_tables(connection)
                migrations.run(connection)
                set_page_cost(connection)

    retry(
        upgrade,
        # Writes lock the tables in an order of their own.
        is_retryable=lambda error: isinstance(getattr(error, "orig", None), DeadlockDetected),
        timeout_s=LONG_TIMEOUT_S,
        delays_s=RETRY_DELAYS_S,
    )


def open_server(
    address: PostgresAddress, *, clock: Clock, upgrade: bool, read_timeout_s: float | None
) -> PostgresStore:
    """Open the store in a database; if `upgrade` is true, first create or upgrade it if necessary.

    Raises StoreIncompatible and StoreUnavailable.
    """
    label = address.label
    plain = postgres_engine(address, timeout_s=CHECK_TIMEOUT_S)
    try:
        with plain.connect() as connection:
            state = find_state(connection, label)
            is_sharded = connection.execute(text(IS_SHARDED)).scalar_one()
        if state != "current" and not upgrade:
            what = "empty" if state == "empty" else "older than this program"
            raise StoreIncompatible(f"The store {label} is {what}. Run `resumes db upgrade`")
        if state != "current":
            upgrade_database(address)
    except DRIVER_ERRORS as error:
        if classify_error(error) is ErrorClass.BUSY:
            raise StoreUnavailable(
                f"The store {label} must be upgraded, but is in use. Stop everything that uses it first"
            ) from error
        raise explain(error, label) from error
    timeout_s = read_timeout_s or READ_TIMEOUT_S
    return PostgresStore(address, clock=clock, read_timeout_s=timeout_s, is_sharded=is_sharded)
