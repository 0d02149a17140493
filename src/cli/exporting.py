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

FORMATS = {"analyzer": ".json", "jsonresume": ".jsonresume.json"}
"""What a resume can be written as, and what the names of such files end in: one folder may hold
the exports of each."""


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
    type=click.Choice(list(FORMATS)),
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

    The stream has a resume on each line (NDJSON). The analyzer format can be created again as it
    is; of JSON Resume, which does not hold everything, `resumes import` makes the analyzer format.
    """
    if is_all == bool(resume_ids):
        raise click.UsageError("Name the resumes to export, or say --all")
    from resumes.analyzer import public_view, sections_left_out, to_jsonresume

    left_out: dict[str, None] = {}
    accepted = session.settings().format
    with session.store() as store:
        chosen = choose_account(store, account)
        resumes = (
            _iter_all(store, chosen) if is_all else _iter_named(session, store, chosen, resume_ids)
        )
        count = 0
        for resume in resumes:
            view = public_view(resume.document, accepted)
            if kind == "jsonresume":
                left_out |= dict.fromkeys(sections_left_out(view))
                view = to_jsonresume(view)
            if folder is None:
                put_json_line(view)
            else:
                _write(folder / f"{_stem(resume.entry)}{FORMATS[kind]}", view)
            count += 1
    where = "" if folder is None else f" to {safe_text(str(folder))}"
    say(f"Exported {counted(count, 'resume')}{where}.")
    if left_out:
        say(safe_text(f"Left out, as JSON Resume has no place for it: {', '.join(left_out)}."))


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


def _stem(entry: "Entry") -> str:
    return f"{entry.filename.removesuffix('.pdf')}-{entry.id}"


def _write(path: Path, resume: dict[str, Any]) -> None:
    """The resume is in a file of its own; an earlier export of it is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(resume, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")
