"""What every list can do: filter, sort, mark, and stay where the reader is."""

from collections.abc import Sequence
from typing import Any

import pytest
from textual.pilot import Pilot

from resumes.store import api_keys, import_requests, stored_resumes
from resumes.store.accounts import get_account
from resumes.store.import_ledger import FileOutcome
from resumes.store.store import Store
from tests.support.terminal.builders import (
    a_document,
    a_file,
    an_account,
    an_id,
    stored,
    stored_many,
)
from tests.support.terminal.driving import (
    LARGE,
    NEVER_S,
    at_rest,
    leads,
    lines,
    marked,
    presses,
    running,
    shows,
    shows_no,
    tells,
    toasts,
    types,
    until,
)
from tests.support.terminal.outages import AWAY, UnsteadyStore
from tui.keys import MODES, Mode
from tui.screens.base import ListScreen, RowScreen
from tui.widgets.paged_list import PagedList

pytestmark = pytest.mark.anyio


def titles(screen: list[str]) -> list[str]:
    """The titles `Number …` from top to bottom."""
    return [line.partition("Number ")[2].split()[0] for line in screen if "Number " in line]


# Filtering


async def test_imports_are_filtered_by_name_account_and_reason(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is found is further apart than a page reaches.
    monkeypatch.setattr("tui.screens.file_views.MAX_FILES", 2)
    monkeypatch.setattr("tui.screens.file_views.MAX_SEARCHES", 2)
    an_account(store, "zoe")
    for number in range(20):
        a_file(store, f"{number:024x}", FileOutcome.DONE, name=f"ana/cv-{number}.json")
    a_file(store, an_id("1"), name="ana/nurse.json")
    a_file(store, "0" * 24, FileOutcome.DONE, name="ana/nursery.json")
    a_file(store, an_id("3"), FileOutcome.HELD, account="zoe", reason="quota_reached")
    async with running(store, "1 of 22", screen="imports") as pilot:
        await types(pilot, "/nurse", "1 of 2", "ana/nurse.json", "ana/nursery.json")
        await types(pilot, "\n")
        await leads(pilot, "escape", "1 of 22")
        await types(pilot, "/zoe\n", '"zoe"', "1 of 1", "zoe/cv-3.json")
        await presses(pilot, "escape")
        await types(pilot, "/plan full\n", "1 of 1", "zoe/cv-3.json")


async def test_what_matches_is_highlighted(store: Store) -> None:
    api_keys.create_key(store, "ana", name="Łódź works")
    async with running(store, "Łódź works", screen="keys") as pilot:
        await types(pilot, "/odz\n", '"odz"')
        await until(lambda: marked(pilot.app) == ["ódź"], lambda: marked(pilot.app))
        await presses(pilot, "escape")
        await until(lambda: not marked(pilot.app), lambda: marked(pilot.app))


@pytest.mark.parametrize(
    ("screen", "keys"),
    [
        ("resumes", "d o f x y enter space"),
        ("imports", "t l e D y enter space"),
        ("accounts", "p K N I D enter"),
        ("plans", "e enter"),
        ("keys", "R D o enter"),
        ("health", "c enter"),
    ],
)
async def test_until_what_is_found_is_there_keys_act_on_nothing(
    store: Store, screen: str, keys: str
) -> None:
    stored_many(store, 3)
    a_file(store)
    api_keys.create_key(store, "ana", name="website")
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen=screen, refresh_s=NEVER_S) as pilot:
        shown = pilot.app.screen
        await at_rest(pilot)
        with unsteady.held_reads():
            await types(pilot, "/e\n")
            for key in keys.split():
                await presses(pilot, key)
                await tells(pilot.app, "Loading the list…")
                assert pilot.app.screen is shown
        await shows(pilot.app, '"e"')
        await presses(pilot, "escape")
        await shows_no(pilot.app, '"e"')
        await at_rest(pilot)
        await presses(pilot, "enter")
        await until(lambda: pilot.app.screen is not shown)


