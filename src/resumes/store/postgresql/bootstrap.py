"""Open a store in PostgreSQL; exactly one of the processes that need it creates or upgrades it."""

import logging
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from resumes.clock import Clock
from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import migrations
from resumes.store.addresses import PostgresAddress
from resumes.store.locks import retry
from resumes.store.postgresql.connection import DRIVER_ERRORS, explain, postgres_engine
from resumes.store.postgresql.store import READ_TIMEOUT_S, PostgresStore
from resumes.store.schema import metadata

logger = logging.getLogger("resumes.store")

RANDOM_PAGE_COST: Final = "1.1"
"""The cost of a random page for solid state disks, where a sequential one costs 1."""


def set_page_cost(connection: Connection) -> None:
    """Lower the planner's cost of random pages for this role in this database, in the caller's
    transaction.

    Nothing changes where somebody has chosen a value, or where the role may not change it.
    """
    source = text("SELECT source FROM pg_settings WHERE name = 'random_page_cost'")
    try:
        with connection.begin_nested():
            if connection.execute(source).scalar() != "default":
                return
            name = connection.execute(text("SELECT current_database()")).scalar_one()
            quoted = connection.dialect.identifier_preparer.quote_identifier(name)
            # As a default of the role: a pooler between us may not pass on settings of a session.
            connection.exec_driver_sql(
                f"ALTER ROLE CURRENT_USER IN DATABASE {quoted} "
                f"SET random_page_cost = {RANDOM_PAGE_COST}"
            )
    except DBAPIError as error:
        logger.info("Could not change the cost of random pages: %s", error.orig)


CREATE_LOCK: Final = (
    "CREATE TABLE IF NOT EXISTS schema_lock (id integer PRIMARY KEY)",
    "INSERT INTO schema_lock (id) VALUES (1) ON CONFLICT DO NOTHING",
)
CREATED_MEANWHILE: Final = ("23505", "42P07", "42710", "40001", "40P01", "XX000")
"""The errors of those who create the same table at the same time: at the next try it is there."""

LOCK_TIMEOUT_S: Final = 5.0
LOCK_DELAYS_S: Final = (0.1,)
"""How long creating the lock's table is retried, and the delay before each retry."""

TIMEOUTS: Final = ("SET LOCAL lock_timeout = '60s'", "SET LOCAL statement_timeout = 0")
"""One of them migrates, the others wait for it that long."""

DDL_TIMEOUT: Final = "SET LOCAL lock_timeout = '5s'"
"""How long a change of a table waits for those who use it: all others queue behind it."""

CHECK_TIMEOUT_S: Final = 15.0
"""How long each statement may take that only looks at the store, or creates the lock."""

UPGRADE_TIMEOUT_S: Final = 3_600.0
"""How long each statement of a migration may take."""


def find_state(connection: Connection, label: str) -> str:
    """Return what `migrations.find_state` does, but "current" for a newer store that says it can be used
    by this program: its nodes are being replaced one by one.

    Raises StoreIncompatible also for a database of another program.
    """
    # All tables at once: between two looks somebody else may create the store.
    tables = set(inspect(connection).get_table_names())
    if "alembic_version" not in tables:
        if strangers := sorted(set(metadata.tables) & tables):
            raise StoreIncompatible(
                f"{label} belongs to another program: it has a table {strangers[0]}. Choose "
                "another database with --database"
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


def upgrade_database(plain: Engine, transactional: Engine, label: str) -> None:
    """Bring the store to the newest revision, unless another process does so first.

    `plain` commits each statement on its own. On any error the store is as it was.
    """
    _create_lock(plain)
    with transactional.connect() as connection, connection.begin():
        for setting in TIMEOUTS:
            connection.execute(text(setting))
        connection.execute(text("SELECT id FROM schema_lock WHERE id = 1 FOR UPDATE")).one()
        # Sees what others have committed in the meantime: each statement has a new snapshot.
        if find_state(connection, label) != "current":
            connection.execute(text(DDL_TIMEOUT))
            migrations.run(connection)
            set_page_cost(connection)


def _create_lock(engine: Engine) -> None:
    def create() -> None:
        with engine.connect() as connection:
            for statement in CREATE_LOCK:
                connection.execute(text(statement))

    try:
        retry(
            create,
            is_retryable=_is_created_meanwhile,
            timeout_s=LOCK_TIMEOUT_S,
            delays_s=LOCK_DELAYS_S,
        )
    except DBAPIError as error:
        if _is_created_meanwhile(error):
            raise StoreUnavailable(
                "Another process is creating this store; try again later"
            ) from error
        raise


def _is_created_meanwhile(error: Exception) -> bool:
    return getattr(getattr(error, "orig", None), "sqlstate", None) in CREATED_MEANWHILE


def open_server(
    address: PostgresAddress, *, clock: Clock, upgrade: bool, read_timeout_s: float | None = None
) -> PostgresStore:
    """Open the store in a database, created or upgraded first when `upgrade` allows.

    Raises StoreIncompatible and StoreUnavailable.
    """
    try:
        _prepare(address, upgrade=upgrade)
    except DRIVER_ERRORS as error:
        raise explain(error, address.label) from error
    return PostgresStore(address, clock=clock, read_timeout_s=read_timeout_s or READ_TIMEOUT_S)


def _prepare(address: PostgresAddress, *, upgrade: bool) -> None:
    plain = postgres_engine(address, timeout_s=CHECK_TIMEOUT_S)
    with plain.connect() as connection:
        state = find_state(connection, address.label)
    if state == "current":
        return
    if not upgrade:
        what = "empty" if state == "empty" else "older than this program"
        raise StoreIncompatible(f"The store {address.label} is {what}. Run `resumes db upgrade`")
    transactional = postgres_engine(address, timeout_s=UPGRADE_TIMEOUT_S, begin="BEGIN")
    upgrade_database(plain, transactional, address.label)
