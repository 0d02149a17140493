"""Driving the app in tests: waiting for what is asserted, and reading the screen."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from rich.segment import Segment
from textual.app import App
from textual.pilot import Pilot
from textual.worker import WorkerState

from resumes.store.engine import Store
from tui.app import ResumesApp
from tui.session import Session

LIMIT_S = 60.0

SMALL = (80, 24)
LARGE = (200, 50)


@asynccontextmanager
async def running(
    store: Store,
    *,
    screen: str = "resumes",
    size: tuple[int, int] = SMALL,
    read_only: bool = False,
    account: str | None = None,
    open_id: str | None = None,
) -> AsyncIterator[Pilot[int]]:
    """The app runs, and its first page is there or refused."""
    session = Session(store, read_only, account, account, open_id)
    app = ResumesApp(lambda: session, screen=screen, read_only=read_only)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(lambda: app.current_mode == screen and app.screen.focused is not None)
        yield pilot


async def until(condition: Callable[[], object]) -> None:
    """The condition holds. Fails when it does not within the limit."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        await asyncio.sleep(0.005)


async def at_rest(pilot: Pilot[int]) -> None:
    """Nothing is waited for any more: each worker has come to its end, or was cancelled, and what
    it was doing may go on behind. None has failed."""
    workers = list(pilot.app.workers)
    await until(lambda: all(worker.is_finished for worker in pilot.app.workers))
    assert [worker for worker in workers if worker.state is WorkerState.ERROR] == []


def segments(app: App[int]) -> list[Segment]:
    """Everything that is on the screen, as it goes to the terminal."""
    return [segment for strip in app.screen._compositor.render_strips() for segment in list(strip)]


def lines(app: App[int]) -> list[str]:
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


async def shows(app: App[int], *texts: str) -> None:
    """All the texts are on the screen."""

    def missing() -> list[str]:
        screen = "\n".join(lines(app))
        return [text for text in texts if text not in screen]

    deadline = time.monotonic() + LIMIT_S
    while missing():
        assert time.monotonic() < deadline, (missing(), lines(app))
        await asyncio.sleep(0.005)


async def presses(pilot: Pilot[int], *keys: str) -> None:
    """The keys were pressed, and their messages handled."""
    await pilot.press(*keys)