async def test_the_cursor_stays_on_what_was_found_while_and_after_the_filter_is_cleared(
    store: Store,
) -> None:
    stored_many(store, 30)
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "1 of 30", refresh_s=NEVER_S) as pilot:
        await types(pilot, "/Number 17\n", "1 of 1")
        with unsteady.held_reads():
            await presses(pilot, "escape", "d")
            await tells(pilot.app, 'Deleting "Number 17" in 10 s. Press u to undo.')
        await shows(pilot.app, "18 of 30")


async def test_what_is_listed_can_be_used_though_a_filter_cannot_be_read(store: Store) -> None:
    stored_many(store, 3)
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "1 of 3", refresh_s=NEVER_S) as pilot:
        unsteady.go_away()
        await types(pilot, "/2\n", AWAY)
        await presses(pilot, "d")
        await tells(pilot.app, 'Deleting "Number 0" in 10 s. Press u to undo.')


async def test_a_long_title_leaves_room_for_the_key_that_undoes(store: Store) -> None:
    stored(store, a_document(title="Chief " * 40))
    async with running(store, "1 of 1") as pilot:
        await leads(pilot, "d", 'Deleting "Chief')
        assert lines(pilot.app)[-1].strip().endswith("Press u to undo.")
        assert 'Deleting "Chief' in lines(pilot.app)[-1]


