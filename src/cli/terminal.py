"""`resumes tui`: the terminal UI over the store."""

import sys

import click

from cli.candidates import account_names, resume_ids
from cli.commands import command
from cli.session import Session, pass_session
from resumes.errors import InvalidArgument


@command("tui")
@click.argument("screen", default="resumes")
@click.option(
    "--account", metavar="NAME", shell_complete=account_names, help="Begin with its resumes."
)
@click.option(
    "--open", "open_id", metavar="ID", shell_complete=resume_ids, help="Show this resume."
)
@click.option("--read-only", is_flag=True, help="Change nothing.")
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
) -> None:
    """Look around in a terminal UI.

    It begins with SCREEN: resumes, accounts or keys.
    """
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise InvalidArgument("The terminal UI needs a terminal; elsewhere use `resumes list`")
    from tui import service

    with session.store(makes=True) as store:
        code = service.run(
            store, screen=screen, account=account, open_id=open_id, read_only=read_only
        )
    context.exit(code)
