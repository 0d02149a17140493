"""The search index: filled behind the creates by any number of processes, and never wrong."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from resumes.store import Store, accounts, open_store, search, search_index, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.postgresql.pieces import AT_ONCE
from resumes.store.search_index import (
    ACCOUNTS_AT_ONCE,
    BUSY_SHARE,
    CALM_SHARE,
    SLICE,
    YIELD_S,
    Filler,
    Progress,
    Slice,
    gather,
)
from resumes.store.sqlite.pieces import NUMBER_SHIFT
from tests.support.store.builders import (
    MakeAccount,
    add_people,
    add_resumes,
    count_rows,
    execute,
    indexed_pieces,
    lose_table,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines

LOOK_S = 0.01


def indexed(store: Store) -> int:
    return count_rows(store, "search_entries")


def progress_of(store: Store, account: AccountInfo) -> Progress | None:
    with store.read() as connection:
        return search_index.find_progress(connection, account.id)


def add(store: Store, *slices: Slice) -> int:
    """How many of the slices nobody else had added."""
    return search_index.add_all(store, slices).slices


def candidates(store: Store, account: AccountInfo, term: str, *, after: str = "") -> list[str]:
    """The resumes that the index gives for a term: these may hold it, and no others do."""
    progress = progress_of(store, account)
    assert progress is not None
    with store.read() as connection:
        rows = list(search_index.begin_candidates(connection, account.id, progress, [term], after))
    return [resume_id for _, resume_id, *_ in rows]


def test_entries_are_found_in_the_order_of_ids_after_any_id(store: Store, ana: AccountInfo) -> None:
    ids = add_people(store, ana, "Ada", "Bo", "Adam", "Cy", "Adele")
    search_index.fill(store)
    for after, found in (("", ids[::2]), (ids[0], ids[2::2]), (ids[1], ids[2::2]), (ids[4], [])):
        assert candidates(store, ana, "ad", after=after) == found


def test_more_than_are_read_at_once_come_in_order(store: Store, ana: AccountInfo) -> None:
    ids = add_resumes(store, ana, AT_ONCE + 150)
    search_index.fill(store)
    assert candidates(store, ana, "ada") == ids


def test_an_account_is_a_range_of_rows_of_its_own(store: Store, an_account: MakeAccount) -> None:
    mine, theirs = an_account("mine"), an_account("theirs")
    for account in (mine, theirs, mine):
        add_people(store, account, "Ada")
        search_index.fill(store)
    assert len(candidates(store, mine, "ada")) == 2
    assert len(candidates(store, theirs, "ada")) == 1
    first, second = progress_of(store, mine), progress_of(store, theirs)
    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (1, 2)
    assert first.last_seq < 1 << NUMBER_SHIFT
    if store.path is None:
        with store.read() as connection:
            rows = connection.execute(text("SELECT pieces FROM search_pieces")).scalars().all()
        assert len({frozenset(row) for row in rows}) == 2  # in common they have none


def test_a_slice_is_added_once_and_without_what_went_since_it_was_read(
    store: Store, ana: AccountInfo
) -> None:
    gone, *_ = add_people(store, ana, "Ada", "Adam", "Bo")
    (some,) = gather(store).slices
    stored_resumes.delete_resume(store, ana.id, gone)
    assert add(store, some, some) == 1
    assert indexed(store) == 2
    assert len(candidates(store, ana, "ada")) == 1
    assert gather(store) == search_index.Gathered([], 0)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_slice_of_an_account_that_is_gone_or_going_is_not_added(
    store: Store, ana: AccountInfo, is_gone: bool
) -> None:
    add_resumes(store, ana, 501)
    (some,) = gather(store).slices
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda gone: is_gone)
    assert add(store, some) == 0
    assert progress_of(store, ana) is None
    assert gather(store).slices == []


def test_what_is_deleted_takes_its_pieces_along_and_no_number_is_used_again(
    store: Store, ana: AccountInfo
) -> None:
    for _ in range(2):
        (made,) = add_people(store, ana, "Ada Łukasz-Wójcik 山田")
        search_index.fill(store)
        assert indexed_pieces(store) != []
        stored_resumes.delete_resume(store, ana.id, made)
        assert indexed_pieces(store) == []
        assert candidates(store, ana, "ada") == []
    progress = progress_of(store, ana)
    assert progress is not None
    assert progress.last_seq == 2


def test_a_large_account_goes_with_its_entries(store: Store, an_account: MakeAccount) -> None:
    account, other = an_account("ana"), an_account("bo")
    for some in (account, other):
        add_resumes(store, some, 600)
    search_index.fill(store)
    accounts.delete_account(store, "ana", with_resumes=True)
    assert len(candidates(store, other, "ada")) == 600
    with store.read() as connection:
        rows = connection.execute(text("SELECT DISTINCT account_id FROM search_entries"))
        assert rows.scalars().all() == [other.id]


# Filling


def test_some_are_gathered_at_a_time_of_several_accounts(
    store: Store, an_account: MakeAccount
) -> None:
    add_resumes(store, an_account("one"), SLICE // 2)
    add_resumes(store, an_account("two"), SLICE)
    gathered = gather(store)
    sizes = [len(one.words) for one in gathered.slices]
    assert sizes in ([SLICE // 2, SLICE // 2], [SLICE])
    assert gathered.is_full
    for number in range(ACCOUNTS_AT_ONCE + 3):
        add_resumes(store, an_account(f"account-{number}"), 1)
    search_index.fill(store, deadline_s=60)  # on a server, new accounts race for their numbers
    assert indexed(store) == SLICE + SLICE // 2 + ACCOUNTS_AT_ONCE + 3


def test_an_account_whose_newest_resume_went_is_not_behind(store: Store, ana: AccountInfo) -> None:
    *_, last = add_resumes(store, ana, 2)
    stored_resumes.delete_resume(store, ana.id, last)
    search_index.fill(store)
    assert gather(store).slices == []
    assert indexed(store) == 1


def test_two_fillers_of_one_store_index_each_resume_once_as_it_comes_in(
    url: str, store: Store, ana: AccountInfo
) -> None:
    with open_store(url) as other, Filler(store, look_s=0), Filler(other, look_s=0):
        for _ in range(20):
            add_resumes(store, ana, 20)
        wait_until(lambda: gather(store).slices == [])
        add_resumes(store, ana, 1)
        wait_until(lambda: indexed(store) == 401)
    with store.read() as connection:
        rows = connection.execute(text("SELECT count(*), max(seq) FROM search_entries"))
        assert rows.one() == (401, 401)
    assert not any(thread.name == "search-filler" for thread in threading.enumerate())


class Looks:
    """A filler's clock: it is looked at before and after resumes are read, which take a second."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self) -> float:
        self.seconds.append(float(len(self.seconds)))
        return self.seconds[-1]


