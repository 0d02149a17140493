"""What strangers wrote: drawn on every screen, clicked upon, in errors, and over the wire of a real terminal."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from resumes.store.store import Store
from tests.support.stores import open_home
from tests.support.terminal.builders import HOSTILE
from tests.support.terminal.driving import LARGE, SMALL, at_rest, lines, presses, running
from tests.support.terminal.hostility import (
    CLICK,
    TEXTS,
    WALK,
    WORST,
    Stops,
    assert_harmless,
    assert_in_columns,
    fill,
    walk,
)
from tests.support.terminal.outages import UnsteadyStore
from tui.app import ResumesApp
from tui.keys import MODES, Mode
from tui.screens.base import ListScreen

pytestmark = pytest.mark.anyio

EACH_SIZE: Final = (SMALL, pytest.param(LARGE, marks=pytest.mark.slow))


async def click_on(pilot: Pilot[int], text: str, *, most: int = 4) -> int:
    """What it says was clicked, wherever it is seen, `most` times at most; how often it is seen."""
    found = [(row, line) for row, line in enumerate(lines(pilot.app)) if text in line]
    for row, line in found[:most]:
        await pilot.click(offset=(line.index(text) + len(text) // 2, row))
    return len(found)


@pytest.mark.parametrize(
    ("size", "most", "modes"),
    [(SMALL, 1, MODES[:2]), pytest.param(LARGE, 4, MODES, marks=pytest.mark.slow)],
    ids=["first", "all"],
)
async def test_nothing_that_was_written_does_anything_when_it_is_clicked(
    empty_store: Store, size: tuple[int, int], most: int, modes: Sequence[Mode]
) -> None:
    fill(empty_store, [f"{CLICK} {HOSTILE}", f"{CLICK} second"])
    clicks = 0
    async with running(empty_store, size=size) as pilot:
        for mode in modes:
            await presses(pilot, mode.key)
            await at_rest(pilot)
            clicks += await click_on(pilot, CLICK, most=most)
            for _ in range(2):  # a click on a row may have opened it
                clicks += await click_on(pilot, CLICK, most=most)
            while not isinstance(pilot.app.screen, ListScreen):
                await presses(pilot, "escape")
        assert pilot.app.is_running
    assert clicks > len(modes)


@pytest.mark.parametrize("size", EACH_SIZE, ids=str)
@pytest.mark.parametrize("screen", [mode.name for mode in MODES])
async def test_a_hostile_error_does_neither(
    store: Store, screen: str, size: tuple[int, int]
) -> None:
    unsteady = UnsteadyStore(store)
    unsteady.go_away(HOSTILE, only="read")
    async with running(unsteady, "! a[/b]c", screen=screen, size=size) as pilot:
        assert_harmless(pilot)
        assert await click_on(pilot, CLICK)
        assert pilot.app.is_running


@pytest.mark.slow
async def test_a_hostile_error_of_whatever_writes_is_harmless(empty_store: Store) -> None:
    fill(empty_store, [f"{CLICK} {HOSTILE}"])

    unsteady = UnsteadyStore(empty_store)
    unsteady.go_away(HOSTILE, only="write")
    async with running(unsteady) as pilot:
        async for _ in walk(pilot):
            assert_harmless(pilot)
        assert pilot.app.is_running


# Whatever they write.


SIZES = st.sampled_from([SMALL, (120, 40), LARGE, (20, 5)])


@contextmanager
def a_store_with(texts: Sequence[str]) -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, open_home(Path(folder)) as store:
        fill(store, texts)
        yield store


async def look_through(store: Store, size: tuple[int, int], parts: Sequence[Stops] = WALK) -> None:
    """All was looked at, nothing on it acts, and the app still runs."""
    async with running(store, size=size) as pilot:
        async for pressed in walk(pilot, parts):
            try:
                assert_harmless(pilot)
                assert_in_columns(pilot)
            except AssertionError as error:
                error.add_note(f"after {pressed}")
                raise
            assert pilot.app.is_running, pressed
        assert isinstance(pilot.app, ResumesApp)
        assert pilot.app.return_code is None


@pytest.mark.parametrize("size", EACH_SIZE, ids=str)
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=() if part in (WALK[0], WALK[-2]) else pytest.mark.slow)
        for part in WALK
    ],
    ids=" ".join,
)
def test_the_worst_of_all_draws_nothing_but_text(part: Stops, size: tuple[int, int]) -> None:
    with a_store_with(WORST) as store:
        asyncio.run(look_through(store, size, [part]))


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=1, max_size=3), SIZES, st.sampled_from(WALK))
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_written_draws_nothing_but_text(
    texts: list[str], size: tuple[int, int], part: Stops
) -> None:
    with a_store_with(texts) as store:
        asyncio.run(look_through(store, size, [part]))
