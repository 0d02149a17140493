from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import text

from resumes.store import Store, accounts, creating, listing, search_filler, search_index
from resumes.store.accounts import AccountInfo
from resumes.store.search_index import Progress, Slice
from resumes.store.sqlite.pieces import NUMBER_SHIFT
from tests.resumes.store.builders import a_person, indexed_pieces

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def fill(store: Store, account: AccountInfo, *names: str) -> list[str]:
    outcomes = creating.create(store, account.id, [a_person(name) for name in names])
    return [outcome.id for outcome in outcomes if isinstance(outcome, creating.Created)]


def progress_of(store: Store, account: AccountInfo) -> Progress | None:
    with store.read() as connection:
        return search_index.find_progress(connection, account.id)


def add(store: Store, *slices: Slice) -> list[bool]:
    return store.write(
        lambda connection, requests: [
            [search_index.add_slice(connection, one) for one in some] for some in requests
        ],
        slices,
    )


def candidates(store: Store, account: AccountInfo, *terms: str, after: str = "") -> list[str]:
    progress = progress_of(store, account)
    assert progress is not None
    with store.read() as connection:
        rows: Sequence[Sequence[str]] = list(
            search_index.begin_candidates(connection, account.id, progress, terms, after)
        )
    return [resume_id for _, resume_id, *_ in rows]


def test_entries_are_found_in_the_order_of_ids_after_any_id(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    ids = fill(store, account, "Ada", "Bo", "Adam", "Cy", "Adele")
    search_filler.fill(store)
    assert candidates(store, account, "ad") == ids[::2]
    assert candidates(store, account, "ad", after=ids[0]) == ids[2::2]
    assert candidates(store, account, "ad", after=ids[1]) == ids[2::2]
    assert candidates(store, account, "ad", after=ids[4]) == []


def test_an_account_is_a_range_of_rows_of_its_own(store: Store, an_account: MakeAccount) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    for account in (mine, theirs, mine):
        fill(store, account, "Ada")
        search_filler.fill(store)
    assert len(candidates(store, mine, "ada")) == 2
    assert len(candidates(store, theirs, "ada")) == 1
    first, second = progress_of(store, mine), progress_of(store, theirs)
    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (1, 2)
    assert first.last_seq < 1 << NUMBER_SHIFT


def test_a_slice_is_added_once(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    fill(store, account, "Ada", "Bo")
    (some,) = search_filler.gather(store).slices
    assert add(store, some, some) == [True, False]
    assert len(candidates(store, account, "ada")) == 1


def test_a_resume_that_went_since_the_slice_was_read_is_not_added(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    ada, other = fill(store, account, "Ada", "Adam")
    (some,) = search_filler.gather(store).slices
    listing.delete_resume(store, account.id, ada)
    assert add(store, some) == [True]
    with store.read() as connection:
        rows = connection.execute(text("SELECT id FROM search_entries")).scalars().all()
    assert rows == [other]


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_slice_of_an_account_that_is_gone_or_going_is_not_added(
    store: Store, an_account: MakeAccount, is_closed: bool
) -> None:
    account = an_account("ana")
    fill(store, account, "Ada")
    (some,) = search_filler.gather(store).slices
    if is_closed:
        closing = accounts._Closing(
            account.id, "ana", with_resumes=True, now="2027-01-15T08:00:00.000Z"
        )
        store.write(accounts._close, closing)
    else:
        accounts.delete_account(store, "ana", with_resumes=True)
    assert add(store, some) == [False]
    assert progress_of(store, account) is None
    assert search_filler.gather(store).slices == []


def test_what_is_deleted_takes_its_pieces_along(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    (ada,) = fill(store, account, "Ada Łukasz-Wójcik 山田")
    search_filler.fill(store)
    assert indexed_pieces(store) != []
    listing.delete_resume(store, account.id, ada)
    assert indexed_pieces(store) == []
    assert candidates(store, account, "ada") == []


def test_numbers_of_entries_are_not_used_again(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    for _ in range(2):
        (ada,) = fill(store, account, "Ada")
        search_filler.fill(store)
        listing.delete_resume(store, account.id, ada)
    progress = progress_of(store, account)
    assert progress is not None
    assert progress.last_seq == 2


def test_a_large_account_goes_with_its_entries(store: Store, an_account: MakeAccount) -> None:
    account, other = an_account("ana"), an_account("bo")
    for some in (account, other):
        creating.create(store, some.id, [a_person(f"Ada {n}") for n in range(600)])
    search_filler.fill(store)
    accounts.delete_account(store, "ana", with_resumes=True)
    assert len(candidates(store, other, "ada")) == 600
    with store.read() as connection:
        rows = connection.execute(text("SELECT DISTINCT account_id FROM search_entries"))
        assert rows.scalars().all() == [other.id]


@pytest.mark.sqlite("its version")
def test_the_version_changes_when_somebody_commits(store: Store, an_account: MakeAccount) -> None:
    before = search_index.read_version(store)
    assert search_index.read_version(store) == before
    an_account()
    assert search_index.read_version(store) != before
