"""The accounts."""

from threading import Event

import pytest

from resumes.errors import StoreUnavailable
from resumes.store import accounts, keys, plans
from resumes.store.engine import Store
from resumes.store.plans import PlanChange
from tests.tui.builders import an_account, stored_many
from tests.tui.driving import LARGE, LIMIT_S, lines, presses, running, shows, until
from tui.screens.accounts.creating import CreateAccountDialog
from tui.screens.accounts.deleting import DeleteAccountDialog
from tui.screens.accounts.planning import PlanChooser, PlanDialog
from tui.screens.accounts.screen import AccountsScreen

pytestmark = pytest.mark.anyio


def names(screen: list[str]) -> list[str]:
    """The first words of the rows."""
    return [line.split()[0] for line in screen[3:-2] if line.strip()]


async def test_each_account_shows_its_plan_and_how_full_it_is(store: Store) -> None:
    an_account(store, "full", plan="free")
    stored_many(store, 5, account="full")
    plans.set_plan_limits(store, PlanChange("endless", None))
    an_account(store, "zoe", plan="endless")

    async with running(store, screen="accounts") as pilot:
        await shows(
            pilot.app,
            "3 accounts · by name",
            "business    ░░░░░░░░ 0/1,000 0 %",
            "free        ████████ 5/5 100 % !!",
            "endless     ········ 0, unlimited",
        )


async def test_wide_terminals_show_more_and_the_details_of_one(store: Store) -> None:
    an_account(store, "zoe")
    keys.create_key(store, "zoe")
    async with running(store, screen="accounts", size=LARGE) as pilot:
        await shows(pilot.app, "KEYS", "API LISTING", "NEWEST", "ID", "room for 1,000 more")

        await presses(pilot, "j")

        await shows(pilot.app, "1 active of 1", accounts.get_account(store, "zoe").id)
        pane = [line.partition("│")[2] for line in lines(pilot.app)]
        assert pane[2].strip() == "zoe"


async def test_without_accounts_it_says_how_to_make_one(empty_store: Store) -> None:
    async with running(empty_store, screen="accounts") as pilot:
        await shows(pilot.app, "There are no accounts yet.", "n makes one.")
        for key in ("p", "D", "K", "I"):
            await presses(pilot, key)
            await shows(pilot.app, "There is no account to ")
    async with running(empty_store, screen="accounts", read_only=True) as pilot:
        await shows(pilot.app, "`resumes accounts create NAME`")


async def test_a_new_account_is_there_after_a_reload(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        an_account(store, "zoe")

        await presses(pilot, "r")

        await shows(pilot.app, "2 accounts", "zoe")


async def test_an_account_deleted_elsewhere_leaves_the_details_too(store: Store) -> None:
    account = accounts.get_account(store, "ana")
    async with running(store, screen="accounts", size=LARGE) as pilot:
        await shows(pilot.app, "room for 1,000 more", account.id)
        accounts.delete_account(store, "ana")

        await presses(pilot, "r")

        await shows(pilot.app, "There are no accounts yet.")
        await until(lambda: not any("room for" in line for line in lines(pilot.app)))


async def test_they_are_sorted_by_name_or_the_fullest_first(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 1, account="zoe")
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "2 accounts")
        assert names(lines(pilot.app)) == ["ana", "zoe"]

        await presses(pilot, "s")
        await shows(pilot.app, "2 accounts · fullest first")
        await until(lambda: names(lines(pilot.app)) == ["zoe", "ana"])

        await presses(pilot, "s")
        await until(lambda: names(lines(pilot.app)) == ["ana", "zoe"])


async def test_an_account_is_made(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")

        await presses(pilot, "n")
        assert isinstance(pilot.app.screen, CreateAccountDialog)
        await presses(pilot, *"ana")
        await shows(pilot.app, '! Account "ana" exists already.')
        await presses(pilot, *"bel", "enter")

        await shows(pilot.app, "2 accounts", "anabel is there, on the plan free.", "inbox/anabel")


async def test_an_account_is_put_on_a_plan_that_fits_at_once(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("huge", None, api_listing=True))
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "p")
        await until(lambda: isinstance(pilot.app.screen, PlanChooser))
        await shows(pilot.app, "the plan it is on")
        await presses(pilot, "G", "enter")

        await shows(pilot.app, "ana is on the plan huge.", "huge        ········ 0, unlimited")
    assert accounts.get_account(store, "ana").plan == "huge"


async def test_a_plan_that_is_too_small_is_taken_after_a_question(store: Store) -> None:
    stored_many(store, 6)
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "6/1,000")
        await presses(pilot, "p")
        await shows(pilot.app, "! over: holds 6")
        await presses(pilot, "g", "enter")
        await until(lambda: isinstance(pilot.app.screen, PlanDialog))
        await shows(pilot.app, "holds 6, free allows 5: keeps them, takes no more")
        assert accounts.get_account(store, "ana").plan == "business"

        await presses(pilot, "tab", "enter")

        await shows(pilot.app, "ana is on the plan free.")
        await shows(pilot.app, "6/5 120 % !!")
    assert accounts.get_account(store, "ana").resume_count == 6


async def test_the_plan_that_it_is_on_changes_nothing(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "p")
        await shows(pilot.app, "the plan it is on")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana is on the plan business already.")


