"""The help: all keys and what they do, and what can be typed to find resumes."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from textual.content import Content
from textual.screen import Screen

from tui.keys import ACTIONS, Place, active_actions, key_names
from tui.screens.dialogs import TextDialog
from tui.session import UiSession
from tui.text import joined, safe
from tui.themes import ROOM_CELLS
from tui.widgets.text_pane import Paragraph

KEYS_CELLS = 13
COLUMN_CELLS: Final = 50
"""The width of a column; the help has two columns if both fit."""

GRAMMAR: Final = (
    ("python porto", "both words, anywhere in the resume"),
    ('"night shift"', "words in this order"),
    ("-java", "not this word"),
    ("skill:python", "only in skills; likewise name:"),
    ("", "title: email: place: work: school:"),
    ("label:2026", "only in the label"),
    ("account*", "words beginning so, from 4 letters"),
)
"""What can be typed into the filter of the resumes, with the meaning (docs/finding.md)."""


class HelpScreen(TextDialog):
    """Shows all keys by where they work, in two columns if both fit."""

    def __init__(self, over: Screen[object], session: UiSession) -> None:
        super().__init__("Keyboard shortcuts")
        here = {action.place for action in active_actions(over)}
        places = sorted(Place, key=lambda place: place not in here)
        self._groups = [help_group(place, iter_keys(place, session)) for place in places]
        self._groups.insert(
            places.index(Place.FILTER) + 1, help_group("Filter of resumes", GRAMMAR)
        )

    def on_resize(self) -> None:
        self.text.show(help_text(self._groups, columns=2 if self.size.width >= ROOM_CELLS else 1))


def iter_keys(place: Place, session: UiSession) -> Iterator[tuple[str, str]]:
    """Yield the keys and the description of each action that is available in the place."""
    for action in ACTIONS:
        if action.place is place and not (session.read_only and action.command):
            own = session.settings.keymap.get(action.id)
            yield action.shown if own is None else " ".join(key_names(own)), action.description


def help_group(heading: str, rows: Iterable[tuple[str, str]]) -> list[Content]:
    """Return the heading, a line for each text to type and its meaning, and a blank line."""
    lines = [
        joined([safe(f"{typed:<{KEYS_CELLS}} ", "bold $text-accent"), safe(meaning)])
        for typed, meaning in rows
    ]
    return [safe(heading, "bold underline"), *lines, safe("")]


def help_text(groups: Sequence[Sequence[Content]], *, columns: int) -> list[Paragraph]:
    """Return the groups in one column, or in two columns of similar height."""
    total, left, right = sum(map(len, groups)), list[Content](), list[Content]()
    for group in groups:
        is_left = columns == 1 or len(left) + len(group) // 2 <= total // 2
        (left if is_left and not right else right).extend(group)
    lines = zip_longest(left, right, fillvalue=safe(""))
    return [
        Paragraph(joined([one.truncate(COLUMN_CELLS - 2, ellipsis=True, pad=True), other], by="  "))
        for one, other in lines
    ]