@pytest.mark.timing
def test_a_step_adds_a_slice_and_rests_longer_while_more_comes_in(
    store: Store, ana: AccountInfo
) -> None:
    filler = Filler(store, look_s=LOOK_S, clock=Looks())
    add_resumes(store, ana, 3 * SLICE)
    busy_s = filler.step()
    calm_s = filler.step()
    assert indexed(store) == 2 * SLICE
    # Adding took little of the real clock.
    assert busy_s == pytest.approx(1 / BUSY_SHARE - 1, rel=0.5)
    assert calm_s == pytest.approx(1 / CALM_SHARE - 1, rel=0.5)
    assert [filler.step(), filler.step()][1] == LOOK_S
    assert indexed(store) == 3 * SLICE


@pytest.mark.timing
def test_a_step_of_a_process_that_has_other_work_is_followed_by_a_longer_rest(
    store: Store, ana: AccountInfo
) -> None:
    is_busy = iter([False, True, False]).__next__
    filler = Filler(store, look_s=LOOK_S, clock=Looks(), is_busy=is_busy)
    add_resumes(store, ana, 4 * SLICE)
    filler.step()
    assert filler.step() == pytest.approx(1 / BUSY_SHARE - 1, rel=0.5)
    assert filler.step() == pytest.approx(1 / CALM_SHARE - 1, rel=0.5)


@pytest.mark.sqlite("its version")
def test_a_store_that_nobody_wrote_to_is_asked_for_its_version_alone(
    store: Store, an_account: MakeAccount
) -> None:
    looks = Looks()
    filler = Filler(store, clock=looks)
    add_resumes(store, an_account(), 1)
    while gather(store).slices:
        filler.step()
    filler.step()
    seen = len(looks.seconds)
    filler.step()
    assert len(looks.seconds) == seen
    an_account("another")
    filler.step()
    assert len(looks.seconds) > seen


def test_a_filler_leaves_the_store_to_another_that_was_sooner(
    store: Store, ana: AccountInfo
) -> None:
    add_resumes(store, ana, 1)
    looks = Looks()

    def clock() -> float:
        if looks() == 1:  # the resumes were read, and are about to be added
            search_index.fill(store)
        return looks.seconds[-1]

    assert Filler(store, look_s=LOOK_S, clock=clock).step() == YIELD_S
    assert indexed(store) == 1


@contextmanager
def a_filler_that_fails(
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
        Filler(store, look_s=LOOK_S, again_s=LOOK_S, clock=clock),
    ):
        wait_until(lambda: len(looks.seconds) > 4)
        yield


def test_failures_are_logged_once_and_what_failed_is_tried_again(
    store: Store, ana: AccountInfo, caplog: pytest.LogCaptureFixture
) -> None:
    add_resumes(store, ana, 1)
    lose_table(store, "search_progress")
    with a_filler_that_fails(store, caplog):
        execute(store, "ALTER TABLE elsewhere RENAME TO search_progress")
        wait_until(lambda: indexed(store) == 1)
    (told,) = [record for record in caplog.records if "search index" in record.getMessage()]
    assert "will try on" in told.getMessage()
    assert told.exc_info is None


def test_an_error_that_is_unknown_ends_no_filler(
    store: Store, ana: AccountInfo, caplog: pytest.LogCaptureFixture
) -> None:
    add_resumes(store, ana, 1)
    with a_filler_that_fails(store, caplog, ZeroDivisionError()):
        wait_until(lambda: indexed(store) == 1)
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_filler_outlives_its_store(
    url: str, store: Store, ana: AccountInfo, caplog: pytest.LogCaptureFixture
) -> None:
    add_resumes(store, ana, 1)
    closed = open_store(url)
    closed.close()
    with a_filler_that_fails(closed, caplog):
        assert any("store is closed" in one.getMessage() for one in caplog.records)
    assert indexed(store) == 0
    assert len(search.find_page(store, ana.id, "ada", patience_s=60).page.entries) == 1
