"""The key queue: keys act one after the other, each on the result of the one before.

Keys may arrive many at once: over a slow line, from a paste, from a program. Textual hands all
of them to the widget that has the focus before the first of them has done anything, so that
what is typed after a `/` would not reach the line that the `/` opens, but delete or quit.
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
"""How long the next key waits for one that opens something slow."""

STEP_S: Final = 0.01

MAX_WAITING: Final = 1_000
"""Keys that are queued; nobody types that far ahead."""

WAYS_OUT: Final = ("ctrl+c", "ctrl+q")
QUITS: Final = "q"
"""Quits at once, too, until the first screen is there, unless it is typed after a key that opens a line."""

TYPING_LIMIT_S: Final = 5.0
"""How long what follows such a key waits: it is text, and on a busy machine it would act as keys."""


def typing_keys(keymap: Mapping[str, str]) -> set[str]:
    """Return the keys that open a line to type in: a filter, or the command palette."""
    opening = [one for one in ACTIONS if one.method in ("filter", "command_palette")]
    return {key for action in opening for key in keys_of(action, keymap)}


class KeyQueue:
    """Keeps back keys while one is under way. `hand_on` is what Textual does with a key."""

    def __init__(self, app: App[int], hand_on: Callable[[events.Key], Awaitable[None]]) -> None:
        self._app = app
        self._hand_on = hand_on
        self._waiting: deque[events.Key] = deque()
        self._current: events.Key | None = None
        self._since_s = 0.0
        self._is_ready = False
        self._typing_keys = typing_keys({})

    async def take(self, key: events.Key) -> None:
        """Handle the key when those before it are done, and the app is ready; one that quits,
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
            self._app.set_timer(self._limit_s, self._go_on)
        else:
            await self._begin(key)

    def start(self, keymap: Mapping[str, str]) -> None:
        """Hand on the keys that came before the first screen was there, and those that follow.

        `keymap` has the user's own keys.
        """
        self._is_ready, self._typing_keys = True, typing_keys(keymap)
        for _ in self._waiting:
            self._app.set_timer(LIMIT_S, self._go_on)
        self._app.call_later(self._go_on)

    def end(self, key: events.Key) -> None:
        """Note that the key is done; the next one follows after all that this one began."""
        if key is self._current:
            self._current = None
            if self._waiting:
                self._app.call_later(self._go_on)

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
        # After the key in the queue of the widget that it went to.
        target.call_later(self._pass, key)

    def _pass(self, key: events.Key) -> None:
        """End the key if its widget stopped it; otherwise it bubbles up to the app."""
        if key._stop_propagation:
            self.end(key)

    async def _go_on(self) -> None:
        await asyncio.sleep(0)  # a worker that the key before began opens its dialog first
        if not self._waiting or self._is_under_way() or not self._is_ready:
            return
        screen = self._app.screen
        is_opening = screen.focused is None and screen.AUTO_FOCUS != ""  # it will take the focus
        if is_opening and monotonic() - self._since_s < LIMIT_S:
            self._app.set_timer(STEP_S, self._go_on)
            return
        await self._begin(self._waiting.popleft())
