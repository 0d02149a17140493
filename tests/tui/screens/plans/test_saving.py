"""Saving a plan."""

import pytest

from resumes.errors import InvalidArgument
from resumes.store import plans
from resumes.store.engine import Store
from resumes.store.plans import PlanChange, PlanInfo, Requests
from tui.screens.plans.saving import Saved, change_to, save


def test_a_plan_is_changed_in_all_its_limits(store: Store) -> None:
    shown = plans.get_plan(store, "pro")
    new = PlanInfo("pro", None, True, 0, 1, 0, None)

    assert save(store, change_to(new, shown=shown)) == Saved(new)


def test_what_somebody_else_changed_meanwhile_stays(store: Store) -> None:
    shown = plans.get_plan(store, "pro")
    plans.set_plan_limits(store, PlanChange("pro", 40, requests={Requests.PER_DAY: 3}))

    saved = save(store, change_to(PlanInfo("pro", 30, False, 0), shown=shown))

    assert saved.plan == plans.get_plan(store, "pro")
    assert saved.plan == PlanInfo("pro", 40, False, 0, requests_per_day=3)
    assert saved.conflict == 'Plan "pro" was changed by somebody else meanwhile'


def test_a_new_plan_replaces_none(store: Store) -> None:
    saved = save(store, change_to(PlanInfo("pro", 1, False, 0), shown=None))

    assert saved.conflict == 'Plan "pro" exists already'
    assert plans.get_plan(store, "pro").max_resumes == 50


def test_what_the_store_does_not_take_is_raised(store: Store) -> None:
    with pytest.raises(InvalidArgument):
        save(store, change_to(PlanInfo("Gold!", 1, False, 0), shown=None))
