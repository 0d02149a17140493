"""All keys, from the table of actions: first those that work where one is."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen

from tui.actions import ACTIONS, Action, Place, bindings, find_action
from tui.keymap import key_names
from tui.text import joined, safe
from tui.widgets.key_line import KeyLine
from tui.widgets.text_pane import Paragraph, TextPane

KEYS_CELLS = 13


class HelpScreen(ModalScreen[None]):
    """Every key and what it does, where it does it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, over: Screen[object], keymap: Mapping[str, str]) -> None:
        super().__init__()
        self._here = places_of(over)
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield TextPane(help_text(self._here, self._keymap))
        yield KeyLine()

    def action_cancel(self) -> None:
        """The help is closed."""
        self.dismiss()


def places_of(screen: Screen[object]) -> list[Place]:
    """Where the keys work that do something on this screen, in the table's order."""
    found = {
        action.place
        for _, binding, _, _ in screen.active_bindings.values()
        if (action := find_action(binding.id or ""))
    }
    return [place for place in Place if place in found]


def help_text(here: list[Place], keymap: Mapping[str, str]) -> list[Paragraph]:
    """A paragraph for each key, under a heading for each place."""
    elsewhere = [place for place in Place if place not in here]
    paragraphs = [Paragraph(safe("Keys that work here (esc closes this)", "bold"))]
    for place in here:
        paragraphs += _place(place, keymap)
    paragraphs += [Paragraph(safe("")), Paragraph(safe("Elsewhere", "bold"))]
    for place in elsewhere:
        paragraphs += _place(place, keymap)
    return paragraphs


def _place(place: Place, keymap: Mapping[str, str]) -> Iterator[Paragraph]:
    yield Paragraph(safe(""))
    yield Paragraph(safe(place, "bold underline"))
    for action in ACTIONS:
        if action.place is place:
            keys = f"{shown_keys(action, keymap):<{KEYS_CELLS}} "
            yield Paragraph(joined([safe(keys, "bold"), safe(action.sentence)]))


def shown_keys(action: Action, keymap: Mapping[str, str]) -> str:
    """The keys as people know them; the user's own where there are such."""
    own = keymap.get(action.id)
    return action.shown if own is None else " ".join(key_names(own))
