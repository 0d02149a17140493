"""A dialog that shows what is known of one thing."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen

from tui.actions import Place, bindings
from tui.text import joined, safe
from tui.widgets.fields import TextButton
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import Note, TitleLine

Fact = tuple[str, str]
"""What it is called, and what it is."""

LABEL_CELLS = 11


def fact_line(fact: Fact) -> Content:
    """The fact in a line, labels and values each in a column of their own."""
    label, value = fact
    return joined([safe(f"{label:<{LABEL_CELLS}}", "dim"), safe(value)])


class FactsDialog(ModalScreen[None]):
    """Shows facts, and under them a remark, until it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, title: str, facts: Sequence[Fact], *, remark: str = "") -> None:
        super().__init__()
        self._title = title
        self._facts = facts
        self._remark = remark

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe(self._title, "bold"))
            for fact in self._facts:
                yield Note(fact_line(fact))
            if self._remark:
                yield Note(safe(self._remark))
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Close"), id="cancel")
        yield KeyLine()

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog is closed."""
        self.dismiss()
