"""The accounts: how full they are, made, put on a plan, deleted."""

from pathlib import Path

import pytest

from resumes.settings import Settings
from resumes.store import accounts, api_keys, plans
from resumes.store.plans import PlanChange, Requests
from resumes.store.store import Store
from tests.support.terminal.builders import an_account, stored_many
from tests.support.terminal.driving import (
    LARGE,
    NEVER_S,
    at_rest,
    lines,
    presses,
    running,
    shows,
    shows_no,
    types,
    until,
)
from tests.support.terminal.outages import UnsteadyStore

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
            "business    ░░░░░░░░ 0/1,000 0%",
            "free        ████████ 5/5 100% full",
            "endless     ········ 0, unlimited",
        )


async def test_wide_terminals_show_more_and_the_details_of_one(store: Store) -> None:
    an_account(store, "zoe")
    api_keys.create_key(store, "zoe")
    async with running(store, screen="accounts", size=LARGE) as pilot:
        await shows(pilot.app, "KEYS", "API LISTING", "NEWEST", "ID", "1,000 left")

        await presses(pilot, "j")

        await shows(pilot.app, "1 active of 1", accounts.get_account(store, "zoe").id)
        pane = [line.partition("││")[2].strip("│ ") for line in lines(pilot.app)]
        assert pane[2] == "zoe"


async def test_without_accounts_it_says_how_to_make_one(empty_store: Store) -> None:
    async with running(empty_store, screen="accounts") as pilot:
        await shows(pilot.app, "No accounts yet.", "Press n to create one.")
        for key in ("p", "D", "K", "I"):
            await presses(pilot, key)
            await shows(pilot.app, "No account to ")
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
        await shows(pilot.app, "1,000 left", account.id)
        accounts.delete_account(store, "ana")

        await presses(pilot, "r")

        await shows(pilot.app, "No accounts yet.")
        await shows_no(pilot.app, " left")


async def test_they_are_sorted_by_name_or_the_fullest_first(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 1, account="zoe")
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "2 accounts")
        await until(lambda: names(lines(pilot.app)) == ["ana", "zoe"])

        await presses(pilot, "s")
        await shows(pilot.app, "2 accounts · fullest first")
        await until(lambda: names(lines(pilot.app)) == ["zoe", "ana"])

        await presses(pilot, "s")
        await until(lambda: names(lines(pilot.app)) == ["ana", "zoe"])


async def test_an_account_is_put_on_a_plan_that_fits_at_once(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("huge", None, api_listing=True))
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "p")
        await shows(pilot.app, "Choose plan for")
        await shows(pilot.app, "current")
        await presses(pilot, "G", "enter")

        await shows(pilot.app, "Moved ana to plan huge.", "huge        ········ 0, unlimited")
    assert accounts.get_account(store, "ana").plan == "huge"


async def test_a_change_is_seen_though_the_list_was_being_read_meanwhile(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("huge", None, api_listing=True))
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="accounts", refresh_s=NEVER_S) as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "p")
        await shows(pilot.app, "current")
        await at_rest(pilot)
        change = unsteady.hold("write")
        before = unsteady.hold("answer", after=1)  # the second is the accounts
        await presses(pilot, "G", "enter")
        await until(before.begun.is_set)
        unsteady.hold_no_more()
        change.go.set()
        await shows(pilot.app, "Moved ana to plan huge.")
        before.go.set()
        await shows(pilot.app, "huge        ········ 0, unlimited")


async def test_a_plan_that_is_too_small_is_taken_after_a_question(store: Store) -> None:
    stored_many(store, 6)
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "6/1,000")
        await presses(pilot, "p")
        await shows(pilot.app, "! over limit (has 6)")
        await presses(pilot, "g", "enter")
        await shows(pilot.app, "6 (limit 5): kept, but new ones are refused")
        assert accounts.get_account(store, "ana").plan == "business"

        await presses(pilot, "tab", "enter")

        await shows(pilot.app, "Moved ana to plan free.")
        await shows(pilot.app, "6/5 120% over")
    assert accounts.get_account(store, "ana").resume_count == 6


async def test_the_plan_that_it_is_on_changes_nothing(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "p")
        await shows(pilot.app, "current")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana is already on plan business.")


async def test_a_deletion_that_was_cut_off_is_gone_on_with(store: Store) -> None:
    stored_many(store, 501)
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda _: False)
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "being deleted, 1 left")
        await presses(pilot, "enter")
        await shows(pilot.app, "ana is being deleted. Press D to continue.")
        await presses(pilot, "D")
        await shows(pilot.app, "Permanently delete account ana?")
        await presses(pilot, *"ana", "enter")
        await shows(pilot.app, "Deleted ana with 1 resume.", "No accounts yet")