@pytest.fixture
def ten_rows_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is more than ten rows down is far down."""
    monkeypatch.setattr("tui.widgets.paged_list.MAX_RELOADED", 10)
    monkeypatch.setattr("tui.screens.resume_views.PAGE_SIZE", 5)


@pytest.mark.usefixtures("ten_rows_far")
async def test_what_was_found_far_down_is_where_the_list_then_begins(store: Store) -> None:
    ids = stored_many(store, 60)
    async with running(store, "Number 0", refresh_s=NEVER_S) as pilot:
        for is_deleted, first, below in ((False, 42, 43), (True, 43, 44)):
            await types(pilot, "/Number 42\n", "1 of 1")
            if is_deleted:
                stored_resumes.delete_resume(store, get_account(store, "ana").id, ids[42])
            await leads(pilot, "escape", f"Number {below}")
            await until(lambda first=first: titles(lines(pilot.app))[0] == f"{first}")  # type: ignore[misc]
            await presses(pilot, "d")
            await tells(pilot.app, f'Deleting "Number {first}" in 10 s. Press u to undo.')
        await leads(pilot, "g", "Number 0")


# Sorting


async def test_resumes_and_imports_can_be_listed_newest_first(store: Store) -> None:
    stored_many(store, 250)
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), FileOutcome.DONE)
    async with running(store, "Number 0") as pilot:
        await leads(pilot, "s", "newest first", "Number 249")
        assert titles(lines(pilot.app))[:3] == ["249", "248", "247"]
        for _ in range(12):
            await presses(pilot, "G")
            await at_rest(pilot)
        await shows(pilot.app, "250 of 250", "Number 0")
        stored(store, a_document(title="Number 250"))
        await leads(pilot, "g r", "Number 250")
        await leads(pilot, "2", "failed first · 1 of 2")
        await leads(pilot, "s", "newest first · 1 of 2")
        (first, second) = [line for line in lines(pilot.app) if "/cv-" in line]
        assert "cv-2" in first
        assert "cv-1" in second
        await leads(pilot, "1", "newest first", "Number 250")


async def test_what_the_wheel_shows_stays_while_the_list_refreshes(store: Store) -> None:
    stored_many(store, 300)
    async with running(store, "Number 0", refresh_s=NEVER_S) as pilot:
        listed = pilot.app.screen.query_one(PagedList)
        await leads(pilot, "s", "Number 299")
        listed.scroll_to(y=70, animate=False)
        await shows(pilot.app, "Number 229")
        stored(store, a_document(title="Number 300"))
        listed.refresh_rows()
        await at_rest(pilot)
        assert titles(lines(pilot.app))[0] == "229"
        listed.scroll_to(y=0, animate=False)
        listed.refresh_rows()
        await shows(pilot.app, "Number 300")


@pytest.mark.parametrize(
    ("screen", "orders"),
    [
        ("accounts", {"fullest first": "zoe ana", "by name": "ana zoe"}),
        ("plans", {"by name": "business free pro", "most accounts first": "pro business free"}),
        ("keys", {"newest first": "second first", "last used first": "first second"}),
    ],
)
async def test_every_other_list_has_orders_of_its_own(
    store: Store, screen: str, orders: dict[str, str]
) -> None:
    for name in ("bea", "zoe"):
        an_account(store, name, plan="pro")
    stored_many(store, 1, account="zoe")
    first, _ = [api_keys.create_key(store, "ana", name=name) for name in ("first", "second")]
    api_keys.authenticate(store, first.secret)

    def listed(names: str) -> list[str]:
        rows = " ".join(lines(pilot.app)[3:-1])
        return sorted(names.split(), key=rows.find)

    async with running(store, screen=screen) as pilot:
        for order, names in orders.items():
            await leads(pilot, "s", order, *names.split())
            await until(lambda names=names: listed(names) == names.split())  # type: ignore[misc]


# Marks


async def test_marks_stay_while_the_filter_changes_and_esc_takes_them_away(store: Store) -> None:
    stored_many(store, 12)
    async with running(store, "1 of 12") as pilot:
        await types(pilot, "/Number 3\n", "1 of 1")
        await leads(pilot, "space escape", "of 12", "1 marked")
        await types(pilot, "/Number 5", "1 of 1")
        await leads(pilot, "down space escape", "of 12", "2 marked")
        await presses(pilot, "escape")
        await shows_no(pilot.app, "marked")


async def test_marked_files_are_retried_or_released_as_far_as_that_fits(store: Store) -> None:
    for digit in "123":
        a_file(store, an_id(digit))
    for digit in "456":
        a_file(store, an_id(digit), FileOutcome.HELD, reason="quota_reached")
    async with running(store, "1 of 6", screen="imports") as pilot:
        await presses(pilot, "space", "space", "down", "space", "t")
        await until(lambda: "Queued 2 files for retry" in "".join(toasts(pilot.app)))
        await leads(pilot, "g space", "1 marked")
        await presses(pilot, "G", "space", "up", "space", "l")
        await until(lambda: "Queued 2 files for release" in "".join(toasts(pilot.app)))
    requests = sorted((one.claim_id[0], one.action) for one in import_requests.list_requests(store))
    assert requests == [("2", "retry"), ("3", "retry"), ("4", "release"), ("5", "release")]


# What happens in an unlucky order, and while the store is away


def the_list(pilot: Pilot[int]) -> PagedList[Any]:
    return pilot.app.screen.query_one(PagedList)


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

            await until(lambda: the_list(pilot).window.is_complete)
            assert pilot.app.screen is screen
            assert "…" not in lines(pilot.app)[1]
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
        await until(lambda: isinstance(pilot.app.screen, RowScreen) and "›" in lines(pilot.app)[1])
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
            await until(lambda: the_list(pilot).window.is_complete)
        unsteady.go_away()

        for mode in modes:
            await presses(pilot, mode.key, "r")
            await shows(pilot.app, AWAY, "Retrying in 1 s.")
            assert the_list(pilot).failure
            assert the_list(pilot).window.count
        await shows(pilot.app, "Retrying in 2 s.")
        assert toasts(pilot.app) == []

        unsteady.come_back()
        stored(store, a_document(title="After"))
        await leads(pilot, "1", "Before", "After", "1 of 2")
        await until(lambda: AWAY not in "".join(lines(pilot.app)))
        assert not the_list(pilot).failure
        assert toasts(pilot.app) == []
