"""`resumes list`: a page of an account's resumes, as the API gives it."""

from typing import TYPE_CHECKING

import click

from cli.candidates import account_option, resume_ids
from cli.commands import command
from cli.output import Column, instant, put_json, put_table, say
from cli.session import Session, choose_account, pass_session
from cli.text import safe_text
from resumes.errors import InvalidArgument
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.search import Found
    from resumes.store.stored_resumes import Page

SEARCH_TIMEOUT_S = 30.0
"""How long resumes that are not in the search index yet are looked through: people asked once."""

COLUMNS = (Column("id"), Column("title", is_flexible=True), Column("created (UTC)"))


@command("list")
@account_option()
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
@click.option(
    "--filter",
    "words",
    metavar="TEXT",
    help="Only those whose title, name and e-mail address have all these words, or parts of words.",
)
@pass_session
def list_(
    session: Session, account: str | None, limit: int, cursor: str, words: str | None
) -> None:
    """List an account's resumes, a page at a time, oldest first."""
    with session.store() as store:
        chosen = choose_account(store, account)
        _check(cursor)
        found = _find(store, chosen.id, words, cursor=cursor, limit=limit)
    if session.as_json:
        more = {} if words is None else {"unindexed": found.unindexed}
        put_json(found.page.as_json(limit=limit) | more)
        return
    _put_page(found.page, chosen.name, words, cursor)
    if found.unindexed:
        say(f"{counted(found.unindexed, 'resume')} could not be searched yet. Ask again later.")


def _find(
    store: "Store", account_id: str, words: str | None, *, cursor: str, limit: int
) -> "Found":
    from resumes.store import search, stored_resumes

    if words is None:
        return search.Found(
            stored_resumes.list_page(store, account_id, cursor=cursor, limit=limit), 0
        )
    return search.find_page(
        store, account_id, words, cursor=cursor, limit=limit, timeout_s=SEARCH_TIMEOUT_S
    )


def _put_page(page: "Page", account: str, words: str | None, cursor: str) -> None:
    if page.entries:
        put_entries(page)
    elif words is None:
        what = "No more resumes" if cursor else "No resumes yet"
        say(f'{what} in account "{safe_text(account)}".')
    else:
        what = "No more resumes" if cursor else "No resumes"
        say(f'{what} in account "{safe_text(account)}" with "{safe_text(words)}".')
    if page.cursor is not None:
        say(f"next cursor  {page.cursor}")


def _check(cursor: str) -> None:
    from resumes.store import stored_resumes

    try:
        stored_resumes.check_cursor(cursor)
    except InvalidArgument:
        raise InvalidArgument(
            f'Invalid cursor "{cursor}": use the id of a resume, 24 hexadecimal digits'
        ) from None


def put_entries(page: "Page") -> None:
    """The page as a table on standard output."""
    put_table(COLUMNS, ([one.id, one.shown_title, instant(one.created_at)] for one in page.entries))
