"""The line that a list is filtered with, as one types."""

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer

from tui.keys import Place, bindings
from tui.text import safe
from tui.widgets.bars import Note
from tui.widgets.forms import SafeInput

MAX_CHARS: Final = 200
REST_S: Final = 0.04
"""How long nothing is typed before the list is read: less than between two keys of a fast
typist, and enough to ask once for what was pasted or repeated."""


class FilterInput(SafeInput):
    """What is typed in. Its keys are its own: those of a text line do something else."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.FILTER)

    class Done(Message):
        """Nothing more is to be typed; `is_kept` tells whether the filter stays."""

        def __init__(self, *, is_kept: bool) -> None:
            super().__init__()
            self.is_kept = is_kept

    def action_to_list(self) -> None:
        """Keep the filter."""
        self.post_message(self.Done(is_kept=True))

    def action_clear(self) -> None:
        """Clear the filter."""
        self.post_message(self.Done(is_kept=False))


class FilterLine(Horizontal):
    """A line to type in, over the screen's first line and only while something is typed."""

    DEFAULT_CSS = """
    FilterLine { layer: above; dock: top; height: 1; display: none; padding: 0 1;
        background: $panel; }
    FilterLine Note { width: auto; padding: 0 1 0 0; }
    FilterLine FilterInput { width: 1fr; background: $boost; }
    """

    class Changed(Message):
        """Somebody show what fits; all, when the text is empty."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The reader is done with typing."""

    def __init__(self) -> None:
        super().__init__()
        self._told = ""
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Note(safe("/", "bold"))
        yield FilterInput(max_length=MAX_CHARS, disabled=True)

    @property
    def text(self) -> str:
        """What is being looked for; empty for nothing."""
        return self._told

    def open(self) -> None:
        """Open the line and focus it."""
        self.display = True
        line = self.query_one(FilterInput)
        line.disabled = False
        line.focus()

    def close(self) -> None:
        """Close the line and clear the filter."""
        self.query_one(FilterInput).value = ""
        self._tell()
        self._hide()
        self.post_message(self.Left())

    @on(SafeInput.Changed)
    def wait_for_rest(self, event: SafeInput.Changed) -> None:
        """Filter a moment later, unless more is typed."""
        event.stop()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_S, self._tell)

    @on(FilterInput.Done)
    def leave(self, done: FilterInput.Done) -> None:
        """Leave the line to the list."""
        done.stop()
        if not done.is_kept:
            self.close()
            return
        self._tell()
        self._hide()
        self.post_message(self.Left())

    def _hide(self) -> None:
        # Disabled, or the focus would come to it when a screen begins.
        self.query_one(FilterInput).disabled = True
        self.display = False

    def _tell(self) -> None:
        text = " ".join(self.query_one(FilterInput).value.split())
        if text != self._told:
            self._told = text
            self.post_message(self.Changed(text))
