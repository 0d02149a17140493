"""The keys that work here, in the last line."""

import gc

import pytest

from resumes.store.engine import Store
from tests.tui.driving import LARGE, SMALL, lines, presses, running, shows, until
from tui.screens.help import HelpScreen
from tui.widgets.key_line import KeyLine

pytestmark = pytest.mark.anyio


async def test_it_names_the_keys_of_the_screen_and_then_those_of_all(store: Store) -> None:
    async with running(store, size=LARGE) as pilot:
        await shows(pilot.app, "/ Filter")
        assert lines(pilot.app)[-1].endswith("? Help  q Quit")


@pytest.mark.parametrize("width", [20, 40, 60])
async def test_in_a_narrow_terminal_help_and_quit_stay(store: Store, width: int) -> None:
    async with running(store, size=(width, 24)) as pilot:
        await shows(pilot.app, "? Help")
        assert len(lines(pilot.app)[-1]) <= width


async def test_it_changes_with_what_works(store: Store) -> None:
    async with running(store, size=SMALL) as pilot:
        await shows(pilot.app, "/ Filter")
        await presses(pilot, "slash")
        await shows(pilot.app, "To the list")


async def test_what_would_change_something_is_not_there_read_only(store: Store) -> None:
    async with running(store, size=LARGE, read_only=True) as pilot:
        await shows(pilot.app, "/ Filter")
        assert "Delete" not in lines(pilot.app)[-1]


async def test_a_click_does_what_the_key_does(store: Store) -> None:
    async with running(store, size=SMALL) as pilot:
        await shows(pilot.app, "? Help")
        at = lines(pilot.app)[-1].index("? Help")
        await pilot.click(KeyLine, offset=(at + 2, 0))
        await until(lambda: isinstance(pilot.app.screen, HelpScreen))

        await presses(pilot, "escape")
        at = lines(pilot.app)[-1].index("/ Filter")
        await pilot.click(KeyLine, offset=(at + 1, 0))
        await shows(pilot.app, "To the list")


@pytest.mark.slow
async def test_changing_keys_leaves_nothing_behind(store: Store) -> None:
    def count() -> int:
        gc.collect()
        return len(gc.get_objects())

    async def turn(times: int) -> None:
        for _ in range(times):
            await presses(pilot, "slash", "escape")
            await pilot.pause()

    async with running(store) as pilot:
        await shows(pilot.app, "/ Filter")
        await turn(5)
        before = count()
        await turn(20)
        assert count() - before < 2_000
