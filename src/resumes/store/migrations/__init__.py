"""Revisions of the store's tables, with Alembic on the caller's connection.

A new store is created with the tables of `resumes.store.schema`. Revisions upgrade the tables of an
older store to the same state; they are in `versions/`, and are the same for all engines. The steps
of each engine before and after revisions are in `resumes.store.sqlite.files` and
`resumes.store.postgresql.store`.

A revision may specify the oldest program that can still use the store, by that program's revision:

    oldest_program = "0001"

While the nodes of a service are replaced one by one, nodes with that version can then run alongside
new nodes. After a revision without `oldest_program`, older programs cannot use the store.
"""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from resumes.errors import StoreIncompatible
from resumes.store import schema

FOLDER = Path(__file__).parent


def list_revisions() -> list[str]:
    """Return all revisions, oldest first. File names begin with the numbers of revisions."""
    return sorted(file.name.partition("_")[0] for file in (FOLDER / "versions").glob("[0-9]*.py"))


def find_state(connection: Connection, label: str) -> str:
    """Return whether the store is "empty", "older" or "current".

    Raises StoreIncompatible if a newer program has upgraded the store to an unknown revision, or if
    the tables have no revision, as in a dump of only the schema.
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
            f"The store {label} has tables, but no schema version: the copy is incomplete. Copy the whole "
            "store again"
        )
    raise StoreIncompatible(describe_newer(label, revision))


def describe_newer(label: str, revision: str) -> str:
    """Return the error message for a store whose revision this program does not know."""
    return (
        f"The store {label} was created by a newer version (schema {revision}, this program supports "
        f"{list_revisions()[-1]}). Update resume-service"
    )


def run(connection: Connection) -> None:
    """Create the tables of a new store, or upgrade an older store to the newest revision.

    All changes are made in the caller's transaction.
    """
    # Import Alembic only here: it takes a tenth of a second, and current stores do not need it.
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
