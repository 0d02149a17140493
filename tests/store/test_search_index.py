"""The search index: written behind the creates by any number of processes, and never wrong."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import text

from resumes.errors import StoreUnavailable
from resumes.store import Store, accounts, open_store, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.search_index import (
    BUSY_SHARE,
    CANDIDATE_ROWS,
    IDLE_SHARE,
    SLICE_ACCOUNTS,
    SLICE_RESUMES,
    YIELD_S,
    Indexer,
    list_behind,
)
from resumes.store.stored_resumes import Page
from tests.support.store.builders import (
    MakeAccount,
    add_people,
    add_resumes,
    count_rows,
    damage,
    entries_of,
    execute,
    index_all,
    indexed_trigrams,
    lose_table,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines

INTERVAL_S = 0.01


def indexed(store: Store) -> int:
    return count_rows(store, "search_entries")


def found(store: Store, account: AccountInfo, words: str, *, after: str = "") -> list[str]:
    """The resumes that the index finds, without a moment to look through what it lacks."""

    def read(cursor: str) -> Page:
        return search.find_page(store, account.id, words, cursor=cursor, timeout_s=0)[0]

    return [entry.id for entry in entries_of(read, after=after)]


def test_entries_are_found_in_the_order_of_ids_after_any_id(store: Store, ana: AccountInfo) -> None:
    ids = add_people(store, ana, "Ada", "Bo", "Adam", "Cy", "Adele")
    index_all(store)
    for after, expected in (("", ids[::2]), (ids[0], ids[2::2]), (ids[1], ids[2::2]), (ids[4], [])):
        assert found(store, ana, "ad", after=after) == expected


def test_behind_more_candidates_than_are_read_at_once_are_others(
    store: Store, ana: AccountInfo
) -> None:
    add_people(store, ana, *["abcd bcdef"] * (CANDIDATE_ROWS + 50))
    ids = add_people(store, ana, "abcdef", "abcdef")
    index_all(store)
    assert found(store, ana, "abcdef") == ids


def test_an_account_is_a_range_of_rows_of_its_own(store: Store, an_account: MakeAccount) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    for account in (mine, theirs, mine):
        add_people(store, account, "Ada")
        index_all(store)
    assert len(found(store, mine, "ada")) == 2
    assert len(found(store, theirs, "ada")) == 1
    with store.read() as connection:
        numbers = connection.execute(text("SELECT number FROM search_progress ORDER BY number"))
        assert numbers.scalars().all() == [1, 2]
        if store.path is None:
            rows = connection.execute(text("SELECT trigrams FROM search_trigrams")).scalars().all()
            assert len({frozenset(row) for row in rows}) == 2  # in common they have none


def test_a_slice_is_added_without_what_went_since_it_was_read(
    store: Store, ana: AccountInfo
) -> None:
    gone, *_ = add_people(store, ana, "Ada", "Adam", "Bo")
    assert step(store, lambda: stored_resumes.delete_resume(store, ana.id, gone)) == INTERVAL_S
    assert indexed(store) == 2
    assert len(found(store, ana, "ada")) == 1
    assert list_behind(store) == []


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_slice_of_an_account_that_is_gone_or_going_is_not_added(
    store: Store, ana: AccountInfo, is_gone: bool
) -> None:
    add_resumes(store, ana, 501)

    def delete() -> None:
        accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda gone: is_gone)

    assert step(store, delete) == YIELD_S
    assert (indexed(store), count_rows(store, "search_progress")) == (0, 0)
    assert list_behind(store) == []


def test_what_is_deleted_takes_its_trigrams_along_and_no_number_is_used_again(
    store: Store, ana: AccountInfo
) -> None:
    for _ in range(2):
        (made,) = add_people(store, ana, "Ada Łukasz-Wójcik 山田")
        index_all(store)
        assert indexed_trigrams(store) != []
        stored_resumes.delete_resume(store, ana.id, made)
        assert indexed_trigrams(store) == []
        assert found(store, ana, "ada") == []
    with store.read() as connection:
        assert connection.execute(text("SELECT last_seq FROM search_progress")).scalars().one() == 2


def test_a_large_account_goes_with_its_entries(store: Store, an_account: MakeAccount) -> None:
    account, other = an_account("ana"), an_account("bo")
    for some in (account, other):
        add_resumes(store, some, 600)
    index_all(store)
    accounts.delete_account(store, "ana", with_resumes=True)
    assert len(found(store, other, "ada")) == 600
    with store.read() as connection:
        rows = connection.execute(text("SELECT DISTINCT account_id FROM search_entries"))
        assert rows.scalars().all() == [other.id]


def test_an_account_whose_entries_were_removed_by_hand_can_be_deleted(
    store: Store, ana: AccountInfo
) -> None:
    add_people(store, ana, "Ada", "Bo")
    index_all(store)
    damage(store, "DELETE FROM search_entries WHERE account_id = :id", id=ana.id)
    assert accounts.delete_account(store, "ana", with_resumes=True) == 2
    assert accounts.list_accounts(store, closed_too=True) == []


# The indexer


def test_a_step_is_for_several_accounts(store: Store, an_account: MakeAccount) -> None:
    one, two = an_account("one"), an_account("two")
    add_resumes(store, one, SLICE_RESUMES // 2)
    add_resumes(store, two, SLICE_RESUMES)
    Indexer(store).step()
    assert indexed(store) == SLICE_RESUMES
    for number in range(SLICE_ACCOUNTS + 3):
        add_resumes(store, an_account(f"account-{number}"), 1)
    while list_behind(store):
        with suppress(StoreUnavailable):  # on a server, new accounts race for their numbers
            Indexer(store).step()
    assert indexed(store) == SLICE_RESUMES + SLICE_RESUMES // 2 + SLICE_ACCOUNTS + 3


def test_an_account_whose_newest_resume_went_is_not_behind(store: Store, ana: AccountInfo) -> None:
    *_, last = add_resumes(store, ana, 2)
    stored_resumes.delete_resume(store, ana.id, last)
    index_all(store)
    assert indexed(store) == 1


@pytest.mark.parametrize(
    "change",
    [
        "documents SET document = 'Ada is no JSON'",
        "documents SET document = CAST(x'7b22f67d' AS TEXT)",
        "resumes SET title = CAST('Ada' AS BLOB)",
        "resumes SET name = CAST('Ada' AS BLOB)",
        "resumes SET name = CAST(x'416461f6' AS TEXT)",
    ],
)
def test_a_damaged_resume_keeps_no_other_out_of_the_index(
    store: Store, an_account: MakeAccount, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    if store.path is None and "CAST" in change:
        pytest.skip("PostgreSQL looks at what it takes")
    damaged, other = an_account("damaged"), an_account("other")
    before, broken, after = add_people(store, damaged, "Ada", "Ada", "Ada")
    add_people(store, other, "Ada")
    damage(store, f"UPDATE {change} WHERE id = :id", id=broken)

    with caplog.at_level(logging.WARNING, "resumes.store"):
        index_all(store)

    assert found(store, damaged, "ada") == [before, after]
    assert len(found(store, other, "ada")) == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"The account {damaged.id} has 1 damaged resume, which searches do not find. "
        "`resumes db check` says what to do"
    ]
    stored_resumes.delete_resume(store, damaged.id, broken)
    assert indexed(store) == 3


def test_two_indexers_of_one_store_index_each_resume_once_as_it_comes_in(
    url: str, store: Store, ana: AccountInfo
) -> None:
    with open_store(url) as other, Indexer(store, interval_s=0), Indexer(other, interval_s=0):
        for _ in range(20):
            add_resumes(store, ana, 20)
        wait_until(lambda: list_behind(store) == [])
        add_resumes(store, ana, 1)
        wait_until(lambda: indexed(store) == 401)
    with store.read() as connection:
        rows = connection.execute(text("SELECT count(*), max(seq) FROM search_entries"))
        assert rows.one() == (401, 401)
    assert not any(thread.name == "search-indexer" for thread in threading.enumerate())


class Looks:
    """An indexer's clock: it is looked at before and after resumes are read, which take a second."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self) -> float:
        self.seconds.append(float(len(self.seconds)))
        return self.seconds[-1]


