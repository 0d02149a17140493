"""The list: what it asks for, what it draws, where its cursor goes; and the pages behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.support.terminal.driving import (
    SMALL,
    lines,
    presses,
    until,
)
from tui.text import safe
from tui.widgets.paged_list import ListColumn, PagedList, fit
from tui.widgets.pages import PAGES_KEPT

pytestmark = pytest.mark.anyio

PAGE_SIZE = 100


def named(count: int) -> list[str]:
    return [f"row {number:04}" for number in range(count)]


class Reader(App[int]):
    """An app with a list of names, which hands out pages when `answers` allows."""

    def __init__(self, names: list[str], *, answers: bool = True, inserts: bool = False) -> None:
        super().__init__()
        self.names = names
        self.answers = answers
        columns = [ListColumn("NAME", 0, safe)]
        self.list: PagedList[str] = PagedList(columns, lambda name: name, inserts=inserts)
        self.asked: list[int] = []
        self.chosen: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.list

    @on(PagedList.PageWanted)
    def read(self, wanted: PagedList.PageWanted) -> None:
        self.asked.append(wanted.page)
        if self.answers:
            self.answer(wanted)

    def answer(self, wanted: PagedList.PageWanted) -> None:
        after = [name for name in sorted(self.names) if name > wanted.cursor]
        page = after[:PAGE_SIZE]
        self.list.fill(wanted.page, page, None if page == after else page[-1])

    @on(PagedList.Chosen)
    def note(self, chosen: PagedList.Chosen) -> None:
        self.chosen.append(chosen.row)


@asynccontextmanager
async def reading(
    names: list[str], *, answers: bool = True, inserts: bool = False
) -> AsyncIterator[tuple[Reader, Pilot[int]]]:
    app = Reader(names, answers=answers, inserts=inserts)
    async with app.run_test(size=SMALL) as pilot:
        await until(lambda: app.list.pages.is_complete or app.list.pages.count or not answers)
        await pilot.pause()
        yield app, pilot


async def test_the_cursor_moves_stops_at_the_ends_and_its_row_is_always_seen() -> None:
    def is_there(expected: int) -> bool:
        rows = [line.split("  ")[0].strip() for line in lines(app)]
        return app.list.cursor == expected and f"row {expected:04}" in rows

    async with reading(named(50)) as (app, pilot):
        for keys, expected in (
            (["j", "down"], 2),
            (["k"], 1),
            (["up", "up", "up"], 0),
            (["pagedown"], 23),
            (["G"], 49),
            (["j"], 49),
            (["pageup"], 26),
            (["g"], 0),
            (["end"], 49),
            (["home"], 0),
        ):
            await presses(pilot, *keys)
            await until(partial(is_there, expected))
            assert lines(app)[0].startswith("NAME")
        await presses(pilot, "G")
        await pilot.resize_terminal(40, 10)
        await until(partial(is_there, 49))


async def test_one_page_is_read_ahead_and_the_end_of_what_is_loaded_leads_to_more() -> None:
    async with reading(named(350)) as (app, pilot):
        await until(lambda: lines(app)[:2] == ["NAME", "row 0000"])
        assert app.asked == [0]
        for end in (99, 199, 299, 349, 349):
            await until(lambda end=end: app.list.pages.count == end + 1)  # type: ignore[misc]
            await presses(pilot, "G")
            await until(lambda end=end: app.list.cursor == end)  # type: ignore[misc]

        assert app.asked == [0, 1, 2, 3]


async def test_after_a_failure_it_asks_only_when_told_to() -> None:
    async with reading(named(10), answers=False) as (app, pilot):
        await until(lambda: lines(app)[1] == "… loading")
        app.list.fail()
        await presses(pilot, "j", "G")
        assert app.asked == [0]
        await until(lambda: lines(app)[1] == "… not loaded")

        app.list.refresh_rows()
        await until(lambda: app.asked == [0, 0])


async def test_what_came_and_went_is_found_while_the_cursor_stays() -> None:
    async with reading(named(50)) as (app, pilot):
        await presses(pilot, "G")
        app.names = named(60)
        app.list.refresh_rows()
        await pilot.pause()
        await until(lambda: app.list.pages.count == 60)
        assert app.list.cursor == 49

        app.names = named(20)
        app.list.refresh_rows()
        await pilot.pause()
        await until(lambda: "(deleted)" in lines(app)[-1])
        assert app.list.cursor == 49


async def test_a_row_that_comes_before_the_cursor_moves_nothing_that_is_seen() -> None:
    async with reading([f"m{number:03}" for number in range(50)], inserts=True) as (app, pilot):
        app.list.select("m030")
        await pilot.pause()
        # The first word of each: the bar at the right is another.
        before = [line.split()[0] for line in lines(app)]

        app.names += ["a", "b"]
        app.list.refresh_rows()
        await until(lambda: app.list.pages.count == 52)

        await until(lambda: app.list.current == "m030")
        await until(lambda: [line.split()[0] for line in lines(app)] == before)


async def test_at_the_top_what_comes_is_seen_and_the_cursor_stays_when_its_row_goes() -> None:
    async with reading(["m1", "m2", "m3"], inserts=True) as (app, pilot):
        app.names.append("a")
        app.list.refresh_rows()
        await until(lambda: lines(app)[1].split() == ["a"])
        await until(lambda: app.list.current == "m1")

        await presses(pilot, "j")
        app.names.remove("m2")
        app.list.refresh_rows()
        await until(lambda: app.list.pages.count == 3)
        await until(lambda: app.list.current == "m3")


async def test_a_long_list_is_read_anew_as_far_as_the_cursor() -> None:
    async with reading([f"m{number:03}" for number in range(400)], inserts=True) as (app, _):
        for count in (200, 300):
            app.list.action_last()
            await until(lambda count=count: app.list.pages.count == count)  # type: ignore[misc]
        app.list.select("m150")
        app.names.append("a")

        app.list.refresh_rows()
        await until(lambda: app.list.pages.find("a") == 0)

        await until(lambda: app.list.current == "m150")


async def test_enter_and_a_second_click_choose_the_row() -> None:
    async with reading(named(50)) as (app, pilot):
        await presses(pilot, "j", "enter")
        await until(lambda: app.chosen == named(2)[1:])

        await pilot.click(app.list, offset=(3, 5))
        await until(lambda: (app.list.cursor, app.chosen) == (4, named(2)[1:]))

        await pilot.click(app.list, offset=(3, 5))
        await until(lambda: app.chosen == ["row 0001", "row 0004"])


@pytest.mark.slow
async def test_rows_forgotten_are_read_again_when_seen() -> None:
    async with reading(named(PAGE_SIZE * (PAGES_KEPT + 3))) as (app, pilot):
        while not app.list.pages.is_complete:
            app.list.action_last()
            await pilot.pause()
        app.answers = False
        app.asked.clear()

        await presses(pilot, "g")

        await until(lambda: app.asked == [0])
        await until(lambda: lines(app)[1] == "…")
        app.answer(PagedList.PageWanted(0, ""))
        await until(lambda: lines(app)[1] == "row 0000")


# Columns by width.


THREE: tuple[ListColumn[str], ...] = (
    ListColumn("WHEN", 16, safe),
    ListColumn("ID", 24, safe, from_cells=100),
    ListColumn("TITLE", 0, safe),
)


def test_columns_share_the_width_and_narrow_lists_leave_some_out() -> None:
    for width_cells, expected in (
        (10, {"WHEN": 16, "TITLE": 4}),
        (80, {"WHEN": 16, "TITLE": 62}),
        (120, {"WHEN": 16, "ID": 24, "TITLE": 76}),
    ):
        fitted = fit(THREE, width_cells)
        assert {column.heading: cells for column, cells in fitted} == expected

    column: ListColumn[str] = ListColumn("NAME", 0, safe, at_most=40)
    assert fit([column], 200) == [(column, 40)]


# The cache of pages.


def rows(first: int, count: int) -> list[str]:
    return [f"{number:06}" for number in range(first, first + count)]


# No key, page or filter keeps the next key waiting, however much there is.
