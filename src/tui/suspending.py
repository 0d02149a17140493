"""Ctrl+Z: the shell gets the terminal back, and nobody waits for us meanwhile.

A process that is stopped in the middle of a write would block every other process for ever
(pitfalls S9). So the writes of this one are paused first.
"""

import asyncio
import threading
from contextlib import AbstractContextManager

from textual.app import App

from tui.session import Session
from tui.toasts import tell

WAIT_S = 2.0
"""How long a write that is under way is waited for."""

WAKE_S = 0.05
WAKES = 20


class _Pause:
    """Pauses writes in a thread, which lets them go on once nobody waits for that any more."""

    def __init__(self, paused: AbstractContextManager[None]) -> None:
        self._paused = paused
        self._guard = threading.Lock()
        self._has_begun = self._is_given_up = False

    def begin(self) -> None:
        self._paused.__enter__()
        with self._guard:
            self._has_begun = True
            if self._is_given_up:
                self.end()

    def end(self) -> None:
        self._paused.__exit__(None, None, None)

    def stop_waiting(self) -> bool:
        """Return True if writes are paused; otherwise they will not stay so."""
        with self._guard:
            self._is_given_up = not self._has_begun
            return self._has_begun


async def suspend(app: App[int], session: Session) -> None:
    """Stop the process while nothing is written; return once it goes on."""
    pause = _Pause(session.store.write_queue.paused())
    try:
        await asyncio.wait([asyncio.create_task(asyncio.to_thread(pause.begin))], timeout=WAIT_S)
    except asyncio.CancelledError:
        if pause.stop_waiting():
            pause.end()
        raise
    if not pause.stop_waiting():
        tell(app, "Something is being written. Try again in a moment.", "warning")
        return
    try:
        app.action_suspend_process()
    finally:
        pause.end()
        session.deletions.put_off()
        # The kernel may give the signal to continue to any thread, and its handler, which takes
        # the terminal back, runs in this one: but not while this one sleeps waiting for events.
        app.set_interval(WAKE_S, _wake, repeat=WAKES)


def _wake() -> None:
    """Python looks for signals as soon as there is anything to run, be it nothing."""
