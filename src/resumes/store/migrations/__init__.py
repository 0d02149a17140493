"""Versions of the store's tables: Alembic, on the caller's connection.

A new store is created with the tables of `resumes.store.schema`. Revisions bring an older store to the
same tables; they are in `versions/`, one series for all engines. The steps of each engine before and
after them are in `resumes.store.sqlite.files` and `resumes.store.postgresql.store`.

A revision may name the oldest program that can use the store after it, by that program's revision:

    oldest_program = "0001"

Nodes of that version can then run alongside new nodes, while the nodes of a server are replaced one by
one. After a revision that names none, older programs cannot use the store.
"""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from resumes.errors import StoreIncompatible
from resumes.store import schema

FOLDER = Path(__file__).parent


def list_revisions() -> list[str]:
    """Return all revisions, oldest first. A file's name begins with its revision, which is numbered."""
    return sorted(file.name.partition("_")[0] for file in (FOLDER / "versions").glob("[0-9]*.py"))


def find_state(connection: Connection, label: str) -> str:
    """Return whether the store is "empty", "older" or "current".

    Raises StoreIncompatible for a revision that this program does not know, as a newer one made it, and
    for tables without a revision, as in a dump of only the schema.
    """
    if not inspect(connection).has_table("alembic_version"):
        return "empty"
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    known = list_revisions()
    if revision == known[-1]:
        return "current"
    if revision in known:
        return "older"
    if revision is None:
        raise StoreIncompatible(
            f"The store {label} has tables, but no version of them: it was not copied whole. Copy it "
            "with its rows"
        )
    raise StoreIncompatible(describe_newer(label, revision))


def describe_newer(label: str, revision: str) -> str:
    """Return the message about a store with a revision that this program does not know."""
    return (
        f"The store {label} was created by a newer version (schema {revision}, this program supports "
        f"{list_revisions()[-1]}). Update resume-service"
    )


def run(connection: Connection) -> None:
    """Create the tables of a new store, or upgrade those of an older one to the newest revision.

    Everything is done in the caller's transaction.
    """
    # Alembic takes a tenth of a second to import, and a current store never needs it.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    if inspect(connection).has_table("alembic_version"):
        command.upgrade(config, "head")
    else:
        schema.create_tables(connection)
        command.stamp(config, "head")
    newest = ScriptDirectory.from_config(config).get_revision("head")
    connection.execute(
        text("UPDATE store_facts SET value = :value WHERE name = 'oldest_program'"),
        {"value": getattr(newest.module, "oldest_program", newest.revision)},
    )
