"""The list: what it asks for, what it draws, where its cursor goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.tui.driving import SMALL, lines, presses, segments, until
from tui.text import safe
from tui.widgets import pages
from tui.widgets.columns import Column
from tui.widgets.paged_list import PagedList

pytestmark = pytest.mark.anyio

COLUMNS: tuple[Column[int], ...] = (Column("NUMBER", 0, lambda number: safe(f"row {number}")),)
PAGE_SIZE = 100


class Reader(App[int]):
    """An app with a list of numbers, which hands out pages when `answers` allows."""

    def __init__(self, count: int, *, answers: bool = True) -> None:
        super().__init__()
        self.count = count
        self.answers = answers
        self.list: PagedList[int] = PagedList(COLUMNS, lambda number: f"{number:08}")
        self.asked: list[int] = []
        self.chosen: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.list

    @on(PagedList.PageWanted)
    def read(self, wanted: PagedList.PageWanted) -> None:
        self.asked.append(wanted.page)
        if self.answers:
            self.answer(wanted)

    def answer(self, wanted: PagedList.PageWanted) -> None:
        first = int(wanted.cursor) + 1 if wanted.cursor else 0
        rows = range(first, min(first + PAGE_SIZE, self.count))
        end = first + len(rows)
        self.list.fill(wanted.page, rows, f"{end - 1:08}" if end < self.count else None)

    @on(PagedList.Chosen)
    def note(self, chosen: PagedList.Chosen) -> None:
        self.chosen.append(chosen.row)


@asynccontextmanager
async def reading(
    count: int, *, answers: bool = True, size: tuple[int, int] = SMALL
) -> AsyncIterator[tuple[Reader, Pilot[int]]]:
    app = Reader(count, answers=answers)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


async def test_it_asks_for_one_page_ahead_and_no_more() -> None:
    async with reading(1_000) as (app, _):
        assert app.asked == [0]
        assert lines(app)[:2] == [" NUMBER", " row 0"]


async def test_the_cursor_moves_and_stops_at_the_ends() -> None:
    async with reading(50) as (app, pilot):
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
            assert app.list.cursor == expected


async def test_the_row_with_the_cursor_is_always_seen() -> None:
    async with reading(1_000) as (app, pilot):
        for key in ("pagedown", "pagedown", "pagedown", "k", "G", "pageup", "G", "G", "g"):
            await presses(pilot, key)
            assert f"row {app.list.cursor}" in [line.split("  ")[0].strip() for line in lines(app)]
            assert lines(app)[0].startswith(" NUMBER")


async def test_the_end_of_what_is_loaded_leads_to_more() -> None:
    async with reading(350) as (app, pilot):
        ends = []
        for _ in range(6):
            await presses(pilot, "G")
            ends.append(app.list.cursor)

        assert ends[-1] == 349
        assert ends == sorted(ends)
        assert app.asked == [0, 1, 2, 3]


async def test_rows_that_are_not_read_yet_show_as_such() -> None:
    async with reading(10, answers=False) as (app, _):
        assert lines(app)[1] == " … loading"


async def test_rows_forgotten_are_read_again_when_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGES_KEPT", 3)
    async with reading(1_000) as (app, pilot):
        while not app.list.pages.is_complete:
            app.list.action_last()
            await pilot.pause()
        app.answers = False
        app.asked.clear()

        await presses(pilot, "g")

        assert app.asked == [0]
        assert lines(app)[1] == " …"
        app.answer(PagedList.PageWanted(0, ""))
        await pilot.pause()
        assert lines(app)[1] == " row 0"


async def test_an_empty_list_says_what_it_was_told_to() -> None:
    async with reading(0) as (app, pilot):
        app.list.say_when_empty(safe("Nothing here."), safe("Make something."))
        await presses(pilot, "enter", "j", "G")

        assert lines(app)[2:4] == [" Nothing here.", " Make something."]
        assert app.chosen == []


async def test_after_a_failure_it_asks_only_when_told_to() -> None:
    async with reading(10, answers=False) as (app, pilot):
        app.list.fail()
        await presses(pilot, "j", "G")
        assert app.asked == [0]
        assert lines(app)[1] == " … not loaded"

        app.list.refresh_rows()
        await pilot.pause()

        assert app.asked == [0, 0]


async def test_what_came_and_went_is_found_while_the_cursor_stays() -> None:
    async with reading(50) as (app, pilot):
        await presses(pilot, "G")
        app.count = 60
        app.list.refresh_rows()
        await pilot.pause()
        assert app.list.cursor == 49
        assert app.list.pages.count == 60

        app.count = 20
        app.list.refresh_rows()
        await pilot.pause()
        assert app.list.cursor == 49
        assert "(deleted)" in lines(app)[-1]


async def test_rows_of_a_while_ago_look_otherwise_until_new_ones_are_there() -> None:
    async with reading(5) as (app, pilot):
        before = row_styles(app)
        app.list.is_stale = True
        await pilot.pause()
        assert row_styles(app) != before

        app.list.refresh_rows()
        await pilot.pause()
        assert row_styles(app) == before


def row_styles(app: App[int]) -> list[str]:
    return [str(segment.style) for segment in segments(app) if segment.text.startswith("row ")]


class Inserting(App[int]):
    """An app with a list of names, into which others may come."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names
        self.named: PagedList[str] = PagedList(
            (Column("NAME", 0, safe),), lambda name: name, inserts=True
        )

    def compose(self) -> ComposeResult:
        yield self.named

    @on(PagedList.PageWanted)
    def read(self, wanted: PagedList.PageWanted) -> None:
        names = sorted(self.names)
        after = [name for name in names if name > wanted.cursor] if wanted.cursor else names
        page = after[:PAGE_SIZE]
        is_last = len(page) == len(after)
        self.named.fill(wanted.page, page, None if is_last else page[-1])


