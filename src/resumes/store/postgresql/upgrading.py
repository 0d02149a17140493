"""Making a PostgreSQL store, or bringing it up to date, by exactly one of those who want it.

Nodes may start together, on an empty database or an older one. A row of a table of its own is the
lock: advisory locks are lost behind a pooler and mean nothing to some that speak the protocol. Who
has it looks again, and makes everything in one transaction. Nodes that run meanwhile go on with the
old schema, and with the new one when that allows them to (`oldest_program`).
"""

import time
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import migrations
from resumes.store.postgresql import planner
from resumes.store.schema import metadata

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
            planner.set_page_cost(connection)


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
