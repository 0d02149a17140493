"""Opening a PostgreSQL store: made, or brought up to date, by one of those who want it."""

import logging
import time
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import migrations
from resumes.store.addresses import PostgresAddress
from resumes.store.postgresql.connection import DRIVER_ERRORS, explain, postgres_engine
from resumes.store.postgresql.store import READ_PATIENCE_S, PostgresDatabase
from resumes.store.schema import metadata

logger = logging.getLogger("resumes.store")

RANDOM_PAGE_COST: Final = "1.1"
"""Beside 1 for a page that is read in order: what is set for solid state disks."""


def set_page_cost(connection: Connection) -> None:
    """New connections of this role to this database plan so; part of the caller's transaction.

    Nothing is changed where somebody has chosen a value, and where it may not be.
    """
    source = text("SELECT source FROM pg_settings WHERE name = 'random_page_cost'")
    try:
        with connection.begin_nested():
            if connection.execute(source).scalar() != "default":
                return
            name = connection.execute(text("SELECT current_database()")).scalar_one()
            quoted = connection.dialect.identifier_preparer.quote_identifier(name)
            # As a default of the role: a pooler between us may take settings from no session.
            connection.exec_driver_sql(
                f"ALTER ROLE CURRENT_USER IN DATABASE {quoted} "
                f"SET random_page_cost = {RANDOM_PAGE_COST}"
            )
    except DBAPIError as error:
        logger.info("The planner keeps its costs: %s", error.orig)


MAKE_LOCK: Final = (
    "CREATE TABLE IF NOT EXISTS schema_lock (id integer PRIMARY KEY)",
    "INSERT INTO schema_lock (id) VALUES (1) ON CONFLICT DO NOTHING",
)
TOGETHER: Final = ("23505", "42P07", "42710", "40001", "40P01", "XX000")
"""Said to those who make the same table at the same time: looked at again, it is there."""

TRIES: Final = 50
PAUSE_S: Final = 0.1

WAITS: Final = ("SET LOCAL lock_timeout = '60s'", "SET LOCAL statement_timeout = 0")
"""One of them migrates, the others wait for it that long."""

DDL_WAITS: Final = "SET LOCAL lock_timeout = '5s'"
"""A change of a table waits for those who use it only so long: all others queue behind it."""


def find_state(connection: Connection, label: str, *, folder: Path = migrations.FOLDER) -> str:
    """As `migrations.state`, but a newer store that says it can be used by this program is
    "current": its nodes are being replaced one by one.

    Raises StoreIncompatible also for a database of another program.
    """
    # One look at all tables: between two of them somebody else may make the store.
    tables = set(inspect(connection).get_table_names())
    if "alembic_version" not in tables:
        if strangers := sorted(set(metadata.tables) & tables):
            raise StoreIncompatible(
                f"{label} is a database of another program: it has a table {strangers[0]}. Name "
                "another database with --database"
            )
        return "empty"
    try:
        return migrations.state(connection, label, folder=folder)
    except StoreIncompatible:
        if _is_usable(connection, migrations.revisions(folder)):
            return "current"
        raise


def _is_usable(connection: Connection, known: list[str]) -> bool:
    if not inspect(connection).has_table("store_facts"):
        return False
    needed = connection.execute(
        text("SELECT value FROM store_facts WHERE name = 'oldest_program'")
    ).scalar()
    return needed in known


def upgrade_database(
    plain: Engine, transactional: Engine, label: str, *, folder: Path = migrations.FOLDER
) -> None:
    """The store is at the newest revision, by this call or somebody else's meanwhile.

    `plain` runs each statement for itself. On any error the store is as it was.
    """
    _make_lock(plain)
    with transactional.connect() as connection, connection.begin():
        for setting in WAITS:
            connection.execute(text(setting))
        connection.execute(text("SELECT id FROM schema_lock WHERE id = 1 FOR UPDATE")).one()
        # What others have committed while this waited is seen: each statement looks anew.
        if find_state(connection, label, folder=folder) != "current":
            connection.execute(text(DDL_WAITS))
            migrations.run(connection, folder=folder)
            set_page_cost(connection)


def _make_lock(engine: Engine) -> None:
    for statement in MAKE_LOCK:
        for _ in range(TRIES):
            try:
                with engine.connect() as connection:
                    connection.execute(text(statement))
                break
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in TOGETHER:
                    raise
                time.sleep(PAUSE_S)
        else:
            raise StoreUnavailable("Others are making this store; try again later")


LOOK_PATIENCE_S: Final = 15.0
"""What is only looked at, or made in a moment, has its answer by then."""

UPGRADE_PATIENCE_S: Final = 3_600.0
"""A migration of a large store takes its time."""


def open_database(
    address: PostgresAddress, *, upgrade: bool, read_patience_s: float | None = None
) -> PostgresDatabase:
    """The store in a database, made or brought up to date first when `upgrade` allows.

    Raises StoreIncompatible and StoreUnavailable.
    """
    try:
        _prepare(address, upgrade=upgrade)
    except DRIVER_ERRORS as error:
        raise explain(error, address.label) from error
    return PostgresDatabase(address, read_patience_s=read_patience_s or READ_PATIENCE_S)


def _prepare(address: PostgresAddress, *, upgrade: bool) -> None:
    plain = postgres_engine(address, patience_s=LOOK_PATIENCE_S)
    with plain.connect() as connection:
        state = find_state(connection, address.label)
    if state == "current":
        return
    if not upgrade:
        what = "empty" if state == "empty" else "older than this program"
        raise StoreIncompatible(f"The store {address.label} is {what}. Run `resumes db upgrade`")
    transactional = postgres_engine(address, patience_s=UPGRADE_PATIENCE_S, begin="BEGIN")
    upgrade_database(plain, transactional, address.label)
