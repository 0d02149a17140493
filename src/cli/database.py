"""`resumes db`: the store as a whole. Its commands are in modules of their own."""

from cli import backups, checking, copying
from cli.commands import group
from cli.output import put_json, say
from cli.session import Session, pass_session
from cli.text import safe_text
from resumes.errors import StoreUnavailable


@group("db")
def database() -> None:
    """Look after the store: copies, backups, checks."""


@database.command()
@pass_session
def upgrade(session: Session) -> None:
    """Bring the store up to this version, after a backup beside it."""
    from resumes.store import migrations, open_store
    from resumes.store.addresses import SqliteAddress, parse_address

    address = parse_address(session.settings().database_url)
    # Opening would make what is not there, and an upgrade of nothing is a slip of the pen.
    if isinstance(address, SqliteAddress) and not address.path.exists():
        raise StoreUnavailable(f"Database not found: {address.path}. `resumes up` makes one")
    with open_store(session.settings().database_url) as store:
        label = store.label
    revision = migrations.revisions()[-1]
    if session.as_json:
        put_json({"database": label, "revision": revision})
    else:
        say(f"The store {safe_text(label)} is current (schema {revision}).")


database.add_command(copying.copy)
database.add_command(copying.reopen)
database.add_command(backups.backup)
database.add_command(backups.restore)
database.add_command(checking.check)
