"""The key queue: keys wait until the store is open, and while a line to type in is being opened.

Many keys may arrive at once: over a slow line, from a paste, from a program. Textual hands each of
them to the widget that has the focus when it arrives. Text typed after a `/` would then not reach the
line that the `/` opens, and could delete something or quit.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

from textual import events
from textual.app import App
from textual.widget import Widget
from textual.widgets import Input

LINE_S: Final = 5.0
FORM_S: Final = 0.3
OPENING_S: Final = {
    **dict.fromkeys(("filter", "command_palette"), LINE_S),
    **dict.fromkeys(
        ("export", "label", "create_account", "edit_account", "delete_account"), FORM_S
    ),
    **dict.fromkeys(("create_plan", "edit_plan", "create_key", "rotate_key", "revoke_key"), FORM_S),
}
"""How long keys wait for the line that an action opens, by Textual's name of the action. A form may read
first, or not open at all, with a message."""

STEP_S: Final = 0.01

MAX_WAITING: Final = 1_000
"""Longest queue, in keys; further ones are dropped."""

WAYS_OUT: Final = ("ctrl+c", "ctrl+q")
QUITS: Final = "q"
"""Also quits immediately before the first screen, unless typed after one of `LINE_KEYS`."""

LINE_KEYS: Final = ("slash", "colon", "ctrl+p")
"""The keys that open a line on every screen."""


class KeyQueue:
    """Holds back keys until what they are meant for has the focus. `hand_on` passes a key to Textual."""

    def __init__(self, app: App[int], hand_on: Callable[[events.Key], Awaitable[None]]) -> None:
        self._app = app
        self._hand_on = hand_on
        self._waiting: deque[events.Key] = deque()
        self._is_ready = False
        self._focus: Widget | None = None
        """What had the focus before a line was opened."""

        self._until_s = 0.0
        """Until when keys wait for another widget to have the focus, by `monotonic`."""

    async def put(self, key: events.Key) -> None:
        """Handle the key once earlier keys are handled, and what they open has the focus; a key that
        quits, immediately."""
        is_typed = self._is_ready or any(before.key in LINE_KEYS for before in self._waiting)
        if key.key in WAYS_OUT or (key.key == QUITS and not is_typed):
            self._waiting.clear()
            await self._hand_on(key)
        elif self._is_ready and not self._waiting and not self._is_opening():
            await self._begin(key)
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(key)

    def start(self) -> None:
        """Hand on the keys that arrived before the first screen, once that has the focus."""
        self._is_ready, self._until_s = True, monotonic() + LINE_S
        self._app.call_later(self._begin_waiting)

    def _is_opening(self) -> bool:
        if not self._app.screen_stack or self._app.focused not in (None, self._focus):
            self._until_s = 0.0  # it is open, or the app is being closed
        return monotonic() < self._until_s

    async def _begin_waiting(self) -> None:
        while self._waiting and not self._is_opening() and self._app.screen_stack:
            await self._begin(self._waiting.popleft())
        if self._is_opening():
            self._app.set_timer(STEP_S, self._begin_waiting)

    async def _begin(self, key: events.Key) -> None:
        active = self._app.screen.active_bindings.get(key.key)
        is_text = isinstance(self._app.focused, Input) and key.is_printable
        if active is not None and active.enabled and not is_text:
            method = active.binding.action.partition("(")[0]
            if limit_s := OPENING_S.get(method):
                self._focus, self._until_s = self._app.focused, monotonic() + limit_s
                self._app.set_timer(STEP_S, self._begin_waiting)
        await self._hand_on(key)
