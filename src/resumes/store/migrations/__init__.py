"""How a store becomes the current version: Alembic, on a connection of ours.

Revisions live in `versions/`. A migration runs in one transaction, after a backup, with foreign
keys off (a rebuilt `accounts` must not take its resumes along, pitfalls S5), and commits only
when foreign keys hold and no table that stays has lost a row.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, text

from resumes.errors import StoreIncompatible

FOLDER = Path(__file__).parent


def state(connection: Connection, path: Path, *, folder: Path = FOLDER) -> str:
    """Whether the store is "empty", "older" or "current".

    Raises StoreIncompatible for a revision that this program does not know: a newer one made it.
    """
    tables = set(connection.execute(text("SELECT name FROM sqlite_schema")).scalars())
    if "alembic_version" not in tables:
        return "empty"
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    known = revisions(folder)
    if revision == known[-1]:
        return "current"
    if revision is None or revision in known:
        return "older"
    raise StoreIncompatible(
        f"The store {path} was made by a newer version (schema {revision}, this program knows "
        f"{known[-1]}). Update resume-service"
    )


def revisions(folder: Path = FOLDER) -> list[str]:
    """All revisions, oldest first. A file's name begins with its revision, which is numbered."""
    return sorted(file.name.partition("_")[0] for file in (folder / "versions").glob("[0-9]*.py"))


def upgrade(engine: Engine, path: Path, *, folder: Path = FOLDER) -> None:
    """The store is at the newest revision; on any error it is as it was.

    The caller holds the store exclusively. A store that is not empty is backed up first, as
    `<name>.before-<revision>`, beside it.
    """
    # Alembic takes a tenth of a second to import, and a current store never needs it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    with engine.connect() as connection:
        driver_connection = connection.connection.driver_connection
        assert driver_connection is not None
        older = state(connection, path, folder=folder) == "older"
        connection.rollback()
        if older:
            backup = path.with_name(f"{path.name}.before-{revisions(folder)[-1]}")
            backup.unlink(missing_ok=True)
            driver_connection.execute("VACUUM INTO ?", [str(backup)])
        driver_connection.execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            before = _row_counts(connection)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
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
