"""The help: all keys and what they do, and what can be typed to find resumes."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from textual.content import Content
from textual.screen import Screen

from tui.keys import ACTIONS, Place, active_actions, key_names
from tui.screens.dialogs import TextDialog
from tui.text import joined, safe
from tui.themes import ROOM_CELLS
from tui.widgets.text_pane import Paragraph

KEYS_CELLS = 13
COLUMN_CELLS: Final = 50
"""Width of a column of the help, which has two where both fit."""

GRAMMAR: Final = (
    ("python porto", "both words, anywhere in the resume"),
    ('"night shift"', "words in this order"),
    ("-java", "not this word"),
    ("skill:python", "only in skills; likewise name:"),
    ("", "title: email: place: work: school:"),
    ("label:2026", "only in the label"),
    ("account*", "words that begin so, from 4 letters"),
)
"""What can be typed into the filter of the resumes, with its meaning (docs/finding.md)."""


class HelpScreen(TextDialog):
    """Shows all keys by where they work, in two columns if both fit."""

    def __init__(self, over: Screen[object], keymap: Mapping[str, str], *, read_only: bool) -> None:
        super().__init__("Keyboard shortcuts")
        here = {action.place for action, _ in active_actions(over)}
        places = sorted(Place, key=lambda place: place not in here)
        self._groups = [help_group(place, keymap, read_only=read_only) for place in places]
        self._groups.insert(places.index(Place.FILTER) + 1, grammar_group())

    def on_resize(self) -> None:
        self.text.show(help_text(self._groups, columns=2 if self.size.width >= ROOM_CELLS else 1))


def help_group(
    place: Place, keymap: Mapping[str, str], *, read_only: bool = False
) -> list[Content]:
    """Return the name of the place, a line for each key that works there, and a blank line."""
    lines = [safe(place, "bold underline")]
    for action in ACTIONS:
        if action.place is place and not (read_only and action.command):
            own = keymap.get(action.id)
            keys = action.shown if own is None else " ".join(key_names(own))
            key = safe(f"{keys:<{KEYS_CELLS}} ", "bold $text-accent")
            lines.append(joined([key, safe(action.description)]))
    return [*lines, safe("")]


def grammar_group() -> list[Content]:
    """Return a heading, a line for each form that a filter of resumes may have, and a blank line."""
    lines = [
        joined([safe(f"{typed:<{KEYS_CELLS}} ", "bold $text-accent"), safe(meaning)])
        for typed, meaning in GRAMMAR
    ]
    return [safe("Filter of resumes", "bold underline"), *lines, safe("")]


def help_text(groups: Sequence[Sequence[Content]], *, columns: int) -> list[Paragraph]:
    """Return the groups one below another; with two columns, the first half on the left."""
    total, left, right = sum(map(len, groups)), list[Content](), list[Content]()
    for group in groups:
        is_left = columns == 1 or len(left) + len(group) // 2 <= total // 2
        (left if is_left and not right else right).extend(group)
    lines = zip_longest(left, right, fillvalue=safe(""))
    return [
        Paragraph(joined([one.truncate(COLUMN_CELLS - 2, ellipsis=True, pad=True), other], by="  "))
        for one, other in lines
    ]
