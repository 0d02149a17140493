"""The resumes of an account."""

import threading

import pytest

from resumes.errors import StoreUnavailable
from resumes.store import accounts, listing, plans
from resumes.store.engine import Store
from resumes.store.listing import Page
from tests.tui.builders import a_document, an_account, stored, stored_many
from tests.tui.driving import LARGE, LIMIT_S, at_rest, lines, presses, running, shows, until
from tui.screens.resumes.screen import ResumesScreen

pytestmark = pytest.mark.anyio


async def test_the_first_account_is_shown_when_none_is_given(store: Store) -> None:
    an_account(store, "aaron")
    stored(store, a_document(title="Mine"), account="aaron")
    async with running(store) as pilot:
        await shows(pilot.app, "aaron · 1 of 1", "Mine")


async def test_or_the_one_that_is(store: Store) -> None:
    an_account(store, "zoe")
    stored(store, a_document(title="Mine"), account="zoe")
    async with running(store, account="zoe") as pilot:
        await shows(pilot.app, "zoe · 1 of 1", "Mine")


async def test_a_resume_without_a_title_goes_by_its_name(store: Store) -> None:
    stored(store, a_document(name="Ada Lovelace"))
    async with running(store) as pilot:
        await shows(pilot.app, "Ada Lovelace Resume")


async def test_wide_terminals_show_id_name_and_filename(store: Store) -> None:
    (resume_id,) = stored(store, a_document(title="Mine", name="Ada"))
    async with running(store, size=LARGE) as pilot:
        await shows(pilot.app, "CREATED (UTC)", resume_id, "AdaResume.pdf", "Mine")


async def test_the_title_says_whether_there_is_more(store: Store) -> None:
    stored_many(store, 250)
    async with running(store) as pilot:
        await shows(pilot.app, "ana · 100 loaded · more…")
        for _ in range(3):
            await presses(pilot, "G")
            await at_rest(pilot)
        await presses(pilot, "G")

        await shows(pilot.app, "ana · 250 of 250")


async def test_paging_visits_every_resume_once_and_in_order(store: Store) -> None:
    plans.set_plan_limits(store, plans.PlanChange("business", None))
    an_account(store, "beyond")
    ids = stored_many(store, 1_000)
    stored_many(store, 3, account="beyond")
    ids += stored_many(store, 137)
    async with running(store) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ResumesScreen)
        seen: list[str] = []
        while len(seen) < len(ids):
            await until(lambda: screen.list.current is not None)
            row = screen.list.current
            assert row is not None
            seen.append(row.id)
            if len(seen) < len(ids):
                await until(lambda: screen.list.pages.count > len(seen))
                screen.list.action_move(1)

        assert seen == ids
        await until(lambda: screen.list.pages.is_complete)


async def test_without_accounts_it_says_how_to_make_one(empty_store: Store) -> None:
    async with running(empty_store) as pilot:
        await shows(pilot.app, "There are no accounts yet.", "`resumes accounts create NAME`")


async def test_an_empty_account_says_how_to_fill_it(store: Store) -> None:
    async with running(store) as pilot:
        await shows(pilot.app, "resumes import FILE --account ana")


async def test_an_error_stands_in_its_place_until_a_retry_works(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(title="Mine"))

    def fail(*_: object, **__: object) -> Page:
        raise StoreUnavailable("The disk is [gone]")

    with monkeypatch.context() as broken:
        broken.setattr(listing, "list_page", fail)
        async with running(store) as pilot:
            await shows(pilot.app, "! The disk is [gone]. r tries again.", "… not loaded")
            broken.undo()

            await presses(pilot, "r")

            await shows(pilot.app, "ana · 1 of 1", "Mine")
            assert "The disk" not in str(pilot.app.screen.query("ErrorLine"))


async def test_a_deleted_account_says_so(store: Store) -> None:
    async with running(store) as pilot:
        await shows(pilot.app, "ana · no resumes")
        accounts.delete_account(store, "ana")

        await presses(pilot, "r")

        await shows(pilot.app, 'Account not found: "ana"')


async def test_a_page_of_the_account_before_is_not_shown(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, a_document(title="Of ana"))
    zoe = an_account(store, "zoe")
    stored(store, a_document(title="Of zoe"), account="zoe")
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()
    list_page = listing.list_page

    def slow_for_ana(store: Store, account_id: str, *, cursor: str, limit: int) -> Page:
        if account_id != zoe.id:
            begun.set()
            assert go.wait(LIMIT_S)
            ended.set()
        return list_page(store, account_id, cursor=cursor, limit=limit)

    monkeypatch.setattr(listing, "list_page", slow_for_ana)
    async with running(store) as pilot:
        await until(begun.is_set)
        await presses(pilot, "3")
        await shows(pilot.app, "2 accounts")
        await presses(pilot, "j", "enter")
        await shows(pilot.app, "zoe · 1 of 1", "Of zoe")

        go.set()
        await until(ended.is_set)
        await pilot.pause()

        await shows(pilot.app, "zoe · 1 of 1", "Of zoe")


async def test_typing_finds_and_escape_brings_all_back(store: Store) -> None:
    stored(
        store,
        a_document(name="Ada Lovelace", title="Analyst"),
        a_document(name="Bo", title="Baker", header={"name": "Bo", "email": "bo@example.org"}),
    )
    async with running(store) as pilot:
        await shows(pilot.app, "ana · 1 of 2")

        await presses(pilot, "slash", *"love")
        await shows(pilot.app, 'ana · "love" · 1 of 1', "Analyst")
        await until(lambda: "Baker" not in "\n".join(lines(pilot.app)))

        await presses(pilot, "escape")
        await shows(pilot.app, "ana · 1 of 2", "Baker")


async def test_a_filter_stays_while_what_was_found_is_looked_at(store: Store) -> None:
    stored(store, a_document(name="Ada", title="Analyst"), a_document(name="Bo", title="Baker"))
    async with running(store) as pilot:
        await shows(pilot.app, "Baker")
        await presses(pilot, "slash", *"bak", "enter")
        await shows(pilot.app, 'ana · "bak" · 1 of 1')

        await presses(pilot, "enter")
        await shows(pilot.app, "ana · Baker")
        await presses(pilot, "escape")
        await shows(pilot.app, 'ana · "bak" · 1 of 1')

        await presses(pilot, "escape")
        await shows(pilot.app, "ana · 1 of 2")


async def test_nothing_found_says_what_was_looked_for(store: Store) -> None:
    stored(store, a_document(name="Ada"))
    async with running(store) as pilot:
        await shows(pilot.app, "Ada")
        await presses(pilot, "slash", *"[/b]zz")

        await shows(pilot.app, 'No resume of ana has "[/b]zz" in title, name or e-mail.')


async def test_the_filter_of_one_account_is_not_that_of_another(store: Store) -> None:
    an_account(store, "zoe")
    stored(store, a_document(title="Of zoe"), account="zoe")
    stored(store, a_document(title="Of ana"))
    async with running(store) as pilot:
        await shows(pilot.app, "Of ana")
        await presses(pilot, "slash", *"ana", "enter", "a")
        await shows(pilot.app, "Which account?")
        await presses(pilot, "j", "enter")

        await shows(pilot.app, "zoe · 1 of 1", "Of zoe")