@asynccontextmanager
async def inserting(names: list[str]) -> AsyncIterator[tuple[Inserting, Pilot[int]]]:
    app = Inserting(names)
    async with app.run_test(size=(40, 10)) as pilot:
        await until(lambda: app.named.pages.is_complete or app.named.pages.count >= PAGE_SIZE)
        yield app, pilot


async def test_a_row_that_comes_before_the_cursor_moves_nothing_that_is_seen() -> None:
    async with inserting([f"m{number:03}" for number in range(50)]) as (app, pilot):
        app.named.select("m030")
        await pilot.pause()
        before = [line.split() for line in lines(app)]

        app.names += ["a", "b"]
        app.named.refresh_rows()
        await until(lambda: app.named.pages.count == 52)
        await pilot.pause()

        assert app.named.current == "m030"
        # The first word of each: the bar at the right is another.
        assert [line.split()[0] for line in lines(app)] == [words[0] for words in before]


async def test_at_the_top_what_comes_is_seen_at_once() -> None:
    async with inserting(["m1", "m2"]) as (app, pilot):
        app.names.append("a")
        app.named.refresh_rows()
        await until(lambda: app.named.pages.count == 3)
        await pilot.pause()

        assert lines(app)[1].split() == ["a"]
        assert app.named.current == "m1"


async def test_when_its_row_is_gone_the_cursor_stays_where_it_is() -> None:
    async with inserting(["m1", "m2", "m3"]) as (app, pilot):
        await presses(pilot, "j")
        app.names.remove("m2")
        app.named.refresh_rows()
        await until(lambda: app.named.pages.count == 2)

        assert app.named.current == "m3"


async def test_a_long_list_is_read_anew_as_far_as_the_cursor() -> None:
    async with inserting([f"m{number:03}" for number in range(400)]) as (app, _):
        for count in (200, 300):
            app.named.action_last()
            await until(lambda count=count: app.named.pages.count == count)  # type: ignore[misc]
        app.named.select("m150")
        app.names.append("a")

        app.named.refresh_rows()
        await until(lambda: app.named.pages.find("a") == 0)

        assert app.named.current == "m150"


async def test_enter_and_a_second_click_choose_the_row() -> None:
    async with reading(50) as (app, pilot):
        await presses(pilot, "j", "enter")
        assert app.chosen == [1]

        await pilot.click(app.list, offset=(3, 5))
        assert (app.list.cursor, app.chosen) == (4, [1])

        await pilot.click(app.list, offset=(3, 5))
        assert app.chosen == [1, 4]


async def test_a_resize_keeps_the_cursor_in_sight() -> None:
    async with reading(100) as (app, pilot):
        await presses(pilot, "G")
        await pilot.resize_terminal(40, 10)
        await pilot.pause()

        assert " row 99" in lines(app)


async def test_another_list_may_leave_the_rows_until_its_own_are_there() -> None:
    async with reading(50) as (app, pilot):
        await presses(pilot, "G")
        app.answers = False
        app.list.restart(keeps_rows=True)
        await pilot.pause()
        assert app.list.cursor == 49
        assert "row 49" in "\n".join(lines(app))

        app.count = 3
        app.answer(PagedList.PageWanted(0, ""))
        await pilot.pause()
        assert (app.list.cursor, app.list.pages.count) == (0, 3)
        assert "row 49" not in "\n".join(lines(app))


async def test_or_show_none_at_once() -> None:
    async with reading(50, answers=True) as (app, pilot):
        app.answers = False
        app.list.restart()
        await pilot.pause()
        assert lines(app)[1] == " … loading"
