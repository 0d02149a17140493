"""`resumes imports`: the ledger, what became of every dropped file."""

from typing import TYPE_CHECKING, Any

import click

from cli.candidates import account_names, claim_ids
from cli.commands import group
from cli.output import Column, instant, put_fields, put_json, put_table, say
from cli.session import Session, pass_session

if TYPE_CHECKING:
    from resumes.store.ledger import FileRow

COLUMNS = (
    Column("id"),
    Column("outcome"),
    Column("reason"),
    Column("file", is_flexible=True),
)
MOST = 1_000
"""Files that the ledger gives at a time."""


@group()
def imports() -> None:
    """Look at what became of dropped files."""


@imports.command("list")
@click.option("--account", metavar="NAME", shell_complete=account_names, help="Only its files.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, MOST),
    default=20,
    show_default=True,
    help="How many, at most.",
)
@pass_session
def list_(session: Session, account: str | None, limit: int) -> None:
    """List dropped files, the newest first."""
    from resumes.store import accounts, ledger

    with session.store() as store:
        account_id = None if account is None else accounts.get_account(store, account).id
        files = ledger.list_files(store, account_id=account_id, limit=limit)
    if session.as_json:
        put_json({"files": [as_json(row) for row in files]})
    elif files:
        put_table(COLUMNS, map(_row, files))
    else:
        say("No files were imported from a watched folder yet.")


@imports.command()
@click.argument("claim_id", metavar="ID", shell_complete=claim_ids)
@pass_session
def show(session: Session, claim_id: str) -> None:
    """Show what became of one dropped file, and why."""
    from resumes.store import ledger

    with session.store() as store:
        row = ledger.get_file(store, claim_id)
    if session.as_json:
        put_json(as_json(row))
    else:
        put_fields([(name, value) for name, value in _fields(row) if value])


def _row(row: "FileRow") -> list[str]:
    return [row.claim_id, row.outcome, row.reason or "-", row.name]


def _fields(row: "FileRow") -> list[tuple[str, str]]:
    return [
        ("file", row.name),
        ("account", row.account),
        ("outcome", row.outcome),
        ("reason", row.reason or ""),
        ("message", row.message or ""),
        ("at", row.path or ""),
        ("byte", "" if row.byte_offset is None else str(row.byte_offset)),
        ("size", f"{row.size_bytes:,} bytes"),
        ("claimed", f"{instant(row.claimed_at)} UTC"),
        ("finished", f"{instant(row.finished_at)} UTC"),
        ("id", row.claim_id),
    ]


def as_json(row: "FileRow") -> dict[str, Any]:
    """The file's row as `--json` prints it; null where there is nothing to say."""
    return {
        "id": row.claim_id,
        "account": row.account,
        "name": row.name,
        "outcome": row.outcome,
        "reason": row.reason,
        "message": row.message,
        "path": row.path,
        "byteOffset": row.byte_offset,
        "sizeBytes": row.size_bytes,
        "claimedAt": row.claimed_at,
        "finishedAt": row.finished_at,
    }
