"""The dialog for the label of resumes, and what it reads and writes in a thread."""

from collections.abc import Sequence
from typing import NamedTuple

from textual.suggester import SuggestFromList

from resumes.store import accounts, labels
from resumes.store.labels import MAX_LABEL_CHARS, check_label
from resumes.store.store import Store
from tui.screens.dialogs import Dialog
from tui.text import safe, safe_text
from tui.widgets.bars import Note
from tui.widgets.forms import LabelledField, SafeInput


class Labels(NamedTuple):
    """The ID of an account, and its labels."""

    account_id: str
    known: Sequence[str]


def read_labels(store: Store, *, account: str) -> Labels:
    """Return the labels of the account of this name. Raises NotFound."""
    account_id = accounts.get_account(store, account).id
    return Labels(account_id, [count.label for count in labels.list_labels(store, account_id)])


class LabelDialog(Dialog[str]):
    """Asks for the label of `what`. The result is empty to remove it.

    While a label is typed, the first of the `known` ones that begins with it is suggested.
    """

    VERB = "Save"

    def __init__(self, what: str, label: str, known: Sequence[str]) -> None:
        self._line = SafeInput(label, parse=parse_label, max_length=MAX_LABEL_CHARS)
        self._line.suggester = SuggestFromList(map(safe_text, known), case_sensitive=False)
        note = Note(safe("→ completes a known label. Leave it empty for no label.", "dim"))
        super().__init__(f"Label of {what}", LabelledField("Label", self._line), note)

    def submit(self) -> None:
        self.dismiss(self._line.parsed)


def parse_label(text: str) -> str:
    """Return the label; empty for none. Raises InvalidArgument."""
    return check_label(text) if text else ""
