"""Every key of the terminal UI: the one table that bindings, footer and help are made from."""

from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding, BindingType

from tui.modes import MODES


class Place(StrEnum):
    """Where a key works. The value is its heading in the help."""

    EVERYWHERE = "Everywhere"
    LIST = "In a list"
    TEXT = "In a text"
    RESUMES = "Resumes"
    RESUME = "A resume"
    ACCOUNTS = "Accounts"
    KEYS = "Keys"
    NEW_KEY = "A new key"
    DIALOG = "In a dialog"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a key does.

    `name` is Textual's action, found as `action_<name>` on the widget, screen or app of `place`.
    `keys` are Textual's key names, of which the footer and the help show `shown`. An action with
    an empty `label` is not in the footer. `changes` means that it writes to the store.
    """

    place: Place
    name: str
    keys: str
    shown: str
    label: str
    sentence: str
    changes: bool = False

    @property
    def key_names(self) -> tuple[str, ...]:
        """Textual's names of its keys."""
        return tuple(self.keys.split(","))

    @property
    def method(self) -> str:
        """The name without its parameters: `go` for `go('keys')`."""
        return self.name.partition("(")[0]


ACTIONS: tuple[Action, ...] = (
    Action(Place.LIST, "choose", "enter", "enter", "Open", "Open the row."),
    Action(Place.LIST, "move(-1)", "up,k", "↑ k", "", "One row up."),
    Action(Place.LIST, "move(1)", "down,j", "↓ j", "", "One row down."),
    Action(Place.LIST, "page(-1)", "pageup,ctrl+b", "pgup", "", "A page up."),
    Action(Place.LIST, "page(1)", "pagedown,ctrl+f,space", "pgdn space", "", "A page down."),
    Action(Place.LIST, "first", "home,g", "home g", "", "The first row."),
    Action(Place.LIST, "last", "end,G", "end G", "", "The last row loaded; again: load more."),
    Action(Place.TEXT, "scroll_by(-1)", "up,k", "↑ k", "", "One line up."),
    Action(Place.TEXT, "scroll_by(1)", "down,j", "↓ j", "", "One line down."),
    Action(Place.TEXT, "scroll_pages(-1)", "pageup,ctrl+b", "pgup", "", "A page up."),
    Action(
        Place.TEXT, "scroll_pages(1)", "pagedown,ctrl+f,space", "pgdn space", "", "A page down."
    ),
    Action(Place.TEXT, "scroll_to_start", "home,g", "home g", "", "The start."),
    Action(Place.TEXT, "scroll_to_end", "end,G", "end G", "", "The end."),
    Action(Place.RESUMES, "choose_account", "a", "a", "Account", "Show another account's resumes."),
    Action(Place.RESUMES, "reload", "r", "r", "Reload", "Read again; after an error, try again."),
    Action(
        Place.RESUME, "toggle_json", "J,tab", "J tab", "JSON / text",
        "Change between the text and the stored JSON.",
    ),
    Action(Place.RESUME, "reload", "r", "r", "Reload", "Read again; after an error, try again."),
    Action(Place.RESUME, "back", "escape,left,backspace", "esc", "Back", "Back to the list."),
    Action(Place.ACCOUNTS, "reload", "r", "r", "Reload", "Read again; after an error, try again."),
    Action(Place.KEYS, "create_key", "n", "n", "New key", "Make a key.", changes=True),
    Action(Place.KEYS, "revoke_key", "x,D", "x", "Revoke", "Revoke the key.", changes=True),
    Action(Place.KEYS, "choose_account", "a", "a", "Account", "Show an account's keys, or all."),
    Action(Place.KEYS, "reload", "r", "r", "Reload", "Read again; after an error, try again."),
    Action(Place.NEW_KEY, "copy", "c", "c", "Copy", "Copy the key to the clipboard."),
    Action(
        Place.NEW_KEY, "stored", "s", "s", "I stored it", "Leave: the key is not shown again."
    ),
    Action(Place.NEW_KEY, "back", "escape,q", "esc", "", "Says how to leave."),
    Action(Place.DIALOG, "cancel", "escape", "esc", "Cancel", "Close it, change nothing."),
    *(
        Action(
            Place.EVERYWHERE, f"go('{mode.name}')", mode.key, mode.key, "", f"Show {mode.title}."
        )
        for mode in MODES
    ),
    Action(Place.EVERYWHERE, "help", "question_mark", "?", "Help", "Show all keys."),
    Action(Place.EVERYWHERE, "back", "escape", "esc", "", "Back one step; never quits."),
    Action(
        Place.EVERYWHERE, "suspend", "ctrl+z", "ctrl+z", "", "Back to the shell; `fg` returns."
    ),
    Action(Place.EVERYWHERE, "quit", "q", "q", "Quit", "Quit."),
)  # fmt: skip


def bindings(*places: Place) -> list[BindingType]:
    """The keys of these places, as Textual's `BINDINGS` wants them."""
    return [
        Binding(
            action.keys,
            action.name,
            action.label,
            show=bool(action.label),
            key_display=action.shown,
        )
        for place in places
        for action in ACTIONS
        if action.place is place
    ]


def changes_store(method: str) -> bool:
    """Whether an action writes to the store."""
    return any(action.changes for action in ACTIONS if action.method == method)


def find_actions(key: str) -> list[Action]:
    """What a key does, wherever it does something."""
    return [action for action in ACTIONS if key in action.key_names]
