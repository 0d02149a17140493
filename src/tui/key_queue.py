"""The key queue: keys act one at a time, each on the result of the previous one.

Many keys may arrive at once: over a slow line, from a paste, from a program. Textual hands all
of them to the focused widget before the first one takes effect. Text typed after a `/` would
then not reach the line that the `/` opens, and could delete something or quit.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Final

from textual import events
from textual.app import App

from tui.keys import ACTIONS, keys_of

LIMIT_S: Final = 0.3
"""How long a key waits for the previous one, which may be opening something slow."""

STEP_S: Final = 0.01

MAX_WAITING: Final = 1_000
"""Longest queue, in keys; further ones are dropped."""

WAYS_OUT: Final = ("ctrl+c", "ctrl+q")
QUITS: Final = "q"
"""Also quits immediately before the first screen, unless typed after a key that opens a line."""

TYPING_LIMIT_S: Final = 5.0
"""How long a key waits for one that opens a line: it is text, which must not act as a command."""


def typing_keys(keymap: Mapping[str, str]) -> set[str]:
    """Return the keys that open a line to type in: a filter, or the command palette."""
    opening = [action for action in ACTIONS if action.method in ("filter", "command_palette")]
    return {key for action in opening for key in keys_of(action, keymap)}


class KeyQueue:
    """Holds back keys while one is in progress. `hand_on` passes a key to Textual."""

    def __init__(self, app: App[int], hand_on: Callable[[events.Key], Awaitable[None]]) -> None:
        self._app = app
        self._hand_on = hand_on
        self._waiting: deque[events.Key] = deque()
        self._current: events.Key | None = None
        self._since_s = 0.0
        self._is_ready = False
        self._typing_keys = typing_keys({})

    async def put(self, key: events.Key) -> None:
        """Handle the key once the app is ready and earlier keys are done; a key that quits,
        immediately."""
        is_typed = self._is_ready or any(
            before.key in self._typing_keys for before in self._waiting
        )
        if key.key in WAYS_OUT or (key.key == QUITS and not is_typed):
            self._waiting.clear()
            await self._begin(key)
        elif len(self._waiting) >= MAX_WAITING:
            return
        elif self._waiting or self._is_under_way() or not self._is_ready:
            self._waiting.append(key)
            self._app.set_timer(self._limit_s, self._begin_next)
        else:
            await self._begin(key)

    def start(self, keymap: Mapping[str, str]) -> None:
        """Hand on the keys that arrived before the first screen, and all later ones.

        `keymap` holds the user's own keys.
        """
        self._is_ready, self._typing_keys = True, typing_keys(keymap)
        for _ in self._waiting:
            self._app.set_timer(LIMIT_S, self._begin_next)
        self._app.call_later(self._begin_next)

    def end(self, key: events.Key) -> None:
        """Mark the key as done; the next follows once everything that this one started has run."""
        if key is self._current:
            self._current = None
            if self._waiting:
                self._app.call_later(self._begin_next)

    def _is_under_way(self) -> bool:
        return self._current is not None and monotonic() - self._since_s < self._limit_s

    @property
    def _limit_s(self) -> float:
        is_typing = self._current is not None and self._current.key in self._typing_keys
        return TYPING_LIMIT_S if is_typing else LIMIT_S

    async def _begin(self, key: events.Key) -> None:
        self._current, self._since_s = key, monotonic()
        target = self._app.focused or self._app.screen
        await self._hand_on(key)
        # Runs behind the key in the message queue of the widget that receives it.
        target.call_later(self._end_if_stopped, key)

    def _end_if_stopped(self, key: events.Key) -> None:
        """End the key if its widget stopped it; otherwise it bubbles up to the app."""
        if key._stop_propagation:
            self.end(key)

    async def _begin_next(self) -> None:
        await asyncio.sleep(0)  # lets a worker started by the previous key open its dialog first
        if not self._waiting or self._is_under_way() or not self._is_ready:
            return
        screen = self._app.screen
        is_opening = screen.focused is None and screen.AUTO_FOCUS != ""  # it will take the focus
        if is_opening and monotonic() - self._since_s < LIMIT_S:
            self._app.set_timer(STEP_S, self._begin_next)
            return
        await self._begin(self._waiting.popleft())
