"""The question before something that cannot be undone."""

import sys

import click

from cli.errors import ExitCode
from cli.output import say
from resumes.errors import InvalidArgument


def can_ask() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()


def confirm(question: str) -> None:
    """Return after a yes; after a no, say that nothing was done and end the command.

    Raises InvalidArgument without a terminal to ask on.
    """
    if not can_ask():
        raise InvalidArgument("Cannot ask for confirmation without a terminal: use --yes")
    if not click.confirm(question, err=True):
        say("Canceled: nothing was deleted.")
        raise click.exceptions.Exit(ExitCode.FAILED)
