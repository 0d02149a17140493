"""The modes, the table of actions and their keys, the user's keymap, and why a key does nothing."""

import difflib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any, Final

from textual.binding import ActiveBinding, Binding, BindingType
from textual.keys import Keys, _character_to_key, format_key
from textual.screen import ModalScreen, Screen

from resumes.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Mode:
    """A screen that a digit opens. `name` is used on the command line and as the module's name."""

    name: str
    key: str

    @property
    def title(self) -> str:
        """The name as a title."""
        return self.name.capitalize()

    def load(self) -> Any:
        """Import and return the screen class."""
        return pkgutil.resolve_name(f"tui.screens.{self.name}:{self.title}Screen")


MODES = tuple(
    Mode(name, str(number))
    for number, name in enumerate(("resumes", "imports", "accounts", "plans", "keys", "health"), 1)
)


class Place(StrEnum):
    """Where a key works. The value is its heading in the help."""

    RESUMES = "Resumes"
    RESUME = "Resume"
    IMPORTS = "Imports"
    FILE = "Imported file"
    ACCOUNTS = "Accounts"
    PLANS = "Plans"
    KEYS = "Keys"
    NEW_KEY = "New key"
    HEALTH = "Health"
    LIST = "Lists"
    TEXT = "Text"
    FILTER = "Filter"
    DIALOG = "Dialogs"
    CHOOSER = "Choosers"
    EVERYWHERE = "Everywhere"


@dataclass(frozen=True, slots=True)
class Action:
    """An action that keys are bound to.

    `place` and `name` form its ID in keymaps. `action` is the name of a Textual action, which calls
    the method `action_<...>` of the widget, screen or app of `place`, or of the app if the name
    begins with `app.`. `keys` are Textual's key names, for which the footer and the help show
    `shown`. An action with an empty `label` is not in the footer. An action with a `command`, which
    does the same on the command line, writes to the store.
    """

    place: Place
    name: str
    action: str
    keys: str
    shown: str
    label: str
    description: str
    command: str = ""
    line_wait_s: float = 0.0
    """How long after the action later keys wait for the dialog or input line that it opens or closes;
    0 if it does neither."""

    comes_first: bool = False
    """Whether the keys also work in dialogs and text fields."""

    @property
    def id(self) -> str:
        """The unique ID, such as `resumes.delete`, which is the same in every version."""
        return f"{self.place.name.lower()}.{self.name}"

    @property
    def method(self) -> str:
        """The name of Textual's action: `go` for `go('keys')`."""
        return self.action.partition("(")[0]


LINE_S: Final = 5.0
FORM_S: Final = 1.0
"""How long keys wait for a dialog after the action, which may show a message instead. While a worker
that the action has started runs, they wait for up to LINE_S."""

_RESUMES: Final = (Place.RESUMES, Place.RESUME)
_FILES: Final = (Place.IMPORTS, Place.FILE)
_PAGED: Final = (Place.RESUMES, Place.IMPORTS)
_LISTS: Final = (*_PAGED, Place.ACCOUNTS, Place.PLANS, Place.KEYS, Place.HEALTH)

