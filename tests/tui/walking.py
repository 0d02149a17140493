"""A walk through the whole terminal UI: every screen, split pane, dialog, message and list."""

from collections.abc import AsyncIterator
from typing import Any, Final

from textual.pilot import Pilot

from tests.tui.driving import presses, until
from tests.tui.snapshot import is_busy
from tui.widgets.paged_list import PagedList

Stops = tuple[str, ...]
WALK: Final[tuple[Stops, ...]] = (
    ("1", "j", "k", "tab", "tab", "tab", "tab"),
    ("enter", "G", "tab", "G", "tab", "tab", "y", "escape", "x", "escape", "escape"),
    ("d", "u", "slash", "z", "escape", "a", "escape"),
    ("2", "enter", "tab", "G", "n", "n", "escape", "t", "l", "R", "escape", "o", "o", "escape"),
    ("3", "p", "escape", "D", "escape", "n", "escape"),
    ("4", "enter", "escape"),
    ("5", "enter", "escape", "R", "escape", "D", "escape", "i", "escape"),
    ("6", "G", "enter", "escape"),
    ("colon", "s", "escape", "question_mark", "G", "escape"),
)


async def walk(pilot: Pilot[int]) -> AsyncIterator[str]:
    """Each key that was pressed, once all that it asks for is on the screen."""
    for stops in WALK:
        for at, key in enumerate(stops):
            await presses(pilot, key)
            await until(lambda: not is_busy(pilot.app))
            await pilot.pause()
            yield " ".join(stops[: at + 1])


def lists_on(pilot: Pilot[int]) -> list[PagedList[Any]]:
    """The lists of the screen, or the dialog, that is shown."""
    return [found for found in pilot.app.screen.query(PagedList) if found.size]
