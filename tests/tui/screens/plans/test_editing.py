"""The form for a plan."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from threading import Event

import pytest
from textual.app import App
from textual.pilot import Pilot

from resumes.errors import StoreUnavailable
from resumes.store import foresight, plans
from resumes.store.engine import Store
from resumes.store.plans import PlanChange, PlanInfo, Requests
from tests.tui.builders import an_account, stored_many
from tests.tui.driving import LIMIT_S, SMALL, lines, presses, shows, until
from tests.tui.outages import held_reads
from tui.screens.plans.editing import PlanForm
from tui.screens.plans.reviewing import ReviewDialog
from tui.session import Session

pytestmark = pytest.mark.anyio


class Opened:
    """A form, and what it gave."""

    def __init__(self, app: App[int], pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot
        self.answers: list[PlanInfo | None] = []

    async def types(self, text: str) -> None:
        """The line that has the focus reads so."""
        await presses(self.pilot, "end", "ctrl+u", *("space" if c == " " else c for c in text))

    async def saves(self) -> None:
        """The review is confirmed."""
        await until(lambda: isinstance(self.app.screen, ReviewDialog))
        await presses(self.pilot, "tab", "enter")


@asynccontextmanager
async def opened(store: Store, name: str | None) -> AsyncIterator[Opened]:
    app: App[int] = App()
    async with app.run_test(size=SMALL) as pilot:
        form = Opened(app, pilot)
        plan = None if name is None else plans.get_plan(store, name)
        await app.push_screen(PlanForm(Session(store), plan), form.answers.append)
        await pilot.pause()
        yield form


async def test_it_shows_the_plan_as_it_is(store: Store) -> None:
    async with opened(store, "business") as form:
        screen = lines(form.app)

    found = [line.strip(" │").split() for line in screen]
    for row in (["Resumes", "1,000"], ["Per", "minute", "default"], ["API", "listing", "yes", "▼"]):
        assert row in found


async def test_a_change_is_saved_after_it_was_reviewed(store: Store) -> None:
    an_account(store, "zoe")
    stored_many(store, 3, account="zoe")
    async with opened(store, "business") as form:
        await form.types("2")
        await presses(form.pilot, "enter")
        await shows(form.app, "1,000 → 2", "1 account: zoe (3)", "Nothing is deleted")
        assert plans.get_plan(store, "business").max_resumes == 1_000

        await form.saves()

        await until(lambda: form.answers)
    assert form.answers == [plans.get_plan(store, "business")]
    assert plans.get_plan(store, "business") == PlanInfo("business", 2, True, 2)


async def test_a_review_that_is_cancelled_leaves_the_form_as_it_was(store: Store) -> None:
    async with opened(store, "pro") as form:
        await form.types("2")
        await presses(form.pilot, "enter")
        await until(lambda: isinstance(form.app.screen, ReviewDialog))
        await presses(form.pilot, "enter")

        await until(lambda: isinstance(form.app.screen, PlanForm))
        assert form.app.screen.query("Input").first().value == "2"  # type: ignore[attr-defined]
    assert plans.get_plan(store, "pro").max_resumes == 50


@pytest.mark.parametrize(
    ("keys", "text", "problem"),
    [
        ((), "many", '! Resumes: "many" is neither a number nor unlimited'),
        (("tab", "tab"), "0", '! Per minute: "0" is neither a number from 1 to'),
        (("tab", "tab", "tab", "tab"), "1,000,001", '! Per day: "1,000,001" is neither'),
    ],
)
async def test_a_bad_limit_is_said_as_it_is_typed_and_nothing_is_lost(
    store: Store, keys: Sequence[str], text: str, problem: str
) -> None:
    async with opened(store, "pro") as form:
        await presses(form.pilot, *keys)
        await form.types(text)
        await shows(form.app, problem)

        await presses(form.pilot, "enter")

        await shows(form.app, problem, text)
        await form.types("7")
        await until(lambda: not any("neither" in line for line in lines(form.app)))
    assert plans.get_plan(store, "pro").limits == (50, False, None, None, None)


async def test_what_changes_nothing_is_not_saved(store: Store) -> None:
    async with opened(store, "pro") as form:
        await presses(form.pilot, "enter")
        await shows(form.app, "! Nothing here differs from what the plan is.")


async def test_a_plan_changed_elsewhere_is_not_overwritten_unseen(store: Store) -> None:
    async with opened(store, "pro") as form:
        await form.types("30")
        others = PlanChange("pro", 40, True, {Requests.PER_HOUR: 77})
        plans.set_plan_limits(store, others)
        await presses(form.pilot, "enter")
        await form.saves()

        await shows(form.app, '! Plan "pro" was changed by somebody else', "50 → 40", "30")
        assert plans.get_plan(store, "pro").max_resumes == 40

        await presses(form.pilot, "enter")
        await shows(form.app, "40 → 30")
        await form.saves()
        await until(lambda: form.answers)
    assert plans.get_plan(store, "pro").limits == (30, True, None, 77, None)


async def test_a_new_plan_is_made_with_all_that_was_typed(store: Store) -> None:
    async with opened(store, None) as form:
        assert not any("! " in line for line in lines(form.app))
        await form.types("gold")
        await presses(form.pilot, "tab")
        await form.types("unlimited")
        await presses(form.pilot, "tab", "enter", "down", "enter", "tab")
        await form.types("600")
        await presses(form.pilot, "enter")
        await until(lambda: form.answers)
    assert plans.get_plan(store, "gold") == PlanInfo("gold", None, True, 0, 600)


@pytest.mark.parametrize(
    ("name", "problem"),
    [("Gold", "! Invalid plan name 'Gold'"), ("pro", '! Plan "pro" exists already')],
)
async def test_a_new_plan_needs_a_name_of_its_own(store: Store, name: str, problem: str) -> None:
    async with opened(store, None) as form:
        await form.types(name)
        await presses(form.pilot, "enter")

        await shows(form.app, problem, name)
    assert [plan.name for plan in plans.list_plans(store)] == ["free", "pro", "business"]


async def test_a_store_that_is_away_loses_nothing_that_was_typed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = foresight.foresee

    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("The store is away")

    async with opened(store, "pro") as form:
        monkeypatch.setattr(foresight, "foresee", fail)
        await form.types("31")
        await presses(form.pilot, "enter")
        await shows(
            form.app, "! The store is away. What you typed is kept; enter tries again.", "31"
        )

        monkeypatch.setattr(foresight, "foresee", really)
        await presses(form.pilot, "enter")
        await form.saves()
        await until(lambda: form.answers)
    assert plans.get_plan(store, "pro").max_resumes == 31


@pytest.mark.parametrize("is_new", [True, False])
async def test_what_is_being_saved_cannot_be_cancelled_and_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    really, may_go_on = plans.set_plan_limits, Event()

    def slowly(store: Store, change: PlanChange) -> None:
        assert may_go_on.wait(LIMIT_S)
        really(store, change)

    monkeypatch.setattr(plans, "set_plan_limits", slowly)
    async with opened(store, None if is_new else "pro") as form:
        await form.types("gold" if is_new else "31")
        await presses(form.pilot, "enter")
        if not is_new:
            await form.saves()
            await until(lambda: isinstance(form.app.screen, PlanForm))
        await presses(form.pilot, "escape")
        await until(
            lambda: [toast.message for toast in form.app._notifications] == ["It is being saved."]
        )
        assert not form.answers

        may_go_on.set()
        await until(lambda: form.answers)

    assert form.answers == [plans.get_plan(store, "gold" if is_new else "pro")]


async def test_a_question_to_the_store_does_not_hold_the_form(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(store, "pro") as form:
        await form.types("31")
        with held_reads(monkeypatch):
            await presses(form.pilot, "enter", "escape")
            await until(lambda: form.answers)
    assert form.answers == [None]


async def test_it_can_be_cancelled(store: Store) -> None:
    async with opened(store, "pro") as form:
        await form.types("31")
        await presses(form.pilot, "escape")
        await until(lambda: form.answers)
    assert form.answers == [None]
    assert plans.get_plan(store, "pro").max_resumes == 50
