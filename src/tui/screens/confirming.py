"""The question before something is done that cannot be undone."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen

from tui.actions import Place, bindings
from tui.screens.facts import Fact, fact_line
from tui.text import safe
from tui.toasts import tell
from tui.widgets.fields import SafeInput, TextButton
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import Note, TitleLine

MAX_TYPED_CHARS = 200


class ConfirmDialog(ModalScreen[bool]):
    """Gives whether to do it. Cancel has the focus, or the line to type in, where one is asked.

    With `typed` the answer is yes only when just that was typed.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(
        self,
        question: str,
        facts: Sequence[Fact],
        *,
        consequence: str,
        verb: str,
        typed: str | None = None,
    ) -> None:
        super().__init__()
        self._question = question
        self._facts = facts
        self._consequence = consequence
        self._verb = verb
        self._typed = typed

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe(self._question, "bold"))
            for fact in self._facts:
                yield Note(fact_line(fact))
            yield Note(safe(self._consequence, "bold"))
            if self._typed is not None:
                yield Note(safe(f"Type {self._typed} to {self._verb.lower()}:"))
                yield SafeInput(max_length=MAX_TYPED_CHARS)
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Cancel"), id="cancel")
                yield TextButton(safe(self._verb), id="confirm", variant="error")
        yield KeyLine()

    def on_mount(self) -> None:
        if self._typed is None:
            self.query_one("#cancel").focus()
        else:
            self.query_one(SafeInput).focus()

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#confirm")
    def confirm(self) -> None:
        """The answer is yes, if what had to be typed was."""
        if self._typed is not None and self.query_one(SafeInput).value.strip() != self._typed:
            tell(self, f"Nothing is done until you type {self._typed} exactly.", "warning")
            self.query_one(SafeInput).focus()
            return
        self.dismiss(True)

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The answer is no."""
        self.dismiss(False)
