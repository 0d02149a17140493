"""`resumes tui`: the terminal UI, in this terminal or, with --web, in a browser."""

import contextlib
import gc
import os
import sys
from functools import cache, partial
from typing import TYPE_CHECKING

import click

from cli.completion import account_option, resume_ids
from cli.errors import ExitCode
from cli.groups import PORT, command
from cli.output import put, put_json_line, say
from cli.session import Session, pass_session, store_environment

if TYPE_CHECKING:
    from resumes.store.sqlite.first_rows import FirstRows
    from tui.session import UiSession


def serve_pages(
    session: Session, port: int, screen: str, *, read_only: bool, **options: str | None
) -> None:
    """Serve the terminal UI until Ctrl-C, and print its address, which works once.

    Every page runs `resumes tui` with the options given here. Raises InvalidArgument, NotFound
    or StoreUnavailable before the address is printed.
    """
    from tui.run import check_screen
    from tui.session import prepare
    from tui.web import server

    check_screen(screen)
    settings = session.settings()
    account, open_id = options["account"], options["open"]
    with session.store(makes=not read_only) as store:
        # As each page does.
        account = account or (None if open_id else settings.account)
        prepare(store, account=account, open_id=open_id, settings=settings)
    # -P: a folder named cli in the working directory must not be imported instead of ours.
    words = [sys.executable, "-P", "-m", "cli"]
    words += [f"--home={session.home}"] if session.home is not None else []
    words += ["tui", screen]
    words += [f"--{name}={value}" for name, value in options.items() if value is not None]
    words += ["--read-only"] if read_only else []
    os.environ.update(store_environment(session.database))
    server.run(
        words,
        port,
        max_connections=settings.max_connections,
        client_timeout_s=settings.client_timeout_s,
        ready=lambda address: _tell(session, address),
    )


def _tell(session: Session, address: str) -> None:
    if session.as_json:
        put_json_line({"url": address})
        return
    put(address)
    say("Open this one-time link in a browser on this machine. Press Ctrl-C to stop.")


READ_CACHE_BYTES = 512 * 1024
"""A page of a list needs little of the store, and each of several threads would keep its own."""


FIRST_ROWS = 100
"""How many resumes are shown before the store is open: those of a tall terminal."""


@command("tui")
@click.argument("screen", default="resumes")
@account_option("Account to show first.")
@click.option(
    "--open", "open_id", metavar="ID", shell_complete=resume_ids, help="Resume to show first."
)
@click.option("--read-only", is_flag=True, help="Disable all changes.")
@click.option(
    "--theme",
    type=click.Choice(["dark", "light", "terminal", "terminal-light"]),
    help="Color theme; `terminal` uses the terminal's own colors. [default: dark]",
)
@click.option(
    "--web",
    type=PORT,
    metavar="PORT",
    help="Serve the UI to a browser on this port; 0 picks a free port.",
)
@pass_session
def tui(
    session: Session,
    screen: str,
    account: str | None,
    open_id: str | None,
    read_only: bool,
    theme: str | None,
    web: int | None,
) -> int:
    """Open the terminal UI.

    SCREEN is the first screen: resumes, imports, accounts, plans, keys or health.
    """
    first = screen if open_id is None else "resumes"
    if web is not None:
        options = {"account": account, "open": open_id, "theme": theme}
        serve_pages(session, web, first, read_only=read_only, **options)
        return ExitCode.DONE
    with contextlib.ExitStack() as stack:
        # What is imported from here to the first row is kept: looking through it is a tenth of the start.
        gc.disable()
        stack.callback(gc.enable)
        from tui import run

        background = contextlib.ExitStack()
        read_settings = cache(partial(session.settings, theme=theme))

        def read_first() -> "tuple[str, FirstRows | None]":
            """Return the theme, and what the first screen shows if that is a list in a file."""
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
                session.store(makes=not read_only, read_cache_bytes=READ_CACHE_BYTES)
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
            )

        return run.run(
            open_session,
            read_first=read_first,
            screen=first,
            read_only=read_only,
            stop=background.close,
        )
