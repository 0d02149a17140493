import pytest

from resumes.errors import InvalidArgument, NotFound
from resumes.store import Store, accounts, plans
from resumes.store.plans import PlanChange, PlanInfo


def test_plans_are_listed_smallest_first_with_their_accounts(store: Store) -> None:
    accounts.create_account(store, "ana", plan="pro")
    plans.set_plan_limits(store, PlanChange("campus", None, api_listing=True))
    assert plans.list_plans(store) == [
        PlanInfo("free", 5, False, 0),
        PlanInfo("pro", 50, False, 1),
        PlanInfo("business", 1_000, True, 0),
        PlanInfo("campus", None, True, 0),
    ]


def test_a_change_leaves_listing_as_it_was_unless_it_says(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("business", 7))
    assert plans.get_plan(store, "business") == PlanInfo("business", 7, True, 0)
    plans.set_plan_limits(store, PlanChange("business", 7, api_listing=False))
    assert plans.get_plan(store, "business").api_listing is False


def test_a_new_plan_lists_only_if_that_is_said(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("small", 1))
    assert plans.get_plan(store, "small") == PlanInfo("small", 1, False, 0)


def test_an_unknown_plan_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="Plans: free, pro, business"):
        plans.get_plan(store, "gold")


def test_bad_limits_and_names_are_refused(store: Store) -> None:
    with pytest.raises(InvalidArgument, match="Invalid maximum -1"):
        plans.set_plan_limits(store, PlanChange("free", -1))
    with pytest.raises(InvalidArgument, match="Invalid plan name"):
        plans.set_plan_limits(store, PlanChange("Gold Plan", 1))