def step(store: Store, meanwhile: Callable[[], object]) -> float:
    """An indexer's step, with something that is done after its resumes were read, and before they are
    added."""
    looks = Looks()

    def clock() -> float:
        if looks() == 1:
            meanwhile()
        return looks.seconds[-1]

    return Indexer(store, interval_s=INTERVAL_S, clock=clock).step()


@pytest.mark.timing
def test_a_step_adds_a_slice_and_rests_longer_while_more_comes_in(
    store: Store, ana: AccountInfo
) -> None:
    indexer = Indexer(store, interval_s=INTERVAL_S, clock=Looks())
    add_resumes(store, ana, 3 * SLICE_RESUMES)
    busy_s = indexer.step()
    idle_s = indexer.step()
    assert indexed(store) == 2 * SLICE_RESUMES
    # Adding took little of the real clock.
    assert busy_s == pytest.approx(1 / BUSY_SHARE - 1, rel=0.5)
    assert idle_s == pytest.approx(1 / IDLE_SHARE - 1, rel=0.5)
    assert [indexer.step(), indexer.step()][1] == INTERVAL_S
    assert indexed(store) == 3 * SLICE_RESUMES


@pytest.mark.timing
def test_a_step_of_a_process_that_has_other_work_is_followed_by_a_longer_rest(
    store: Store, ana: AccountInfo
) -> None:
    is_busy = iter([False, True, False]).__next__
    indexer = Indexer(store, interval_s=INTERVAL_S, clock=Looks(), is_busy=is_busy)
    add_resumes(store, ana, 4 * SLICE_RESUMES)
    indexer.step()
    assert indexer.step() == pytest.approx(1 / BUSY_SHARE - 1, rel=0.5)
    assert indexer.step() == pytest.approx(1 / IDLE_SHARE - 1, rel=0.5)


