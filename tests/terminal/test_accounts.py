"""The accounts: how full they are, made, put on a plan, deleted."""

from pathlib import Path

import pytest

from resumes.settings import Settings
from resumes.store import accounts, api_keys, plans
from resumes.store.plans import PlanChange
from resumes.store.store import Store
from tests.support.clocks import FakeMonotonic
from tests.support.terminal.builders import an_account, stored_many
from tests.support.terminal.driving import (
    LARGE,
    NEVER_S,
    leads,
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


async def test_without_accounts_it_says_how_to_make_one(empty_store: Store) -> None:
    async with running(empty_store, screen="accounts") as pilot:
        await shows(pilot.app, "No accounts yet.", "Press n to create one.")
        for key in ("e", "p", "D", "K", "N", "I"):
            await leads(pilot, key, "No account to ")
    async with running(empty_store, screen="accounts", read_only=True) as pilot:
        await shows(pilot.app, "`resumes accounts create NAME`")


async def test_an_account_is_put_on_a_plan_that_fits_at_once(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("huge", None, api_listing=True))
    async with running(store, "1 account", screen="accounts", refresh_s=NEVER_S) as pilot:
        await leads(pilot, "p", "Choose plan for", "current")
        await leads(pilot, "enter", "ana is already on plan business.")
        await leads(pilot, "p", "Choose plan for", "current")
        await leads(
            pilot, "G enter", "Moved ana to plan huge.", "huge        ········ 0, unlimited"
        )
        assert accounts.get_account(store, "ana").plan == "huge"

        # Another account with the same name is not the one that was chosen.
        for key, dialog, answer in (("p", "current", "G enter"), ("e", "Edit account", "x enter")):
            await leads(pilot, key, dialog)
            accounts.delete_account(store, "ana")
            another = an_account(store, "ana")
            await leads(pilot, answer, ' Account not found: "ana".')
    assert accounts.get_account(store, "ana") == another


async def test_an_account_is_renamed_and_the_other_screens_follow(store: Store) -> None:
    stored_many(store, 3)
    an_account(store, "bo")
    async with running(store, "ana", "1 of 3", account="ana") as pilot:
        await leads(pilot, "space j space d", "Press u to undo")
        await leads(pilot, "3", "2 accounts")
        await leads(pilot, "e", "Edit account ana", "Files in the folder ana still belong to it")
        await leads(pilot, "enter", "Saved ana (plan: business).")
        await leads(pilot, "e", "Edit account ana")
        await presses(pilot, *["backspace"] * 3)
        await types(pilot, "bo", '! Account "bo" already exists.')
        await types(pilot, "b\n", "Saved bob (plan: business). Inbox: inbox/bob")
        await leads(pilot, "1", "bob")
        await leads(pilot, "u", "1 of 3")
    renamed = accounts.get_account(store, "bob")
    assert (renamed.former_names, renamed.resume_count) == ("ana", 3)


async def test_the_options_of_an_account_are_set(store: Store) -> None:
    async with running(store, "ana", screen="accounts", size=LARGE) as pilot:
        await shows(pilot.app, "First month   default", "On newer      keep")
        await leads(pilot, "e", "Edit account ana", "The number of January", "which are deleted")
        await presses(pilot, "tab", "enter", "down", "down", "enter")
        await presses(pilot, "tab", "enter", "down", "enter", "tab", "enter")
        await shows(pilot.app, "Saved ana", "First month   1", "On newer      replace")
    account = accounts.get_account(store, "ana")
    assert (account.first_month, account.on_newer) == (1, "replace")


async def test_a_deletion_that_was_cut_off_is_gone_on_with(store: Store) -> None:
    stored_many(store, 501)
    accounts.delete_account(store, "ana", with_resumes=True, should_continue=lambda _: False)
    async with running(store, "being deleted, 1 left", screen="accounts") as pilot:
        await leads(pilot, "enter", "ana is being deleted. Press D to continue.")
        await leads(pilot, "D", "Permanently delete account ana?")
        await types(pilot, "ana\n", "Deleted ana with 1 resume.", "No accounts yet")


async def test_an_account_leads_to_its_resumes_its_keys_and_its_imports(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 3, account="zoe")
    api_keys.create_key(store, "ana", name="of ana")
    async with running(store, "ana has no resumes yet", account="ana") as pilot:
        await leads(pilot, "3", "2 accounts")
        await leads(pilot, "j enter", "Accounts › zoe › Resumes · 1 of 3", "Number 2")

        await leads(pilot, "enter 3 k enter", "ana has no resumes yet")

        await leads(pilot, "3 j K", "Accounts › zoe › Keys · 0 keys")
        await leads(pilot, "3 I", "OUTCOME", "Accounts › zoe › Imports · ")


async def test_a_key_is_created_for_the_account_at_the_cursor(store: Store) -> None:
    an_account(store, "zoe")
    async with running(store, "2 accounts", screen="accounts") as pilot:
        await leads(pilot, "j N", "New key", "zoe", "Expires")
        await leads(pilot, "escape", "Accounts › zoe › Keys · 0 keys")
        await leads(pilot, "escape N", "New key", "zoe", "Expires")
        await types(pilot, "web\n\n", "New API key for zoe")
        await leads(pilot, "s", "Accounts › zoe › Keys · 1 key", "✓ active", "web")
        await leads(pilot, "escape", "2 accounts")
    assert [key.name for key in api_keys.list_keys(store, account="zoe")] == ["web"]


# Making one.


async def test_an_account_is_made_on_the_first_plan_with_its_inbox(
    store: Store, tmp_path: Path
) -> None:
    async with running(store, screen="accounts", settings=Settings(home=tmp_path)) as pilot:
        await shows(pilot.app, "1 account")
        await leads(pilot, "n", "Allows 5 resumes, no API listing.")
        await types(pilot, "ana\n", '! Account "ana" already exists.', "ana")
        await types(pilot, "bel\n\n", "2 accounts", "Created anabel (plan: free).", "inbox/anabel")
    assert accounts.get_account(store, "anabel").plan == "free"
    assert (tmp_path / "inbox" / "anabel").is_dir()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Zoe", "! Invalid account name 'Zoe': use 1 to 63"),
        ("-z", "! Invalid account name '-z'"),
        ("", "! Invalid account name ''"),
    ],
)
async def test_a_bad_name_is_said_as_it_is_typed_and_is_not_lost(
    store: Store, name: str, problem: str
) -> None:
    async with running(store, "1 account", screen="accounts") as pilot:
        await leads(pilot, "n", "Allows")
        await types(pilot, f"{name}\n", problem, name)
        await presses(pilot, "ctrl+u")
        await types(pilot, "z")
        await shows_no(pilot.app, "! ")
        await leads(pilot, "escape", "1 account")
    assert [account.name for account in accounts.list_accounts(store)] == ["ana"]


