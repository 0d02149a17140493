"""Accounts, what they hold, and the plans that limit them."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import pytest

from resumes.clock import timestamp
from resumes.errors import Conflict, InvalidArgument, InvalidKey, NotFound
from resumes.store import (
    Store,
    accounts,
    api_keys,
    creation,
    import_requests,
    plans,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome
from resumes.store.plans import AffectedAccounts, PlanChange, PlanImpact, PlanInfo
from resumes.store.schema import metadata
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    MakeAccount,
    a_file,
    add_resumes,
    count_rows,
    damage,
    find_flaws,
    index_all,
    indexed_words,
)

pytestmark = pytest.mark.engines
NO_ACCOUNTS = AffectedAccounts(0, [])


@pytest.mark.parametrize("name", ["", "-a", "A", "a b", "a" * 64, "ä", "a/b", "..", "a\n"])
def test_an_account_name_that_is_no_safe_folder_name_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidArgument, match="Invalid account name"):
        accounts.create_account(store, name)


def test_an_account_is_renamed_and_keeps_all_else(store: Store, ana: AccountInfo) -> None:
    (resume_id,) = add_resumes(store, ana, 1)
    key = api_keys.create_key(store, "ana")
    for name in ("bea", "cleo", "ana", "bea"):
        renamed = accounts.rename_account(store, accounts.list_accounts(store)[0].name, name)
    assert (renamed.id, renamed.name, renamed.resume_count) == (ana.id, "bea", 1)
    assert (renamed.former_names, renamed.folders) == ("cleo ana", ["bea", "cleo", "ana"])
    assert api_keys.authenticate(store, key.secret).account_id == ana.id
    assert [key.account for key in api_keys.list_keys(store, account="bea")] == ["bea"]
    assert stored_resumes.get_resume(store, ana.id, resume_id).document
    with pytest.raises(NotFound, match=r'"ana"\. It was renamed to "bea"'):
        accounts.get_account(store, "ana")
    with pytest.raises(NotFound):
        accounts.rename_account(store, "ana", "dora")
    for name in ("bea", "Bea"):
        with pytest.raises((Conflict, InvalidArgument)):
            accounts.rename_account(store, "bea", name)


def test_a_former_name_is_given_only_to_an_account_that_takes_it(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    accounts.rename_account(store, "ana", "a")
    takes: list[Callable[[], object]] = [
        lambda: accounts.create_account(store, "ana"),
        lambda: accounts.rename_account(store, "bo", "ana"),
    ]
    for take in takes:
        with pytest.raises(Conflict, match='a former name of the account "a"'):
            take()
        owner = accounts.find_owner(store, "ana")
        assert owner is not None
        assert owner.id == ana.id
    accounts.create_account(store, "an")  # a part of a former name is none
    renamed = accounts.rename_account(store, "bo", "ana", takes_folder=True)

    by_folder = accounts.by_folder(accounts.list_open(store))
    ids = {folder: info.id for folder, info in by_folder.items() if folder != "an"}
    assert ids == {"a": ana.id, "bo": bo.id, "ana": renamed.id}
    assert renamed.id == bo.id
    assert [accounts.find_owner(store, name) for name in ("none", "", "%")] == [None] * 3
    assert [info.id for info in accounts.find_open(store, [ana.id, "f" * 16])] == [ana.id]


def test_options_are_set_one_by_one_and_told_with_a_key(store: Store, ana: AccountInfo) -> None:
    key = api_keys.create_key(store, "ana")
    assert api_keys.authenticate(store, key.secret).first_month is ana.first_month is None
    for first_month in (0, 1, None):
        changed = accounts.set_options(store, "ana", {"first_month": first_month})
        assert accounts.set_options(store, "ana", {}) == changed
        holder = asyncio.run(api_keys.authenticate_async(store, key.secret))
        assert (changed.first_month, holder.first_month) == (first_month, first_month)
    with pytest.raises(NotFound):
        accounts.set_options(store, "bo", {"first_month": 1})


def test_former_names_are_free_when_their_account_is_gone(store: Store, ana: AccountInfo) -> None:
    accounts.rename_account(store, "ana", "bea")
    accounts.delete_account(store, "bea")
    assert accounts.find_owner(store, "ana") is None
    assert accounts.create_account(store, "ana").former_names == ""


def test_the_latest_hundred_former_names_are_kept(store: Store, ana: AccountInfo) -> None:
    for before, name in pairwise(["ana", *(f"n{number}" for number in range(102))]):
        accounts.rename_account(store, before, name)
    assert accounts.get_account(store, "n101").folders[-2:] == ["n99", "n100"]
    assert len(accounts.get_account(store, "n101").folders) == 101
    accounts.create_account(store, "ana")


def test_a_change_of_plan_counts_at_once(store: Store, an_account: MakeAccount) -> None:
    account = an_account(plan="free")
    assert len(add_resumes(store, account, 6)) == 5
    accounts.set_plan(store, "ana", "pro")
    assert len(add_resumes(store, account, 1)) == 1
    for plan, is_over in (("business", False), ("free", True)):
        accounts.set_plan(store, "ana", plan)
        assert accounts.get_account(store, "ana").is_over is is_over


def test_an_account_tells_when_its_newest_resume_came_in_and_goes_with_it_only_when_that_is_said(
    store: Store, ana: AccountInfo
) -> None:
    (made,) = add_resumes(store, ana, 1)
    assert accounts.get_account(store, "ana").last_resume_at == timestamp(store.clock())
    with pytest.raises(Conflict, match="--with-resumes"):
        accounts.delete_account(store, "ana")
    assert accounts.get_account(store, "ana").resume_count == 1
    stored_resumes.delete_resume(store, ana.id, made)
    assert accounts.get_account(store, "ana").last_resume_at is None


# Deleting


def test_a_deleted_account_leaves_nothing_and_its_keys_do_not_count(
    store: Store, ana: AccountInfo
) -> None:
    api_keys.create_key(store, "ana")
    creation.create(store, ana.id, [a_resume(idempotency="k")])
    creation.create(store, ana.id, [a_resume(with_digest=True)], claim=a_claim())
    a_file(store, ana)
    import_requests.request_all_files(store, import_requests.RequestKind.RETRY)
    index_all(store)
    assert accounts.delete_account(store, "ana", with_resumes=True) == 2
    rest = set(metadata.tables) - {"plans", "store_facts", "deleted_accounts"}
    assert [name for name in sorted(rest) if count_rows(store, name)] == []
    assert accounts.find_deleted(store, [ana.id, "0" * 16]) == {ana.id}
    assert indexed_words(store) == set()


def test_s12_a_large_account_goes_in_slices_between_which_others_write(
    store: Store, an_account: MakeAccount
) -> None:
    large, other = an_account("ana"), an_account("bo")
    key = api_keys.create_key(store, "ana").secret
    plans.set_plan_limits(store, PlanChange("business", None))
    add_resumes(store, large, 1_100)
    index_all(store)
    slices: list[int] = []

    def between(gone: int) -> bool:
        slices.append(gone)
        add_resumes(store, other, 1)
        with pytest.raises(NotFound):
            creation.create(store, large.id, [a_resume()])
        with pytest.raises(InvalidKey):
            api_keys.authenticate(store, key)
        return len(slices) < 2

    assert (
        accounts.delete_account(store, "ana", with_resumes=True, should_continue=between) == 1_000
    )
    assert slices == [500, 1_000]
    assert accounts.get_account(store, "bo").resume_count == 2
    # What was cut off is seen and finished, and is no damage.
    assert [account.name for account in accounts.list_accounts(store)] == ["bo"]
    assert accounts.find_account(store, "ana") is None
    closed, _ = accounts.list_accounts(store, include_closed=True)
    assert (closed.is_closed, closed.resume_count) == (True, 100)
    assert accounts.get_account(store, "ana", include_closed=True) == closed
    assert find_flaws(store) == []
    assert plans.get_plan(store, "business").accounts == 1
    assert plans.preview_change(store, PlanChange("business", 0)).over.count == 1
    with pytest.raises(Conflict, match='"ana" is still being deleted'):
        accounts.create_account(store, "ana")

    assert accounts.delete_account(store, "ana", with_resumes=True) == 100
    assert accounts.list_accounts(store, include_closed=True) == accounts.list_accounts(store)


def test_s14_an_account_made_anew_under_an_old_name_is_another_account(
    store: Store, an_account: MakeAccount
) -> None:
    old = an_account("ana")
    accounts.delete_account(store, "ana")
    new = an_account("ana")
    assert old.id != new.id
    with pytest.raises(NotFound):
        creation.create(store, old.id, [a_resume()])
    assert stored_resumes.list_page(store, new.id).entries == []


# What accounts hold


def test_a_counter_that_is_wrong_is_found(store: Store, an_account: MakeAccount) -> None:
    _, ana, _ = (an_account(name) for name in ("dan", "ana", "cy"))
    add_resumes(store, ana, 2)
    assert accounts.list_wrong(store) == []
    damage(store, "UPDATE account_usage SET resume_count = 9 WHERE account_id <> :id", id=ana.id)
    assert [row[:3] for row in accounts.list_wrong(store)] == [("cy", 9, 0), ("dan", 9, 0)]


def test_keys_are_counted_and_those_that_count_and_files_that_are_not_done_by_outcome(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    secret = api_keys.create_key(store, "ana").secret
    api_keys.create_key(store, "ana", lifetime=timedelta(hours=1))
    api_keys.revoke_key(store, api_keys.create_key(store, "ana").id)
    api_keys.create_key(store, "bo")
    assert accounts.count_active_keys(store) == {ana.id: 2, bo.id: 1}
    outcomes = [FileOutcome.FAILED, FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DONE]
    for number, outcome in enumerate(outcomes):
        a_file(store, ana, f"{number:024x}", outcome)

    clock.advance(3_600)
    asyncio.run(api_keys.mark_used_async(store, api_keys.authenticate(store, secret)))

    assert accounts.count_active_keys(store) == {ana.id: 1, bo.id: 1}
    held = accounts.get_summary(store, ana.id)
    assert (held.keys, held.active_keys, held.last_used_at) == (3, 1, timestamp(clock()))
    assert (held.files_failed, held.files_held) == (2, 1)
    assert accounts.get_summary(store, bo.id).files_failed == 0


# Plans


def test_plans_are_listed_smallest_first_with_their_accounts(store: Store) -> None:
    accounts.create_account(store, "ana", plan="pro")
    plans.set_plan_limits(store, PlanChange("campus", None, api_listing=True))
    fast = PlanChange("fast", 60, is_new=True)
    plans.set_plan_limits(store, fast)
    assert plans.list_plans(store) == [
        PlanInfo(name="free", max_resumes=5, api_listing=False, accounts=0),
        PlanInfo(name="pro", max_resumes=50, api_listing=False, accounts=1),
        PlanInfo(name="fast", max_resumes=60, api_listing=False, accounts=0),
        PlanInfo(name="business", max_resumes=1_000, api_listing=True, accounts=0),
        PlanInfo(name="campus", max_resumes=None, api_listing=True, accounts=0),
    ]
    assert plans.find_plan(store, "none") is None
    with pytest.raises(NotFound, match="Plans: free, pro, fast, business, campus"):
        plans.get_plan(store, "gold")
    with pytest.raises(Conflict, match='Plan "fast" already exists'):
        plans.set_plan_limits(store, fast)


def test_a_plan_may_allow_as_many_resumes_as_any_engine_counts(
    store: Store, ana: AccountInfo
) -> None:
    plans.set_plan_limits(store, PlanChange(ana.plan, plans.MAX_RESUMES))
    assert plans.get_plan(store, ana.plan).max_resumes == plans.MAX_RESUMES
    add_resumes(store, ana, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (PlanChange("free", -1), "Invalid maximum -1"),
        (PlanChange("free", 2**31), "Invalid maximum 2147483648: use 0 to 2,147,483,647"),
        (PlanChange("Gold Plan", 1), "Invalid plan name"),
    ],
)
def test_bad_limits_and_names_are_refused(store: Store, change: PlanChange, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        plans.set_plan_limits(store, change)


def test_a_plan_that_is_not_as_expected_is_not_changed(store: Store) -> None:
    seen = plans.get_plan(store, "pro")
    accounts.create_account(store, "ana", plan="pro")  # how many it has is no change of it
    plans.set_plan_limits(store, PlanChange("pro", 40, expected=seen))

    with pytest.raises(Conflict, match='Plan "pro" was changed by someone else in the meantime'):
        plans.set_plan_limits(store, PlanChange("pro", 30, expected=seen))

    assert plans.get_plan(store, "pro").max_resumes == 40


def hold(store: Store, name: str, count: int, *, plan: str = "pro") -> None:
    """An account of this name holds that many resumes."""
    add_resumes(store, accounts.create_account(store, name, plan=plan), count)


def test_whom_a_change_of_a_plan_would_hit_is_foreseen_the_fullest_first(store: Store) -> None:
    for name, count in (("ana", 3), ("bo", 1), ("cy", 2), ("di", 4)):
        hold(store, name, count)
    hold(store, "else", 9, plan="business")
    all_of_it = AffectedAccounts(1, [("else", 9)])
    for change, over, unlisted in (
        (PlanChange("pro", 2), AffectedAccounts(2, [("di", 4), ("ana", 3)]), NO_ACCOUNTS),
        (PlanChange("pro", 4), NO_ACCOUNTS, NO_ACCOUNTS),
        (PlanChange("pro", None), NO_ACCOUNTS, NO_ACCOUNTS),
        (PlanChange("gold", 0), NO_ACCOUNTS, NO_ACCOUNTS),
        (PlanChange("business", 1_000, api_listing=False), NO_ACCOUNTS, all_of_it),
        (PlanChange("business", 1_000), NO_ACCOUNTS, NO_ACCOUNTS),
        (PlanChange("pro", 50, api_listing=False), NO_ACCOUNTS, NO_ACCOUNTS),
    ):
        assert plans.preview_change(store, change) == PlanImpact(over, unlisted, NO_ACCOUNTS)
    assert plans.get_plan(store, "pro").max_resumes == 50

    for number in range(8):
        hold(store, f"a{number:02}", 1)
    most = plans.preview_change(store, PlanChange("pro", 0)).over
    fullest = ["di", "ana", "cy", *(f"a{number:02}" for number in range(7))]
    assert (most.count, [name for name, _ in most.fullest]) == (12, fullest)
