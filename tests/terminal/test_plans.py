"""The plans: listed, edited after a review, made."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from resumes.errors import InvalidArgument
from resumes.store import plans
from resumes.store.plans import PlanChange, PlanInfo, parse_maximum
from resumes.store.retention import DAY_US
from resumes.store.store import Store
from tests.support.terminal.builders import an_account, stored_many
from tests.support.terminal.driving import (
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


async def test_a_plan_is_edited_and_listed_as_it_is_now(store: Store) -> None:
    async with running(store, "3 plans", screen="plans") as pilot:
        await leads(pilot, "j enter", "API listing")
        # What is typed takes the place of the old limit.
        await leads(pilot, "7 7 enter", "Change plan", "50 → 77")
        await leads(pilot, "tab enter", "Saved plan pro: 77 resumes, no API listing.")
        await until(lambda: any(line.split()[:2] == ["pro", "77"] for line in lines(pilot.app)))


# The form.


@asynccontextmanager
async def editing(store: Store, name: str | None) -> AsyncIterator[Pilot[int]]:
    """The form of this plan is open, or of a new one."""
    async with running(store, "3 plans", screen="plans", refresh_s=NEVER_S) as pilot:
        if name is None:
            await presses(pilot, "n")
        else:
            await presses(pilot, *["j"] * ["free", "pro", "business"].index(name), "e")
        await shows(pilot.app, "API listing", "Save")
        yield pilot


async def writes(pilot: Pilot[int], text: str) -> None:
    """The line that has the focus reads so."""
    await presses(pilot, "end", "ctrl+u")
    await types(pilot, text)


async def saves(pilot: Pilot[int]) -> None:
    """The review is confirmed."""
    await shows(pilot.app, "Change plan")
    await presses(pilot, "tab", "enter")


async def test_a_change_is_saved_after_it_was_reviewed(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 3, account="zoe")
    async with editing(store, "business") as pilot:
        await writes(pilot, "2\n")
        await shows(pilot.app, "Change plan business for 2 accounts?", "1,000 → 2")
        await shows(pilot.app, "Nothing is deleted. 1 account is", "limit of 2: zoe (3).")
        assert plans.get_plan(store, "business").max_resumes == 1_000

        await saves(pilot)
        await shows(pilot.app, "Saved plan business: 2 resumes, with API listing.")
    assert plans.get_plan(store, "business") == PlanInfo(
        name="business", max_resumes=2, api_listing=True, accounts=2
    )


async def test_a_plan_is_told_for_how_long_to_keep_resumes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_many(store, 3)
    now_us = store.clock() + 40 * DAY_US
    monkeypatch.setattr(store, "clock", lambda: now_us)
    async with editing(store, "business") as pilot:
        await presses(pilot, "tab", "tab")
        await writes(pilot, "soon")
        await shows(pilot.app, '! "soon" is neither a number of days nor forever')
        await writes(pilot, "30\n")
        await shows(pilot.app, "forever → 30 days", "1 account has", "(3)")
        await shows(pilot.app, "Resumes older than 30 days", "erased within the hour")
        await saves(pilot)
        await shows(pilot.app, "with API listing, kept for 30 days.")
    assert plans.get_plan(store, "business").keep_days == 30


async def test_no_change_and_a_bad_limit_are_told_and_nothing_is_lost(store: Store) -> None:
    problem = '! "many" is neither a number of resumes nor unlimited'
    async with editing(store, "pro") as pilot:
        await leads(pilot, "enter", "! No changes to save.")
        await writes(pilot, "many")
        await shows(pilot.app, problem)
        await leads(pilot, "enter", problem)
        await writes(pilot, "7")
        await shows_no(pilot.app, "neither")
    assert plans.get_plan(store, "pro") == PlanInfo(name="pro", max_resumes=50)


async def test_a_plan_changed_elsewhere_is_not_overwritten_unseen(store: Store) -> None:
    async with editing(store, "pro") as pilot:
        await writes(pilot, "30")
        plans.set_plan_limits(store, PlanChange("pro", 40, True))
        await presses(pilot, "enter")
        await saves(pilot)

        await shows(pilot.app, '! Plan "pro" was changed by someone else', "50 → 40", "no → yes")
        assert plans.get_plan(store, "pro").max_resumes == 40

        await writes(pilot, "30\n")
        await shows(pilot.app, "40 → 30")
        await saves(pilot)
        await until(lambda: plans.get_plan(store, "pro").max_resumes == 30)
    assert plans.get_plan(store, "pro") == PlanInfo(name="pro", max_resumes=30, api_listing=True)


async def test_a_new_plan_is_made_with_all_that_was_typed(store: Store) -> None:
    async with editing(store, None) as pilot:
        await shows_no(pilot.app, "! ")
        await writes(pilot, "gold")
        await presses(pilot, "tab")
        await writes(pilot, "unlimited")
        await presses(pilot, "tab", "enter", "down", "enter", "tab", "tab", "enter")
        await shows(pilot.app, "Saved plan gold: unlimited resumes, with API listing.")
    assert plans.get_plan(store, "gold") == PlanInfo(
        name="gold", max_resumes=None, api_listing=True, accounts=0
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [("Gold", "! Invalid plan name 'Gold'"), ("pro", '! Plan "pro" already exists')],
)
async def test_a_new_plan_needs_a_name_of_its_own(store: Store, name: str, problem: str) -> None:
    async with editing(store, None) as pilot:
        await writes(pilot, f"{name}\n\n")
        await shows(pilot.app, problem, name)
    assert [plan.name for plan in plans.list_plans(store)] == ["free", "pro", "business"]


async def test_a_store_that_is_away_loses_nothing_that_was_typed(store: Store) -> None:
    unsteady = UnsteadyStore(store)
    async with editing(unsteady, "pro") as pilot:
        unsteady.go_away("The store is away")
        await writes(pilot, "31\n")
        await shows(pilot.app, "! The store is away. Your input was kept", "31")

        unsteady.come_back()
        await presses(pilot, "enter")
        await saves(pilot)
        await shows(pilot.app, "Saved plan pro: 31 resumes")


@pytest.mark.parametrize("name", [None, "pro"])
async def test_what_is_being_saved_cannot_be_cancelled_and_is_told(
    store: Store, name: str | None
) -> None:
    unsteady = UnsteadyStore(store)
    async with editing(unsteady, name) as pilot:
        saving = unsteady.hold("write")
        await writes(pilot, "31\n" if name else "gold\n\n")
        if name:
            await saves(pilot)
        await until(saving.begun.is_set)
        await leads(pilot, "escape", "Saving…", "API listing")
        saving.go.set()
        await shows(pilot.app, "Saved plan ")


# Limits as people type them.


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "٣", "1" * 19, "default"])
def test_what_is_no_maximum_is_refused_with_what_was_typed(text: str) -> None:
    with pytest.raises(
        InvalidArgument, match="is neither a number of resumes nor unlimited"
    ) as raised:
        parse_maximum(text)
    assert f'"{text}"' in raised.value.message