# fmt: off
ACTIONS: tuple[Action, ...] = (
    *(Action(place, "filter", "filter", "slash", "/", "Filter", "Filter the list", line_wait_s=LINE_S) for place in _LISTS),
    Action(Place.RESUMES, "account", "choose_account", "a", "a", "Account", "Choose account", line_wait_s=FORM_S),
    Action(Place.RESUMES, "next_view", "next_view(1)", "tab", "tab", "View", "Next view"),
    Action(Place.RESUME, "next_view", "next_view(1)", "tab,J", "tab", "View", "Next view"),
    *(Action(place, "previous_view", "next_view(-1)", "shift+tab", "shift+tab", "", "Previous view") for place in _RESUMES),
    Action(Place.RESUME, "next", "neighbour(1)", "right,n", "→ n", "Next", "Next resume"),
    Action(Place.RESUME, "previous", "neighbour(-1)", "left,p", "← p", "", "Previous resume"),
    *(Action(place, "open_pdf", "open_pdf", "o", "o", "PDF", "Open as PDF") for place in _RESUMES),
    Action(Place.RESUMES, "file", "open_file", "f", "f", "", "Show this resume's file"),
    Action(Place.RESUME, "file", "open_file", "f", "f", "File", "Show this resume's file"),
    *(Action(place, "export", "export", "x", "x", "Export", "Export as PDF, Word or JSON", line_wait_s=FORM_S) for place in _RESUMES),
    *(Action(place, "copy", "copy", "y", "y", "", "Copy ID, email, JSON or PDF path") for place in _RESUMES),
    *(Action(place, "label", "label", "L", "L", "", "Change the label", command="resumes label", line_wait_s=FORM_S) for place in _RESUMES),
    *(Action(place, "delete", "delete", "d,delete", "d", "Delete", "Delete resume (u to undo)", command="resumes delete") for place in _RESUMES),
    *(Action(place, "forget", "forget", "F", "F", "", "Erase the person, for good", command="resumes forget", line_wait_s=FORM_S) for place in _RESUMES),
    *(Action(place, "edit", "edit_resume", "e", "e", "Edit", "Edit resume in your editor", command="resumes edit") for place in _RESUMES),
    Action(Place.IMPORTS, "outcome", "next_outcome", "o", "o", "Outcome", "Filter by outcome"),
    Action(Place.IMPORTS, "account", "choose_account", "a", "a", "Account", "Choose one account or all", line_wait_s=FORM_S),
    *(Action(place, "retry", "ask('retry')", "t", "t", "Retry", "Retry failed file", command="resumes imports retry") for place in _FILES),
    Action(Place.IMPORTS, "retry_all", "ask_all('retry')", "R", "R", "", "Retry all failed files", command="resumes imports retry", line_wait_s=FORM_S),
    *(Action(place, "release", "ask('release')", "l", "l", "Release", "Release held file", command="resumes imports release") for place in _FILES),
    Action(Place.IMPORTS, "release_all", "ask_all('release')", "L", "L", "", "Release all held files", command="resumes imports release", line_wait_s=FORM_S),
    Action(Place.FILE, "open_resume", "open_resume", "o,enter", "o", "Resume", "Show the imported resume"),
    Action(Place.FILE, "next_pane", "next_pane", "tab,shift+tab", "tab", "Source", "Switch between details and source"),
    Action(Place.FILE, "next", "neighbour(1)", "right,n", "→ n", "Next", "Next file"),
    Action(Place.FILE, "previous", "neighbour(-1)", "left,p", "← p", "", "Previous file"),
    *(Action(place, "edit", "edit_file", "e", "e", "Edit", "Edit failed file and retry it", command="resumes imports retry") for place in _FILES),
    *(Action(place, "dismiss", "dismiss_files", "D,delete", "D", "", "Dismiss failed file", command="resumes imports dismiss", line_wait_s=FORM_S) for place in _FILES),
    *(Action(place, "copy", "copy", "y", "y", "", "Copy path, reason or ID") for place in _FILES),
    Action(Place.ACCOUNTS, "create", "create_account", "n", "n", "New", "Create account", command="resumes accounts create", line_wait_s=FORM_S),
    Action(Place.ACCOUNTS, "edit", "edit_account", "e", "e", "Edit", "Rename account, set its options", command="resumes accounts rename", line_wait_s=FORM_S),
    Action(Place.ACCOUNTS, "plan", "change_plan", "p", "p", "Plan", "Change plan", command="resumes accounts set-plan", line_wait_s=FORM_S),
    Action(Place.ACCOUNTS, "keys", "show('keys')", "K", "K", "Keys", "Show the account's keys"),
    Action(Place.ACCOUNTS, "new_key", "create_key", "N", "N", "", "Create key for the account", command="resumes keys create", line_wait_s=FORM_S),
    Action(Place.ACCOUNTS, "imports", "show('imports')", "I", "I", "Imports", "Show the account's imports"),
    Action(Place.ACCOUNTS, "delete", "delete_account", "D,delete", "D", "Delete", "Delete account and its resumes", command="resumes accounts delete", line_wait_s=FORM_S),
    Action(Place.ACCOUNTS, "split", "toggle_split", "v", "v", "", "Toggle details"),
    Action(Place.PLANS, "create", "create_plan", "n", "n", "New plan", "Create plan", command="resumes plans set", line_wait_s=FORM_S),
    Action(Place.PLANS, "edit", "edit_plan", "e", "e", "Edit", "Edit plan", command="resumes plans set", line_wait_s=FORM_S),
    Action(Place.KEYS, "create", "create_key", "n", "n", "New key", "Create key", command="resumes keys create", line_wait_s=FORM_S),
    Action(Place.KEYS, "rotate", "rotate_key", "R", "R", "Rotate", "Rotate key", command="resumes keys rotate", line_wait_s=FORM_S),
    Action(Place.KEYS, "revoke", "revoke_key", "D,delete", "D", "Revoke", "Revoke key", command="resumes keys revoke", line_wait_s=FORM_S),
    Action(Place.KEYS, "open_account", "open_account", "o", "o", "", "Show the key's account"),
    Action(Place.KEYS, "account", "choose_account", "a", "a", "Account", "Choose one account or all", line_wait_s=FORM_S),
    Action(Place.NEW_KEY, "copy", "copy", "c", "c", "Copy", "Copy key"),
    Action(Place.NEW_KEY, "stored", "stored", "s", "s", "I've saved it", "Close (key won't be shown again)"),
    Action(Place.NEW_KEY, "back", "back", "escape,q", "esc", "", "Show how to close this screen"),
    Action(Place.HEALTH, "copy", "copy_command", "c", "c", "Copy command", "Copy the fix command"),
    *(Action(place, "scroll_down", "scroll_pane(1)", "J,right_square_bracket", "] J", "", "Scroll preview down") for place in _PAGED),
    *(Action(place, "scroll_up", "scroll_pane(-1)", "K,left_square_bracket", "[ K", "", "Scroll preview up") for place in _PAGED),
    *(Action(place, "split", "toggle_split", "v", "v", "", "Toggle preview") for place in _PAGED),
    *(Action(place, "order", "next_order", "s", "s", "Sort", "Change sort order") for place in _LISTS[:-1]),
    *(Action(place, "mark", "mark", "space", "space", "Mark", "Mark row for a bulk action") for place in _PAGED),
    Action(Place.RESUMES, "mark_all", "mark_all", "A", "A", "", "Mark all that the filter shows"),
    *(Action(place, "reload", "reload", "r,ctrl+r", "r", "", "Refresh") for place in (*_LISTS, Place.RESUME, Place.FILE, Place.CHOOSER)),
    *(Action(place, "back", "app.back", "escape,backspace", "esc", "Back", "Go up one level") for place in (Place.RESUME, Place.FILE)),
    Action(Place.LIST, "open", "choose", "enter", "enter", "Open", "Open"),
    Action(Place.LIST, "up", "move(-1)", "up,k", "↑ k", "", "Move up"),
    Action(Place.LIST, "down", "move(1)", "down,j", "↓ j", "", "Move down"),
    Action(Place.LIST, "page_up", "page(-1)", "pageup,ctrl+b", "pgup", "", "Page up"),
    Action(Place.LIST, "page_down", "page(1)", "pagedown,ctrl+f", "pgdn", "", "Page down"),
    Action(Place.LIST, "first", "first", "home,g", "home g", "", "First row"),
    Action(Place.LIST, "last", "last", "end,G", "end G", "", "Last row (repeat to load more)"),
    Action(Place.TEXT, "up", "scroll_up", "up,k", "↑ k", "", "Scroll up"),
    Action(Place.TEXT, "down", "scroll_down", "down,j", "↓ j", "", "Scroll down"),
    Action(Place.TEXT, "page_up", "scroll_pages(-1)", "pageup,ctrl+b", "pgup", "", "Page up"),
    Action(Place.TEXT, "page_down", "scroll_pages(1)", "pagedown,ctrl+f,space", "pgdn space", "", "Page down"),
    Action(Place.TEXT, "start", "scroll_home", "home,g", "home g", "", "Go to start"),
    Action(Place.TEXT, "end", "scroll_end", "end,G", "end G", "", "Go to end"),
    Action(Place.FILTER, "to_list", "to_list", "enter,down", "enter ↓", "Results", "Keep filter and go to results", line_wait_s=FORM_S),
    Action(Place.FILTER, "clear", "clear", "escape", "esc", "Clear", "Clear filter", line_wait_s=FORM_S),
    Action(Place.DIALOG, "next", "focus_next", "tab", "tab", "Next", "Next field or button"),
    Action(Place.DIALOG, "cancel", "cancel", "escape", "esc", "Cancel", "Cancel"),
    *(Action(Place.EVERYWHERE, mode.name, f"go('{mode.name}')", mode.key, mode.key, "", f"Show {mode.title}") for mode in MODES),
    Action(Place.EVERYWHERE, "undo", "undo", "u", "u", "", "Undo deletion"),
    Action(Place.EVERYWHERE, "palette", "command_palette", "colon,ctrl+p", ":", "", "Open command palette", line_wait_s=LINE_S),
    Action(Place.EVERYWHERE, "theme", "change_theme", "T", "T", "", "Switch to next theme"),
    Action(Place.EVERYWHERE, "help", "help", "question_mark,f1", "?", "Help", "Keyboard shortcuts"),
    Action(Place.EVERYWHERE, "back", "back", "escape", "esc", "", "Clear filter or marks, or go back"),
    Action(Place.EVERYWHERE, "suspend", "suspend", "ctrl+z", "ctrl+z", "", "Suspend (`fg` to return)"),
    Action(Place.EVERYWHERE, "quit", "quit", "q", "q", "Quit", "Quit"),
    Action(Place.EVERYWHERE, "end", "quit", "ctrl+c,ctrl+q", "ctrl+c", "", "Quit from anywhere", comes_first=True),
)
# fmt: on


