"""The list: what it reads, what it draws, where its cursor goes; and the rows that it holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.support.terminal.builders import HOSTILE
from tests.support.terminal.driving import SMALL, lines, presses, until
from tui.store_calls import Failure
from tui.text import safe
from tui.widgets.paged_list import MAX_CELL_CHARS, ListColumn, PagedList, fit, text_cell
from tui.widgets.window import PageRead, Window

pytestmark = pytest.mark.anyio

PAGE_SIZE = 100


def named(count: int) -> list[str]:
    return [f"row {number:04}" for number in range(count)]


class Reader(App[int]):
    """An app with a list of names, which reads pages once `answers` is set."""

    def __init__(self, names: list[str], *, answers: bool = True) -> None:
        super().__init__()
        self.names = names
        self.answers = asyncio.Event()
        if answers:
            self.answers.set()
        self.fails = False
        columns = [ListColumn("NAME", 0, safe)]
        self.list: PagedList[str] = PagedList(columns, lambda name: name, self.read, is_paged=True)
        self.asked: list[str] = []
        """The cursors of the pages that were read."""

        self.chosen: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.list

    async def read(self, cursor: str) -> PageRead[str]:
        self.asked.append(cursor)
        await self.answers.wait()
        if self.fails:
            raise Failure("It failed", "Try again.")
        after = [name for name in sorted(self.names) if name > cursor]
        page = after[:PAGE_SIZE]
        return PageRead(page, None if page == after else page[-1])

    @on(PagedList.Chosen)
    def note(self, chosen: PagedList.Chosen) -> None:
        self.chosen.append(chosen.row)


@asynccontextmanager
async def reading(
    names: list[str], *, answers: bool = True
) -> AsyncIterator[tuple[Reader, Pilot[int]]]:
    app = Reader(names, answers=answers)
    async with app.run_test(size=SMALL) as pilot:
        await until(lambda: app.list.window.is_complete or app.list.window.count or not answers)
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
        assert app.asked == [""]
        for end in (99, 199, 299, 349, 349):
            await until(lambda end=end: app.list.window.count == end + 1)  # type: ignore[misc]
            await presses(pilot, "G")
            await until(lambda end=end: app.list.cursor == end)  # type: ignore[misc]

        assert app.asked == ["", "row 0099", "row 0199", "row 0299"]


async def test_an_empty_list_says_what_it_was_told_to() -> None:
    async with reading(named(0)) as (app, pilot):
        app.list.empty = safe("Nothing here."), safe("Make something.")
        app.list.refresh()
        await presses(pilot, "enter", "j", "G")

        await until(lambda: lines(app)[2:4] == ["Nothing here.", "Make something."])
        assert app.chosen == []


async def test_after_a_failure_it_reads_only_when_told_to() -> None:
    async with reading(named(10), answers=False) as (app, pilot):
        await until(lambda: lines(app)[1] == "… loading")
        app.fails = True
        app.answers.set()
        await until(lambda: lines(app)[1] == "… not loaded")
        await presses(pilot, "j", "G")
        assert app.asked == [""]

        app.fails = False
        app.list.refresh_rows()
        await until(lambda: app.list.window.is_complete)
        assert app.asked == ["", ""]


async def test_what_came_and_went_is_found_while_the_cursor_stays() -> None:
    async with reading(named(50)) as (app, pilot):
        await presses(pilot, "G")
        app.names = named(60)
        app.list.refresh_rows()
        await until(lambda: app.list.window.count == 60)
        assert app.list.cursor == 49

        app.names = named(20)
        app.list.refresh_rows()
        # Those above are read again only when that is asked for.
        await until(lambda: (app.list.window.count, app.list.cursor) == (27, 26))

        app.list.refresh_rows(reloads=True)
        await until(lambda: (app.list.window.count, app.list.cursor) == (20, 19))


async def test_rows_at_the_end_of_a_long_list_are_found_from_its_top() -> None:
    async with reading(named(150)) as (app, pilot):
        await presses(pilot, "G")
        await until(lambda: app.list.window.is_complete)
        await presses(pilot, "g")
        app.names = named(170)
        app.list.refresh_rows()
        await until(lambda: app.list.window.count == 170)


async def test_a_row_that_comes_before_the_cursor_moves_nothing_that_is_seen() -> None:
    async with reading([f"m{number:03}" for number in range(50)]) as (app, pilot):
        app.list.select("m030")
        await pilot.pause()
        # The first word of each: the bar at the right is another.
        before = [line.split()[0] for line in lines(app)]

        app.names += ["a", "b"]
        app.list.refresh_rows(reloads=True)
        await until(lambda: app.list.window.count == 52)

        await until(lambda: app.list.current == "m030")
        await until(lambda: [line.split()[0] for line in lines(app)] == before)


async def test_at_the_top_what_comes_is_seen_and_the_cursor_stays_when_its_row_goes() -> None:
    async with reading(["m1", "m2", "m3"]) as (app, pilot):
        app.names.append("a")
        app.list.refresh_rows()
        await until(lambda: lines(app)[1].split() == ["a"])
        await until(lambda: app.list.current == "m1")

        await presses(pilot, "j")
        app.names.remove("m2")
        app.list.refresh_rows()
        await until(lambda: app.list.window.count == 3)
        await until(lambda: app.list.current == "m3")


async def test_a_long_list_is_read_again_as_far_as_it_is_seen() -> None:
    async with reading([f"m{number:03}" for number in range(400)]) as (app, _):
        for count in (200, 300):
            app.list.action_last()
            await until(lambda count=count: app.list.window.count == count)  # type: ignore[misc]
        app.list.select("m150")
        app.names.append("a")

        app.list.refresh_rows(reloads=True)
        await until(lambda: app.list.window.find("a") == 0)

        await until(lambda: app.list.current == "m150")
        assert app.list.window.count == 301


async def test_enter_and_a_second_click_choose_the_row() -> None:
    async with reading(named(50)) as (app, pilot):
        await presses(pilot, "j", "enter")
        await until(lambda: app.chosen == named(2)[1:])

        await pilot.click(app.list, offset=(3, 5))
        await until(lambda: (app.list.cursor, app.chosen) == (4, named(2)[1:]))

        await pilot.click(app.list, offset=(3, 5))
        await until(lambda: app.chosen == ["row 0001", "row 0004"])


async def test_after_a_click_the_cursor_goes_to_no_row_that_is_read_later() -> None:
    async with reading(named(50)) as (app, pilot):
        app.answers.clear()
        app.names = named(60)
        app.list.refresh_rows(reloads=True)
        app.list.select("row 0055")
        await pilot.click(app.list, offset=(3, 5))
        app.answers.set()
        await until(lambda: app.list.window.count == 60)
        assert app.list.cursor == 4


async def test_another_list_may_leave_the_rows_until_its_own_are_there_or_show_none() -> None:
    async with reading(named(50)) as (app, pilot):
        await presses(pilot, "G")
        app.answers.clear()
        app.list.restart(keeps_rows=True)
        await pilot.pause()
        await until(lambda: "row 0049" in "\n".join(lines(app)))
        assert app.list.cursor == 49

        app.names = named(3)
        app.answers.set()
        await until(lambda: (app.list.cursor, app.list.window.count) == (0, 3))
        await until(lambda: "row 0049" not in "\n".join(lines(app)))

        app.answers.clear()
        app.list.restart()
        await until(lambda: lines(app)[1] == "… loading")


async def test_a_list_holds_a_limited_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.widgets.window.MAX_ROWS", 250)
    async with reading(named(600)) as (app, pilot):
        while not app.list.window.is_complete:
            app.list.action_last()
            await pilot.pause()
        app.list.action_last()
        assert (app.list.window.count, app.list.window.dropped) == (250, 350)
        await until(lambda: "row 0599" in lines(app)[-1])
        await presses(pilot, "g")
        await until(lambda: lines(app)[1].startswith("row 0000"))


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


def test_a_cell_is_safe_and_short() -> None:
    assert "\x1b" not in text_cell(HOSTILE).plain
    assert len(text_cell("x" * 20_000).plain) == MAX_CELL_CHARS
    assert text_cell(None).plain == "—"


# The rows that are held.


def rows(first: int, count: int) -> list[str]:
    return [f"{number:06}" for number in range(first, first + count)]


def a_window() -> Window[str]:
    """Thirty rows, after which nothing comes."""
    window: Window[str] = Window(str)
    window.put(0, rows(0, 30), None)
    return window


def test_rows_read_again_replace_those_up_to_the_next_cursor() -> None:
    window = a_window()

    window.put(10, [*rows(10, 2), *rows(13, 7), "000019x"], "000019x")

    assert window.rows == [*rows(0, 12), *rows(13, 7), "000019x", *rows(20, 10)]
    assert window.is_complete


def test_reading_goes_on_after_the_last_row_or_where_a_search_has_come_to() -> None:
    window = a_window()
    assert window.cursor(window.count) == "000029"
    window.put(30, rows(30, 5), "000040")
    assert (window.count, window.is_complete, window.cursor(window.count)) == (35, False, "000040")
    assert (window.cursor(0), window.cursor(7)) == ("", "000006")
    window.put(35, [], None)
    assert (window.count, window.is_complete, window.cursor(window.count)) == (35, True, "000034")


def test_rows_of_one_number_are_read_together() -> None:
    window: Window[str] = Window(str)
    window.put(0, ["0", "1.a", "1.b", "1.c", "2"], None)
    assert [window.page_start(number) for number in (0, 1, 3, 4, 9)] == [0, 1, 1, 4, 4]