async def test_an_account_is_deleted_when_its_name_was_typed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "SLICE_RESUMES", 2)
    an_account(store, "zoe")
    stored_many(store, 5)
    async with running(store, screen="accounts", account="ana") as pilot:
        await shows(pilot.app, "2 accounts")
        await presses(pilot, "D")
        await until(lambda: isinstance(pilot.app.screen, DeleteAccountDialog))
        await shows(pilot.app, "Delete the account ana for good?", "Resumes    5")
        await presses(pilot, "enter")
        assert accounts.find_account(store, "ana") is not None
        await presses(pilot, *"ana", "enter")

        await shows(pilot.app, 'Account "ana" is gone, with 5 resumes.', "1 account")
        await until(lambda: names(lines(pilot.app)) == ["zoe"])
        assert pilot.app.session.account is None  # type: ignore[attr-defined]
    assert accounts.list_accounts(store, closed_too=True) == accounts.list_accounts(store)


async def test_the_ui_stays_alive_while_a_large_account_goes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "SLICE_RESUMES", 2)
    stored_many(store, 5)
    an_account(store, "zoe")
    really, may_go_on = accounts.delete_account, Event()

    def slowly(store: Store, name: str, **options: object) -> int:
        gone = really(store, name, with_resumes=True, goes_on=lambda _: False)
        options["goes_on"](gone)  # type: ignore[operator]
        assert may_go_on.wait(LIMIT_S)
        return gone + really(store, name, with_resumes=True)

    monkeypatch.setattr(accounts, "delete_account", slowly)
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "2 accounts")
        await presses(pilot, "D")
        await until(lambda: isinstance(pilot.app.screen, DeleteAccountDialog))
        await presses(pilot, *"ana", "enter")

        await shows(pilot.app, "deleting ana: 2 of 5 resumes", "being deleted, 3 left")
        for key in ("D", "enter", "p", "K"):
            await presses(pilot, key)
            await shows(pilot.app, "ana is being deleted.")
            assert isinstance(pilot.app.screen, AccountsScreen)
        await presses(pilot, "j", "p")
        await until(lambda: isinstance(pilot.app.screen, PlanChooser))
        await presses(pilot, "escape")
        may_go_on.set()

        await shows(pilot.app, 'Account "ana" is gone, with 5 resumes.')
        await until(lambda: not any("deleting" in line for line in lines(pilot.app)))


async def test_a_deletion_that_was_cut_off_is_gone_on_with(store: Store) -> None:
    stored_many(store, 501)
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda _: False)
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "being deleted, 1 left")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana is being deleted. D goes on with that.")
        await presses(pilot, "D")
        await until(lambda: isinstance(pilot.app.screen, DeleteAccountDialog))
        await presses(pilot, *"ana", "enter")
        await shows(pilot.app, 'Account "ana" is gone, with 1 resume.', "no accounts yet")


async def test_a_change_that_the_store_refuses_is_shown_in_place(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("The store is away")

    plans.set_plan_limits(store, PlanChange("huge", None, api_listing=True))
    monkeypatch.setattr(accounts, "set_plan", fail)
    monkeypatch.setattr(accounts, "delete_account", fail)
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "p")
        await shows(pilot.app, "the plan it is on")
        await presses(pilot, "G", "enter")
        await shows(pilot.app, "! The store is away")
        await presses(pilot, "r")
        await until(lambda: not any("is away" in line for line in lines(pilot.app)))

        await presses(pilot, "D")
        await until(lambda: isinstance(pilot.app.screen, DeleteAccountDialog))
        await presses(pilot, *"ana", "enter")
        await shows(pilot.app, "! The store is away")
        assert not any("deleting" in line for line in lines(pilot.app))


async def test_an_account_leads_to_its_resumes_its_keys_and_its_imports(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 3, account="zoe")
    keys.create_key(store, "ana", name="of ana")
    async with running(store, account="ana") as pilot:
        await shows(pilot.app, "ana holds no resumes yet")
        await presses(pilot, "3")
        await shows(pilot.app, "2 accounts")
        await presses(pilot, "j", "enter")
        await shows(pilot.app, "zoe · 1 of 3", "Number 2")

        await presses(pilot, "enter", "3", "k", "enter")
        await shows(pilot.app, "ana holds no resumes yet")

        await presses(pilot, "3", "j", "K")
        await shows(pilot.app, "zoe · 0 keys")
        await presses(pilot, "3", "I")
        await until(lambda: pilot.app.current_mode == "imports")
        assert pilot.app.session.imports_account == "zoe"  # type: ignore[attr-defined]
        await shows(pilot.app, "zoe · ")


async def test_read_only_has_no_keys_that_change_something(store: Store) -> None:
    async with running(store, screen="accounts", read_only=True) as pilot:
        await shows(pilot.app, "1 account")
        await shows(pilot.app, "K Keys")
        footer = lines(pilot.app)[-1]
        assert not any(label in footer for label in ("New", "Plan", "Delete"))

        for key in ("n", "p", "D"):
            await presses(pilot, key)
            assert isinstance(pilot.app.screen, AccountsScreen)
        await shows(pilot.app, "Read-only: start without --read-only")