def bindings(place: Place) -> list[BindingType]:
    """Return the key bindings of this place, for Textual's `BINDINGS`."""
    return [
        Binding(
            action.keys,
            action.action,
            action.label or action.description,
            show=bool(action.label),
            key_display=action.shown,
            id=action.id,
            priority=action.comes_first,
        )
        for action in ACTIONS
        if action.place is place
    ]


BY_ID: Final = {action.id: action for action in ACTIONS}


def active_actions(screen: Screen[Any]) -> Mapping[Action, Sequence[ActiveBinding]]:
    """Return the actions that work on the screen, each with Textual's active bindings for it."""
    found: dict[Action, list[ActiveBinding]] = {}
    for active in screen.active_bindings.values():
        action = BY_ID.get(active.binding.id or "")
        if action is not None and active.enabled:
            found.setdefault(action, []).append(active)
    return found


MODIFIERS: Final = ("alt", "ctrl", "super", "hyper", "meta", "shift")
"""The modifiers, in the order of Textual's key names."""

SAME_TO_TERMINALS: Final = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+h": "backspace",
    "ctrl+left_square_bracket": "escape",
}
"""Keys that most terminals send as a different key."""

_CHARACTERS: Final = frozenset(_character_to_key(chr(code)) for code in range(32, 127))
_NAMED: Final = {key.value for key in Keys if key.value.isalnum()} - {Keys.Return.value}
KNOWN_KEYS: Final = _CHARACTERS | _NAMED
"""All keys without modifiers, except letters of non-Latin scripts."""

