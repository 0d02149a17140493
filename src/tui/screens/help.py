"""All keys, from the table of actions."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from tui.actions import ACTIONS, Place, bindings
from tui.text import joined, safe
from tui.widgets.lines import KeyLine
from tui.widgets.text_pane import Paragraph, TextPane

KEYS_CELLS = 12


class HelpScreen(ModalScreen[None]):
    """Every key and what it does, where it does it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield TextPane(help_text())
        yield KeyLine()

    def action_cancel(self) -> None:
        """The help is closed."""
        self.dismiss()


def help_text() -> list[Paragraph]:
    """A paragraph for each key, under a heading for each place."""
    paragraphs = [Paragraph(safe("Keys (esc closes this)", "bold"))]
    for place in Place:
        paragraphs += [Paragraph(safe("")), Paragraph(safe(place, "bold underline"))]
        paragraphs += [
            Paragraph(
                joined([safe(f"{action.shown:<{KEYS_CELLS}}", "bold"), safe(action.sentence)])
            )
            for action in ACTIONS
            if action.place is place
        ]
    return paragraphs
