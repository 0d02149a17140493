"""The line that a list is filtered with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.tui.driving import presses, until
from tui.widgets.filter_line import FilterLine

pytestmark = pytest.mark.anyio


class Filtered(App[int]):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.line = FilterLine()
        self.asked: list[str] = []
        self.left = 0

    def compose(self) -> ComposeResult:
        yield self.line

    @on(FilterLine.Changed)
    def note(self, changed: FilterLine.Changed) -> None:
        self.asked.append(changed.text)

    @on(FilterLine.Left)
    def note_left(self) -> None:
        self.left += 1


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Filtered, Pilot[int]]]:
    app = Filtered()
    async with app.run_test() as pilot:
        app.line.open()
        await pilot.pause()
        yield app, pilot


async def test_what_is_typed_is_asked_for_without_blanks_around_it() -> None:
    async with opened() as (app, pilot):
        await presses(pilot, "space", "a", "d", "a", "space", "space", "l")
        await until(lambda: app.asked[-1:] == ["ada l"])

        assert app.line.text == "ada l"


async def test_blanks_alone_ask_for_nothing() -> None:
    async with opened() as (app, pilot):
        await presses(pilot, "space", "space", "enter")
        await until(lambda: app.left == 1)

        assert app.asked == []
        assert not app.line.display


async def test_enter_leaves_the_filter_in_force() -> None:
    async with opened() as (app, pilot):
        await presses(pilot, "a", "enter")
        await until(lambda: app.left == 1)

        assert (app.asked, app.line.text, app.line.display) == (["a"], "a", False)


async def test_escape_takes_it_away() -> None:
    async with opened() as (app, pilot):
        await presses(pilot, "a")
        await until(lambda: app.asked == ["a"])

        await presses(pilot, "escape")
        await until(lambda: app.asked == ["a", ""])
        assert not app.line.display
