"""`resumes tui`: the terminal UI over the store."""

import contextlib
from typing import TYPE_CHECKING

import click

from cli.candidates import account_option, resume_ids
from cli.commands import PORT, command
from cli.session import Session, pass_session

if TYPE_CHECKING:
    from tui.session import Session as TuiSession

READ_CACHE_BYTES = 2 * 1024 * 1024
"""A page of a list needs little of the store, and each of several threads would keep its own."""


@command("tui")
@click.argument("screen", default="resumes")
@account_option("Begin with its resumes.")
@click.option(
    "--open", "open_id", metavar="ID", shell_complete=resume_ids, help="Show this resume."
)
@click.option("--read-only", is_flag=True, help="Change nothing.")
@click.option(
    "--theme",
    type=click.Choice(["dark", "light", "terminal", "terminal-light"]),
    help="Its colours; terminal: those of the terminal itself. [default: dark]",
)
@click.option("--web", type=PORT, metavar="PORT", help="In a browser instead; 0 takes a free port.")
@click.pass_context
@pass_session
def tui(
    session: Session,
    context: click.Context,
    /,
    screen: str,
    account: str | None,
    open_id: str | None,
    read_only: bool,
    theme: str | None,
    web: int | None,
) -> None:
    """Look around in a terminal UI.

    It begins with SCREEN: resumes, imports, accounts, plans, keys or health.
    """
    first = screen if open_id is None else "resumes"
    if web is not None:
        from cli.browsing import serve_pages

        serve_pages(
            session,
            web,
            screen=first,
            account=account,
            open_id=open_id,
            read_only=read_only,
            theme=theme,
        )
        return
    from tui import run

    with contextlib.ExitStack() as stack:

        def open_session() -> "TuiSession":
            from resumes.store.search_index import Indexer
            from tui.opening import prepare

            store = stack.enter_context(
                session.store(makes=not read_only, read_cache_bytes=READ_CACHE_BYTES)
            )
            if not read_only:
                stack.enter_context(Indexer(store))
            return prepare(
                store,
                account=account,
                open_id=open_id,
                read_only=read_only,
                settings=session.settings(theme=theme),
                program=session.command_line(),
            )

        code = run.run(open_session, screen=first, read_only=read_only)
    context.exit(code)
