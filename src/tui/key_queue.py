"""The key queue: keys wait until the store is open, and while a dialog or input line opens.

Many keys may arrive at once: over a slow connection, from a paste, or from a program. Textual
passes each key to the widget that has the focus when the key arrives. Text typed after a `/` could
then miss the input line that the `/` opens, and delete something or quit instead. A bracketed
paste, which is one event, waits among the keys, so that it does not overtake any of them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Final

from textual import events
from textual.app import App
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker

from tui.keys import BY_ID, LINE_S

STEP_S: Final = 0.01

MAX_WAITING: Final = 1_000
"""The maximum number of queued keys and pastes; further ones are dropped."""

WAYS_OUT: Final = ("ctrl+c", "ctrl+q")
QUITS: Final = "q"
"""Until the first screen is shown, this key also quits immediately, except after `LINE_KEYS`."""

LINE_KEYS: Final = ("slash", "colon", "ctrl+p")
"""The keys that open an input line on every screen."""


KeyOrPaste = events.Key | events.Paste


class KeyQueue:
    """Holds keys until their intended widget has the focus; then `hand_on` passes them on."""

    def __init__(self, app: App[int], hand_on: Callable[[KeyOrPaste], Awaitable[None]]) -> None:
        self._app = app
        self._hand_on = hand_on
        self._waiting: asyncio.Queue[KeyOrPaste] = asyncio.Queue(MAX_WAITING)
        self._q_quits = True
        self._last: KeyOrPaste | None = None
        self._acted_s: float | None = None
        """When Textual ran the action of the last key; None until then."""

    async def put(self, key: KeyOrPaste) -> None:
        """Queue the key; if it quits immediately, drop the queued keys and hand on this key."""
        name = key.key if isinstance(key, events.Key) else ""
        if name in WAYS_OUT or (name == QUITS and self._q_quits):
            while not self._waiting.empty():
                self._waiting.get_nowait()
            await self._hand_on(key)
        elif not self._waiting.full():
            self._q_quits = self._q_quits and name not in LINE_KEYS
            self._waiting.put_nowait(key)

    def note_handled(self, key: events.Key) -> None:
        """Note that Textual has run the action of this key, if it has one."""
        if key is self._last:
            self._acted_s = monotonic()

    async def run(self) -> None:
        """Hand on each key once the first screen, or the line that the last key opens, is ready."""
        self._q_quits = False
        focus: Widget | None = None
        screen: Screen[Any] | None = None
        before: set[Worker[Any]] = set()
        wait_s, ends_at = LINE_S, monotonic() + LINE_S
        while self._app.screen_stack:  # until the app is closing
            has_moved = self._has_moved(focus, screen)
            if not has_moved and self._is_opening(before, wait_s, ends_at):
                await asyncio.sleep(STEP_S)
                continue
            key = await self._waiting.get()
            wait_s = self._line_wait_s(key) if isinstance(key, events.Key) else 0.0
            ends_at = monotonic() + (LINE_S if wait_s else 0.0)
            self._last, self._acted_s = key, None
            focus, screen, before = self._app.focused, self._app.screen, set(self._app.workers)
            await self._hand_on(key)

    def _has_moved(self, focus: Widget | None, screen: Screen[Any] | None) -> bool:
        """Return whether the focus has moved from `focus` to where it stays.

        If a list on another screen than `screen` has the focus, a form may still open there.
        Before the first key, `screen` is None.
        """
        now, focused = self._app.screen, self._app.focused
        stays = screen in (None, now) or isinstance(now, ModalScreen) or isinstance(focused, Input)
        return stays and focused not in (None, focus)

    def _is_opening(self, before: set[Worker[Any]], wait_s: float, ends_at: float) -> bool:
        """Return whether the last key may still open a line.

        `before` are the workers from before the key, `wait_s` is how long to wait after the key's
        action, and `ends_at` limits the wait on a busy machine.
        """
        now_s = monotonic()
        if now_s >= ends_at or self._acted_s is None:
            return now_s < ends_at
        is_working = any(not (each.is_finished or each in before) for each in self._app.workers)
        return is_working or now_s < self._acted_s + wait_s

    def _line_wait_s(self, key: events.Key) -> float:
        """Return how long later keys may wait for the input line that this key opens."""
        active = self._app.screen.active_bindings.get(key.key)
        is_text = isinstance(self._app.focused, Input) and key.is_printable
        if active is None or not active.enabled or is_text:
            return 0.0
        action = BY_ID.get(active.binding.id or "")
        return 0.0 if action is None else action.line_wait_s
