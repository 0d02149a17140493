import pytest

from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.settings import Settings
from resumes.store import Store, accounts, plans
from resumes.store.plans import PlanChange, PlanInfo, Requests

pytestmark = pytest.mark.engines


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


def test_a_change_of_requests_leaves_what_it_does_not_name(store: Store) -> None:
    def limits() -> list[int | None]:
        plan = plans.get_plan(store, "pro")
        return [plan.requests_per_minute, plan.requests_per_hour, plan.requests_per_day]

    assert limits() == [None, None, None]
    for requests, expected in (
        ({Requests.PER_MINUTE: 600, Requests.PER_DAY: 0}, [600, None, 0]),
        ({Requests.PER_HOUR: 1}, [600, 1, 0]),
        ({Requests.PER_MINUTE: None}, [None, 1, 0]),
        ({}, [None, 1, 0]),
    ):
        plans.set_plan_limits(store, PlanChange("pro", 50, requests=requests))
        assert limits() == expected


def test_a_new_plan_has_the_requests_that_are_said(store: Store) -> None:
    change = PlanChange("fast", None, requests={Requests.PER_MINUTE: 6_000})
    plans.set_plan_limits(store, change)
    assert plans.get_plan(store, "fast") == PlanInfo("fast", None, False, 0, 6_000)


def test_a_plan_may_allow_as_many_requests_as_the_settings(store: Store) -> None:
    assert Settings(rate_per_day=plans.MOST_REQUESTS).rate_per_day == plans.MOST_REQUESTS
    with pytest.raises(ValueError, match="rate_per_day"):
        Settings(rate_per_day=plans.MOST_REQUESTS + 1)
    change = PlanChange("free", 5, requests={Requests.PER_DAY: plans.MOST_REQUESTS})
    plans.set_plan_limits(store, change)
    assert plans.get_plan(store, "free").requests_per_day == plans.MOST_REQUESTS


def test_an_unknown_plan_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="Plans: free, pro, business"):
        plans.get_plan(store, "gold")


def test_bad_limits_and_names_are_refused(store: Store) -> None:
    with pytest.raises(InvalidArgument, match="Invalid maximum -1"):
        plans.set_plan_limits(store, PlanChange("free", -1))
    for number in (-1, 1_000_001):
        with pytest.raises(InvalidArgument, match=f"Invalid number of requests {number}"):
            plans.set_plan_limits(store, PlanChange("free", 5, requests={Requests.PER_DAY: number}))
    with pytest.raises(InvalidArgument, match="Invalid plan name"):
        plans.set_plan_limits(store, PlanChange("Gold Plan", 1))


def test_a_plan_that_is_not_as_expected_is_not_changed(store: Store) -> None:
    seen = plans.get_plan(store, "pro")
    plans.set_plan_limits(store, PlanChange("pro", 40, requests={Requests.PER_DAY: 7}))

    with pytest.raises(Conflict, match='Plan "pro" was changed by somebody else meanwhile'):
        plans.set_plan_limits(store, PlanChange("pro", 30, expected=seen))

    assert plans.get_plan(store, "pro").max_resumes == 40
    plans.set_plan_limits(store, PlanChange("pro", 30, expected=plans.get_plan(store, "pro")))
    assert plans.get_plan(store, "pro").max_resumes == 30


def test_how_many_accounts_a_plan_has_is_no_change_of_it(store: Store) -> None:
    seen = plans.get_plan(store, "pro")
    accounts.create_account(store, "ana", plan="pro")

    plans.set_plan_limits(store, PlanChange("pro", 30, expected=seen))

    assert plans.get_plan(store, "pro").max_resumes == 30


def test_a_plan_that_is_to_be_new_takes_no_other_one_s_place(store: Store) -> None:
    plans.set_plan_limits(store, PlanChange("gold", 7, is_new=True))

    with pytest.raises(Conflict, match='Plan "gold" exists already'):
        plans.set_plan_limits(store, PlanChange("gold", 8, is_new=True))

    assert plans.find_plan(store, "gold") == PlanInfo("gold", 7, False, 0)
    assert plans.find_plan(store, "none") is None
