"""What lists say while there are no accounts."""

from collections.abc import Sequence

from textual.content import Content

from tui.keymap import shown_key
from tui.session import Session
from tui.text import safe


def no_accounts(session: Session) -> Sequence[Content]:
    """That there are none, the command that makes one, and the key unless nothing can change."""
    there_are_none = safe("There are no accounts yet.")
    command = f"`{session.program} accounts create NAME`"
    if session.read_only:
        return there_are_none, safe(f"{command} makes one.")
    key = shown_key("accounts.create", session.keymap)
    return there_are_none, safe(f"{key} in Accounts makes one, as does"), safe(command)
