"""What comes late, goes away or comes in between: cursor and view stay, the newest data wins."""

import asyncio
import threading
from itertools import pairwise
from typing import Any, Final

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from resumes.store import accounts, keys, listing, plans, search
from resumes.store.engine import Store
from tests.resumes.builders import a_document as a_resume_file
from tests.tui.builders import a_document, an_account, stored, stored_many
from tests.tui.driving import LARGE, LIMIT_S, SMALL, at_rest, lines, presses, running, shows, until
from tests.tui.outages import AWAY, Outage, held_reads
from tests.tui.screens.imports.builders import AnImporter, a_file
from tests.tui.snapshot import still
from tui.modes import MODES
from tui.screens.confirming import ConfirmDialog
from tui.screens.list_screen import ListScreen
from tui.screens.resumes.detail import DetailScreen
from tui.screens.resumes.screen import ResumesScreen
from tui.widgets.fields import SafeInput
from tui.widgets.paged_list import PagedList

pytestmark = pytest.mark.anyio

MANY: Final = 5_000


@pytest.fixture(autouse=True)
def _lively(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is seen is read again ten times a second."""
    for mode in MODES:
        monkeypatch.setattr(mode.load(), "REFRESH_S", 0.1)


def the_list(pilot: Pilot[int]) -> PagedList[Any]:
    return pilot.app.screen.query_one(PagedList)


def rows_seen(pilot: Pilot[int]) -> list[str]:
    """The lines below the heading of the list, but for the last, the keys, and the scrollbar."""
    return [line[: SMALL[0] - 1].rstrip() for line in lines(pilot.app)[3:-1]]


def toasts(pilot: Pilot[int]) -> list[str]:
    return [toast.message for toast in pilot.app._notifications]


# Replies that arrive late.


async def test_what_was_looked_for_before_does_not_take_the_place_of_what_is_looked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(name="Ada", title="Analyst"), a_document(name="Bo", title="Baker"))
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()
    find_page = search.find_page

    def slow_for_ana(store: Store, account_id: str, text: str, **named: Any) -> search.Found:
        if text == "ana":
            begun.set()
            assert go.wait(LIMIT_S)
        found = find_page(store, account_id, text, **named)
        if text == "ana":
            ended.set()
        return found

    monkeypatch.setattr(search, "find_page", slow_for_ana)
    async with running(store) as pilot:
        await shows(pilot.app, "Baker")
        await presses(pilot, "slash", *"ana")
        await until(begun.is_set)
        await presses(pilot, *["backspace"] * 3, *"bak")
        await shows(pilot.app, '"bak" · 1 of 1', "Baker")

        go.set()
        await until(ended.is_set)
        await at_rest(pilot)
        await pilot.pause()

        await shows(pilot.app, '"bak" · 1 of 1', "Baker")
        assert "Analyst" not in "".join(lines(pilot.app))


async def test_the_resume_beside_the_list_is_that_of_the_cursor_whichever_is_read_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = stored(store, a_document(name="First"), a_document(name="Second"))
    begun, go = threading.Event(), threading.Event()
    get_resume = listing.get_resume

    def slow_for_first(store: Store, account_id: str, resume_id: str) -> listing.StoredResume:
        if resume_id == first:
            begun.set()
            assert go.wait(LIMIT_S)
        return get_resume(store, account_id, resume_id)

    monkeypatch.setattr(listing, "get_resume", slow_for_first)
    async with running(store, size=LARGE) as pilot:
        await until(begun.is_set)
        await presses(pilot, "j")
        await shows(pilot.app, "▏ Second")

        go.set()
        await at_rest(pilot)
        await pilot.pause()

        await shows(pilot.app, "▏ Second")
        assert "▏ First" not in "\n".join(lines(pilot.app))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
async def test_a_screen_can_be_left_while_it_loads(
    store: Store, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(title="Mine"))
    other = next(one for one in MODES if one is not mode)
    with held_reads(monkeypatch) as go:
        async with running(store, screen=mode.name) as pilot:
            screen = pilot.app.screen
            await presses(pilot, other.key)
            await until(lambda: pilot.app.screen is not screen)
            go.set()
            await at_rest(pilot)
            await presses(pilot, mode.key)

            await until(lambda: the_list(pilot).pages.is_complete)
            assert pilot.app.screen is screen
            assert "…" not in lines(pilot.app)[1]
            assert toasts(pilot) == []


async def test_a_page_and_its_dialogs_can_be_left_while_they_load(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(title="Mine"))
    async with running(store) as pilot:
        await shows(pilot.app, "1 of 1", "Mine")
        with held_reads(monkeypatch) as go:
            for key in ("enter", "a"):
                await presses(pilot, key)
                await until(lambda: not isinstance(pilot.app.screen, ListScreen))
                await presses(pilot, "escape")
                await until(lambda: isinstance(pilot.app.screen, ListScreen))
            go.set()
            await at_rest(pilot)
            await pilot.pause()

        await presses(pilot, "enter")
        await shows(pilot.app, "ana · Mine")
        assert isinstance(pilot.app.screen, DetailScreen)
        assert toasts(pilot) == []


# What somebody else changes meanwhile.


@pytest.mark.parametrize(
    ("key", "typed"), [("D", ("w", "e", "b", "enter")), ("R", ("enter",))], ids=["revoke", "rotate"]
)
async def test_a_key_that_was_revoked_elsewhere_while_its_dialog_is_open(
    store: Store, key: str, typed: tuple[str, ...]
) -> None:
    new = keys.create_key(store, "ana", name="web")
    keys.mark_shown(store, new.id)
    async with running(store, screen="keys") as pilot:
        await shows(pilot.app, "✓ active")
        await presses(pilot, key)
        await shows(pilot.app, "Account    ana")
        keys.revoke_key(store, new.id)

        await presses(pilot, *typed)

        await shows(pilot.app, "revoked", "! ", "✗ revoked")
        assert len(toasts(pilot)) == 1
        assert [one.id for one in keys.list_keys(store)] == [new.id]


async def test_a_resume_that_was_deleted_under_the_cursor_leaves_its_line(store: Store) -> None:
    ids = stored_many(store, 60)
    async with running(store) as pilot:
        await shows(pilot.app, "1 of 60")
        await still(pilot.app)
        await presses(pilot, *["pagedown"] * 2, *["up"] * 5)
        cursor, before = the_list(pilot).cursor, rows_seen(pilot)

        listing.delete_resume(store, accounts.get_account(store, "ana").id, ids[cursor])

        await shows(pilot.app, "(deleted)")
        changed = [
            (old, new) for old, new in zip(before, rows_seen(pilot), strict=True) if old != new
        ]
        assert [new.strip() for _, new in changed] == ["(deleted)"]
        assert f"Number {cursor}" in changed[0][0]
        assert the_list(pilot).cursor == cursor
        await presses(pilot, "d")
        await shows(pilot.app, "There is no resume here to delete.")


@pytest.mark.parametrize("screen", ["keys", "imports"])
async def test_an_account_that_was_deleted_while_what_it_has_is_shown(
    store: Store, screen: str
) -> None:
    an_account(store, "gone")
    an_account(store, "zoe")
    keys.create_key(store, "zoe", name="web")
    a_file(store, account="zoe")
    async with running(store, screen=screen) as pilot:
        await presses(pilot, "a")
        await shows(pilot.app, "(all accounts)", "gone")
        await presses(pilot, "g", "j", "j", "enter")
        await shows(pilot.app, "gone · ")
        accounts.delete_account(store, "gone")

        await shows(pilot.app, '! Account not found: "gone"')
        await presses(pilot, "a")
        await shows(pilot.app, "(all accounts)", "zoe")
        await presses(pilot, "g", "enter")
        await shows(pilot.app, "all accounts · ", "zoe")
        await until(lambda: "not found" not in "".join(lines(pilot.app)))


@pytest.mark.parametrize("where", ["middle", "end"])
async def test_five_thousand_resumes_arrive_while_somebody_reads(store: Store, where: str) -> None:
    plans.set_plan_limits(store, plans.PlanChange("business", None))
    stored_many(store, 90)
    async with running(store) as pilot:
        await shows(pilot.app, "1 of 90")
        await still(pilot.app)
        await presses(pilot, *(("G",) if where == "end" else ("pagedown", "pagedown", "up")))
        shown = the_list(pilot)
        await shows(pilot.app, f"{shown.cursor + 1} of 90")
        was = shown.cursor, shown.scroll_offset, rows_seen(pilot)

        await asyncio.to_thread(stored_many, store, MANY)
        await until(lambda: shown.pages.count > 90 and not shown.pages.is_complete)
        await at_rest(pilot)

        assert (shown.cursor, shown.scroll_offset) == was[:2]
        whole = [row for row in was[2] if "Number" in row]
        assert rows_seen(pilot)[: len(whole)] == whole
        await presses(pilot, "j" if where == "middle" else "k")
        assert shown.cursor == was[0] + (1 if where == "middle" else -1)


# A store that is away.


async def test_while_the_store_is_gone_all_can_be_looked_at_and_afterwards_it_is_as_new(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(title="Before"))
    keys.create_key(store, "ana", name="web")
    a_file(store)
    async with running(store) as pilot:
        for mode in MODES:
            await presses(pilot, mode.key)
            await until(lambda: the_list(pilot).pages.is_complete)
        outage = Outage(monkeypatch)

        for mode in MODES:
            await presses(pilot, mode.key, "r")
            await shows(pilot.app, AWAY, "Trying again in 1 s.")
            assert the_list(pilot).is_stale
            assert the_list(pilot).pages.count
        assert toasts(pilot) == []

        outage.end()
        stored(store, a_document(title="After"))
        await presses(pilot, "1")
        await shows(pilot.app, "Before", "After", "1 of 2")
        await until(lambda: AWAY not in "".join(lines(pilot.app)))
        assert not the_list(pilot).is_stale
        assert toasts(pilot) == []


async def test_the_countdown_goes_on_and_each_wait_is_longer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(store) as pilot:
        await shows(pilot.app, "no resumes")
        outage = Outage(monkeypatch)
        for seconds in (1, 2):
            await shows(pilot.app, f"Trying again in {seconds} s.")
        outage.end()
        await until(lambda: AWAY not in "".join(lines(pilot.app)))


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
        ("accounts", ("n", *"bea", "enter")),
        ("plans", ("n", *"big", "enter")),
    ],
    ids=lambda value: value if isinstance(value, str) else "".join(value),
)
async def test_what_writes_says_in_one_line_that_the_store_is_gone(
    store: Store, screen: str, pressed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = keys.create_key(store, "ana", name="web")
    keys.mark_shown(store, new.id)
    a_file(store)
    async with running(store, screen=screen) as pilot:
        await until(lambda: the_list(pilot).pages.is_complete)
        Outage(monkeypatch)
        for key in pressed:
            await presses(pilot, key)

        def told() -> str:
            return " ".join([*lines(pilot.app), *toasts(pilot)])

        await until(lambda: AWAY in told())
        assert not isinstance(pilot.app.screen, ConfirmDialog)
        assert pilot.app.is_running


async def test_reading_goes_on_while_the_importer_writes(
    store: Store, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "inbox"
    root.mkdir()
    importer = AnImporter(store, root)
    async with running(store) as pilot:
        await shows(pilot.app, "no resumes")
        for number in range(150):
            importer.drop(f"ana/{number:03}.json", a_resume_file(f"Person {number:03}"))
        importing = asyncio.create_task(importer.round())
        while not importing.done():
            await presses(pilot, "G", "k", "pageup", "2", "1")
        await importing
        await until(lambda: isinstance(pilot.app.screen, ResumesScreen))
        shown = the_list(pilot)
        await until(lambda: shown.pages.count)
        await presses(pilot, "G")
        await until(lambda: shown.pages.is_complete and shown.pages.count == 150)
        found = [shown.pages.peek(number) for number in range(shown.pages.count)]
        ids = [row.id for row in found if isinstance(row, listing.Entry)]
        assert len(ids) == 150
        assert all(one < other for one, other in pairwise(ids))
        assert toasts(pilot) == []
    importer.close()


# Keys.


async def test_what_is_typed_at_once_after_the_slash_is_the_filter(store: Store) -> None:
    stored(store, a_document(name="Ada", title="Analyst"), a_document(name="Bo", title="Baker"))
    async with running(store) as pilot:
        await shows(pilot.app, "Baker")

        sends(pilot, "/bak")
        await pilot.pause()
        await at_rest(pilot)

        assert pilot.app.screen.query_one(SafeInput).value == "bak"


def sends(pilot: Pilot[int], text: str) -> None:
    """The terminal sends all of it at once, as over a slow line."""
    driver = pilot.app._driver
    assert driver is not None
    for char in text:
        driver.send_message(events.Key(_character_to_key(char), char))
