"""The question before a key is replaced by a new one: how long the old one still counts."""

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen

from resumes.clock import Clock, system_clock
from tui.actions import Place, bindings
from tui.screens.facts import Fact, fact_line
from tui.screens.keys.typed_spans import SpanField, understand_grace
from tui.text import safe
from tui.toasts import tell
from tui.widgets.fields import SafeInput, TextButton
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import Note, TitleLine

PRESET = "24h"


class RotateDialog(ModalScreen[timedelta | None]):
    """Gives the grace of the old key, None when it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, facts: Sequence[Fact], clock: Clock = system_clock) -> None:
        super().__init__()
        self._facts = facts
        self._clock = clock

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("Replace this key by a new one?", "bold"))
            for fact in self._facts:
                yield Note(fact_line(fact))
            yield SpanField(
                "How long does the old key still count? 0 to 7d.",
                lambda text: understand_grace(text, self._clock()),
                preset=PRESET,
            )
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Rotate"), id="rotate", variant="primary")
                yield TextButton(safe("Cancel"), id="cancel")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(SafeInput).focus()

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#rotate")
    def rotate(self) -> None:
        """The dialog ends with the grace, if it can be used."""
        grace = self.query_one(SpanField).understood
        if not grace.is_usable:
            tell(self, grace.words, "warning")
            self.query_one(SafeInput).focus()
            return
        self.dismiss(grace.span)

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)
