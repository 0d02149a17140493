import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, text

from resumes.store import (
    Store,
    creating,
    listing,
    open_store,
    search_filler,
    search_index,
)
from resumes.store.accounts import AccountInfo
from resumes.store.search_filler import (
    ACCOUNTS_AT_ONCE,
    BUSY_SHARE,
    CALM_SHARE,
    SLICE,
    YIELD_S,
    Filler,
    gather,
)
from resumes.store.search_index import Slice
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import Busy, sqlite_of
from tests.waiting import wait_until

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]
LOOK_S = 0.01


def fill(store: Store, account: AccountInfo, count: int) -> list[str]:
    outcomes = creating.create(store, account.id, [a_resume(f"Ada {n}") for n in range(count)])
    return [outcome.id for outcome in outcomes if isinstance(outcome, creating.Created)]


def indexed(store: Store) -> int:
    with store.read() as connection:
        return int(connection.execute(text("SELECT count(*) FROM search_entries")).scalar_one())


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Somebody keeps the store locked who does not use the lane."""
    if store.path is None:
        with Busy(store).held():
            yield
        return
    with open_store(store.url) as other:
        transaction = sqlite_of(other)._lane_connection.begin()
        try:
            yield
        finally:
            transaction.rollback()


def test_some_are_gathered_at_a_time_of_several_accounts(
    store: Store, an_account: MakeAccount
) -> None:
    fill(store, an_account("one"), SLICE // 2)
    fill(store, an_account("two"), SLICE)
    gathered = gather(store)
    assert [len(one.words) for one in gathered.slices] in (
        [SLICE // 2, SLICE // 2],
        [SLICE],
    )
    assert gathered.is_full
    search_filler.fill(store)
    assert indexed(store) == SLICE + SLICE // 2
    assert gather(store) == search_filler.Gathered([], 0)


def test_more_accounts_than_are_looked_at_together_are_filled(
    store: Store, an_account: MakeAccount
) -> None:
    for number in range(ACCOUNTS_AT_ONCE + 3):
        fill(store, an_account(f"account-{number}"), 1)
    search_filler.fill(store)
    assert indexed(store) == ACCOUNTS_AT_ONCE + 3


def test_an_account_whose_newest_resume_went_is_not_behind(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    *_, last = fill(store, account, 2)
    listing.delete_resume(store, account.id, last)
    search_filler.fill(store)
    assert gather(store).slices == []
    assert indexed(store) == 1


def test_a_filler_indexes_what_comes_in(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    fill(store, account, 3)
    with Filler(store, look_s=LOOK_S):
        wait_until(lambda: indexed(store) == 3)
        fill(store, account, 2)
        wait_until(lambda: indexed(store) == 5)
    assert not any(thread.name == "search-filler" for thread in threading.enumerate())


def test_two_fillers_of_one_store_index_each_resume_once(
    url: str, store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    with open_store(url) as other, Filler(store, look_s=0), Filler(other, look_s=0):
        for _ in range(20):
            fill(store, account, 20)
        wait_until(lambda: gather(store).slices == [])
    assert indexed(store) == 400
    with store.read() as connection:
        rows = connection.execute(text("SELECT count(*), max(seq) FROM search_entries"))
        assert rows.one() == (400, 400)


@pytest.mark.timing
def test_a_step_adds_a_slice_and_rests_longer_while_more_comes_in(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    seconds = iter(range(100))
    filler = Filler(store, look_s=LOOK_S, clock=lambda: float(next(seconds)))
    fill(store, account, 3 * SLICE)
    busy_s = filler.step()
    calm_s = filler.step()
    assert indexed(store) == 2 * SLICE
    # Reading took a second of that clock, and adding little of the real one.
    assert busy_s == pytest.approx(1 / BUSY_SHARE - 1, rel=0.5)
    assert calm_s == pytest.approx(1 / CALM_SHARE - 1, rel=0.5)
    assert [filler.step(), filler.step()][1] == LOOK_S
    assert indexed(store) == 3 * SLICE


@pytest.mark.sqlite("its version")
def test_a_store_that_nobody_wrote_to_is_asked_for_its_version_alone(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler = Filler(store)
    fill(store, an_account(), 1)
    while search_filler.gather(store).slices:
        filler.step()
    filler.step()
    looks: list[Store] = []

    def counted(store: Store) -> search_filler.Gathered:
        looks.append(store)
        return gather(store)

    monkeypatch.setattr(search_filler, "gather", counted)
    filler.step()
    assert looks == []
    an_account("another")
    filler.step()
    assert looks == [store]


def test_a_filler_leaves_the_store_to_another_that_was_sooner(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, an_account(), 1)
    gathered = gather(store)
    monkeypatch.setattr(search_filler, "gather", lambda store: gathered)
    assert Filler(store, look_s=LOOK_S).step() == LOOK_S
    assert Filler(store, look_s=LOOK_S).step() == YIELD_S
    assert indexed(store) == 1


def test_failures_are_logged_once_and_what_failed_is_tried_again(
    store: Store,
    an_account: MakeAccount,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(search_filler, "AGAIN_S", LOOK_S)
    monkeypatch.setattr("resumes.store.sqlite.lane.BUSY_S", LOOK_S)
    fill(store, an_account(), 1)
    tries: list[float] = []
    step = Filler.step

    def counted(filler: Filler) -> float:
        tries.append(0)
        return step(filler)

    monkeypatch.setattr(Filler, "step", counted)
    lock = contextlib.ExitStack()
    # Locked before the thread begins, or it may be done by then.
    lock.enter_context(locked(store))
    with caplog.at_level(logging.WARNING, "resumes.store"), Filler(store, look_s=LOOK_S):
        # A server is asked to wait for two seconds each time.
        wait_until(lambda: len(tries) > (5 if store.path else 2))
        assert indexed(store) == 0
        lock.close()
        wait_until(lambda: indexed(store) == 1)
    told = [record for record in caplog.records if "search index" in record.getMessage()]
    assert len(told) == 1
    assert "will try on" in told[0].getMessage()


def test_an_error_that_is_unknown_ends_no_filler(
    store: Store,
    an_account: MakeAccount,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(search_filler, "AGAIN_S", LOOK_S)
    fill(store, an_account(), 1)
    failed: list[bool] = []
    add_slice = search_index.add_slice

    def fails_once(connection: Connection, some: Slice) -> bool:
        if not failed:
            failed.append(True)
            raise ZeroDivisionError
        return add_slice(connection, some)

    monkeypatch.setattr(search_index, "add_slice", fails_once)
    with Filler(store, look_s=LOOK_S):
        wait_until(lambda: indexed(store) == 1)
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_filler_outlives_its_store(
    url: str, store: Store, an_account: MakeAccount, caplog: pytest.LogCaptureFixture
) -> None:
    fill(store, an_account(), 1)
    closed = open_store(url)
    closed.close()
    with caplog.at_level(logging.WARNING), Filler(closed, look_s=LOOK_S):
        wait_until(lambda: any("store is closed" in one.getMessage() for one in caplog.records))
    assert indexed(store) == 0


def test_what_went_meanwhile_moves_the_position_all_the_same(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    fill(store, account, 1)
    slices = gather(store).slices
    listing.delete_resume(store, account.id, listing.list_page(store, account.id).entries[0].id)
    added = search_filler.add_all(store, slices)
    assert (added.slices, indexed(store)) == (1, 0)
