"""The form for a new key."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen

from resumes.clock import Clock, system_clock
from tui.actions import Place, bindings
from tui.screens.keys.typed_spans import SpanField, understand_expiry
from tui.text import safe
from tui.toasts import tell
from tui.widgets.fields import Choices, SafeInput, TextButton
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import Note, TitleLine

MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Wish:
    """A key for this account, of this name. `lifetime` None never expires."""

    account: str
    name: str
    lifetime: timedelta | None = None


class NameLine(SafeInput):
    """What the key is for."""

    def __init__(self) -> None:
        super().__init__(max_length=MAX_NAME_CHARS)


class CreateKeyDialog(ModalScreen[Wish | None]):
    """Gives what is wished for, None when it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, accounts: Sequence[str], preset: str, clock: Clock = system_clock) -> None:
        super().__init__()
        self._accounts = accounts
        self._preset = preset
        self._clock = clock

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("A new key", "bold"))
            yield Note(safe("For which account?"))
            yield Choices(self._accounts, self._preset)
            yield Note(safe("What is it for? A name tells keys apart; it may be empty."))
            yield NameLine()
            yield SpanField(
                "When does it expire? 30d, 12h or a date; it may be empty.",
                lambda text: understand_expiry(text, self._clock()),
            )
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Create"), id="create", variant="primary")
                yield TextButton(safe("Cancel"), id="cancel")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(NameLine).focus()

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#create")
    def create(self) -> None:
        """The dialog ends with the wish, if the expiry can be used."""
        expiry = self.query_one(SpanField)
        if not expiry.understood.is_usable:
            tell(self, expiry.understood.words, "warning")
            expiry.query_one(SafeInput).focus()
            return
        account = self.query_one(Choices).chosen
        name = self.query_one(NameLine).value.strip()
        self.dismiss(Wish(account, name, expiry.understood.span))

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)