async def test_an_inbox_that_cannot_be_made_leaves_the_account_and_says_why(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "inbox").write_text("in the way")
    settings, wide = Settings(home=tmp_path), (240, 40)  # one line, however long the path is
    async with running(store, screen="accounts", settings=settings, size=wide) as pilot:
        await shows(pilot.app, "1 account")
        await types(pilot, "nzoe\n\n", "2 accounts", "Not a directory")


# Changing and deleting one.


async def test_a_plan_that_takes_something_is_taken_after_a_question(store: Store) -> None:
    stored_many(store, 7)
    plans.set_plan_limits(store, PlanChange("huge", None, api_listing=True))
    plans.set_plan_limits(store, PlanChange("listing", 50, api_listing=True))
    async with running(store, "7/1,000", screen="accounts") as pilot:
        await leads(pilot, "p", "Choose plan for ana")
        await shows(pilot.app, "! over limit (has 7)", "! loses API listing", "current", "43 left")
        await leads(pilot, "g j j enter", "lost: its keys can no longer list or read")
        await leads(pilot, "enter", "1 account")  # which is Cancel
        assert accounts.get_account(store, "ana").plan == "business"

        await leads(pilot, "p", "Choose plan for ana", "current")
        await leads(pilot, "g enter", "7 (limit 5): kept, but new ones are refused")
        await shows(pilot.app, "Nothing is deleted.")
        await leads(pilot, "tab enter", "Moved ana to plan free.", "7/5 140% over")
    assert accounts.get_account(store, "ana").resume_count == 7


