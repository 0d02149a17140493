"""`resumes list`: a page of an account's resumes, as the API gives it."""

from typing import TYPE_CHECKING

import click

from cli.candidates import account_names, resume_ids
from cli.commands import command
from cli.output import Column, instant, put_json, put_table, say
from cli.session import Session, choose_account, pass_session
from cli.text import safe_text
from resumes.errors import InvalidArgument

if TYPE_CHECKING:
    from resumes.store.listing import Page

COLUMNS = (Column("id"), Column("title", is_flexible=True), Column("created (UTC)"))


@command("list")
@click.option(
    "--account",
    metavar="NAME",
    shell_complete=account_names,
    help="Whose; the only account need not be named.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help="How many, at most.",
)
@click.option(
    "--cursor", metavar="ID", default="", shell_complete=resume_ids, help="After which resume."
)
@pass_session
def list_(session: Session, account: str | None, limit: int, cursor: str) -> None:
    """List an account's resumes, a page at a time, oldest first."""
    from resumes.store import listing

    with session.store() as store:
        chosen = choose_account(store, account)
        _check(cursor)
        page = listing.list_page(store, chosen.id, cursor=cursor, limit=limit)
    if session.as_json:
        put_json(page.as_json(limit=limit))
        return
    if page.entries:
        put_entries(page)
    else:
        what = "No more resumes" if cursor else "No resumes yet"
        say(f'{what} in account "{safe_text(chosen.name)}".')
    if page.cursor is not None:
        say(f"next cursor  {page.cursor}")


def _check(cursor: str) -> None:
    from resumes.store import listing

    try:
        listing.check_cursor(cursor)
    except InvalidArgument:
        raise InvalidArgument(
            f'Invalid cursor "{cursor}": use the id of a resume, 24 hexadecimal digits'
        ) from None


def put_entries(page: "Page") -> None:
    """The page as a table on standard output."""
    put_table(COLUMNS, ([one.id, one.shown_title, instant(one.created_at)] for one in page.entries))
