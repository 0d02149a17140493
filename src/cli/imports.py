"""`resumes imports`: the ledger, what became of every dropped file."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cli.candidates import account_option, claim_ids
from cli.commands import group
from cli.dropped_files import (
    as_json,
    put_file,
    put_files,
    put_source,
    readable,
    request_as_json,
)
from cli.output import put_json, say
from cli.reasons import ReasonType
from cli.requesting import release, retry
from cli.session import Session, pass_session
from resumes.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.import_ledger import FileRow

OUTCOMES = ("held", "failed", "duplicate", "done")
MOST = 1_000
"""Files that the ledger gives at a time."""


@group()
def imports() -> None:
    """Look at what became of dropped files."""


@imports.command("list")
@account_option("Only its files.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only files that ended so.")
@click.option(
    "--reason", metavar="REASON", type=ReasonType(), help="Only files that this kept out."
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, MOST),
    default=20,
    show_default=True,
    help="How many, at most.",
)
@click.option("--before", metavar="ID", shell_complete=claim_ids, help="Older than which file.")
@click.option("--failed-first", is_flag=True, help="Failed, held, duplicate, done; in this order.")
@pass_session
def list_(
    session: Session,
    account: str | None,
    outcome: str | None,
    reason: str | None,
    limit: int,
    before: str | None,
    failed_first: bool,
) -> None:
    """List dropped files, the newest first.

    With --failed-first what asks for something comes first, as in the terminal UI; then --before
    takes OUTCOME:ID, as the list ends with it.
    """
    from resumes.store import accounts, import_ledger

    read = _read_by_outcome if failed_first else _read_newest
    with session.store() as store:
        files, last = read(
            store,
            before,
            account_id=None if account is None else accounts.get_account(store, account).id,
            outcome=None if outcome is None else import_ledger.FileOutcome(outcome),
            reason=reason,
            limit=limit,
        )
    if session.as_json:
        put_json({"files": [as_json(row) for row in files], "before": last})
        return
    if files:
        put_files(files)
    else:
        is_part = account or outcome or reason or before
        say("No such files." if is_part else "No files were imported from a watched folder yet.")
    if last is not None:
        say(f"older ones  --before {last}")


def _read_newest(
    store: "Store", before: str | None, *, limit: int, **filters: Any
) -> "tuple[Sequence[FileRow], str | None]":
    """The page, and what goes on after it if anything may."""
    from resumes.store import import_ledger

    files = import_ledger.list_files(store, before=_check(before), limit=limit, **filters)
    return files, files[-1].claim_id if len(files) == limit else None


def _read_by_outcome(
    store: "Store", before: str | None, *, limit: int, **filters: Any
) -> "tuple[Sequence[FileRow], str | None]":
    """The page, and what goes on after it if anything does."""
    from resumes.store import import_ledger

    after = None if before is None else import_ledger.parse_place(before)
    page = import_ledger.list_by_outcome(store, after=after, limit=limit, **filters)
    return page.files, None if page.next is None else str(page.next)


def _check(before: str | None) -> str | None:
    from resumes.store.identifiers import RESUME_ID

    if before is not None and not RESUME_ID.fullmatch(before):
        raise InvalidArgument(
            f'Invalid ID "{before[:80]}": use the id of a file, 24 hexadecimal digits'
        )
    return before


@imports.command()
@click.argument("claim_id", metavar="ID", shell_complete=claim_ids)
@account_option("Whose it is, where several accounts have a file of this ID.")
@click.option("--source", "is_source", is_flag=True, help="Print how the file began instead.")
@pass_session
def show(session: Session, claim_id: str, account: str | None, is_source: bool) -> None:
    """Show what became of one dropped file, why, and where it lies now."""
    from cli.whereabouts import find_place, find_roots
    from resumes.store import accounts, import_ledger, import_requests

    with session.store() as store:
        account_id = None if account is None else accounts.get_account(store, account).id
        row = import_ledger.get_file(store, claim_id, account_id=account_id)
        request = import_requests.find_request(store, row.account_id, row.claim_id)
        source = _get_source(store, row) if is_source else None
    roots = find_roots(row, session.settings().inbox)
    place = find_place(row, roots)
    if session.as_json:
        filed_as = None if place is None else str(place.path)
        told = as_json(row) | {"filedAs": filed_as, "request": request_as_json(request)}
        put_json(told if source is None else told | {"source": readable(source)})
    elif source is not None:
        put_source(source)
    else:
        put_file(row, request, place, is_near=bool(roots))


def _get_source(store: "Store", row: "FileRow") -> bytes:
    from resumes.store import import_ledger

    source = import_ledger.find_source(store, row)
    if source is None:
        raise NotFound(f"No source is kept of {row.claim_id}: it is {row.outcome}")
    return source


imports.add_command(retry)
imports.add_command(release)
