"""Ctrl+Z: the shell gets the terminal back, and nobody waits for us meanwhile.

A process that is stopped inside the store's write lane would block every other process for
ever (pitfalls S9). So the lane is held, which means that no write of ours is in it.
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


class _Leaving:
    """Leaves the lane in a thread, which enters it again once nobody waits for that any more."""

    def __init__(self, lane: AbstractContextManager[None]) -> None:
        self._lane = lane
        self._guard = threading.Lock()
        self._has_left = self._is_given_up = False

    def leave(self) -> None:
        self._lane.__enter__()
        with self._guard:
            self._has_left = True
            if self._is_given_up:
                self._lane.__exit__(None, None, None)

    def stop_waiting(self) -> bool:
        """Return whether the lane was left by now; otherwise it is not left for long."""
        with self._guard:
            self._is_given_up = not self._has_left
            return self._has_left


async def suspend(app: App[int], session: Session) -> None:
    """The process was stopped outside the lane, and goes on."""
    lane = session.store.write_queue.paused()
    leaving = _Leaving(lane)
    try:
        await asyncio.wait([asyncio.create_task(asyncio.to_thread(leaving.leave))], timeout=WAIT_S)
    except asyncio.CancelledError:
        if leaving.stop_waiting():
            lane.__exit__(None, None, None)
        raise
    if not leaving.stop_waiting():
        tell(app, "Something is being written. Try again in a moment.", "warning")
        return
    try:
        app.action_suspend_process()
    finally:
        lane.__exit__(None, None, None)
        session.deletions.put_off()
        # The kernel may give the signal to continue to any thread, and its handler, which takes
        # the terminal back, runs in this one: but not while this one sleeps waiting for events.
        app.set_interval(WAKE_S, _wake, repeat=WAKES)


def _wake() -> None:
    """Python looks for signals as soon as there is anything to run, be it nothing."""
