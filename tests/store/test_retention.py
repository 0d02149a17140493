"""Resumes go when their plan keeps them no longer, and none before."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from resumes.errors import InvalidArgument
from resumes.store import Store, accounts, open_store, plans, retention, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.plans import AffectedAccounts, PlanChange, keep_text, parse_keep_days
from resumes.store.retention import SLICE_RESUMES, Due, Sweeper, count_expired, list_due, sweep
from resumes.store.store import set_facts
from tests.store.conftest import SteppingClock
from tests.support.store.builders import (
    MakeAccount,
    add_resumes,
    find_flaws,
    import_resumes,
    index_all,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines
DAY_S = 24 * 3_600
HOUR_S = 3_600


def keep(store: Store, plan: str, days: int | None) -> None:
    """The plan keeps resumes for so many days from now on."""
    now = plans.get_plan(store, plan)
    plans.set_plan_limits(store, PlanChange(plan, now.max_resumes, keep_days=days))


def come_due(store: Store, clock: SteppingClock, account: AccountInfo, count: int) -> None:
    """So many resumes of the account are older than its plan, which keeps them for a day."""
    keep(store, account.plan, 1)
    add_resumes(store, account, count)
    clock.advance(DAY_S + 1)


def held(store: Store, account: AccountInfo) -> int:
    return accounts.get_account(store, account.name).resume_count


def test_what_is_older_than_the_plan_keeps_is_due_and_goes(
    store: Store, clock: SteppingClock, an_account: MakeAccount
) -> None:
    ana, bo, cy = an_account("ana"), an_account("bo"), an_account("cy", plan="pro")
    keep(store, "business", 30)
    first_at = stored_resumes.get_entry(store, ana.id, add_resumes(store, ana, 3)[0]).created_at
    import_resumes(store, bo, 2)
    add_resumes(store, cy, 1)
    index_all(store)
    clock.advance(10 * DAY_S)
    kept = add_resumes(store, ana, 2)

    clock.advance(20 * DAY_S)
    assert (list_due(store), sweep(store)) == ([], 0)
    clock.advance(HOUR_S)
    assert list_due(store) == [
        Due("business", 30, ana.id, "ana", 3, 0, first_at),
        Due("business", 30, bo.id, "bo", 2, 0, first_at),
    ]
    assert [due.account for due in list_due(store, "bo")] == ["bo"]

    assert sweep(store) == 5
    assert [row[0] for row in stored_resumes.list_page(store, ana.id).rows] == kept
    assert [held(store, account) for account in (ana, bo, cy)] == [2, 0, 1]
    assert (list_due(store), count_expired(store), find_flaws(store)) == ([], 5, [])


def test_resumes_that_have_been_due_for_over_a_day_are_overdue(
    store: Store, clock: SteppingClock, ana: AccountInfo
) -> None:
    keep(store, ana.plan, 1)
    add_resumes(store, ana, 2)
    clock.advance(DAY_S)
    add_resumes(store, ana, 1)
    clock.advance(DAY_S + 1)
    assert [(due.resumes, due.overdue) for due in list_due(store)] == [(3, 2)]


def test_nothing_goes_while_the_plan_keeps_all_and_a_new_plan_counts_at_once(
    store: Store, clock: SteppingClock, ana: AccountInfo
) -> None:
    add_resumes(store, ana, 2)
    clock.advance(1_000 * DAY_S)
    assert (list_due(store), sweep(store)) == ([], 0)
    assert list(retention.iter_erased(store, ana.id)) == []

    change = PlanChange(ana.plan, None, keep_days=30)
    assert plans.preview_change(store, change).due == AffectedAccounts(1, [("ana", 2)])
    keep(store, ana.plan, 30)
    assert plans.preview_change(store, change).due.count == 0  # it is no change any more
    assert plans.get_plan(store, ana.plan).allowance.endswith(", kept for 30 days")
    [due] = list_due(store)
    keep(store, ana.plan, None)
    assert list(retention.iter_erased(store, due.account_id)) == []
    assert held(store, ana) == 2


def test_the_accounts_of_a_plan_are_swept_once_an_hour_whoever_does_it(
    store: Store, url: str, clock: SteppingClock, ana: AccountInfo
) -> None:
    add_resumes(store, ana, 1)
    clock.advance(60)
    come_due(store, clock, ana, 1)
    clock.advance(-60)
    assert sweep(store) == 1
    clock.advance(HOUR_S - 1)
    with open_store(url, clock=clock) as other:
        assert [due.resumes for due in list_due(store)] == [1]
        assert sweep(other) == 0
        clock.advance(2)
        assert sweep(other) == 1
    assert sweep(store) == 0


def test_a_clock_that_was_ahead_delays_no_sweep(
    store: Store, clock: SteppingClock, ana: AccountInfo
) -> None:
    keep(store, ana.plan, 1)
    add_resumes(store, ana, 1)
    store.write(lambda session: set_facts(session, swept_at="2999-01-01T00:00:00.000Z"))
    clock.advance(DAY_S + 1)
    assert sweep(store) == 1


@pytest.mark.slow
@pytest.mark.parametrize("ends_after", [0, 1, 2, 3])
def test_a_sweep_that_is_cut_off_comes_to_the_same_end(
    store: Store, clock: SteppingClock, ana: AccountInfo, ends_after: int
) -> None:
    count = 2 * SLICE_RESUMES + 1
    keep(store, ana.plan, 1)
    import_resumes(store, ana, count)
    clock.advance(DAY_S + 1)
    [kept] = add_resumes(store, ana, 1)

    slices = retention.iter_erased(store, ana.id)
    erased = sum(next(slices) for _ in range(ends_after))
    slices.close()  # type: ignore[attr-defined]
    assert held(store, ana) == count + 1 - erased
    assert erased + sweep(store) == count
    assert [row[0] for row in stored_resumes.list_page(store, ana.id).rows] == [kept]
    assert (count_expired(store), find_flaws(store)) == (count, [])


def test_a_sweep_stops_between_slices_when_its_service_does(
    store: Store, clock: SteppingClock, ana: AccountInfo
) -> None:
    come_due(store, clock, ana, SLICE_RESUMES + 1)
    pauses: list[float] = []

    def stopping(seconds: float) -> bool:
        pauses.append(seconds)
        return True

    assert sweep(store, stopping) == SLICE_RESUMES
    assert held(store, ana) == 1
    assert pauses[0] > 0


def test_of_three_that_erase_at_once_each_resume_is_erased_once(
    store: Store, url: str, clock: SteppingClock, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    keep(store, ana.plan, 1)
    for account in (ana, bo):
        add_resumes(store, account, 3 * SLICE_RESUMES)
    clock.advance(DAY_S + 1)
    [kept] = add_resumes(store, ana, 1)
    begin = threading.Barrier(3)
    erased: list[int] = []

    def erase(work: Callable[[], int]) -> None:
        begin.wait()
        erased.append(work())

    def expire(by: Store, *these: AccountInfo) -> int:
        return sum(sum(retention.iter_erased(by, account.id)) for account in these)

    with open_store(url, clock=clock) as other, open_store(url, clock=clock) as third:
        works = (
            partial(sweep, store),
            partial(expire, other, ana, bo),
            partial(expire, third, bo, ana),
        )
        threads = [threading.Thread(target=erase, args=[work]) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (sum(erased), count_expired(store)) == (6 * SLICE_RESUMES,) * 2
    assert [row[0] for row in stored_resumes.list_page(store, ana.id).rows] == [kept]
    assert (held(store, ana), held(store, bo), find_flaws(store)) == (1, 0, [])


def test_a_service_sweeps_by_itself(store: Store, clock: SteppingClock, ana: AccountInfo) -> None:
    come_due(store, clock, ana, 3)
    with Sweeper(store, interval_s=0.01):
        wait_until(lambda: held(store, ana) == 0)


def test_an_account_that_is_being_deleted_is_left_to_its_deletion(
    store: Store, clock: SteppingClock, ana: AccountInfo
) -> None:
    come_due(store, clock, ana, accounts.SLICE_RESUMES + 1)
    accounts.delete_account(store, "ana", with_resumes=True, should_continue=lambda _: False)
    assert (list_due(store), list(retention.iter_erased(store, ana.id))) == ([], [])


def test_folders_are_kept_as_the_plan_of_their_account_says(
    store: Store, an_account: MakeAccount
) -> None:
    an_account("ana")
    an_account("bo", plan="pro")
    accounts.rename_account(store, "ana", "anna")
    keep(store, "business", 30)
    assert retention.keep_days_by_folder(store) == {"ana": 30, "anna": 30}


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_days_that_no_plan_may_have_are_refused(store: Store, days: int) -> None:
    with pytest.raises(InvalidArgument, match="use 1 to 36,500, or forever"):
        keep(store, "pro", days)


@pytest.mark.parametrize("days", [1, 30, 36_500, None])
def test_days_are_read_as_they_are_written(days: int | None) -> None:
    assert parse_keep_days(keep_text(days)) == parse_keep_days(str(days or "forever")) == days


@pytest.mark.parametrize("text", ["", "days", "1.5", "a week"])
def test_what_is_no_number_of_days_is_refused_with_what_was_typed(text: str) -> None:
    with pytest.raises(InvalidArgument, match=f'^"{text}" is neither a number of days nor forever'):
        parse_keep_days(text)