_SHARED: Final = (Place.LIST, Place.TEXT, Place.EVERYWHERE)
_MODAL: Final = (Place.DIALOG, Place.NEW_KEY)


def check_keymap(keymap: Mapping[str, str], source: str) -> None:
    """Check that every key exists and is bound to one action per screen.

    Raises InvalidArgument, whose message names `source` and explains what to change there.
    """
    for action_id, keys in keymap.items():
        action = BY_ID.get(action_id)
        if action is None:
            near = _nearest(action_id, BY_ID)
            raise InvalidArgument(
                f'Unknown action "{action_id[:80]}" in the keymap of {source}.{near} '
                "See docs/keys.md for the full list"
            )
        for key in key_names(keys):
            _check_key(key, action, source)
    _check_clashes(keymap, source)


def key_names(keys: str) -> list[str]:
    """Return Textual's names for comma-separated keys, such as `question_mark` for `?`."""
    given = [key.strip() for key in keys.split(",")]
    return [_character_to_key(key) if len(key) == 1 else key for key in given]


def keys_of(action: Action, keymap: Mapping[str, str]) -> list[str]:
    """Return the action's keys: those in the user's keymap, or else the default keys."""
    return key_names(keymap.get(action.id, action.keys))


def shown_key(action_id: str, keymap: Mapping[str, str]) -> str:
    """Return the action's first key as it is shown in messages."""
    return format_key(keys_of(BY_ID[action_id], keymap)[0])


