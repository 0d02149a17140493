"""Every key of the terminal UI: the one table that all else about keys is made from.

Bindings, footer, help, palette, the user's own keys, and the page of keys in the docs.
"""

from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding, BindingType

from tui.modes import MODES


class Place(StrEnum):
    """Where a key works. The value is its heading in the help."""

    RESUMES = "Resumes"
    RESUME = "A resume"
    IMPORTS = "Imports"
    FILE = "An imported file"
    ACCOUNTS = "Accounts"
    PLANS = "Plans"
    KEYS = "Keys"
    NEW_KEY = "A new key"
    HEALTH = "Health"
    LIST = "In a list"
    TEXT = "In a text"
    FILTER = "In a filter"
    DIALOG = "In a dialog"
    CHOOSER = "In a list to choose from"
    EVERYWHERE = "Everywhere"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a key does.

    `name` with its place is what the user's own keys and the palette know it by. `action` is
    Textual's, found as `action_<...>` on the widget, screen or app of `place`. `keys` are
    Textual's key names, of which the footer and the help show `shown`. An action with an empty
    `label` is not in the footer. One with `command`, the command that does the same, writes to
    the store.
    """

    place: Place
    name: str
    action: str
    keys: str
    shown: str
    label: str
    sentence: str
    command: str = ""
    comes_first: bool = False
    """Whether it works in dialogs and where one types, too."""

    @property
    def id(self) -> str:
        """`resumes.delete`: unique, and the same in every version."""
        return f"{self.place.name.lower()}.{self.name}"

    @property
    def key_names(self) -> tuple[str, ...]:
        """Textual's names of its keys."""
        return tuple(self.keys.split(","))

    @property
    def method(self) -> str:
        """Textual's action without its parameters: `go` for `go('keys')`."""
        return self.action.partition("(")[0]

    @property
    def changes(self) -> bool:
        """Whether it writes to the store."""
        return bool(self.command)


_RELOAD = ("reload", "reload", "r,ctrl+r", "r", "", "Read again; after an error, try again now.")

