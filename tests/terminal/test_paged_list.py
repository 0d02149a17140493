"""The list: what it asks for, what it draws, where its cursor goes; and the pages behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.support.terminal.builders import HOSTILE
from tests.support.terminal.driving import SMALL, lines, presses, segments, until
from tui.text import safe
from tui.widgets.paged_list import MAX_CELL_CHARS, ListColumn, PagedList, fit, text_cell
from tui.widgets.pages import PAGES_KEPT, Missing, Pages

pytestmark = pytest.mark.anyio

COLUMNS: tuple[ListColumn[int], ...] = (
    ListColumn("NUMBER", 0, lambda number: safe(f"row {number}")),
)
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
        await until(lambda: app.asked == [0])
        await until(lambda: lines(app)[:2] == ["NUMBER", "row 0"])


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
            await until(lambda expected=expected: app.list.cursor == expected)  # type: ignore[misc]


async def test_the_row_with_the_cursor_is_always_seen() -> None:
    async with reading(1_000) as (app, pilot):
        for key in ("pagedown", "pagedown", "pagedown", "k", "G", "pageup", "G", "G", "g"):
            await presses(pilot, key)
            await until(
                lambda: (
                    f"row {app.list.cursor}" in [line.split("  ")[0].strip() for line in lines(app)]
                )
            )
            assert lines(app)[0].startswith("NUMBER")


async def test_the_end_of_what_is_loaded_leads_to_more() -> None:
    async with reading(350) as (app, pilot):
        for end in (99, 199, 299, 349, 349):
            await until(lambda end=end: app.list.pages.count == end + 1)  # type: ignore[misc]
            await presses(pilot, "G")
            await until(lambda end=end: app.list.cursor == end)  # type: ignore[misc]

        assert app.asked == [0, 1, 2, 3]


async def test_rows_that_are_not_read_yet_show_as_such() -> None:
    async with reading(10, answers=False) as (app, _):
        await until(lambda: lines(app)[1] == "… loading")


async def test_an_empty_list_says_what_it_was_told_to() -> None:
    async with reading(0) as (app, pilot):
        app.list.empty = safe("Nothing here."), safe("Make something.")
        app.list.refresh()
        await presses(pilot, "enter", "j", "G")

        await until(lambda: lines(app)[2:4] == ["Nothing here.", "Make something."])
        assert app.chosen == []


async def test_after_a_failure_it_asks_only_when_told_to() -> None:
    async with reading(10, answers=False) as (app, pilot):
        app.list.fail()
        await presses(pilot, "j", "G")
        assert app.asked == [0]
        await until(lambda: lines(app)[1] == "… not loaded")

        app.list.refresh_rows()
        await pilot.pause()

        await until(lambda: app.asked == [0, 0])


async def test_what_came_and_went_is_found_while_the_cursor_stays() -> None:
    async with reading(50) as (app, pilot):
        await presses(pilot, "G")
        app.count = 60
        app.list.refresh_rows()
        await pilot.pause()
        await until(lambda: app.list.pages.count == 60)
        assert app.list.cursor == 49

        app.count = 20
        app.list.refresh_rows()
        await pilot.pause()
        await until(lambda: "(deleted)" in lines(app)[-1])
        assert app.list.cursor == 49


async def test_rows_of_a_while_ago_look_otherwise_until_new_ones_are_there() -> None:
    async with reading(5) as (app, pilot):
        before = row_styles(app)
        app.list.is_stale = True
        await pilot.pause()
        await until(lambda: row_styles(app) != before)

        app.list.refresh_rows()
        await pilot.pause()
        await until(lambda: row_styles(app) == before)


def row_styles(app: App[int]) -> list[str]:
    return [str(segment.style) for segment in segments(app) if segment.text.startswith("row ")]


class Inserting(App[int]):
    """An app with a list of names, into which others may come."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names
        self.named: PagedList[str] = PagedList(
            (ListColumn("NAME", 0, safe),), lambda name: name, inserts=True
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

        await until(lambda: app.named.current == "m030")
        # The first word of each: the bar at the right is another.
        await until(
            lambda: [line.split()[0] for line in lines(app)] == [words[0] for words in before]
        )


async def test_at_the_top_what_comes_is_seen_at_once() -> None:
    async with inserting(["m1", "m2"]) as (app, pilot):
        app.names.append("a")
        app.named.refresh_rows()
        await until(lambda: app.named.pages.count == 3)
        await pilot.pause()

        await until(lambda: lines(app)[1].split() == ["a"])
        await until(lambda: app.named.current == "m1")


async def test_when_its_row_is_gone_the_cursor_stays_where_it_is() -> None:
    async with inserting(["m1", "m2", "m3"]) as (app, pilot):
        await presses(pilot, "j")
        app.names.remove("m2")
        app.named.refresh_rows()
        await until(lambda: app.named.pages.count == 2)

        await until(lambda: app.named.current == "m3")


async def test_a_long_list_is_read_anew_as_far_as_the_cursor() -> None:
    async with inserting([f"m{number:03}" for number in range(400)]) as (app, _):
        for count in (200, 300):
            app.named.action_last()
            await until(lambda count=count: app.named.pages.count == count)  # type: ignore[misc]
        app.named.select("m150")
        app.names.append("a")

        app.named.refresh_rows()
        await until(lambda: app.named.pages.find("a") == 0)

        await until(lambda: app.named.current == "m150")


async def test_enter_and_a_second_click_choose_the_row() -> None:
    async with reading(50) as (app, pilot):
        await presses(pilot, "j", "enter")
        await until(lambda: app.chosen == [1])

        await pilot.click(app.list, offset=(3, 5))
        await until(lambda: (app.list.cursor, app.chosen) == (4, [1]))

        await pilot.click(app.list, offset=(3, 5))
        await until(lambda: app.chosen == [1, 4])


async def test_after_a_click_the_cursor_goes_to_no_row_that_is_read_later() -> None:
    async with reading(50) as (app, pilot):
        app.answers, app.count = False, 60
        app.list.refresh_rows(anew=True)
        app.list.select("00000055")
        await pilot.click(app.list, offset=(3, 5))
        app.answer(PagedList.PageWanted(0, ""))
        await until(lambda: app.list.pages.count == 60)
        assert app.list.cursor == 4


async def test_a_resize_keeps_the_cursor_in_sight() -> None:
    async with reading(100) as (app, pilot):
        await presses(pilot, "G")
        await pilot.resize_terminal(40, 10)
        await pilot.pause()

        await until(lambda: "row 99" in lines(app))


async def test_another_list_may_leave_the_rows_until_its_own_are_there() -> None:
    async with reading(50) as (app, pilot):
        await presses(pilot, "G")
        app.answers = False
        app.list.restart(keeps_rows=True)
        await pilot.pause()
        await until(lambda: "row 49" in "\n".join(lines(app)))
        assert app.list.cursor == 49

        app.count = 3
        app.answer(PagedList.PageWanted(0, ""))
        await pilot.pause()
        await until(lambda: (app.list.cursor, app.list.pages.count) == (0, 3))
        await until(lambda: "row 49" not in "\n".join(lines(app)))


async def test_or_show_none_at_once() -> None:
    async with reading(50, answers=True) as (app, pilot):
        app.answers = False
        app.list.restart()
        await pilot.pause()
        await until(lambda: lines(app)[1] == "… loading")


async def test_rows_forgotten_are_read_again_when_seen() -> None:
    async with reading(PAGE_SIZE * (PAGES_KEPT + 3)) as (app, pilot):
        while not app.list.pages.is_complete:
            app.list.action_last()
            await pilot.pause()
        app.answers = False
        app.asked.clear()

        await presses(pilot, "g")

        await until(lambda: app.asked == [0])
        await until(lambda: lines(app)[1] == "…")
        app.answer(PagedList.PageWanted(0, ""))
        await until(lambda: lines(app)[1] == "row 0")


# Columns by width.


THREE: tuple[ListColumn[str], ...] = (
    ListColumn("WHEN", 16, safe),
    ListColumn("ID", 24, safe, from_cells=100),
    ListColumn("TITLE", 0, safe),
)


def widths(width_cells: int) -> dict[str, int]:
    return {column.heading: cells for column, cells in fit(THREE, width_cells)}


def test_narrow_lists_leave_columns_out() -> None:
    assert widths(80) == {"WHEN": 16, "TITLE": 62}


def test_wide_lists_have_them_all() -> None:
    assert widths(120) == {"WHEN": 16, "ID": 24, "TITLE": 76}


def test_a_column_without_room_keeps_a_few_cells() -> None:
    assert widths(10)["TITLE"] == 4


def test_a_column_may_have_a_greatest_width() -> None:
    column: ListColumn[str] = ListColumn("NAME", 0, safe, at_most=40)

    assert fit([column], 200) == [(column, 40)]


def test_a_cell_is_safe_and_short() -> None:
    assert "\x1b" not in text_cell(HOSTILE).plain
    assert len(text_cell("x" * 20_000).plain) == MAX_CELL_CHARS
    assert text_cell(None).plain == "—"


# The cache of pages.


def rows(first: int, count: int) -> list[str]:
    return [f"{number:06}" for number in range(first, first + count)]


def read_pages(count: int, *, size: int = 10, is_complete: bool = True) -> Pages[str]:
    pages: Pages[str] = Pages(str)
    for page in range(count):
        found = rows(page * size, size)
        is_last = is_complete and page == count - 1
        pages.fill(page, found, None if is_last else found[-1])
    return pages


def test_at_first_the_first_page_is_wanted() -> None:
    pages: Pages[str] = Pages(str)

    assert pages.wanted(0, 20, ahead=40) == 0
    assert pages.cursor(0) == ""
    assert pages.count == 0


def test_the_next_page_is_wanted_ahead_of_the_reader() -> None:
    pages = read_pages(3, is_complete=False)

    assert pages.wanted(0, 5, ahead=10) is None
    assert pages.wanted(15, 20, ahead=10) == 3
    assert pages.cursor(3) == "000029"


def test_nothing_is_wanted_of_a_list_that_is_complete() -> None:
    pages = read_pages(2)

    assert pages.wanted(0, 19, ahead=100) is None
    assert pages.is_complete


def test_an_empty_list_is_complete() -> None:
    pages: Pages[str] = Pages(str)
    pages.fill(0, [], None)

    assert (pages.count, pages.is_complete) == (0, True)


def test_rows_read_long_ago_are_forgotten_and_read_again() -> None:
    pages = read_pages(PAGES_KEPT + 5)

    assert pages.peek(0) is Missing.UNREAD
    assert pages.wanted(0, 5, ahead=10) == 0
    pages.fill(0, rows(0, 10), "000009")
    assert pages.peek(0) == "000000"
    assert pages.peek(10 * (PAGES_KEPT + 5) - 1) != Missing.UNREAD


def test_a_page_read_again_keeps_every_row_in_its_place() -> None:
    pages = read_pages(3)

    pages.fill(1, [*rows(10, 2), *rows(13, 7), *rows(20, 1)], "000020")

    assert pages.count == 30
    assert [pages.peek(number) for number in (11, 12, 13)] == ["000011", Missing.GONE, "000013"]
    assert pages.peek(20) == "000020"


def test_a_page_forgotten_meanwhile_keeps_its_length() -> None:
    pages = read_pages(PAGES_KEPT + 1)

    pages.fill(0, [*rows(2, 8), *rows(10, 2)], "000011")

    assert pages.peek(0) == "000002"
    assert pages.peek(8) is Missing.GONE


def test_what_may_have_changed_is_shown_until_it_is_read_again() -> None:
    pages = read_pages(2)

    pages.expect_changes()

    assert pages.peek(3) == "000003"
    assert pages.wanted(0, 5, ahead=0) == 0
    pages.fill(0, rows(0, 10), "000009")
    assert pages.wanted(0, 5, ahead=0) == 2
    assert pages.cursor(2) == "000019"
    pages.fill(2, rows(20, 3), None)
    assert (pages.count, pages.is_complete) == (23, True)
    assert pages.wanted(0, 5, ahead=0) is None
    assert pages.wanted(12, 15, ahead=0) == 1


def test_a_list_to_which_nothing_came_stays_as_long_as_it_was() -> None:
    pages = read_pages(2)

    for _ in range(3):
        pages.expect_changes()
        pages.fill(2, [], None)

    assert (pages.count, pages.is_complete, pages.next_page) == (20, True, 2)


def test_rows_come_to_a_list_that_was_empty() -> None:
    pages: Pages[str] = Pages(str)
    pages.fill(0, [], None)

    pages.expect_changes()
    assert pages.wanted(0, 5, ahead=0) == 1
    assert pages.cursor(1) == ""
    pages.fill(1, rows(0, 3), None)

    assert [pages.peek(number) for number in range(3)] == rows(0, 3)


def test_a_row_is_found_by_its_key() -> None:
    pages = read_pages(3)

    assert pages.find("000012") == 12
    assert pages.find("000099") is None
