"""Why a key does nothing: a key that is silent leaves people guessing."""

from collections.abc import Mapping

from textual.keys import format_key
from textual.screen import ModalScreen, Screen

from tui.actions import Place, bindings
from tui.keymap import actions_of, shown_key


def why_nothing(
    key: str, screen: Screen[object], keymap: Mapping[str, str], *, read_only: bool
) -> str:
    """What is said when the key has no effect on this screen, with the user's own keys."""
    actions = actions_of(key, keymap)
    if not actions:
        return f"This key does nothing. {shown_key('everywhere.help', keymap)} shows all keys."
    if any(binding in screen.BINDINGS for binding in bindings(Place.NEW_KEY)):
        return "Store the new key first: it is not shown again."
    if isinstance(screen, ModalScreen):
        return "A dialog is open: esc closes it, then other keys work again."
    if read_only and any(action.changes for action in actions):
        return "Read-only: start without --read-only to change something."
    if any(action.place is Place.EVERYWHERE for action in actions):
        return f"{format_key(key)} does nothing while the store is being opened."
    places = ", ".join(dict.fromkeys(action.place.lower() for action in actions))
    return f"{format_key(key)} does nothing here. It works in: {places}."
