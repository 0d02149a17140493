"""The accounts."""

import pytest

from resumes.store import plans
from resumes.store.engine import Store
from resumes.store.plans import PlanChange
from tests.tui.builders import an_account, stored_many
from tests.tui.driving import LARGE, presses, running, shows

pytestmark = pytest.mark.anyio


async def test_each_account_shows_its_plan_and_how_full_it_is(store: Store) -> None:
    an_account(store, "full", plan="free")
    stored_many(store, 5, account="full")
    plans.set_plan_limits(store, PlanChange("endless", None))
    an_account(store, "zoe", plan="endless")

    async with running(store, screen="accounts") as pilot:
        await shows(
            pilot.app,
            "3 accounts",
            "business    ░░░░░░░░ 0/1,000 0 %",
            "free        ████████ 5/5 100 % !!",
            "endless     ········ 0, unlimited",
        )


async def test_wide_terminals_show_more(store: Store) -> None:
    async with running(store, screen="accounts", size=LARGE) as pilot:
        await shows(pilot.app, "API LISTING", "ID")


async def test_without_accounts_it_says_how_to_make_one(empty_store: Store) -> None:
    async with running(empty_store, screen="accounts") as pilot:
        await shows(pilot.app, "There are no accounts yet.", "`resumes accounts create NAME`")


async def test_a_new_account_is_there_after_a_reload(store: Store) -> None:
    async with running(store, screen="accounts") as pilot:
        await shows(pilot.app, "1 account")
        an_account(store, "zoe")

        await presses(pilot, "r")

        await shows(pilot.app, "2 accounts", "zoe")
