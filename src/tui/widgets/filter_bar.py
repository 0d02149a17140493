"""The line that filters a list while the user types."""

import asyncio
from typing import Final

from textual import on, work
from textual.containers import Horizontal
from textual.reactive import reactive

from tui.keys import Place, bindings
from tui.text import safe
from tui.widgets.bars import Note
from tui.widgets.forms import SafeInput
from tui.widgets.paged_list import PagedList

FILTER_DELAY_S: Final = 0.04
"""The pause in typing after which the list is read. It is shorter than the pauses of a fast typist,
but long enough to read the list only once after a paste or while a key repeats."""


class FilterInput(SafeInput):
    """The input of the filter line, with its own keys instead of those of `Input`."""

    BINDINGS = bindings(Place.FILTER)

    def action_to_list(self) -> None:
        self.query_ancestor(FilterLine).leave()

    def action_clear(self) -> None:
        self.query_ancestor(FilterLine).close()


class FilterLine(Horizontal):
    """An input line, which covers the screen's first line while it is open."""

    DEFAULT_CSS = """
    FilterLine { layer: above; dock: top; height: 1; display: none; padding: 0 1;
        background: $panel; }
    FilterLine Note { width: auto; padding: 0 1 0 0; }
    FilterLine FilterInput { width: 1fr; background: $boost; }
    """

    text: reactive[str] = reactive("", init=False)
    """The filter; empty if there is none. It ends in a space if the last word is complete."""

    def __init__(self, hint: str = "") -> None:
        """Create the line; `hint` is shown while it is empty."""
        self._line = FilterInput(hint=hint)
        self._line.disabled = True
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
        """Close the line but keep the filter."""
        self._apply_filter()
        # An enabled line would get the focus when a screen is opened.
        self._line.disabled = True
        self.display = False
        self.screen.query_one(PagedList).focus()

    @on(SafeInput.Changed)
    @work(exclusive=True, description="")
    async def filter_later(self) -> None:
        """Apply the filter after a pause in typing."""
        await asyncio.sleep(FILTER_DELAY_S)
        self._apply_filter()

    def _apply_filter(self) -> None:
        words = " ".join(self._line.value.split())
        self.text = f"{words} " if words and self._line.value.endswith(" ") else words
