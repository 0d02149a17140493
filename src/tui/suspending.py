"""Ctrl+Z: the shell gets the terminal back, and nobody waits for us meanwhile.

A process that is stopped inside the store's write lane would block every other process for
ever (pitfalls S9). So the lane is held, which means that no write of ours is in it.
"""

import asyncio

from textual.app import App

from tui.session import Session
from tui.toasts import tell

WAIT_S = 2.0
"""How long a write that is under way is waited for."""

WAKE_S = 0.05
WAKES = 20


async def suspend(app: App[int], session: Session) -> None:
    """The process was stopped outside the lane, and goes on."""
    lane = session.store.lane.left()
    entering = asyncio.create_task(asyncio.to_thread(lane.__enter__))
    done, _ = await asyncio.wait([entering], timeout=WAIT_S)
    if not done:
        entering.add_done_callback(lambda _: lane.__exit__(None, None, None))
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
