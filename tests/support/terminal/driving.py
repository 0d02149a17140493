"""Driving the app in tests: keys go in, the screen comes out, and whatever is asserted is waited for.

What Textual keeps to itself is touched here alone.
"""

import asyncio
import base64
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest
from rich.segment import Segment
from textual import events
from textual._context import visible_screen_stack
from textual.app import App
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.strip import Strip
from textual.worker import WorkerState

from resumes.settings import Settings
from resumes.store.store import Store
from tui.app import KEYS, ResumesApp
from tui.deletions import Deletions
from tui.keys import Target
from tui.session import UiSession
from tui.widgets.bars import KeyLine

LIMIT_S: Final = 60.0
"""How long anything is waited for, in every test of the terminal UI."""

LOOK_S: Final = 0.005
NEVER_S: Final = 3_600.0
"""For `refresh_s`: nothing is read again by itself while the test runs."""

SOON_S: Final = 0.1
SMALL = (80, 24)
LARGE = (200, 50)


@asynccontextmanager
async def running(
    store: Store,
    *texts: str,
    screen: str = "resumes",
    size: tuple[int, int] = SMALL,
    read_only: bool = False,
    account: str | None = None,
    open_id: str | None = None,
    settings: Settings | None = None,
    program: str = "resumes",
    clock: Callable[[], float] = time.monotonic,
    refresh_s: float | None = None,
) -> AsyncIterator[Pilot[int]]:
    """The app runs, its first page is there or refused, and all the texts are on the screen.

    `clock` is that of deletions.
    """
    session = UiSession(
        store,
        read_only,
        {"resumes": account, "keys": account},
        None if open_id is None else Target("resumes", account, opens=open_id),
        settings=settings or Settings(),
        program=program,
        deletions=Deletions(clock),
        refresh_s=refresh_s,
    )
    app = ResumesApp(lambda: session, screen=screen, read_only=read_only)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(lambda: app.current_mode == screen and app.screen.focused is not None)
        await shows(app, *texts)
        yield pilot


def marked(app: App[int]) -> list[str]:
    """What is underlined on the screen, as hits of a filter are."""
    return [one.text for one in segments(app) if one.style and one.style.underline]


# Waiting.


async def until(condition: Callable[[], object], told: Callable[[], object] | None = None) -> None:
    """The condition holds. Fails when it does not within the limit, with what `told` says."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, told() if told else "the condition never held"
        await asyncio.sleep(LOOK_S)


async def at_rest(pilot: Pilot[int]) -> None:
    """Nothing is read or written any more, but by threads whose workers were canceled. No worker
    has failed."""
    workers = list(pilot.app.workers)
    await until(lambda: not is_busy(pilot.app))
    assert [worker for worker in workers if worker.state is WorkerState.ERROR] == []


def is_busy(app: App[int]) -> bool:
    """Whether a worker does anything but wait for a key, or for the answer of a dialog."""
    screens = [screen for stack in app._screen_stacks.values() for screen in stack]
    asked = [callback.future for screen in screens for callback in screen._result_callbacks]
    waiting = sum(future is not None and not future.done() for future in asked)
    busy = [worker for worker in app.workers if not worker.is_finished and worker.group != KEYS]
    return len(busy) > waiting


async def shows(app: App[int], *texts: str) -> None:
    """All the texts are on the screen."""

    def missing() -> list[str]:
        screen = "\n".join(lines(app))
        return [text for text in texts if text not in screen]

    await until(lambda: not missing(), lambda: (missing(), lines(app)))


async def shows_no(app: App[int], *texts: str) -> None:
    """None of the texts is on the screen, or soon none is."""
    await until(
        lambda: not any(text in line for text in texts for line in lines(app)), lambda: lines(app)
    )


async def tells(app: App[int], *messages: str) -> None:
    """These messages are shown, and no other."""
    await until(lambda: toasts(app) == list(messages), lambda: toasts(app))


# Keys.


async def presses(pilot: Pilot[int], *keys: str) -> None:
    """The keys were pressed, and their messages handled."""
    await pilot.press(*keys)


async def leads(pilot: Pilot[int], keys: str, *texts: str) -> None:
    """The keys, parted by blanks, were pressed one after the other, and lead to all the texts."""
    await presses(pilot, *keys.split(" "))
    await shows(pilot.app, *texts)


async def types(pilot: Pilot[int], text: str, *texts: str) -> None:
    """The text was typed, letter by letter, and leads to all the others; the end of a line is Enter."""
    await presses(pilot, *("enter" if char == "\n" else _character_to_key(char) for char in text))
    await shows(pilot.app, *texts)


def sends(app: App[int], *texts: str) -> None:
    """The terminal sends all of it at once, as over a slow line. Every second text is pasted."""
    assert app._driver is not None
    for number, text in enumerate(texts):
        keys = [events.Key(_character_to_key(char), char) for char in text]
        for event in [events.Paste(text)] if number % 2 else keys:
            app._driver.send_message(event)


# The screen.


def strips(app: App[int]) -> Sequence[Strip]:
    """The lines as they are drawn; of a dialog, what shines through around it too."""
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips()


def segments(app: App[int]) -> list[Segment]:
    """Everything that is on the screen, as it goes to the terminal."""
    return [segment for strip in app.screen._compositor.render_strips() for segment in list(strip)]


def lines(app: App[int]) -> list[str]:
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def footer(app: App[int]) -> str:
    """The line of keys."""
    return lines(app)[-1]


def toasts(app: App[int]) -> list[str]:
    """The messages that are shown, as toasts or in the line of keys, whole."""
    messages = [line.message.text for line in app.screen.query(KeyLine) if line.message is not None]
    return [*(toast.message for toast in app._notifications), *messages]


def copied(app: App[int], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by each text that the app sends to the terminal's clipboard from now on."""
    monkeypatch.setenv("TMUX", "")
    monkeypatch.delenv("STY", raising=False)
    texts: list[str] = []

    def write(data: str) -> None:
        for encoded in re.findall(r"\x1b\]52;c;([^\a]*)\a", data):
            texts.append(base64.b64decode(encoded).decode())

    monkeypatch.setattr(app._driver, "write", write)
    return texts
