"""Dialogs about one key: what is known of it, and the question before it is revoked."""

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen

from resumes.store.keys import KeyInfo
from tui.actions import Place, bindings
from tui.text import NONE, safe
from tui.times import minute
from tui.widgets.fields import TextButton
from tui.widgets.lines import KeyLine, Note, TitleLine


class KeyDialog(ModalScreen[None]):
    """What is known of a key."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, key: KeyInfo) -> None:
        super().__init__()
        self._key = key

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("A key", "bold"))
            yield from facts(self._key)
            yield Note(safe("The key in full was shown when it was made, and never again."))
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Close"), id="cancel")
        yield KeyLine()

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The dialog is closed."""
        self.dismiss()


class RevokeDialog(ModalScreen[bool]):
    """Gives whether to revoke. Cancel has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)
    AUTO_FOCUS = "#cancel"

    def __init__(self, key: KeyInfo) -> None:
        super().__init__()
        self._key = key

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield TitleLine(safe("Revoke this key?", "bold"))
            yield from facts(self._key)
            yield Note(safe("Programs that use it are refused at once. This cannot be undone."))
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Cancel"), id="cancel")
                yield TextButton(safe("Revoke"), id="revoke", variant="error")
        yield KeyLine()

    @on(TextButton.Pressed, "#revoke")
    def revoke(self) -> None:
        """The answer is yes."""
        self.dismiss(True)

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The answer is no."""
        self.dismiss(False)


def facts(key: KeyInfo) -> Iterator[Note]:
    """A line for each thing known of the key; times are UTC."""
    yield Note(safe(f"Key        {key.masked}  ({key.id})"))
    yield Note(safe(f"Account    {key.account}"))
    yield Note(safe(f"Name       {key.name or NONE}"))
    yield Note(safe(f"Created    {minute(key.created_at)}, shown {minute(key.shown_at)}"))
    yield Note(safe(f"Last used  {minute(key.last_used_at)}"))
    yield Note(safe(f"Expires    {minute(key.expires_at)}, revoked {minute(key.revoked_at)}"))
