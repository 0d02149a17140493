"""The terminal, handed over to another program."""

from collections.abc import Iterator
from contextlib import contextmanager

from textual.app import App, SuspendNotSupported

from resumes.errors import InvalidArgument


@contextmanager
def suspended(app: App[object]) -> Iterator[None]:
    """Suspend the terminal UI during the block. Raises InvalidArgument if its terminal cannot."""
    try:
        with app.suspend():
            yield
    except SuspendNotSupported as error:
        raise InvalidArgument("This terminal cannot be handed to another program") from error
