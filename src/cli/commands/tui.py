"""`resumes tui`: open the terminal UI."""

import contextlib
import gc
from collections.abc import Iterable
from functools import cache, partial
from typing import TYPE_CHECKING

import click

from cli.groups import account_option, command
from cli.session import Session, pass_session

if TYPE_CHECKING:
    from resumes.store.sqlite.first_rows import FirstRows
    from tui.session import UiSession

READ_CACHE_BYTES = 512 * 1024
"""The read cache of each thread, which can be small: a page of a list needs little of the store."""


FIRST_ROWS = 100
"""The number of resumes to show before the store is open, which is enough for a tall terminal."""


@command("tui")
@click.argument("screen", default="resumes")
@account_option("Account to show first.")
@click.option("--open", "open_id", metavar="ID", help="Resume to show first.")
@click.option("--read-only", is_flag=True, help="Prevent all changes.")
@click.option(
    "--theme",
    type=click.Choice(["dark", "light", "terminal", "terminal-light"]),
    help="Color theme. The `terminal` themes use the colors of your terminal. [default: dark]",
)
@pass_session
def tui(
    session: Session,
    screen: str,
    account: str | None,
    open_id: str | None,
    read_only: bool,
    theme: str | None,
) -> int:
    """Open the terminal UI.

    SCREEN is the screen to show first: resumes, imports, accounts, plans, keys or health.
    """
    with contextlib.ExitStack() as stack:
        # Nothing is freed before the first row, and collections would take a tenth of the start.
        gc.disable()
        stack.callback(gc.enable)
        from tui import run

        background = contextlib.ExitStack()
        read_settings = cache(partial(session.settings, theme=theme))

        def read_first() -> "tuple[str, FirstRows | None]":
            """Return the theme, and the rows if resumes come first and the store is a file."""
            from resumes.store.addresses import SqliteAddress, parse_address
            from resumes.store.sqlite.first_rows import read_first_rows

            settings = read_settings()
            address = parse_address(settings.database_url)
            if screen != "resumes" or open_id is not None or not isinstance(address, SqliteAddress):
                return settings.theme, None
            rows = read_first_rows(address.path, account or settings.account, FIRST_ROWS)
            return settings.theme, rows

        def open_session() -> "UiSession":
            from resumes.store.search_index import Indexer
            from tui.session import prepare

            settings = read_settings()
            store = stack.enter_context(
                session.store(create=not read_only, read_cache_bytes=READ_CACHE_BYTES)
            )
            stack.enter_context(background)
            if not read_only:
                background.enter_context(Indexer(store))
            return prepare(
                store,
                account=account or (None if open_id else settings.account),
                open_id=open_id,
                read_only=read_only,
                settings=settings,
                program=session.command_line(),
                forget=forget_persons,
            )

        context = click.get_current_context()

        def forget_persons(resume_ids: Iterable[str]) -> None:
            from cli import errors
            from cli.commands.forget import forget

            flags = dict.fromkeys(("dry_run", "lift", "yes"), False)
            names = {"targets": tuple(resume_ids), "account": None, "target": None}
            errors.run(partial(context.invoke, forget, **names, **flags), session)
            click.pause("Press any key to go back.")

        return run.run(
            open_session,
            read_first=read_first,
            screen=screen if open_id is None else "resumes",
            read_only=read_only,
            stop=background.close,
        )