def _check_key(key: str, action: Action, source: str) -> None:
    where = f'"{key[:80]}" for {action.id} in the keymap of {source}'
    if not is_key(key):
        near = _nearest(key, KNOWN_KEYS)
        raise InvalidArgument(
            f"Unknown key {where}.{near} Key names look like d, D, f8, ctrl+e, slash, comma, pageup"
        )
    if key in SAME_TO_TERMINALS:
        raise InvalidArgument(
            f"Unusable key {where}: terminals send it as {SAME_TO_TERMINALS[key]}. Use another"
        )
    if action.place in (Place.DIALOG, Place.FILTER) and is_character(key):
        raise InvalidArgument(
            f"Unusable key {where}: it is typed as text there. Use a key such as f8 or ctrl+e"
        )


def _check_clashes(keymap: Mapping[str, str], source: str) -> None:
    for first, other in product((BY_ID[action_id] for action_id in keymap), ACTIONS):
        if first is not other and meet(first.place, other.place):
            usual = {*keys_of(first, {})} & {*keys_of(other, {})}
            for key in ({*keys_of(first, keymap)} & {*keys_of(other, keymap)}) - usual:
                raise InvalidArgument(
                    f'In the keymap of {source}, the key "{key}" is bound to both {first.id} and '
                    f"{other.id}, which work on the same screen. Choose another key for one of them"
                )


def meet(first: Place, other: Place) -> bool:
    """Return whether keys of the two places can be active at the same time."""
    if first is other:
        return True
    if {first, other} == {Place.LIST, Place.TEXT}:
        return False
    if first in _MODAL or other in _MODAL:
        return {first, other} in ({Place.DIALOG, Place.LIST}, {Place.DIALOG, Place.TEXT})
    return first in _SHARED or other in _SHARED


def is_key(key: str) -> bool:
    """Return whether Textual can receive a key of this name from a terminal."""
    *modifiers, base = key.split("+")
    if modifiers != [modifier for modifier in MODIFIERS if modifier in modifiers]:
        return False
    if modifiers and base.isupper():
        return False  # with ctrl or alt all letters are lowercase
    if modifiers == ["shift"] and is_character(base):
        return False  # it arrives as a character: A, not shift+a
    return base in KNOWN_KEYS or (is_character(base) and not modifiers)


def is_character(key: str) -> bool:
    """Return whether the key types a character in an input."""
    return key in _CHARACTERS or (len(key) == 1 and key.isalnum())


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name.lower(), sorted(known), n=1)
    return f' Did you mean "{found[0]}"?' if found else ""


def why_nothing(
    key: str, screen: Screen[object], keymap: Mapping[str, str], *, read_only: bool
) -> str:
    """Return why the key has no effect on this screen, as a message to the user."""
    actions = [action for action in ACTIONS if key in keys_of(action, keymap)]
    if not actions:
        return f"No action is assigned to this key. Press {shown_key('everywhere.help', keymap)} for all keys."
    if any(binding in screen.BINDINGS for binding in bindings(Place.NEW_KEY)):
        return "Save the new key first. It will not be shown again."
    if isinstance(screen, ModalScreen):
        return "Close the dialog first (esc)."
    if read_only and any(action.command for action in actions):
        return "Read-only mode. Restart without --read-only to make changes."
    places = ", ".join(dict.fromkeys(action.place for action in actions))
    return f"{format_key(key)} is not available here (only in {places})."


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a link: the list of a mode, or one of its rows.

    `account` is the account whose list is shown; None means all accounts. `only` limits a list of
    imports to one outcome. `row` is the key of the row to go to. `opens` is the ID of the item to
    open on its own page.
    """

    mode: str
    account: str | None = None
    only: str = ""
    row: str = ""
    opens: str = ""
