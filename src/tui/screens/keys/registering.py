"""The form for a key that was made elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen

from resumes.store.api_keys import FORM
from tui.actions import Place, bindings
from tui.screens.keys.creating import NameLine
from tui.text import safe
from tui.toasts import tell
from tui.widgets.fields import Choices, SafeInput, TextButton
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import Note, TitleLine

MAX_SECRET_CHARS: Final = 200
NOT_A_KEY: Final = "! That is no key: enh_live_ and 64 letters and digits."


@dataclass(frozen=True, slots=True)
class Foreign:
    """A key from elsewhere, for this account."""

    account: str
    name: str
    secret: str = field(repr=False)


class SecretLine(SafeInput):
    """The key itself, of which dots are shown."""

    def __init__(self) -> None:
        super().__init__(max_length=MAX_SECRET_CHARS)
        self.password = True


class RegisterKeyDialog(ModalScreen[Foreign | None]):
    """Gives a key to register, None when it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, accounts: Sequence[str], preset: str) -> None:
        super().__init__()
        self._accounts = accounts
        self._preset = preset

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("A key that was made elsewhere", "bold"))
            yield Note(safe("For which account?"))
            yield Choices(self._accounts, self._preset)
            yield Note(safe("What is it for? A name tells keys apart; it may be empty."))
            yield NameLine()
            yield Note(safe("The key in full. Dots are shown in its place."))
            yield SecretLine()
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Register"), id="register", variant="primary")
                yield TextButton(safe("Cancel"), id="cancel")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(SecretLine).focus()

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#register")
    def register(self) -> None:
        """The dialog ends with the key, if it has the form of one."""
        line = self.query_one(SecretLine)
        secret = line.value.strip()
        if not FORM.fullmatch(secret):
            tell(self, NOT_A_KEY, "warning")
            line.focus()
            return
        name = self.query_one(NameLine).value.strip()
        self.dismiss(Foreign(self.query_one(Choices).chosen, name, secret))

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)
