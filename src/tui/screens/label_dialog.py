"""The dialog for the label of resumes, and the function that reads the account's labels."""

from collections.abc import Sequence

from textual.suggester import SuggestFromList

from resumes.store import accounts, labels
from resumes.store.labels import MAX_LABEL_CHARS, check_label
from resumes.store.store import Store
from tui.screens.dialogs import Dialog
from tui.text import safe, safe_text
from tui.widgets.bars import Note
from tui.widgets.forms import LabelledField, SafeInput


def read_labels(store: Store, *, account: str) -> tuple[str, Sequence[str]]:
    """Return the ID and the labels of the account with this name. Raises NotFound."""
    account_id = accounts.get_account(store, account).id
    return account_id, [count.label for count in labels.list_labels(store, account_id)]


class LabelDialog(Dialog[str]):
    """Asks for the label of `what`. An empty result removes the label.

    While the user types, the first label of `known` that begins with the text is suggested.
    """

    VERB = "Save"

    def __init__(self, what: str, label: str, known: Sequence[str]) -> None:
        self._line = SafeInput(
            label, parse=lambda text: check_label(text) if text else "", max_length=MAX_LABEL_CHARS
        )
        self._line.suggester = SuggestFromList(map(safe_text, known), case_sensitive=False)
        note = Note(safe("→ completes a known label. Leave it empty for no label.", "dim"))
        super().__init__(f"Label of {what}", LabelledField("Label", self._line), note)

    def submit(self) -> None:
        self.dismiss(self._line.parsed)