async def test_an_account_leads_to_its_resumes_its_keys_and_its_imports(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 3, account="zoe")
    api_keys.create_key(store, "ana", name="of ana")
    async with running(store, account="ana") as pilot:
        await shows(pilot.app, "ana has no resumes yet")
        await presses(pilot, "3")
        await shows(pilot.app, "2 accounts")
        await presses(pilot, "j", "enter")
        await shows(pilot.app, "Accounts › zoe › Resumes · 1 of 3", "Number 2")

        await presses(pilot, "enter", "3", "k", "enter")
        await shows(pilot.app, "ana has no resumes yet")

        await presses(pilot, "3", "j", "K")
        await shows(pilot.app, "Accounts › zoe › Keys · 0 keys")
        await presses(pilot, "3", "I")
        await shows(pilot.app, "OUTCOME", "Accounts › zoe › Imports · ")


# What is told of one.


async def test_an_account_is_told_with_its_plan_keys_and_files(store: Store) -> None:
    stored_many(store, 3)
    api_keys.create_key(store, "ana")
    api_keys.revoke_key(store, api_keys.create_key(store, "ana").id)
    rates = {Requests.PER_HOUR: 7, Requests.PER_DAY: 0}
    plans.set_plan_limits(store, PlanChange("business", 1_000, requests=rates))
    settings = Settings(rate_per_minute=123)
    async with running(store, screen="accounts", size=LARGE, settings=settings) as pilot:
        await shows(pilot.app, "3 of 1,000", "997 left", "123 (default)")
        await shows(pilot.app, "1 active of 2", accounts.get_account(store, "ana").id)
        pane = [line.partition("││")[2].strip("│").split() for line in lines(pilot.app)]
    assert ["Per", "hour", "7"] in pane
    assert ["Per", "day", "unlimited"] in pane
    assert ["Last", "used", "—"] in pane


async def test_an_account_that_is_over_or_cannot_be_is_told_so(store: Store) -> None:
    stored_many(store, 6)
    accounts.set_plan(store, "ana", "free")
    plans.set_plan_limits(store, PlanChange("endless", None))
    an_account(store, "zoe", plan="endless")
    settings = Settings(rate_per_minute=0)
    async with running(store, screen="accounts", size=LARGE, settings=settings) as pilot:
        await shows(pilot.app, "6/5 120% over", "over limit: existing", "unlimited (default)")
        await presses(pilot, "j")
        await shows(pilot.app, "0 of unlimited")
        await shows_no(pilot.app, " left")


# Making one.


async def test_an_account_is_made_on_the_first_plan_with_its_inbox(
    store: Store, tmp_path: Path
) -> None:
    async with running(store, screen="accounts", settings=Settings(home=tmp_path)) as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "n")
        await shows(pilot.app, "Allows 5 resumes, no API listing.")
        await types(pilot, "ana\n")
        await shows(pilot.app, '! Account "ana" already exists.', "ana")
        await types(pilot, "bel\n\n")
        await shows(pilot.app, "2 accounts", "Created anabel (plan: free).", "inbox/anabel")
    assert accounts.get_account(store, "anabel").plan == "free"
    assert (tmp_path / "inbox" / "anabel").is_dir()


async def test_another_plan_is_chosen_by_what_it_allows(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "n")
        await shows(pilot.app, "Allows 5 resumes")
        await types(pilot, "zoe")
        await presses(pilot, "tab", "enter", "down", "down", "enter")
        await shows(pilot.app, "Allows 1,000 resumes, with API listing.")
        await presses(pilot, "tab", "enter")
        await shows(pilot.app, "Created zoe (plan: business).")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Zoe", '! "Zoe" is not a valid name. Use 1 to 63'),
        ("-z", '! "-z" is not a valid name.'),
        ("", '! "" is no'),
    ],
)
async def test_a_bad_name_is_said_as_it_is_typed_and_is_not_lost(
    store: Store, name: str, problem: str
) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "n")
        await shows(pilot.app, "Allows")
        await types(pilot, f"{name}\n")
        await shows(pilot.app, problem, name)
        await presses(pilot, "ctrl+u")
        await types(pilot, "z")
        await shows_no(pilot.app, "! ")
        await presses(pilot, "escape")
        await shows(pilot.app, "1 account")
    assert [account.name for account in accounts.list_accounts(store)] == ["ana"]


async def test_an_inbox_that_cannot_be_made_leaves_the_account_and_says_why(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "inbox").write_text("in the way")
    async with running(store, screen="accounts", settings=Settings(home=tmp_path)) as pilot:
        await shows(pilot.app, "1 account")
        await types(pilot, "nzoe\n\n")
        await shows(pilot.app, "2 accounts", "Not a directory")


async def test_what_the_store_refuses_is_said_and_can_be_tried_again(store: Store) -> None:
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await types(pilot, "n")
        await shows(pilot.app, "Allows")
        unsteady.go_away("The store is away")
        await types(pilot, "zoe\n\n")
        await shows(pilot.app, "! The store is away. Your input was kept.", "zoe")

        unsteady.come_back()
        await at_rest(pilot)
        await presses(pilot, "enter")
        await shows(pilot.app, "2 accounts", "Created zoe")


