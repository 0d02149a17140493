"""Choosing a plan."""

import pytest
from textual.app import App

from resumes.store import accounts, plans
from resumes.store.accounts import AccountInfo
from resumes.store.engine import Store
from resumes.store.plans import PlanInfo
from tests.tui.builders import stored_many
from tests.tui.driving import SMALL, lines, presses, shows, until
from tui.screens.accounts.planning import PlanChooser, PlanDialog, fit_text, losses
from tui.session import Session

pytestmark = pytest.mark.anyio

FREE = PlanInfo("free", 5, False, 0)
PRO = PlanInfo("pro", 50, False, 0)
HUGE = PlanInfo("huge", None, True, 0)


def an_info(holds: int, *, plan: str = "business", listing: bool = True) -> AccountInfo:
    return AccountInfo("id", "ana", plan, "2026-01-31T09:00:00.000Z", holds, 1_000, listing)


@pytest.mark.parametrize(
    ("account", "plan", "text"),
    [
        (an_info(812), PRO, "! over: holds 812"),
        (an_info(7), PRO, "! loses listing"),
        (an_info(7, listing=False), PRO, "fits, 43 more"),
        (an_info(50, listing=False), PRO, "fits, 0 more"),
        (an_info(7), HUGE, "fits"),
        (an_info(812, plan="pro"), PRO, "the plan it is on"),
    ],
)
def test_each_plan_says_what_it_means_for_the_account(
    account: AccountInfo, plan: PlanInfo, text: str
) -> None:
    assert fit_text(account, plan) == text


def test_what_a_plan_takes_away_is_told() -> None:
    assert losses(an_info(812), PRO) == [
        ("Resumes", "holds 812, pro allows 50: keeps them, takes no more"),
        ("Listing", "pro has none: its keys can no longer list and read"),
    ]
    assert losses(an_info(5, listing=False), FREE) == []
    assert losses(an_info(812), HUGE) == []


async def test_plans_are_offered_from_the_one_that_the_account_is_on(store: Store) -> None:
    stored_many(store, 6)
    chosen: list[PlanInfo | None] = []
    app: App[int] = App()
    async with app.run_test(size=SMALL) as pilot:
        account = accounts.get_account(store, "ana")
        await app.push_screen(PlanChooser(Session(store), account), chosen.append)
        await shows(app, "Which plan for ana?", "! over: holds 6", "the plan it is on")
        await presses(pilot, "up", "enter")
        await until(lambda: chosen)

    assert chosen == [plans.get_plan(store, "pro")]


async def test_the_question_says_what_is_lost_and_cancel_is_first() -> None:
    answers: list[bool | None] = []
    app: App[int] = App()
    async with app.run_test(size=SMALL) as pilot:
        await app.push_screen(PlanDialog(an_info(812), PRO), answers.append)
        await pilot.pause()
        screen = "\n".join(lines(app))
        await presses(pilot, "enter")
        await until(lambda: answers)

    assert "holds 812, pro allows 50: keeps them" in screen
    assert "Nothing is deleted." in screen
    assert answers == [False]
