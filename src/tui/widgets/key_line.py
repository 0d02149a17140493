"""The keys that work here, in the last line.

Textual's Footer makes a widget of each key whenever the keys change, and keeps all it ever made:
a session of some hours would hold hundreds of thousands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from textual import events
from textual.binding import ActiveBinding
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from tui.actions import Place, find_action
from tui.text import joined, safe

GAP: Final = "  "
TYPED: Final = ("slash", "question_mark", "colon")
"""Keys with names that are text where one types, as are those of one character."""


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A key in the line, and what it does; `is_everywhere` that it does so on every screen."""

    key: str
    label: str
    active: ActiveBinding
    is_everywhere: bool

    @property
    def content(self) -> Content:
        """The key and its label."""
        return joined([safe(self.key, "bold $footer-key-foreground"), safe(self.label)], by=" ")


class KeyLine(Widget):
    """One line of keys. What works everywhere stands at its end, and is there in any width."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; padding: 0 1; background: $footer-background;
        color: $footer-foreground; text-wrap: nowrap; }
    """

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, _: Screen[object]) -> None:
        self.refresh()

    def render(self) -> Content:
        here, everywhere = self._halves()
        end = joined([key.content for key in everywhere], by=GAP)
        room = max(0, self.size.width - end.cell_length - (len(GAP) if everywhere else 0))
        start = joined([key.content for key in here], by=GAP)
        return start.truncate(room, ellipsis=True, pad=True) + safe(GAP if everywhere else "") + end

    def _halves(self) -> tuple[list[ShownKey], list[ShownKey]]:
        shown = list(_iter_shown(self))
        return (
            [key for key in shown if not key.is_everywhere],
            [key for key in shown if key.is_everywhere],
        )

    async def on_click(self, event: events.Click) -> None:
        """The key under the mouse does what it does."""
        here, everywhere = self._halves()
        at = event.x - 1
        found = _find_at(here, at)
        if found is None:
            width = joined([key.content for key in everywhere], by=GAP).cell_length
            found = _find_at(everywhere, at - (self.size.width - width))
        if found is not None:
            await self.app.run_action(found.active.binding.action, found.active.node)


def _find_at(keys: Sequence[ShownKey], cell: int) -> ShownKey | None:
    start = 0
    for key in keys:
        end = start + key.content.cell_length
        if start <= cell < end:
            return key
        start = end + len(GAP)
    return None


def _iter_shown(line: KeyLine) -> Iterator[ShownKey]:
    told = set()
    is_typing = isinstance(line.screen.focused, Input)
    for active in line.screen.active_bindings.values():
        binding = active.binding
        action = find_action(binding.id or "")
        if action is None or not action.label or not active.enabled or action.id in told:
            continue
        if is_typing and (len(binding.key) == 1 or binding.key in TYPED):
            continue
        told.add(action.id)
        key = line.app.get_key_display(binding)
        yield ShownKey(key, action.label, active, action.place is Place.EVERYWHERE)
