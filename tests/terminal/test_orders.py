"""What comes late, goes away or comes in between: cursor and view stay, the newest data wins."""

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from textual.pilot import Pilot

from resumes.store import accounts, api_keys, plans, stored_resumes
from resumes.store.entry import Entry
from resumes.store.store import Store
from tests.support.terminal.builders import (
    AnImporter,
    a_document,
    a_file,
    an_account,
    stored,
    stored_many,
)
from tests.support.terminal.driving import (
    LARGE,
    NEVER_S,
    SMALL,
    SOON_S,
    at_rest,
    leads,
    lines,
    presses,
    running,
    shows,
    shows_no,
    toasts,
    until,
)
from tests.support.terminal.outages import AWAY, UnsteadyStore
from tui.keys import MODES, Mode
from tui.screens.base import ListScreen, RowScreen
from tui.screens.dialogs import ConfirmDialog
from tui.screens.resumes import DetailScreen
from tui.widgets.paged_list import PagedList

pytestmark = pytest.mark.anyio


def the_list(pilot: Pilot[int]) -> PagedList[Any]:
    return pilot.app.screen.query_one(PagedList)


def rows_seen(pilot: Pilot[int]) -> list[str]:
    """The lines below the heading of the list, but for the last, the keys, and the scrollbar."""
    return [line[: SMALL[0] - 2].rstrip() for line in lines(pilot.app)[3:-1]]


async def test_a_resume_that_was_deleted_under_the_cursor_leaves_its_line(store: Store) -> None:
    ids = stored_many(store, 60)
    async with running(store, "1 of 60", refresh_s=SOON_S) as pilot:
        await until(lambda: "Number" in rows_seen(pilot)[-2])
        await presses(pilot, *["pagedown"] * 2, *["up"] * 5)
        cursor, before = the_list(pilot).cursor, rows_seen(pilot)

        stored_resumes.delete_resume(store, accounts.get_account(store, "ana").id, ids[cursor])

        await shows(pilot.app, "(deleted)")
        changed = [
            (old, new) for old, new in zip(before, rows_seen(pilot), strict=True) if old != new
        ]
        assert [new.strip() for _, new in changed] == ["(deleted)"]
        assert f"Number {cursor}" in changed[0][0]
        await until(lambda: the_list(pilot).cursor == cursor)
        await leads(pilot, "d", "No resume to delete.")


@pytest.mark.parametrize("screen", ["keys", "imports"])
async def test_an_account_that_was_deleted_while_what_it_has_is_shown(
    store: Store, screen: str
) -> None:
    an_account(store, "gone")
    an_account(store, "zoe")
    api_keys.create_key(store, "zoe", name="web")
    a_file(store, account="zoe")
    async with running(store, screen=screen, refresh_s=SOON_S) as pilot:
        await leads(pilot, "a", "(all accounts)", "gone")
        await leads(pilot, "g j j enter", "gone · ")
        accounts.delete_account(store, "gone")

        await shows(pilot.app, '! Account not found: "gone"')
        await leads(pilot, "a", "(all accounts)", "zoe")
        await leads(pilot, "g enter", "all accounts · ", "zoe")
        await until(lambda: "not found" not in "".join(lines(pilot.app)))


@pytest.mark.parametrize(
    ("where", "many"),
    [
        ("end", 500),
        pytest.param("middle", 5_000, marks=pytest.mark.slow),
        pytest.param("end", 5_000, marks=pytest.mark.slow),
    ],
)
async def test_many_resumes_arrive_while_somebody_reads(
    store: Store, where: str, many: int
) -> None:
    plans.set_plan_limits(store, plans.PlanChange("business", None))
    stored_many(store, 90)
    async with running(store, "1 of 90", refresh_s=SOON_S) as pilot:
        await until(lambda: "Number" in rows_seen(pilot)[-2])
        await presses(pilot, *(("G",) if where == "end" else ("pagedown", "pagedown", "up")))
        shown = the_list(pilot)
        await shows(pilot.app, f"{shown.cursor + 1} of 90")
        was = shown.cursor, shown.scroll_offset, rows_seen(pilot)

        await asyncio.to_thread(stored_many, store, many)
        await until(lambda: shown.pages.count > 90 and not shown.pages.is_complete)
        await at_rest(pilot)

        assert (shown.cursor, shown.scroll_offset) == was[:2]
        whole = [row for row in was[2] if "Number" in row]
        assert rows_seen(pilot)[: len(whole)] == whole
        await presses(pilot, "j" if where == "middle" else "k")
        await until(lambda: shown.cursor == was[0] + (1 if where == "middle" else -1))


