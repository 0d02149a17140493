"""Questions before what cannot be undone."""

import sys

import click

from cli.failures import Failed
from resumes.errors import InvalidArgument


def confirm(question: str) -> None:
    """Whoever sits at the terminal said yes.

    Raises InvalidArgument where nobody can be asked, and Failed after a no.
    """
    if not sys.stdin.isatty():
        raise InvalidArgument("Nobody can be asked here: add --yes to delete without a question")
    if not click.confirm(question, err=True):
        raise Failed("Nothing was deleted")