# fmt: off
ACTIONS: tuple[Action, ...] = (
    Action(Place.RESUMES, "filter", "filter", "slash", "/", "Filter", "Find resumes by words in title, name or e-mail."),
    Action(Place.RESUMES, "account", "choose_account", "a", "a", "Account", "Show another account's resumes."),
    Action(Place.RESUMES, "next_view", "next_view(1)", "tab", "tab", "View", "The next view of the resume: text, JSON, source, history."),
    Action(Place.RESUMES, "previous_view", "next_view(-1)", "shift+tab", "shift+tab", "", "The view before."),
    Action(Place.RESUMES, "scroll_down", "scroll_pane(1)", "J,right_square_bracket", "] J", "", "Scroll the resume beside the list down."),
    Action(Place.RESUMES, "scroll_up", "scroll_pane(-1)", "K,left_square_bracket", "[ K", "", "Scroll the resume beside the list up."),
    Action(Place.RESUMES, "split", "toggle_split", "v", "v", "", "Show or hide the resume beside the list."),
    Action(Place.RESUMES, "open_pdf", "open_pdf", "o", "o", "PDF", "Open the resume as a PDF."),
    Action(Place.RESUMES, "export", "export", "x", "x", "Export", "Write this resume, or all that are listed, to files: JSON or PDF."),
    Action(Place.RESUMES, "copy", "copy", "y", "y", "", "Copy id, e-mail, JSON or the path of its PDF to the clipboard."),
    Action(Place.RESUMES, "delete", "delete", "d,delete", "d", "Delete", "Delete the resume, after ten seconds in which u takes it back.", command="resumes delete"),
    Action(Place.RESUMES, *_RELOAD),
    Action(Place.RESUME, "next_view", "next_view(1)", "tab,J", "tab", "View", "The next view: text, JSON, source, history."),
    Action(Place.RESUME, "previous_view", "next_view(-1)", "shift+tab", "shift+tab", "", "The view before."),
    Action(Place.RESUME, "next", "neighbour(1)", "right,n", "→ n", "Next", "The next resume of the list."),
    Action(Place.RESUME, "previous", "neighbour(-1)", "left,p", "← p", "", "The resume before it."),
    Action(Place.RESUME, "open_pdf", "open_pdf", "o", "o", "PDF", "Open the resume as a PDF."),
    Action(Place.RESUME, "export", "export", "x", "x", "Export", "Write the resume to a file: JSON or PDF."),
    Action(Place.RESUME, "copy", "copy", "y", "y", "", "Copy id, e-mail, JSON or the path of its PDF to the clipboard."),
    Action(Place.RESUME, "delete", "delete", "d,delete", "d", "Delete", "Delete the resume, after ten seconds in which u takes it back.", command="resumes delete"),
    Action(Place.RESUME, *_RELOAD),
    Action(Place.RESUME, "back", "back", "escape,backspace", "esc", "Back", "Back to the list."),
    Action(Place.IMPORTS, "outcome", "next_outcome", "o", "o", "Outcome", "Show one outcome alone: failed, held, duplicate, done, all."),
    Action(Place.IMPORTS, "account", "choose_account", "a", "a", "Account", "Show an account's files, or all."),
    Action(Place.IMPORTS, "retry", "retry", "t", "t", "Try again", "Ask the importer to try the failed file again.", command="resumes imports retry"),
    Action(Place.IMPORTS, "retry_all", "retry_all", "R", "R", "", "Ask to try all failed files again, of the account that is shown or of all.", command="resumes imports retry"),
    Action(Place.IMPORTS, "release", "release", "l", "l", "Let in", "Ask the importer to let the held file in, ahead of its turn.", command="resumes imports release"),
    Action(Place.IMPORTS, "release_all", "release_all", "L", "L", "", "Ask to let all held files in, of the account that is shown or of all.", command="resumes imports release"),
    Action(Place.IMPORTS, "copy", "copy", "y", "y", "", "Copy the reason to the clipboard."),
    Action(Place.IMPORTS, "scroll_down", "scroll_pane(1)", "J,right_square_bracket", "] J", "", "Scroll the file beside the list down."),
    Action(Place.IMPORTS, "scroll_up", "scroll_pane(-1)", "K,left_square_bracket", "[ K", "", "Scroll the file beside the list up."),
    Action(Place.IMPORTS, "split", "toggle_split", "v", "v", "", "Show or hide the file beside the list."),
    Action(Place.IMPORTS, *_RELOAD),
    Action(Place.FILE, "retry", "retry", "t", "t", "Try again", "Ask the importer to try the failed file again.", command="resumes imports retry"),
    Action(Place.FILE, "release", "release", "l", "l", "Let in", "Ask the importer to let the held file in, ahead of its turn.", command="resumes imports release"),
    Action(Place.FILE, "open_resume", "open_resume", "o,enter", "o enter", "Resume", "Show the resume that the file became."),
    Action(Place.FILE, "next_pane", "next_pane", "tab,shift+tab", "tab", "Source", "Scroll the other part: what became of the file, or its source."),
    Action(Place.FILE, "next", "neighbour(1)", "right,n", "→ n", "Next", "The next file of the list."),
    Action(Place.FILE, "previous", "neighbour(-1)", "left,p", "← p", "", "The file before it."),
    Action(Place.FILE, "copy", "copy", "y", "y", "", "Copy the reason to the clipboard."),
    Action(Place.FILE, *_RELOAD),
    Action(Place.FILE, "back", "back", "escape,backspace", "esc", "Back", "Back to the list."),
    Action(Place.ACCOUNTS, "create", "create_account", "n", "n", "New", "Make an account.", command="resumes accounts create"),
    Action(Place.ACCOUNTS, "plan", "change_plan", "p", "p", "Plan", "Put the account on another plan.", command="resumes accounts set-plan"),
    Action(Place.ACCOUNTS, "keys", "show_keys", "K", "K", "Keys", "Show the account's keys."),
    Action(Place.ACCOUNTS, "imports", "show_imports", "I", "I", "Imports", "Show the files that came in for the account."),
    Action(Place.ACCOUNTS, "order", "next_order", "s", "s", "Sort", "Sort by name, or the fullest first."),
    Action(Place.ACCOUNTS, "delete", "delete_account", "D,delete", "D", "Delete", "Delete the account with all it holds.", command="resumes accounts delete"),
    Action(Place.ACCOUNTS, "split", "toggle_split", "v", "v", "", "Show or hide the details beside the list."),
    Action(Place.ACCOUNTS, *_RELOAD),
    Action(Place.PLANS, "create", "create_plan", "n", "n", "New plan", "Make a plan.", command="resumes plans set"),
    Action(Place.PLANS, "edit", "edit_plan", "e", "e", "Edit", "Change what the plan allows.", command="resumes plans set"),
    Action(Place.PLANS, *_RELOAD),
    Action(Place.KEYS, "create", "create_key", "n", "n", "New key", "Make a key.", command="resumes keys create"),
    Action(Place.KEYS, "rotate", "rotate_key", "R", "R", "Rotate", "Replace the key by a new one; the old one counts a while longer.", command="resumes keys rotate"),
    Action(Place.KEYS, "revoke", "revoke_key", "D,delete", "D", "Revoke", "Revoke the key, after its name was typed.", command="resumes keys revoke"),
    Action(Place.KEYS, "import", "import_key", "i", "i", "", "Let a key count that was made elsewhere.", command="resumes keys import"),
    Action(Place.KEYS, "account", "choose_account", "a", "a", "Account", "Show an account's keys, or all."),
    Action(Place.KEYS, *_RELOAD),
    Action(Place.NEW_KEY, "copy", "copy", "c", "c", "Copy", "Copy the key to the clipboard."),
    Action(Place.NEW_KEY, "stored", "stored", "s", "s", "I stored it", "Leave: the key is not shown again."),
    Action(Place.NEW_KEY, "back", "back", "escape,q", "esc", "", "Says how to leave."),
    Action(Place.HEALTH, "copy", "copy_command", "c", "c", "Copy command", "Copy the command that puts this right to the clipboard."),
    Action(Place.HEALTH, *_RELOAD),
    Action(Place.LIST, "open", "choose", "enter", "enter", "Open", "Open the row."),
    Action(Place.LIST, "up", "move(-1)", "up,k", "↑ k", "", "One row up."),
    Action(Place.LIST, "down", "move(1)", "down,j", "↓ j", "", "One row down."),
    Action(Place.LIST, "page_up", "page(-1)", "pageup,ctrl+b", "pgup", "", "A page up."),
    Action(Place.LIST, "page_down", "page(1)", "pagedown,ctrl+f,space", "pgdn space", "", "A page down."),
    Action(Place.LIST, "first", "first", "home,g", "home g", "", "The first row."),
    Action(Place.LIST, "last", "last", "end,G", "end G", "", "The last row loaded; again: load more."),
    Action(Place.TEXT, "up", "scroll_by(-1)", "up,k", "↑ k", "", "One line up."),
    Action(Place.TEXT, "down", "scroll_by(1)", "down,j", "↓ j", "", "One line down."),
    Action(Place.TEXT, "page_up", "scroll_pages(-1)", "pageup,ctrl+b", "pgup", "", "A page up."),
    Action(Place.TEXT, "page_down", "scroll_pages(1)", "pagedown,ctrl+f,space", "pgdn space", "", "A page down."),
    Action(Place.TEXT, "start", "scroll_to_start", "home,g", "home g", "", "The start."),
    Action(Place.TEXT, "end", "scroll_to_end", "end,G", "end G", "", "The end."),
    Action(Place.FILTER, "to_list", "to_list", "enter,down", "enter ↓", "To the list", "Go to what was found; the filter stays."),
    Action(Place.FILTER, "clear", "clear", "escape", "esc", "Clear", "Take the filter away."),
    Action(Place.DIALOG, "cancel", "cancel", "escape", "esc", "Cancel", "Close it, change nothing."),
    Action(Place.CHOOSER, *_RELOAD),
    *(
        Action(Place.EVERYWHERE, mode.name, f"go('{mode.name}')", mode.key, mode.key, "", f"Show {mode.title}.")
        for mode in MODES
    ),
    Action(Place.EVERYWHERE, "undo", "undo", "u", "u", "", "Keep the resume that is about to be deleted."),
    Action(Place.EVERYWHERE, "palette", "command_palette", "colon,ctrl+p", ":", "", "Choose what to do by its name."),
    Action(Place.EVERYWHERE, "theme", "change_theme", "T", "T", "", "Change colours: dark, light, the terminal's own."),
    Action(Place.EVERYWHERE, "help", "help", "question_mark,f1", "?", "Help", "Show all keys."),
    Action(Place.EVERYWHERE, "back", "back", "escape", "esc", "", "Back one step; never quits."),
    Action(Place.EVERYWHERE, "suspend", "suspend", "ctrl+z", "ctrl+z", "", "Back to the shell; `fg` returns."),
    Action(Place.EVERYWHERE, "quit", "quit", "q", "q", "Quit", "Quit."),
    Action(Place.EVERYWHERE, "end", "quit", "ctrl+c,ctrl+q", "ctrl+c", "", "Quit, from dialogs and forms too.", comes_first=True),
)
# fmt: on


def bindings(*places: Place) -> list[BindingType]:
    """The keys of these places, as Textual's `BINDINGS` wants them."""
    return [
        Binding(
            action.keys,
            action.action,
            action.label or action.sentence,
            show=bool(action.label),
            key_display=action.shown,
            id=action.id,
            priority=action.comes_first,
        )
        for place in places
        for action in ACTIONS
        if action.place is place
    ]


def changes_store(method: str) -> bool:
    """Whether an action writes to the store."""
    return any(action.changes for action in ACTIONS if action.method == method)


def find_action(action_id: str) -> Action | None:
    """The action of this id."""
    return next((action for action in ACTIONS if action.id == action_id), None)
