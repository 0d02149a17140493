"""How a store becomes the current version: Alembic, on a connection of ours.

Revisions live in `versions/`, one for all engines. Around them each engine has its own care:
`resumes.store.sqlite.bootstrap` and `resumes.store.postgresql.bootstrap`.

A revision may say which program is the oldest that can go on with the store after it:

    oldest_program = "0006"

Nodes of that version then run beside those of the new one, while a server's nodes are replaced one
by one. A revision that says nothing can be used by none that is older.
"""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from resumes.errors import StoreIncompatible

FOLDER = Path(__file__).parent


def revisions(folder: Path = FOLDER) -> list[str]:
    """All revisions, oldest first. A file's name begins with its revision, which is numbered."""
    return sorted(file.name.partition("_")[0] for file in (folder / "versions").glob("[0-9]*.py"))


def find_revision(connection: Connection) -> str | None:
    """The revision that the store is at; None where nothing was made yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(
        text("SELECT version_num FROM alembic_version")
    ).scalar()
    return revision


def state(connection: Connection, label: str, *, folder: Path = FOLDER) -> str:
    """Whether the store is "empty", "older" or "current".

    Raises StoreIncompatible for a revision that this program does not know: a newer one made it.
    """
    revision = find_revision(connection)
    if revision is None:
        return "empty"
    known = revisions(folder)
    if revision == known[-1]:
        return "current"
    if revision in known:
        return "older"
    raise StoreIncompatible(
        f"The store {label} was made by a newer version (schema {revision}, this program knows "
        f"{known[-1]}). Update resume-service"
    )


def run(connection: Connection, *, folder: Path = FOLDER) -> None:
    """The store is at the newest revision, as soon as the connection's transaction is committed."""
    # Alembic takes a tenth of a second to import, and a current store never needs it.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    if not inspect(connection).has_table("store_facts"):
        return  # of a time before it said anything of itself
    newest = ScriptDirectory.from_config(config).get_revision("head")
    oldest_program = getattr(newest.module, "oldest_program", newest.revision)
    connection.execute(
        text("UPDATE store_facts SET value = :value WHERE name = 'oldest_program'"),
        {"value": oldest_program},
    )
