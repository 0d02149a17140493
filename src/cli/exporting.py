"""`resumes export`: resumes as they can be created again, to files or one stream."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.candidates import account_names, resume_ids
from cli.commands import command
from cli.lookup import get_resume
from cli.output import put_json_line, say
from cli.session import Session, choose_account, pass_session
from cli.text import safe_text
from resumes.errors import NotFound
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.accounts import AccountInfo
    from resumes.store.listing import Entry, StoredResume

FORMATS = ("analyzer",)
"""What a resume can be written as. `jsonresume` takes its place here."""


@command()
@click.argument("resume_ids", metavar="[ID]...", nargs=-1, shell_complete=resume_ids)
@click.option("--all", "is_all", is_flag=True, help="All resumes of the account.")
@click.option(
    "--account",
    metavar="NAME",
    shell_complete=account_names,
    help="Whose; the only account need not be named.",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="A file for each resume in this folder, not a stream on standard output.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    default="analyzer",
    show_default=True,
    help="What to write them as.",
)
@pass_session
def export(
    session: Session,
    resume_ids: tuple[str, ...],
    is_all: bool,
    account: str | None,
    folder: Path | None,
    kind: str,
) -> None:
    """Write resumes to files or one stream.

    The stream has a resume on each line (NDJSON). What is written can be created again.
    """
    if is_all == bool(resume_ids):
        raise click.UsageError("Name the resumes to export, or say --all")
    from resumes.analyzer import public_view

    accepted = session.settings().format
    with session.store() as store:
        chosen = choose_account(store, account)
        resumes = (
            _iter_all(store, chosen) if is_all else _iter_named(session, store, chosen, resume_ids)
        )
        count = 0
        for resume in resumes:
            view = public_view(resume.document, accepted)
            if folder is None:
                put_json_line(view)
            else:
                _write(folder, resume.entry, view)
            count += 1
    where = "" if folder is None else f" to {safe_text(str(folder))}"
    say(f"Exported {counted(count, 'resume')}{where}.")


def _iter_all(store: "Store", account: "AccountInfo") -> Iterator["StoredResume"]:
    """Every resume of the account, oldest first; one that is deleted meanwhile is left out."""
    from resumes.store import listing

    cursor: str | None = ""
    while cursor is not None:
        page = listing.list_page(store, account.id, cursor=cursor, limit=listing.MAX_LIMIT)
        for entry in page.entries:
            with contextlib.suppress(NotFound):
                yield listing.get_resume(store, account.id, entry.id)
        cursor = page.cursor


def _iter_named(
    session: Session, store: "Store", account: "AccountInfo", resume_ids: tuple[str, ...]
) -> Iterator["StoredResume"]:
    # All are looked up first: a wrong id is told before anything was written.
    yield from [get_resume(session, store, account, resume_id) for resume_id in resume_ids]


def _write(folder: Path, entry: "Entry", view: dict[str, Any]) -> None:
    """The resume is in a file of its own; an earlier export of it is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{entry.filename.removesuffix('.pdf')}-{entry.id}.json"
    text = json.dumps(view, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")
