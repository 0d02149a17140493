"""What is said before a plan is changed."""

from pathlib import Path

import pytest
from textual.app import App

import tui
from resumes.store.foresight import NOBODY, Affected, Effects
from resumes.store.plans import PlanInfo
from tests.tui.driving import lines, presses, until
from tui.screens.plans.reviewing import ReviewDialog, consequence, effect_facts, named

pytestmark = pytest.mark.anyio

LOOKS = Path(tui.__file__).with_name("app.tcss")
OLD = PlanInfo("business", 1_000, api_listing=True, accounts=12)
NEW = PlanInfo("business", 50, api_listing=False, accounts=12)
OVER = Affected(12, [("ana", 812), ("zoe", 60)])


async def test_old_and_new_and_who_would_be_over_are_shown_and_cancel_is_first() -> None:
    app: App[int] = App()
    answers: list[bool | None] = []
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(ReviewDialog(OLD, NEW, Effects(OVER, OVER)), answers.append)
        await pilot.pause()
        screen = "\n".join(lines(app))
        await presses(pilot, "enter")
        await until(lambda: answers)

    assert "Change the plan business for 12 accounts?" in screen
    assert "Resumes    1,000 → 50" in screen
    assert "Listing    yes → no" in screen
    assert "Over       12 accounts: ana (812), zoe (60) and 10 more" in screen
    assert "No listing 12 accounts: ana" in screen
    assert "Nothing is deleted: who is over keeps all" in screen
    assert answers == [False]


def test_where_nobody_is_over_that_is_said() -> None:
    effects = Effects(NOBODY, NOBODY)

    assert list(effect_facts(effects, NEW)) == [("Over", "nobody")]
    assert consequence(effects) == "It counts at once. Nothing is deleted."


def test_nobody_can_be_over_what_is_unlimited() -> None:
    unlimited = PlanInfo("business", None, api_listing=True, accounts=1)
    assert list(effect_facts(Effects(NOBODY, NOBODY), unlimited)) == []


def test_all_are_named_when_there_are_few() -> None:
    assert named(Affected(1, [("ana", 1_812)])) == "1 account: ana (1,812)"


async def test_many_long_names_leave_room_for_the_answer() -> None:
    longest = Affected(12, [(f"{number}{'x' * 62}", 10**6) for number in range(10)])
    new = PlanInfo("business", 50, api_listing=False, accounts=12, requests_per_minute=1,
                   requests_per_hour=1, requests_per_day=1)  # fmt: skip
    app: App[int] = App(css_path=LOOKS)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(ReviewDialog(OLD, new, Effects(longest, longest)))
        await pilot.pause()
        screen = "\n".join(lines(app))

    assert "Over       12 accounts:" in screen
    assert " more" in screen
    assert "Cancel" in screen
    assert "Save" in screen


def test_ten_short_names_are_all_told() -> None:
    ten = Affected(11, [(f"account-{number}", 5) for number in range(10)])
    assert named(ten).endswith("account-9 (5) and 1 more")
