"""The form for a new key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen

from tui.actions import Place, bindings
from tui.text import safe
from tui.widgets.fields import Choices, SafeInput, TextButton
from tui.widgets.lines import KeyLine, TitleLine

MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Wish:
    """A key for this account, of this name."""

    account: str
    name: str


class CreateKeyDialog(ModalScreen[Wish | None]):
    """Gives what is wished for, None when it was cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, accounts: Sequence[str], preset: str) -> None:
        super().__init__()
        self._accounts = accounts
        self._preset = preset

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("A new key", "bold"))
            yield TitleLine(safe("For which account?"))
            yield Choices(self._accounts, self._preset)
            yield TitleLine(safe("What is it for? A name tells keys apart; it may be empty."))
            yield SafeInput(max_length=MAX_NAME_CHARS)
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Create"), id="create", variant="primary")
                yield TextButton(safe("Cancel"), id="cancel")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(SafeInput).focus()

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#create")
    def create(self) -> None:
        """The dialog ends with the wish."""
        account = self.query_one(Choices).chosen
        self.dismiss(Wish(account, self.query_one(SafeInput).value.strip()))

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)
