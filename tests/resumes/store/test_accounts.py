from collections.abc import Callable

import pytest
from sqlalchemy import func, select

from resumes.clock import timestamp
from resumes.errors import Conflict, InvalidArgument, InvalidKey, NotFound
from resumes.store import (
    Store,
    accounts,
    asking,
    creating,
    keys,
    ledger,
    listing,
    requests,
    search_filler,
)
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome, FileVerdict, Verdict
from resumes.store.schema import metadata
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import indexed_pieces

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def test_a_new_account_is_free_and_empty(store: Store) -> None:
    account = accounts.create_account(store, "ana")
    assert (account.plan, account.resume_count, account.max_resumes) == ("free", 0, 5)
    assert account.free_places == 5


@pytest.mark.parametrize("name", ["", "-a", "A", "a b", "a" * 64, "ä", "a/b", "..", "a\n"])
def test_an_account_name_that_is_no_safe_folder_name_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidArgument, match="Invalid account name"):
        accounts.create_account(store, name)


def test_a_name_is_taken_once(store: Store, an_account: MakeAccount) -> None:
    an_account("ana")
    with pytest.raises(Conflict, match='"ana" exists already'):
        accounts.create_account(store, "ana")


def test_an_unknown_plan_is_not_found_and_the_known_ones_are_named(store: Store) -> None:
    with pytest.raises(NotFound, match="business, free, pro"):
        accounts.create_account(store, "ana", plan="gold")
    accounts.create_account(store, "ana")
    with pytest.raises(NotFound, match="business, free, pro"):
        accounts.set_plan(store, "ana", "gold")


def test_a_change_of_plan_counts_at_once(store: Store, an_account: MakeAccount) -> None:
    account = an_account("ana", plan="free")
    creating.create(store, account.id, [a_resume() for _ in range(5)])
    accounts.set_plan(store, "ana", "pro")
    (outcome,) = creating.create(store, account.id, [a_resume()])
    assert isinstance(outcome, creating.Created)


def test_an_unknown_account_is_not_found(store: Store) -> None:
    assert accounts.find_account(store, "ana") is None
    for call in (
        lambda: accounts.get_account(store, "ana"),
        lambda: accounts.set_plan(store, "ana", "pro"),
        lambda: accounts.delete_account(store, "ana"),
    ):
        with pytest.raises(NotFound, match='Account not found: "ana"'):
            call()


def test_accounts_are_listed_by_name(store: Store, an_account: MakeAccount) -> None:
    for name in ("cy", "ana", "bo"):
        an_account(name)
    assert [account.name for account in accounts.list_accounts(store)] == ["ana", "bo", "cy"]


def test_an_account_with_resumes_goes_only_when_that_is_said(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account("ana")
    creating.create(store, account.id, [a_resume()])
    with pytest.raises(Conflict, match="--with-resumes"):
        accounts.delete_account(store, "ana")
    assert accounts.get_account(store, "ana").resume_count == 1


@pytest.mark.parametrize("slice_rows", [1, accounts.SLICE_LEDGER_ROWS])
def test_a_deleted_account_leaves_nothing_and_its_keys_do_not_count(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch, slice_rows: int
) -> None:
    monkeypatch.setattr(accounts, "SLICE_LEDGER_ROWS", slice_rows)
    account = an_account("ana")
    keys.create_key(store, "ana")
    creating.create(store, account.id, [a_resume(idempotency="k")])
    creating.create(store, account.id, [a_resume(with_digest=True)], claim=a_claim())
    failed = FileVerdict(account.id, a_claim("1" * 24), Verdict(FileOutcome.FAILED))
    ledger.record(store, failed)
    asking.ask_all(store, requests.Action.RETRY)
    assert requests.list_requests(store) != []
    search_filler.fill(store)
    assert accounts.delete_account(store, "ana", with_resumes=True) == 2
    with store.read() as connection:
        left = {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
            if name not in ("plans", "store_facts", "deleted_accounts")
        }
    assert not any(left.values()), left
    assert accounts.find_deleted(store, [account.id, "0" * 16]) == {account.id}
    assert indexed_pieces(store) == []


def test_s12_a_large_account_goes_in_slices_between_which_others_write(
    store: Store, an_account: MakeAccount
) -> None:
    large, other = an_account("ana"), an_account("bo")
    key = keys.create_key(store, "ana").secret
    creating.create(store, large.id, [a_resume() for _ in range(1_000)])
    slices: list[int] = []

    def between(gone: int) -> bool:
        slices.append(gone)
        creating.create(store, other.id, [a_resume()])
        with pytest.raises(NotFound):
            creating.create(store, large.id, [a_resume()])
        with pytest.raises(InvalidKey):
            keys.authenticate(store, key)
        return True

    assert accounts.delete_account(store, "ana", with_resumes=True, goes_on=between) == 1_000
    assert slices == [500, 1_000]
    assert accounts.get_account(store, "bo").resume_count == 2


def test_s14_an_account_made_anew_under_an_old_name_is_another_account(
    store: Store, an_account: MakeAccount
) -> None:
    old = an_account("ana")
    accounts.delete_account(store, "ana")
    new = an_account("ana")
    assert old.id != new.id
    with pytest.raises(NotFound):
        creating.create(store, old.id, [a_resume()])
    assert listing.list_page(store, new.id).entries == []


def test_a_deletion_that_was_cut_off_is_seen_and_finished(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account("ana")
    creating.create(store, account.id, [a_resume() for _ in range(600)])
    told: list[int] = []

    def stop(gone: int) -> bool:
        told.append(gone)
        return False

    assert accounts.delete_account(store, "ana", with_resumes=True, goes_on=stop) == 500
    assert told == [500]
    assert accounts.list_accounts(store) == []
    assert accounts.find_account(store, "ana") is None
    (closed,) = accounts.list_accounts(store, closed_too=True)
    assert (closed.is_closed, closed.resume_count) == (True, 100)
    assert accounts.get_account(store, "ana", closed_too=True) == closed
    with pytest.raises(Conflict, match='"ana" is still being deleted'):
        accounts.create_account(store, "ana")

    assert accounts.delete_account(store, "ana", with_resumes=True) == 100
    assert accounts.list_accounts(store, closed_too=True) == []


def test_an_account_tells_when_its_newest_resume_came_in(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account("ana")
    assert account.last_resume_at is None
    (made,) = creating.create(store, account.id, [a_resume()])
    assert isinstance(made, creating.Created)
    assert accounts.get_account(store, "ana").last_resume_at == timestamp(store.clock())
    listing.delete_resume(store, account.id, made.id)
    assert accounts.get_account(store, "ana").last_resume_at == timestamp(store.clock())


def test_an_account_is_over_when_it_holds_more_than_its_plan_allows(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account("ana")
    creating.create(store, account.id, [a_resume() for _ in range(6)])
    for plan, is_over in (("business", False), ("free", True)):
        accounts.set_plan(store, "ana", plan)
        assert accounts.get_account(store, "ana").is_over is is_over