async def test_what_is_being_made_cannot_be_cancelled_and_is_told(store: Store) -> None:
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        making = unsteady.hold("write")
        await types(pilot, "nzoe\n\n")
        await until(making.begun.is_set)
        await presses(pilot, "escape")
        await shows(pilot.app, "Saving…", "zoe")
        making.go.set()
        await shows(pilot.app, "2 accounts", "Created zoe")


# Changing and deleting one.


async def test_the_plans_say_what_each_means_for_the_account(store: Store) -> None:
    stored_many(store, 7)
    plans.set_plan_limits(store, PlanChange("huge", None, api_listing=True))
    plans.set_plan_limits(store, PlanChange("listing", 50, api_listing=True))
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        await presses(pilot, "p")
        await shows(pilot.app, "Choose plan for ana")
        await shows(pilot.app, "! over limit (has 7)", "! loses API listing", "current", "43 left")
        await presses(pilot, "g", "j", "j", "enter")
        await shows(pilot.app, "lost: its keys can no longer list or read")
        await shows(pilot.app, "Nothing is deleted.")
        await presses(pilot, "enter")  # which is Cancel
        await shows(pilot.app, "1 account")
    assert accounts.get_account(store, "ana").plan == "business"


async def test_an_account_is_deleted_when_its_name_was_typed(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 5)
    api_keys.create_key(store, "ana")
    async with running(store, screen="accounts", account="ana") as pilot:
        await shows(pilot.app, "2 accounts")
        await presses(pilot, "D")
        await shows(pilot.app, "Permanently delete account ana?", "Resumes    5")
        await shows(pilot.app, "Keys       1 (1 active)", "Files      0 in the import history")
        await types(pilot, "an\n")
        await shows(pilot.app, 'Type "ana" exactly to confirm.')
        assert accounts.find_account(store, "ana") is not None
        await types(pilot, "a\n")

        await shows(pilot.app, "Deleted ana with 5 resumes.", "1 account")
        await until(lambda: names(lines(pilot.app)) == ["zoe"])
        await presses(pilot, "1")
        await shows(pilot.app, "zoe · no resumes")
    assert accounts.list_accounts(store, closed_too=True) == accounts.list_accounts(store)


async def test_the_ui_stays_alive_while_a_large_account_goes(store: Store) -> None:
    stored_many(store, 501)
    an_account(store, "zoe")
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="accounts") as pilot:
        await shows(pilot.app, "2 accounts")
        slices = unsteady.hold("write", after=2)
        await presses(pilot, "D")
        await shows(pilot.app, "Permanently delete account ana?")
        await types(pilot, "ana\n")

        await until(slices.begun.is_set)
        await shows(pilot.app, "deleting ana: 500 of 501 resumes", "being deleted, 1 left")
        for key in ("D", "enter", "p", "K"):
            await presses(pilot, key)
            await shows(pilot.app, "ana is being deleted.", "2 accounts")
        await presses(pilot, "j", "p")
        await shows(pilot.app, "Choose plan for zoe")
        await presses(pilot, "escape")
        slices.go.set()

        await shows(pilot.app, "Deleted ana with 501 resumes.")
        await shows_no(pilot.app, "deleting")


async def test_the_end_of_the_program_ends_a_deletion_after_the_slice(store: Store) -> None:
    stored_many(store, 1_000)
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        slices = unsteady.hold("write", after=1)
        await presses(pilot, "D")
        await shows(pilot.app, "Permanently delete account ana?")
        await types(pilot, "ana\n")
        await until(slices.begun.is_set)
        await presses(pilot, "ctrl+q")
        slices.go.set()
    await until(slices.ended.is_set)
    (left,) = accounts.list_accounts(store, closed_too=True)
    assert left.is_closed
    assert left.resume_count >= 500


async def test_a_change_that_the_store_refuses_is_shown_in_place(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("huge", None, api_listing=True))
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="accounts", refresh_s=NEVER_S) as pilot:
        await shows(pilot.app, "1 account")
        unsteady.go_away("The store is away", only="write")
        await presses(pilot, "p")
        await shows(pilot.app, "current")
        await presses(pilot, "G", "enter")
        await shows(pilot.app, "! The store is away")
        await presses(pilot, "r")
        await shows_no(pilot.app, "is away")

        await presses(pilot, "D")
        await shows(pilot.app, "Permanently delete account ana?")
        await types(pilot, "ana\n")
        await shows(pilot.app, "! The store is away")
        await shows_no(pilot.app, "deleting")


async def test_nothing_is_asked_once_the_reader_is_elsewhere(store: Store) -> None:
    an_account(store, "zoe")
    unsteady = UnsteadyStore(store)
    async with running(unsteady, screen="accounts", refresh_s=NEVER_S) as pilot:
        await shows(pilot.app, "2 accounts")
        losses = unsteady.hold("read")
        await presses(pilot, "D")
        await until(losses.begun.is_set)
        unsteady.hold_no_more()
        await presses(pilot, "4")
        await shows(pilot.app, "3 plans")
        losses.go.set()
        await until(losses.ended.is_set)
        await at_rest(pilot)
        await presses(pilot, "3")
        await shows(pilot.app, "2 accounts")
        await shows_no(pilot.app, "Permanently delete account ana?")