@pytest.mark.sqlite("its version")
def test_a_store_that_nobody_wrote_to_is_asked_for_its_version_alone(
    store: Store, an_account: MakeAccount
) -> None:
    looks = Looks()
    indexer = Indexer(store, clock=looks)
    add_resumes(store, an_account(), 1)
    while list_behind(store):
        indexer.step()
    indexer.step()
    seen = len(looks.seconds)
    indexer.step()
    assert len(looks.seconds) == seen
    an_account("another")
    indexer.step()
    assert len(looks.seconds) > seen


def test_an_indexer_leaves_the_store_to_another_that_was_sooner(
    store: Store, ana: AccountInfo
) -> None:
    add_resumes(store, ana, 1)
    assert step(store, lambda: index_all(store)) == YIELD_S
    assert indexed(store) == 1


@contextmanager
def an_indexer_that_fails(
    store: Store, caplog: pytest.LogCaptureFixture, error: Exception | None = None
) -> Iterator[None]:
    """It has tried some times before the block begins, and goes on in it."""
    looks = Looks()

    def clock() -> float:
        if looks() < 3 and error is not None:
            raise error
        return looks.seconds[-1]

    with (
        caplog.at_level(logging.WARNING, "resumes.store"),
        Indexer(store, interval_s=INTERVAL_S, retry_s=INTERVAL_S, clock=clock),
    ):
        wait_until(lambda: len(looks.seconds) > 4)
        yield


def test_failures_are_logged_once_and_what_failed_is_tried_again(
    store: Store, ana: AccountInfo, caplog: pytest.LogCaptureFixture
) -> None:
    add_resumes(store, ana, 1)
    lose_table(store, "search_progress")
    with an_indexer_that_fails(store, caplog):
        execute(store, "ALTER TABLE elsewhere RENAME TO search_progress")
        wait_until(lambda: indexed(store) == 1)
    (told,) = [record for record in caplog.records if "search index" in record.getMessage()]
    assert "will retry" in told.getMessage()
    assert told.exc_info is None


def test_an_error_that_is_unknown_ends_no_indexer(
    store: Store, ana: AccountInfo, caplog: pytest.LogCaptureFixture
) -> None:
    add_resumes(store, ana, 1)
    with an_indexer_that_fails(store, caplog, ZeroDivisionError()):
        wait_until(lambda: indexed(store) == 1)
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_an_indexer_outlives_its_store(
    url: str, store: Store, ana: AccountInfo, caplog: pytest.LogCaptureFixture
) -> None:
    add_resumes(store, ana, 1)
    closed = open_store(url)
    closed.close()
    with Indexer(closed, interval_s=INTERVAL_S, retry_s=INTERVAL_S):
        wait_until(lambda: any("store is closed" in one.getMessage() for one in caplog.records))
        assert "search-indexer" in [thread.name for thread in threading.enumerate()]
    assert indexed(store) == 0
    assert len(search.find_page(store, ana.id, "ada", timeout_s=60).page.entries) == 1
