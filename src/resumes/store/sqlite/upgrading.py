"""Bringing a SQLite store up to date.

A migration runs in one transaction, after a backup, with foreign keys off (a rebuilt `accounts`
must not take its resumes along, pitfalls S5), and commits only when foreign keys hold and no table
that stays has lost a row.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, text

from resumes.errors import StoreIncompatible
from resumes.store import migrations
from resumes.store.sqlite.private import make_private


def upgrade_file(engine: Engine, path: Path, *, folder: Path = migrations.FOLDER) -> None:
    """The store is at the newest revision; on any error it is as it was.

    The caller holds the store exclusively. A store that is not empty is backed up first, as
    `<name>.before-<revision>`, beside it.
    """
    with engine.connect() as connection:
        driver_connection = connection.connection.driver_connection
        assert driver_connection is not None
        older = migrations.state(connection, str(path), folder=folder) == "older"
        connection.rollback()
        if older:
            backup = path.with_name(f"{path.name}.before-{migrations.revisions(folder)[-1]}")
            backup.unlink(missing_ok=True)
            make_private(backup)
            driver_connection.execute("VACUUM INTO ?", [str(backup)])
        driver_connection.execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            before = _row_counts(connection)
            migrations.run(connection, folder=folder)
            _check(connection, before, path)


def _row_counts(connection: Connection) -> dict[str, int]:
    tables = connection.execute(
        # The tables inside of a virtual one hold what is made from others, however many rows.
        text(
            "SELECT name FROM pragma_table_list"
            " WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ).scalars()
    return {
        name: connection.execute(text(f'SELECT count(*) FROM "{name}"')).scalar_one()
        for name in list(tables)
        if name != "alembic_version"
    }


def _check(connection: Connection, before: dict[str, int], path: Path) -> None:
    broken = connection.execute(text("PRAGMA foreign_key_check")).first()
    after = _row_counts(connection)
    lost = [name for name, count in before.items() if after.get(name, count) < count]
    if broken or lost:
        raise StoreIncompatible(
            f"The upgrade of {path} was undone: it would have lost rows of "
            f"{', '.join(lost) or broken}. Please report this"
        )
