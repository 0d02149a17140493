"""The lines around a list or a text."""

from typing import Final

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from tui.modes import MODES
from tui.notices import Failure
from tui.text import joined, safe

TICK_S = 1.0
"""How long a second of the countdown is."""

MOST_WAIT_S: Final = 30
"""How long it is waited at most for a store that is away, before it is asked again."""


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
        # It is one line, whatever it says: nothing else has to move.
        self.update(content, layout=False)


class ErrorLine(Static):
    """What did not work, and what to do. Takes no room while all is well.

    While the store is away it counts down, and asks with `RetryDue` to try again; each time that
    fails it waits longer.
    """

    DEFAULT_CSS = """
    ErrorLine { height: auto; max-height: 4; padding: 0 1; display: none; color: $text-error;
        background: $error-muted; }
    """

    class RetryDue(Message):
        """Somebody try again."""

    def __init__(self) -> None:
        super().__init__()
        self._failure: Failure | None = None
        self._waits_s = 0
        self._left_s = 0

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._tick)

    @property
    def has_failure(self) -> bool:
        """Whether something is shown."""
        return self._failure is not None

    def show(self, failure: Failure) -> None:
        """The failure stays there until `clear`."""
        self._failure = failure
        self._waits_s = min(MOST_WAIT_S, max(1, 2 * self._waits_s)) if failure.is_passing else 0
        self._left_s = self._waits_s
        self._draw()
        self.display = True

    def clear(self) -> None:
        """All is well."""
        self._failure = None
        self._waits_s = self._left_s = 0
        self.display = False

    def _tick(self) -> None:
        if self._failure is None or not self._left_s:
            return
        self._left_s -= 1
        self._draw()
        if not self._left_s:
            self.post_message(self.RetryDue())

    def _draw(self) -> None:
        if self._failure is None:
            return
        parts = [self._failure.content]
        if self._failure.is_passing:
            parts.append(safe(f"Trying again in {self._left_s} s."))
        self.update(joined(parts, by=" "))


class Note(Static):
    """A text of a few lines at most, in a dialog."""

    DEFAULT_CSS = """
    Note { height: auto; padding: 0 1; }
    """

    def __init__(self, content: Content, *, id: str | None = None) -> None:  # noqa: A002  (Textual's name)
        super().__init__(content, id=id)