async def test_reading_goes_on_while_the_importer_writes(
    store: Store, importer: AnImporter
) -> None:
    async with running(store, "no resumes", refresh_s=SOON_S) as pilot:
        for number in range(50):
            importer.drop(
                f"ana/{number:03}.json", json.dumps(a_document(name=f"Person {number:03}")).encode()
            )
        importing = asyncio.create_task(importer.round())
        while not importing.done():
            await presses(pilot, "G", "k", "pageup", "2", "1")
        await importing
        shown = the_list(pilot)
        await until(lambda: shown.pages.count)
        await presses(pilot, "G")
        await until(lambda: shown.pages.is_complete and shown.pages.count == 50)
        found = [shown.pages.peek(number) for number in range(shown.pages.count)]
        ids = [row.id for row in found if isinstance(row, Entry)]
        assert len(ids) == 50
        assert all(one < other for one, other in pairwise(ids))
        assert toasts(pilot.app) == []


# Replies that arrive late, and a store that is away.


async def test_what_was_looked_for_before_does_not_take_the_place_of_what_is_looked_for(
    store: Store,
) -> None:
    stored(store, a_document(name="Ada", title="Analyst"), a_document(name="Bo", title="Baker"))
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "Baker", refresh_s=NEVER_S) as pilot:
        late = await unsteady.holds_back(pilot, "slash", *"ana")
        await presses(pilot, *["backspace"] * 3, *"bak")
        await shows(pilot.app, '"bak" · 1 of 1', "Baker")

        await late.arrives(pilot)

        await shows(pilot.app, '"bak" · 1 of 1', "Baker")
        await shows_no(pilot.app, "Analyst")


async def test_the_resume_beside_the_list_is_that_of_the_cursor_whichever_is_read_first(
    store: Store,
) -> None:
    stored(store, *(a_document(name=name) for name in ("First", "Second", "Third")))
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "││ First", size=LARGE, refresh_s=NEVER_S) as pilot:
        late = await unsteady.holds_back(pilot, "j")
        await leads(pilot, "j", "││ Third")

        await late.arrives(pilot)

        await shows(pilot.app, "││ Third")
        await shows_no(pilot.app, "││ Second")


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
async def test_a_screen_can_be_left_while_it_loads(store: Store, mode: Any) -> None:
    unsteady = UnsteadyStore(store)
    stored(store, a_document(title="Mine"))
    other = next(one for one in MODES if one is not mode)
    with unsteady.held_reads() as hold:
        async with running(unsteady, screen=mode.name) as pilot:
            screen = pilot.app.screen
            await presses(pilot, other.key)
            await until(lambda: pilot.app.screen is not screen)
            hold.go.set()
            await at_rest(pilot)
            await presses(pilot, mode.key)

            await until(lambda: the_list(pilot).pages.is_complete)
            assert pilot.app.screen is screen
            assert "…" not in lines(pilot.app)[1]
            assert toasts(pilot.app) == []


async def test_a_page_and_its_dialogs_can_be_left_while_they_load(store: Store) -> None:
    unsteady = UnsteadyStore(store)
    stored(store, a_document(title="Mine"))
    async with running(unsteady, "1 of 1", "Mine") as pilot:
        with unsteady.held_reads() as hold:
            for key in ("enter", "a"):
                await presses(pilot, key)
                await until(lambda: not isinstance(pilot.app.screen, ListScreen))
                await presses(pilot, "escape")
                await until(lambda: isinstance(pilot.app.screen, ListScreen))
            hold.go.set()
            await at_rest(pilot)
            await pilot.pause()

        await leads(pilot, "enter", "ana › Mine")
        assert isinstance(pilot.app.screen, DetailScreen)
        assert toasts(pilot.app) == []


