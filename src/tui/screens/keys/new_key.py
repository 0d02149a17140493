"""A new key, in full, this one time.

The key is on a line of its own without a frame, so that it can be selected with the mouse. It
is in no toast and no log. Leaving needs a key of its own, and only then is the key marked as
shown: if the program ends before, the list says "never shown", and the key can be revoked.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from resumes.store.api_keys import NewKey
from tui import clipboard
from tui.actions import Place, bindings
from tui.keymap import shown_key
from tui.text import safe
from tui.toasts import tell
from tui.widgets.fields import TextButton
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import Note, TitleLine

WHAT_TO_DO = (
    "Store it now: it is not shown again, and nobody can find it out from the store. "
    "{copy} copies it by way of the terminal (OSC 52); not every terminal allows that, so check. "
    "Otherwise select it with the mouse (in most terminals with shift held down)."
)


class NewKeyScreen(ModalScreen[None]):
    """Ends only by saying that the key was stored. `remark` is about what it replaces."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.NEW_KEY)
    # Nothing has the focus: an Enter too many must not count as "stored".
    AUTO_FOCUS = ""

    def __init__(
        self,
        account: str,
        new: NewKey,
        *,
        remark: str = "",
        keymap: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._copy_key = shown_key("new_key.copy", keymap)
        self._stored_key = shown_key("new_key.stored", keymap)
        self._account = account
        self._new = new
        self._remark = remark

    def compose(self) -> ComposeResult:
        with Vertical(classes="page"):
            yield TitleLine(safe(f"The new key {self._new.id} of {self._account}", "bold"))
            yield Note(safe(""))
            yield Note(safe(self._new.secret, "bold"), id="secret")
            yield Note(safe(""))
            yield Note(safe(WHAT_TO_DO.format(copy=self._copy_key)))
            yield Note(safe(""))
            if self._remark:
                yield Note(safe(self._remark))
                yield Note(safe(""))
            label = safe(f"I stored it ({self._stored_key})")
            yield TextButton(label, id="stored", variant="primary")
        yield KeyLine()

    def action_copy(self) -> None:
        """The terminal was asked to put the key on the clipboard; it gives no answer."""
        clipboard.send(self, self._new.secret, what="key")

    @on(TextButton.Pressed, "#stored")
    def action_stored(self) -> None:
        """The key was stored: the screen ends."""
        self.dismiss()

    def action_back(self) -> None:
        """Nothing, in words."""
        tell(self, f"Press {self._stored_key} once you have stored the key.", "warning")
