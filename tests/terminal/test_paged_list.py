"""The list: what it asks for, what it draws, where its cursor goes; and the pages behind it."""

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from resumes.store import plans
from resumes.store.store import Store
from tests.support.stores import open_home
from tests.support.terminal.builders import HOSTILE, an_account, stored_many
from tests.support.terminal.driving import (
    LARGE,
    SMALL,
    at_rest,
    lines,
    presses,
    running,
    until,
)
from tui.text import safe
from tui.widgets.paged_list import MAX_CELL_CHARS, ListColumn, PagedList, fit, text_cell
from tui.widgets.pages import PAGES_KEPT, Missing, Pages

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


async def test_an_empty_list_says_what_it_was_told_to() -> None:
    async with reading(named(0)) as (app, pilot):
        app.list.empty = safe("Nothing here."), safe("Make something.")
        app.list.refresh()
        await presses(pilot, "enter", "j", "G")

        await until(lambda: lines(app)[2:4] == ["Nothing here.", "Make something."])
        assert app.chosen == []


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


async def test_after_a_click_the_cursor_goes_to_no_row_that_is_read_later() -> None:
    async with reading(named(50)) as (app, pilot):
        app.answers, app.names = False, named(60)
        app.list.refresh_rows(reloads=True)
        app.list.select("row 0055")
        await pilot.click(app.list, offset=(3, 5))
        app.answer(PagedList.PageWanted(0, ""))
        await until(lambda: app.list.pages.count == 60)
        assert app.list.cursor == 4


async def test_another_list_may_leave_the_rows_until_its_own_are_there_or_show_none() -> None:
    async with reading(named(50)) as (app, pilot):
        await presses(pilot, "G")
        app.answers = False
        app.list.restart(keeps_rows=True)
        await pilot.pause()
        await until(lambda: "row 0049" in "\n".join(lines(app)))
        assert app.list.cursor == 49

        app.names = named(3)
        app.answer(PagedList.PageWanted(0, ""))
        await until(lambda: (app.list.cursor, app.list.pages.count) == (0, 3))
        await until(lambda: "row 0049" not in "\n".join(lines(app)))

        app.list.restart()
        await until(lambda: lines(app)[1] == "… loading")


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


def test_a_cell_is_safe_and_short() -> None:
    assert "\x1b" not in text_cell(HOSTILE).plain
    assert len(text_cell("x" * 20_000).plain) == MAX_CELL_CHARS
    assert text_cell(None).plain == "—"


# The cache of pages.


def rows(first: int, count: int) -> list[str]:
    return [f"{number:06}" for number in range(first, first + count)]


def read_pages(count: int) -> Pages[str]:
    """That many pages of ten rows, after which nothing comes."""
    pages: Pages[str] = Pages(str)
    for page in range(count):
        found = rows(page * 10, 10)
        pages.fill(page, found, None if page == count - 1 else found[-1])
    return pages


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


# No key, page or filter keeps the next key waiting, however much there is.

MANY: Final = 5_000
STALL_S: Final = 0.05
TRIES: Final = 3
HELD_DOWN: Final = 60


@pytest.fixture(scope="module")
def large_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """20,000 resumes, all of which can be found."""
    with open_home(tmp_path_factory.mktemp("large")) as store:
        plans.set_plan_limits(store, plans.PlanChange("business", None))
        an_account(store, "ana")
        for _ in range(4):
            stored_many(store, MANY)
        yield store


@pytest.mark.timing
@pytest.mark.parametrize(
    "pressed",
    [("down",) * HELD_DOWN, ("pagedown",) * HELD_DOWN, ("slash", *"number 1999")],
    ids=["down", "paging", "filtering"],
)
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
async def test_no_key_keeps_the_next_one_waiting(
    large_store: Store, pressed: tuple[str, ...], size: tuple[int, int]
) -> None:
    stalls_s: list[float] = []
    for _ in range(TRIES):
        async with running(large_store, " loaded · more…", size=size) as pilot:
            await at_rest(pilot)
            stalls_s.append(await longest_stall_s(partial(press_all, pilot, pressed)))
        if stalls_s[-1] < STALL_S:
            return
    pytest.fail(f"The event loop stood still for {min(stalls_s) * 1_000:.0f} ms at best.")


async def press_all(pilot: Pilot[int], pressed: tuple[str, ...]) -> None:
    """All keys are pressed, as fast as they are taken, and what they ask for is there."""
    for key in pressed:
        await presses(pilot, key)
    await at_rest(pilot)


async def longest_stall_s(work: Callable[[], Any]) -> float:
    """For how long at most nothing else could run in the event loop during the work.

    Where the kernel gave the processor to another program meanwhile, only what was computed counts.
    """
    longest_s, is_over = 0.0, False

    async def tick() -> None:
        nonlocal longest_s
        while not is_over:
            wall_s, computed_s, interruptions = now()
            await asyncio.sleep(0.001)
            after_wall_s, after_computed_s, after_interruptions = now()
            is_ours = interruptions == after_interruptions
            stall_s = after_wall_s - wall_s if is_ours else after_computed_s - computed_s
            longest_s = max(longest_s, stall_s)

    ticking = asyncio.create_task(tick())
    await work()
    is_over = True
    await ticking
    return longest_s


def now() -> tuple[float, float, int]:
    """The time, how long this thread computed so far, and how often it was interrupted."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return time.perf_counter(), time.thread_time(), usage.ru_nivcsw
