"""The bars around a list: header, error line, and key line with messages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from textual import events
from textual.content import Content
from textual.keys import format_key
from textual.message import Message
from textual.reactive import reactive
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Input, Static

from tui.keys import MODES, Action, Place, active_actions, is_character
from tui.store_calls import Failure
from tui.text import SHOWN_S, StatusMessage, joined, safe

TICK_S = 1.0
"""The interval of the countdown."""

MAX_WAIT_S: Final = 30
"""The longest wait before a retry while the store is unavailable."""


GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class Glance:
    """The header's content: numbers of pending items by mode, and the installation's state."""

    badges: Mapping[str, int] = field(default_factory=dict)
    states: Sequence[Content] = ()


class HeaderLine(Widget):
    """Shows the screens with their pending items, and on the right as much of the state as fits."""

    DEFAULT_CSS = """
    HeaderLine { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; }
    """
    account: reactive[str] = reactive("")
    glance: reactive[Glance] = reactive(Glance())

    def __init__(self, current: str, *, read_only: bool) -> None:
        super().__init__()
        self._current = current
        self._read_only = [safe("read-only", "bold $text-warning")] if read_only else []

    def on_mount(self) -> None:
        self.watch(self.app, "glance", partial(setattr, self, "glance"))

    def render(self) -> Content:
        tabs = joined(self._tabs())
        account = [safe(self.account, "bold")] if self.account else []
        parts = [*account, *self.glance.states, *self._read_only]
        while parts and joined(parts, by=GAP).cell_length + 1 > self.size.width - tabs.cell_length:
            del parts[0]
        end = joined(parts, by=GAP)
        return tabs + safe(" " * (self.size.width - tabs.cell_length - end.cell_length)) + end

    def _tabs(self) -> Iterator[Content]:
        for mode in MODES:
            style = "bold reverse $text-accent" if mode.name == self._current else ""
            yield safe(f" {mode.key} {mode.title} ", style)
            if badge := self.glance.badges.get(mode.name):
                yield safe(f"({badge:,}) ", style or "bold $text-warning")


class ErrorLine(Widget):
    """Shows why a read failed and what to do; otherwise it is hidden.

    While the store is unavailable it counts down and then posts `RetryDue`; it waits longer after
    each failed retry.
    """

    DEFAULT_CSS = """
    ErrorLine { height: auto; max-height: 4; padding: 0 1; display: none; color: $text-error;
        background: $error-muted; }
    """
    failure: reactive[Failure | None] = reactive(None, layout=True)
    """The failure that is shown, if any."""

    left_s: reactive[int] = reactive(0)
    _waits_s = 0

    class RetryDue(Message):
        """Posted when it is time to retry the read."""

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._tick)

    def show(self, failure: Failure | None) -> None:
        """Show the failure, or hide the line if it is None."""
        is_passing = failure is not None and failure.is_passing
        self._waits_s = min(MAX_WAIT_S, max(1, 2 * self._waits_s)) if is_passing else 0
        self.failure, self.left_s, self.display = failure, self._waits_s, failure is not None

    def _tick(self) -> None:
        if self.left_s:
            self.left_s -= 1
            if not self.left_s:
                self.post_message(self.RetryDue())

    def render(self) -> Content:
        if self.failure is None:
            return safe("")
        wait = [safe(f"Retrying in {self.left_s} s.")] if self.failure.is_passing else []
        return joined([self.failure.content, *wait], by=" ")


class Note(Static):
    """A short text in a dialog, a few lines at most."""

    DEFAULT_CSS = """
    Note { height: auto; padding: 0 1; }
    """

    def __init__(self, content: Content) -> None:
        super().__init__(content)


class KeyLine(Widget):
    """Shows the keys, with global keys at the end, or a message instead of the keys."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; padding: 0 1; background: $footer-background;
        color: $footer-foreground; text-wrap: nowrap; }
    KeyLine.-notice { height: auto; max-height: 4; text-wrap: wrap; }
    """
    labels: reactive[Mapping[str, str]] = reactive(dict)
    """Labels that replace the usual labels, by Textual's action; an empty label hides the key."""

    message: reactive[StatusMessage | None] = reactive(None, layout=True)
    """The message shown instead of the keys, if any. Only errors stay longer than a few seconds."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def watch_message(self, message: StatusMessage | None) -> None:
        self.set_class(message is not None, "-notice")
        if message is not None and message.severity != "error":
            self.set_timer(SHOWN_S, partial(self._clear, message))

    def _clear(self, message: StatusMessage) -> None:
        if self.message is message:
            self.message = None

    def render(self) -> Content:
        if self.message is not None:
            return self.message.content
        here, everywhere = list[Content](), list[Content]()
        for action, key in self._iter_shown():
            (everywhere if action.place is Place.EVERYWHERE else here).append(key)
        end = joined(everywhere, by=GAP)
        room = max(0, self.size.width - end.cell_length - (len(GAP) if everywhere else 0))
        more = list[Content]()
        while here and joined([*here, *more], by=GAP).cell_length > room:
            here.pop()
            more = [safe("…", "dim")]
        start = joined([*here, *more], by=GAP).truncate(room, pad=True)
        return start + safe(GAP if everywhere else "") + end

    def _iter_shown(self) -> Iterator[tuple[Action, Content]]:
        """Yield the actions to show, each with its clickable key and label."""
        is_typing = isinstance(self.screen.focused, Input)
        for action, actives in active_actions(self.screen).items():
            bindings = [active.binding for active in actives]
            usable = [each for each in bindings if not (is_typing and is_character(each.key))]
            label = self.labels.get(action.action, action.label)
            if not label or not usable:
                continue
            binding = usable[0]
            shown = self.app.get_key_display(binding)
            if is_typing and len(shown) == 1:  # show a key that is not typed as text
                shown = format_key(binding.key)
            key = safe(shown, "bold $footer-key-foreground")
            content = joined([key, safe(label, "dim")], by=" ")
            yield action, content.stylize(Style.from_meta({"key": binding.key}))

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse, or clear the message."""
        if self.message is not None:
            self.message = None
        elif key := event.style.meta.get("key"):
            self.app.simulate_key(key)
