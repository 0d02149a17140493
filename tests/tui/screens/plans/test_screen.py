"""The plans."""

import pytest

from resumes.settings import Settings
from resumes.store import plans
from resumes.store.engine import Store
from resumes.store.plans import PlanChange, Requests
from tests.tui.driving import LARGE, lines, presses, running, shows, until
from tui.app import ResumesApp
from tui.screens.facts import FactsDialog
from tui.screens.plans.editing import PlanForm
from tui.screens.plans.reviewing import ReviewDialog
from tui.screens.plans.screen import PlansScreen
from tui.session import Session

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("size", [(80, 24), LARGE], ids=str)
async def test_plans_are_listed_with_their_limits_and_accounts(
    store: Store, size: tuple[int, int]
) -> None:
    rates = {Requests.PER_MINUTE: 600, Requests.PER_DAY: 0}
    plans.set_plan_limits(store, PlanChange("gold", None, True, rates))
    async with running(store, screen="plans", size=size) as pilot:
        await shows(pilot.app, "4 plans · default: 60 a minute, 1,000 an hour, 10,000 a day")
        rows = [line.split() for line in lines(pilot.app)]

    assert ["business", "1,000", "yes", "default", "default", "default", "1"] in rows
    assert ["gold", "unlimited", "yes", "600", "default", "unlimited", "0"] in rows


async def test_default_rates_without_a_limit_are_told_so(store: Store) -> None:
    app = ResumesApp(lambda: Session(store, settings=Settings(rate_per_minute=0)), screen="plans")
    async with app.run_test(size=LARGE):
        await shows(app, "default: unlimited a minute, 1,000 an hour, 10,000 a day")


@pytest.mark.parametrize("key", ["enter", "e"])
async def test_a_plan_is_edited_and_listed_as_it_is_now(store: Store, key: str) -> None:
    async with running(store, screen="plans") as pilot:
        await shows(pilot.app, "3 plans")
        await presses(pilot, "j", key)
        await until(lambda: isinstance(pilot.app.screen, PlanForm))
        await presses(pilot, "end", "ctrl+u", *"77", "enter")
        await until(lambda: isinstance(pilot.app.screen, ReviewDialog))
        await presses(pilot, "tab", "enter")

        await shows(pilot.app, "Saved. pro: 77 resumes, without API listing.")
        await until(lambda: any(line.split()[:2] == ["pro", "77"] for line in lines(pilot.app)))


async def test_a_plan_is_made(store: Store) -> None:
    async with running(store, screen="plans") as pilot:
        await shows(pilot.app, "3 plans")
        await presses(pilot, "n")
        await presses(pilot, *"gold", "enter")
        await shows(pilot.app, "4 plans", "Saved. gold: 100 resumes")


async def test_read_only_shows_the_plan_and_changes_nothing(store: Store) -> None:
    async with running(store, screen="plans", read_only=True) as pilot:
        await shows(pilot.app, "3 plans")
        assert "New plan" not in lines(pilot.app)[-1]
        for key in ("n", "e"):
            await presses(pilot, key)
            assert isinstance(pilot.app.screen, PlansScreen)
        await shows(pilot.app, "Read-only: start without --read-only")

        await presses(pilot, "enter")

        await until(lambda: isinstance(pilot.app.screen, FactsDialog))
        await shows(pilot.app, "The plan free", "Resumes    5", "Accounts   0")


async def test_a_plan_made_elsewhere_is_there_after_a_reload(store: Store) -> None:
    async with running(store, screen="plans") as pilot:
        await shows(pilot.app, "3 plans")
        plans.set_plan_limits(store, PlanChange("gold", 7))
        await presses(pilot, "r")
        await shows(pilot.app, "4 plans", "gold")
