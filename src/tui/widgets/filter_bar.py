"""The line that filters a list as you type."""

from typing import Final

from textual import on
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.timer import Timer

from tui.keys import Place, bindings
from tui.text import safe
from tui.widgets.bars import Note
from tui.widgets.forms import SafeInput
from tui.widgets.paged_list import PagedList

REST_S: Final = 0.04
"""How long nothing is typed before the list is read: less than between two keys of a fast
typist, and enough to ask once for what was pasted or repeated."""


class FilterInput(SafeInput):
    """What is typed in. Its keys are its own: those of a text line do something else."""

    BINDINGS = bindings(Place.FILTER)

    def action_to_list(self) -> None:
        self.query_ancestor(FilterLine).leave()

    def action_clear(self) -> None:
        self.query_ancestor(FilterLine).close()


class FilterLine(Horizontal):
    """A line to type in, over the screen's first line and only while something is typed."""

    DEFAULT_CSS = """
    FilterLine { layer: above; dock: top; height: 1; display: none; padding: 0 1;
        background: $panel; }
    FilterLine Note { width: auto; padding: 0 1 0 0; }
    FilterLine FilterInput { width: 1fr; background: $boost; }
    """

    text: reactive[str] = reactive("", init=False)
    """What is being looked for; empty for nothing."""

    _rest: Timer | None = None

    def __init__(self) -> None:
        self._line = FilterInput(disabled=True)
        super().__init__(Note(safe("/", "bold")), self._line)

    def open(self) -> None:
        """Open the line and focus it."""
        self.display = True
        self._line.disabled = False
        self._line.focus()

    def close(self) -> None:
        """Close the line and clear the filter."""
        self._line.value = ""
        self.leave()

    def leave(self) -> None:
        """Close the line, and leave the filter to the list."""
        self._tell()
        # Disabled, or the focus would come to it when a screen begins.
        self._line.disabled = True
        self.display = False
        self.screen.query_one(PagedList).focus()

    @on(SafeInput.Changed)
    def wait_for_rest(self, event: SafeInput.Changed) -> None:
        """Filter a moment later, unless more is typed."""
        event.stop()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_S, self._tell)

    def _tell(self) -> None:
        self.text = " ".join(self._line.value.split())