async def test_an_account_is_deleted_when_its_name_was_typed(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 5)
    api_keys.create_key(store, "ana")
    async with running(store, "2 accounts", screen="accounts", account="ana") as pilot:
        await leads(pilot, "D", "Permanently delete account ana?", "Resumes    5")
        await shows(pilot.app, "Keys       1 (1 active)", "Files      0 in the import history")
        await types(pilot, "an\n", 'Type "ana" exactly to confirm.')
        assert accounts.find_account(store, "ana") is not None
        await types(pilot, "a\n", "Deleted ana with 5 resumes.", "1 account")
        await until(lambda: names(lines(pilot.app)) == ["zoe"])
        await leads(pilot, "1", "zoe · no resumes")
    assert accounts.list_accounts(store, include_closed=True) == accounts.list_accounts(store)


async def test_a_deletion_is_not_undone_once_its_account_is_deleted(store: Store) -> None:
    stored_many(store, 2)
    async with running(store, "1 of 2", clock=FakeMonotonic()) as pilot:
        await leads(pilot, "d", "Deleting in 10 s")
        await leads(pilot, "3", "1 account")
        await leads(pilot, "D", "Permanently delete account ana?")
        await types(pilot, "ana\n", "Deleted ana with 2 resumes.")
        await leads(pilot, "u", "Nothing to undo.")


async def test_the_ui_stays_alive_while_a_large_account_goes(store: Store) -> None:
    stored_many(store, 501)
    an_account(store, "zoe")
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "2 accounts", screen="accounts", refresh_s=0.1) as pilot:
        slices = unsteady.hold("write", after=2)
        await leads(pilot, "D", "Permanently delete account ana?")
        await types(pilot, "ana\n")

        await until(slices.begun.is_set)
        await shows(pilot.app, "being deleted, 1 left")
        for key in ("D", "enter", "p", "K"):
            await leads(pilot, key, "ana is being deleted.", "2 accounts")
        await leads(pilot, "j p", "Choose plan for zoe")
        await presses(pilot, "escape")
        slices.go.set()

        await shows(pilot.app, "Deleted ana with 501 resumes.")


async def test_the_end_of_the_program_ends_a_deletion_after_the_slice(store: Store) -> None:
    stored_many(store, 1_000)
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "1 account", screen="accounts") as pilot:
        slices = unsteady.hold("write", after=1)
        await leads(pilot, "D", "Permanently delete account ana?")
        await types(pilot, "ana\n")
        await until(slices.begun.is_set)
        await presses(pilot, "ctrl+q")
        slices.go.set()
    await until(slices.ended.is_set)
    (left,) = accounts.list_accounts(store, include_closed=True)
    assert left.is_closed
    assert left.resume_count >= 500


async def test_nothing_is_asked_once_the_reader_is_elsewhere(store: Store) -> None:
    an_account(store, "zoe")
    unsteady = UnsteadyStore(store)
    async with running(unsteady, "2 accounts", screen="accounts", refresh_s=NEVER_S) as pilot:
        losses = await unsteady.holds_back(pilot, "D")
        await leads(pilot, "4", "3 plans")
        await losses.arrives(pilot)
        await leads(pilot, "3", "2 accounts")
        await shows_no(pilot.app, "Permanently delete account ana?")

        await leads(pilot, "p", "Choose plan for ana", "! loses API listing")
        with unsteady.held_reads() as again:
            await presses(pilot, "g", "enter")
            await until(again.begun.is_set)
            await leads(pilot, "4", "Plans")
        await again.arrives(pilot)
        await leads(pilot, "3", "2 accounts")
        await shows_no(pilot.app, "Move ana to plan")
