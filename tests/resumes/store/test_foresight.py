import pytest

from resumes.store import Store, accounts, creating, foresight, plans
from resumes.store.foresight import NOBODY, Affected, Effects
from resumes.store.plans import PlanChange
from tests.resumes.builders import a_resume

pytestmark = pytest.mark.engines


def hold(store: Store, name: str, count: int, *, plan: str = "pro") -> None:
    """An account of this name holds that many resumes."""
    account = accounts.create_account(store, name, plan=plan)
    creating.create(store, account.id, [a_resume() for _ in range(count)])


def test_who_would_be_over_is_foreseen_the_fullest_first(store: Store) -> None:
    for name, count in (("ana", 3), ("bo", 1), ("cy", 2), ("di", 4)):
        hold(store, name, count)
    hold(store, "else", 9, plan="business")

    over = foresight.foresee(store, PlanChange("pro", 2)).over

    assert over == Affected(2, [("di", 4), ("ana", 3)])
    assert foresight.foresee(store, PlanChange("pro", 4)).over == NOBODY
    assert foresight.foresee(store, PlanChange("pro", None)).over == NOBODY
    assert plans.get_plan(store, "pro").max_resumes == 50


def test_of_many_who_would_be_over_ten_are_named_and_all_counted(store: Store) -> None:
    for number in range(12):
        hold(store, f"a{number:02}", 1)

    over = foresight.foresee(store, PlanChange("pro", 0)).over

    assert over.count == 12
    assert [name for name, _ in over.fullest] == [f"a{number:02}" for number in range(10)]


def test_who_would_lose_listing_is_foreseen(store: Store) -> None:
    hold(store, "ana", 1, plan="business")

    off = foresight.foresee(store, PlanChange("business", 1_000, api_listing=False))

    assert off == Effects(over=NOBODY, unlisted=Affected(1, [("ana", 1)]))
    assert foresight.foresee(store, PlanChange("business", 1_000)).unlisted == NOBODY
    assert foresight.foresee(store, PlanChange("pro", 50, api_listing=False)).unlisted == NOBODY


def test_an_account_that_is_being_deleted_is_not_counted(store: Store) -> None:
    hold(store, "ana", 501)
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda _: False)

    assert foresight.foresee(store, PlanChange("pro", 0)).over == NOBODY
    assert plans.get_plan(store, "pro").accounts == 0


def test_a_new_plan_concerns_nobody(store: Store) -> None:
    assert foresight.foresee(store, PlanChange("gold", 0)) == Effects(NOBODY, NOBODY)
