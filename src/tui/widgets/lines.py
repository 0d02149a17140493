"""The lines around a list or a text."""

from textual.content import Content
from textual.widgets import Footer, Static

from tui.modes import MODES
from tui.notices import Failure
from tui.text import joined, safe


class ModeLine(Static):
    """Which screens there are, which one this is, and whether anything can be changed."""

    DEFAULT_CSS = """
    ModeLine { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; }
    """

    def __init__(self, current: str, *, read_only: bool) -> None:
        tabs = [
            safe(f" {mode.key} {mode.title} ", "bold reverse" if mode.name == current else "")
            for mode in MODES
        ]
        badge = [safe(" read-only ", "bold $warning")] if read_only else []
        super().__init__(joined([*tabs, *badge], by=" "))


class TitleLine(Static):
    """What is being looked at, and how much of it there is."""

    DEFAULT_CSS = """
    TitleLine { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def show(self, content: Content) -> None:
        """The line reads so."""
        self.update(content)


class ErrorLine(Static):
    """What did not work, and what to do. Takes no room while all is well."""

    DEFAULT_CSS = """
    ErrorLine { height: auto; max-height: 4; padding: 0 1; display: none; color: $text-error;
        background: $error-muted; }
    """

    def show(self, failure: Failure) -> None:
        """The failure stays there until `clear`."""
        self.update(failure.content)
        self.display = True

    def clear(self) -> None:
        """All is well."""
        self.display = False


class Note(Static):
    """A text of a few lines at most, in a dialog."""

    DEFAULT_CSS = """
    Note { height: auto; padding: 0 1; }
    """

    def __init__(self, content: Content, *, id: str | None = None) -> None:  # noqa: A002  (Textual's name)
        super().__init__(content, id=id)


class KeyLine(Footer):
    """The keys that work here."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)
