"""The bars around a list: modes, title, errors, keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from textual import events
from textual.binding import ActiveBinding
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from tui.keys import MODES, Place, find_action
from tui.store_calls import Failure
from tui.text import joined, safe

TICK_S = 1.0
"""How long a second of the countdown is."""

MAX_WAIT_S: Final = 30
"""Longest wait before a store that is unavailable is asked again."""


class ModeLine(Static):
    """Which screens there are, which one this is, and whether anything can be changed."""

    DEFAULT_CSS = """
    ModeLine { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; }
    """

    def __init__(self, current: str, *, read_only: bool) -> None:
        tabs = [
            safe(f" {mode.key} {mode.title} ", "bold reverse" if mode.name == current else "")
            for mode in MODES
        ]
        badge = [safe(" read-only ", "bold $warning")] if read_only else []
        super().__init__(joined([*tabs, *badge], by=" "))


class TitleLine(Static):
    """What is being looked at, and how much of it there is."""

    DEFAULT_CSS = """
    TitleLine { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def show(self, content: Content) -> None:
        """Show this content."""
        # It is one line, whatever it says: nothing else has to move.
        self.update(content, layout=False)


class ErrorLine(Static):
    """What failed, and what to do. Takes no room while nothing failed.

    While the store is away it counts down, and asks with `RetryDue` to try again; each time that
    fails it waits longer.
    """

    DEFAULT_CSS = """
    ErrorLine { height: auto; max-height: 4; padding: 0 1; display: none; color: $text-error;
        background: $error-muted; }
    """

    class RetryDue(Message):
        """Somebody try again."""

    def __init__(self) -> None:
        super().__init__()
        self._failure: Failure | None = None
        self._waits_s = 0
        self._left_s = 0

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._tick)

    @property
    def has_failure(self) -> bool:
        """Whether something is shown."""
        return self._failure is not None

    def show(self, failure: Failure) -> None:
        """Show the failure until `clear`."""
        self._failure = failure
        self._waits_s = min(MAX_WAIT_S, max(1, 2 * self._waits_s)) if failure.is_passing else 0
        self._left_s = self._waits_s
        self._draw()
        self.display = True

    def clear(self) -> None:
        """Hide the line."""
        self._failure = None
        self._waits_s = self._left_s = 0
        self.display = False

    def _tick(self) -> None:
        if self._failure is None or not self._left_s:
            return
        self._left_s -= 1
        self._draw()
        if not self._left_s:
            self.post_message(self.RetryDue())

    def _draw(self) -> None:
        if self._failure is None:
            return
        parts = [self._failure.content]
        if self._failure.is_passing:
            parts.append(safe(f"Retrying in {self._left_s} s."))
        self.update(joined(parts, by=" "))


class Note(Static):
    """A text of a few lines at most, in a dialog."""

    DEFAULT_CSS = """
    Note { height: auto; padding: 0 1; }
    """

    def __init__(self, content: Content, *, id: str | None = None) -> None:  # noqa: A002  (Textual's name)
        super().__init__(content, id=id)


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
    """One line of keys. Keys that work everywhere are at its end, in any width."""

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
        """Run the action of the key under the mouse."""
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
