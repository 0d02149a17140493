"""What strangers wrote, clicked upon, in errors, and over the wire of a real terminal."""

import sys
from pathlib import Path

import pytest
from textual.pilot import Pilot

from resumes.errors import StoreUnavailable
from resumes.store.engine import Store, open_store
from resumes.text import is_harmless
from tests.tui.builders import HOSTILE, a_hostile_document, stored
from tests.tui.console import console
from tests.tui.driving import LARGE, SMALL, at_rest, lines, presses, running, shows
from tests.tui.hostility import CLICK, WORST, assert_harmless, fill
from tests.tui.terminals import PROGRAM
from tests.tui.walking import walk
from tests.tui.wire import looked_at, taken_apart
from tui.app import ResumesApp
from tui.modes import MODES
from tui.screens.list_screen import ListScreen

MOST_CLICKS = 4

pytestmark = pytest.mark.anyio


async def click_on(pilot: Pilot[int], text: str) -> int:
    """What it says was clicked, wherever it is seen; how often."""
    found = [(row, line) for row, line in enumerate(lines(pilot.app)) if text in line]
    for row, line in found[:MOST_CLICKS]:
        await pilot.click(offset=(line.index(text) + len(text) // 2, row))
    return len(found)


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)], ids=str)
async def test_nothing_that_was_written_does_anything_when_it_is_clicked(
    empty_store: Store, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(empty_store, [f"{CLICK} {HOSTILE}", f"{CLICK} second"])
    quits: list[str] = []

    async def quit_(_: ResumesApp) -> None:
        quits.append("quit")

    monkeypatch.setattr(ResumesApp, "action_quit", quit_)
    clicks = 0
    async with running(empty_store, size=size) as pilot:
        for mode in MODES:
            await presses(pilot, mode.key)
            await at_rest(pilot)
            clicks += await click_on(pilot, CLICK)
            for _ in range(2):  # a click on a row may have opened it
                clicks += await click_on(pilot, CLICK)
            while not isinstance(pilot.app.screen, ListScreen):
                await presses(pilot, "escape")
        assert pilot.app.is_running
    assert clicks > len(MODES)
    assert quits == []


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
async def test_a_hostile_resume_draws_nothing_but_text(store: Store, size: tuple[int, int]) -> None:
    stored(store, a_hostile_document())
    async with running(store, size=size) as pilot:
        await shows(pilot.app, CLICK)
        assert_harmless(pilot)
        await presses(pilot, "enter")
        await shows(pilot.app, "ana · a[/b]c")
        for key in ("J", "G", "J", "G"):
            await presses(pilot, key)
            assert_harmless(pilot)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
@pytest.mark.parametrize("screen", [mode.name for mode in MODES])
async def test_a_hostile_error_does_neither(
    store: Store, screen: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Store) -> None:
        raise StoreUnavailable(HOSTILE)

    monkeypatch.setattr(Store, "read", fail)
    async with running(store, screen=screen, size=size) as pilot:
        await shows(pilot.app, "! a[/b]c")
        assert_harmless(pilot)
        assert await click_on(pilot, CLICK)
        assert pilot.app.is_running


@pytest.mark.slow
async def test_a_hostile_error_of_whatever_writes_is_harmless(
    empty_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(empty_store, [f"{CLICK} {HOSTILE}"])

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable(HOSTILE)

    monkeypatch.setattr(Store, "write", fail)
    async with running(empty_store) as pilot:
        async for _ in walk(pilot):
            assert_harmless(pilot)
        assert pilot.app.is_running


# Over the wire.


def test_over_the_wire_goes_no_sequence_that_an_honest_store_does_not_cause(
    empty_store: Store, tmp_path: Path
) -> None:
    with open_store(f"sqlite:///{tmp_path / 'honest.db'}") as honest:
        fill(honest, ["Ada", "Bo"])
        expected, _ = looked_at(honest)
    fill(empty_store, WORST)

    found, text = looked_at(empty_store)

    assert found <= expected
    assert CLICK in text
    assert not [char for char in text if not is_harmless(char)]


async def test_a_hostile_crash_too_is_harmless(store: Store) -> None:
    stored(store, a_hostile_document())
    program = PROGRAM.replace("\\x1b]52;c;AAAA\\x07", HOSTILE.encode("unicode_escape").decode())
    with console([sys.executable, "-c", program, store.url, "crash"]) as screen:
        assert screen.ends() == 1
        assert b"RuntimeError" in screen.wire
        kinds, text = taken_apart(screen.wire)
        assert "OSC 52" not in kinds
        assert not [char for char in text if not is_harmless(char)]
