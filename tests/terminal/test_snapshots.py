"""What a person sees: every screen, in every state that it can be in, and in two sizes."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import pytest
from textual.pilot import Pilot

from resumes.store.store import Store
from tests.support.terminal import scenes
from tests.support.terminal.driving import is_busy, presses, until
from tests.support.terminal.outages import UnsteadyStore
from tests.support.terminal.scenes import StandingClock, an_app, standing_still
from tests.support.terminal.snapshot import FOLDER, IS_WRITTEN_ANEW, a_snapshot, seen, still
from tui.keys import MODES
from tui.screens.base import ListScreen
from tui.widgets.paged_list import PagedList

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("header")]

SCREENS: Final = tuple(mode.name for mode in MODES)

SIZES: Final = ((200, 50), (80, 24))
"""The largest first: what stands beside a list is read only where there is room for it."""

Sizes = tuple[tuple[int, int], ...]
World = tuple[Store, StandingClock]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A store in which the same is seen in every run."""
    with standing_still(monkeypatch) as world:
        yield world


@pytest.fixture(
    params=[
        pytest.param(SIZES[:1], id="large"),
        pytest.param(SIZES, id="every size", marks=pytest.mark.slow),
    ]
)
def sizes(request: pytest.FixtureRequest) -> Sizes:
    """The sizes to look at, which are all when the snapshots are written anew."""
    found: Sizes = request.param
    return SIZES if IS_WRITTEN_ANEW else found


@asynccontextmanager
async def showing(store: Store, screen: str) -> AsyncIterator[Pilot[int]]:
    """The screen is there, as large as there is a snapshot of it."""
    app = an_app(store, screen=screen)
    async with app.run_test(size=SIZES[0], notifications=True) as pilot:
        await until(lambda: isinstance(app.screen, ListScreen) and app.screen.focused is not None)
        yield pilot


def is_read(pilot: Pilot[int]) -> bool:
    """Whether the list is there, and nothing more is read for the screen."""
    return pilot.app.screen.query_one(PagedList).window.is_complete and not is_busy(pilot.app)


async def look_in(sizes: Sizes, pilot: Pilot[int], name: str, *, is_waiting: bool = False) -> None:
    """What is shown is what the snapshot of this name has, in these sizes."""
    with a_snapshot(name, is_whole=sizes == SIZES) as snapshot:
        for width, height in sizes:
            await pilot.resize_terminal(width, height)
            await snapshot.holds(f"{width}x{height}", pilot.app, is_waiting=is_waiting)


async def test_a_list_that_loads(world: World, sizes: Sizes) -> None:
    store, clock = world
    unsteady = UnsteadyStore(store)
    scenes.fill_data(store, clock)
    with unsteady.held_reads():
        async with showing(unsteady, "resumes") as pilot:
            await look_in(sizes, pilot, "resumes-loading", is_waiting=True)


STATES: Final[Mapping[str, scenes.Fill]] = {
    "data": scenes.fill_data,
    "hostile": scenes.fill_hostile,
    "empty": lambda *_: None,
}


@pytest.mark.parametrize(
    ("screen", "state"),
    [
        pytest.param(screen, state, marks=() if 0 in (at, nth) else pytest.mark.slow)
        for at, screen in enumerate(SCREENS)
        for nth, state in enumerate(STATES)
    ],
)
async def test_lists(world: World, sizes: Sizes, screen: str, state: str) -> None:
    store, clock = world
    STATES[state](store, clock)
    async with showing(store, screen) as pilot:
        await look_in(sizes, pilot, f"{screen}-{state}")


@pytest.mark.parametrize(
    ("name", "keys", "text"),
    [("resumes-gone", (), "Ada"), ("resume-gone", ("enter",), "EXPERIENCE")],
)
async def test_store_gone(
    world: World, sizes: Sizes, name: str, keys: tuple[str, ...], text: str
) -> None:
    store, clock = world
    unsteady = UnsteadyStore(store)
    scenes.fill_data(store, clock)
    async with showing(unsteady, "resumes") as pilot:
        await still(pilot.app)
        await presses(pilot, *keys)
        await until(lambda: text in "".join(seen(pilot.app)))
        unsteady.go_away()
        await presses(pilot, "r")
        await until(lambda: "Retrying in 1 s." in "".join(seen(pilot.app)))
        await look_in(sizes, pilot, name)


class Path(NamedTuple):
    """Where it begins, what is pressed, and what then is there; who filled the store."""

    screen: str
    keys: tuple[str, ...]
    text: str
    fill: scenes.Fill = scenes.fill_data


PATHS: Final = {
    "resumes-alone": Path("resumes", ("v",), "FILENAME"),
    "resume": Path("resumes", ("enter",), "EXPERIENCE"),
    "resume-json": Path("resumes", ("enter", "tab"), '"header"'),
    "resume-hostile": Path("resumes", ("enter",), "QUOTES", scenes.fill_hostile),
    "resumes-export": Path("resumes", ("x",), "Export ↵"),
    "resume-label": Path("resumes", ("L",), "Save ↵", scenes.fill_hostile),
    "imported-file": Path("imports", ("j", "enter"), "_failed/"),
    "imported-file-hostile": Path("imports", ("j", "enter"), "_failed/", scenes.fill_hostile),
    "new-key": Path("keys", ("n",), "Expires"),
    "plan": Path("plans", ("e",), "API listing"),
    "revoking": Path("keys", ("D",), "Revoke this key?"),
    "revoking-hostile": Path("keys", ("D",), "Revoke this key?", scenes.fill_hostile),
    "help": Path("resumes", ("question_mark",), "Keyboard shortcuts"),
    "palette": Path("resumes", ("colon",), "Show Imports"),
}

USUAL: Final = ("resumes-alone", "resume", "imported-file", "plan", "help")
"""One of each kind: a list with all its columns, a page, a page beside its source, a form, and what
lies over a screen."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in USUAL else pytest.mark.slow) for name in PATHS]
)
async def test_what_keys_lead_to(world: World, sizes: Sizes, name: str) -> None:
    store, clock = world
    path = PATHS[name]
    path.fill(store, clock)
    async with showing(store, path.screen) as pilot:
        await until(lambda: is_read(pilot))
        for key in path.keys:
            await presses(pilot, key)
        await until(lambda: path.text in "".join(seen(pilot.app)))
        await look_in(sizes, pilot, name)


async def test_a_resume_that_loads(world: World, sizes: Sizes) -> None:
    store, clock = world
    unsteady = UnsteadyStore(store)
    scenes.fill_data(store, clock)
    async with showing(unsteady, "resumes") as pilot:
        await until(lambda: is_read(pilot))
        with unsteady.held_reads():
            await presses(pilot, "enter")
            await until(lambda: "esc Back" in "".join(seen(pilot.app)))
            await look_in(sizes, pilot, "resume-loading", is_waiting=True)


def test_nothing_lies_among_the_snapshots_that_nobody_looks_at() -> None:
    known = {f"{screen}-{state}.txt" for screen in SCREENS for state in STATES}
    known |= {
        f"{name}-{state}.txt" for name in ("resume", "resumes") for state in ("loading", "gone")
    }
    known |= {f"{name}.txt" for name in PATHS}

    found = {path.name for path in FOLDER.iterdir()}
    assert found == known
