"""The question before something that cannot be undone."""

import sys

import click

from cli.errors import Failed
from resumes.errors import InvalidArgument


def can_ask() -> bool:
    """Whether somebody sits at the terminal."""
    return sys.stdin.isatty()


def confirm(question: str) -> None:
    """Whoever sits at the terminal said yes.

    Raises InvalidArgument where nobody can be asked, and Failed after a no.
    """
    if not can_ask():
        raise InvalidArgument("Nobody can be asked here: add --yes to delete without a question")
    if not click.confirm(question, err=True):
        raise Failed("Nothing was deleted")
