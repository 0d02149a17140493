"""The user's own keys: `[keymap]` in the configuration, checked before the first screen.

A key that does not exist, or does two things at once, would be found out only when it is
pressed; and Textual drops the one of two actions that it meets last.
"""

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import combinations
from typing import Final

from textual.keys import Keys, _character_to_key, format_key

from resumes.errors import InvalidArgument
from tui.actions import ACTIONS, Action, Place, find_action

MODIFIERS: Final = ("alt", "ctrl", "super", "hyper", "meta", "shift")
"""In the order in which Textual names them."""

SAME_TO_TERMINALS: Final = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+h": "backspace",
    "ctrl+left_square_bracket": "escape",
}
"""Keys that most terminals send as others."""

_SHARED: Final = (Place.LIST, Place.TEXT, Place.EVERYWHERE)
_MODAL: Final = (Place.DIALOG, Place.NEW_KEY)
_TYPED_IN: Final = (Place.DIALOG, Place.FILTER)


def check_keymap(keymap: Mapping[str, str], source: str) -> None:
    """Every key is one that there is and does one thing where it works.

    Raises InvalidArgument, which names `source` and what to change there.
    """
    for action_id, keys in keymap.items():
        action = find_action(action_id)
        if action is None:
            near = _nearest(action_id, [known.id for known in ACTIONS])
            raise InvalidArgument(
                f'Unknown action "{action_id[:80]}" in the keymap of {source}.{near} '
                "The page of keys in the documentation lists all"
            )
        for key in key_names(keys):
            _check_key(key, action, source)
    _check_clashes(keymap, source)


def key_names(keys: str) -> list[str]:
    """Textual's names of keys that are written with commas between them: `?` is question_mark."""
    given = [key.strip() for key in keys.split(",")]
    return [_character_to_key(key) if len(key) == 1 else key for key in given]


def keys_of(action: Action, keymap: Mapping[str, str]) -> list[str]:
    """The keys that do it: the user's own, or those of the table."""
    own = keymap.get(action.id)
    return list(action.key_names) if own is None else key_names(own)


def shown_key(action_id: str, keymap: Mapping[str, str]) -> str:
    """The key that a sentence names for the action: its first, as people know it."""
    action = find_action(action_id)
    assert action is not None
    return format_key(keys_of(action, keymap)[0])


def actions_of(key: str, keymap: Mapping[str, str]) -> list[Action]:
    """What the key does, wherever it does something, with the user's own keys."""
    return [action for action in ACTIONS if key in keys_of(action, keymap)]


def _check_key(key: str, action: Action, source: str) -> None:
    where = f'"{key[:80]}" for {action.id} in the keymap of {source}'
    if not is_key(key):
        near = _nearest(key, known_keys())
        raise InvalidArgument(
            f"Unknown key {where}.{near} Keys are called d, D, f8, ctrl+e, slash, comma, pageup"
        )
    if key in SAME_TO_TERMINALS:
        raise InvalidArgument(
            f"Unusable key {where}: terminals send it as {SAME_TO_TERMINALS[key]}. Use another"
        )
    if action.place in _TYPED_IN and is_character(key):
        raise InvalidArgument(
            f"Unusable key {where}: there it is typed as text. Use one such as f8 or ctrl+e"
        )


def _check_clashes(keymap: Mapping[str, str], source: str) -> None:
    for one, other in combinations(ACTIONS, 2):
        if one.id not in keymap and other.id not in keymap:
            continue
        if not meet(one.place, other.place):
            continue
        for key in keys_of(one, keymap):
            is_new = key not in one.key_names or key not in other.key_names
            if is_new and key in keys_of(other, keymap):
                raise InvalidArgument(
                    f'The key "{key}" is for {one.id} and for {other.id} with the keymap of '
                    f"{source}, and they work side by side. Give one of them another key there"
                )


def meet(one: Place, other: Place) -> bool:
    """Whether keys of the two places work at the same time."""
    if one is other:
        return True
    if {one, other} == {Place.LIST, Place.TEXT}:
        return False
    if one in _MODAL or other in _MODAL:
        return {one, other} in ({Place.DIALOG, Place.LIST}, {Place.DIALOG, Place.TEXT})
    return one in _SHARED or other in _SHARED


def is_key(key: str) -> bool:
    """Whether terminals can send a key of this name to Textual."""
    *modifiers, base = key.split("+")
    if modifiers != [modifier for modifier in MODIFIERS if modifier in modifiers]:
        return False
    if modifiers and base.isupper():
        return False  # with ctrl or alt all letters are small
    if modifiers == ["shift"] and is_character(base):
        return False  # it comes as the character: A, not shift+a
    return base in known_keys() or (is_character(base) and not modifiers)


def is_character(key: str) -> bool:
    """Whether the key is typed as text where text is typed."""
    return key in _characters() or (len(key) == 1 and key.isalnum())


@cache
def known_keys() -> frozenset[str]:
    """The names of keys without modifiers, letters of other scripts left out."""
    named = {key.value for key in Keys if key.value.isalnum()} - {Keys.Return.value}
    return _characters() | named


@cache
def _characters() -> frozenset[str]:
    return frozenset(_character_to_key(chr(code)) for code in range(32, 127))


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name.lower(), sorted(known), n=1)
    return f' Did you mean "{found[0]}"?' if found else ""