@pytest.mark.parametrize(
    ("screen", "keys", "held", "told"),
    [
        ("imports", "t", "write", "Queued 1 file for retry"),
        ("imports", "D tab enter", "write", "Dismissed ana/cv-1.json."),
        ("resumes", "x enter", "read", "Exported 1 resume"),
    ],
)
async def test_a_page_stays_while_something_is_done_there(
    store: Store, screen: str, keys: str, held: str, told: str
) -> None:
    stored(store, a_document(title="Mine"))
    a_file(store)
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "1 of 1", screen=screen, refresh_s=NEVER_S) as pilot:
        await presses(pilot, "enter")
        await until(lambda: isinstance(pilot.app.screen, RowScreen))
        await at_rest(pilot)
        page, hold = pilot.app.screen, unsteady.hold(held)
        await presses(pilot, *keys.split())
        await until(hold.begun.is_set)
        await presses(pilot, "escape")
        await until(lambda: "Still working…" in toasts(pilot.app))
        assert pilot.app.screen is page

        unsteady.hold_no_more()
        hold.go.set()
        await until(lambda: told in "".join(toasts(pilot.app)))
        await presses(pilot, "escape")
        await until(lambda: isinstance(pilot.app.screen, ListScreen))


@pytest.mark.parametrize(
    "modes", [MODES[:2], pytest.param(MODES, marks=pytest.mark.slow)], ids=["first", "all"]
)
async def test_while_the_store_is_gone_all_can_be_looked_at_and_afterwards_it_is_as_new(
    store: Store, modes: Sequence[Mode]
) -> None:
    unsteady = UnsteadyStore(store)
    stored(store, a_document(title="Before"))
    api_keys.create_key(store, "ana", name="web")
    a_file(store)
    async with running(unsteady) as pilot:
        for mode in modes:
            await presses(pilot, mode.key)
            await until(lambda: the_list(pilot).pages.is_complete)
        unsteady.go_away()

        for mode in modes:
            await presses(pilot, mode.key, "r")
            await shows(pilot.app, AWAY, "Retrying in 1 s.")
            assert the_list(pilot).is_stale
            assert the_list(pilot).pages.count
        await shows(pilot.app, "Retrying in 2 s.")
        assert toasts(pilot.app) == []

        unsteady.come_back()
        stored(store, a_document(title="After"))
        await leads(pilot, "1", "Before", "After", "1 of 2")
        await until(lambda: AWAY not in "".join(lines(pilot.app)))
        assert not the_list(pilot).is_stale
        assert toasts(pilot.app) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("screen", "pressed"),
    [
        ("keys", ("n",)),
        ("keys", ("D", "w", "e", "b", "enter")),
        ("keys", ("R", "enter")),
        ("imports", ("t",)),
        ("imports", ("R",)),
        ("accounts", ("D",)),
        ("accounts", ("p",)),
        ("accounts", ("n", *"bea", "enter", "enter")),
        ("plans", ("n", *"big", "enter", "enter")),
    ],
    ids=lambda value: value if isinstance(value, str) else "".join(value),
)
async def test_what_writes_says_in_one_line_that_the_store_is_gone(
    store: Store, screen: str, pressed: tuple[str, ...]
) -> None:
    unsteady = UnsteadyStore(store)
    new = api_keys.create_key(store, "ana", name="web")
    api_keys.mark_shown(store, new.id)
    a_file(store)
    async with running(unsteady, screen=screen) as pilot:
        await until(lambda: the_list(pilot).pages.is_complete)
        unsteady.go_away()
        await presses(pilot, *pressed)
        await until(lambda: AWAY in " ".join([*lines(pilot.app), *toasts(pilot.app)]))
        assert not isinstance(pilot.app.screen, ConfirmDialog)
        assert pilot.app.is_running
