"""How a process writes to PostgreSQL account by account: who shares a transaction, and who waits."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection

from resumes.errors import NotFound, QuotaReached, StoreUnavailable
from resumes.store import Store, accounts, counters, creating, keys, listing, open_store, plans
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created
from resumes.store.plans import PlanChange
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import MakeAccount
from tests.resumes.store.postgresql.builders import Of, wait_until


class Seen:
    """A write that notes its batches."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def __call__(self, _: Connection, requests: Sequence[Any]) -> Sequence[Any]:
        self.batches.append(list(requests))
        return requests


@contextlib.contextmanager
def held(url: str, account: AccountInfo) -> Iterator[None]:
    """Somebody else has the account's row."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT 1 FROM account_usage WHERE account_id = %s FOR UPDATE", [account.id]
        )
        yield
        connection.rollback()


def test_writes_of_an_account_that_wait_together_are_committed_together(store: Store) -> None:
    seen, go_on, is_begun = Seen(), threading.Event(), threading.Event()

    def wait(_: Connection, requests: Sequence[Of]) -> Sequence[Of]:
        is_begun.set()
        assert go_on.wait(60)
        return requests

    with ThreadPoolExecutor(21) as pool:
        first = pool.submit(store.write, wait, Of("a"))
        assert is_begun.wait(60)
        others = [pool.submit(store.write, seen, Of("a", number)) for number in range(20)]
        wait_until(lambda: store.lane.waiting == 20)
        go_on.set()
        assert [one.result() for one in others] == [Of("a", number) for number in range(20)]
        first.result()
    assert [len(batch) for batch in seen.batches] == [20]


def test_s8_a_transaction_holds_one_account(store: Store) -> None:
    seen = Seen()
    requests = [Of(account, number) for number in range(50) for account in "abc"]
    assert store.write_all(seen, requests) == requests
    assert all(len({one.account_id for one in batch}) == 1 for batch in seen.batches)
    assert sum(map(len, seen.batches)) == len(requests)


@pytest.mark.timing
def test_s8_who_waits_for_a_busy_account_is_told_so_and_the_others_go_on(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    busy, calm = an_account("busy"), an_account("calm")
    with held(url, busy), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(creating.create, store, busy.id, [a_resume()])
        began_s = time.monotonic()
        for _ in range(20):
            creating.create(store, calm.id, [a_resume()])
        assert not waiting.done()
        assert time.monotonic() - began_s < 2
        with pytest.raises(StoreUnavailable, match="busy; nothing was done"):
            waiting.result()
    creating.create(store, busy.id, [a_resume()])
    assert counters.list_wrong(store) == []


def test_a_write_that_was_not_taken_by_its_deadline_will_not_happen(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    go_on, is_begun = threading.Event(), threading.Event()

    def wait(_: Connection, requests: Sequence[Of]) -> Sequence[Of]:
        is_begun.set()
        assert go_on.wait(60)
        return requests

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(store.write, wait, Of(account.id))
        assert is_begun.wait(60)
        with pytest.raises(StoreUnavailable, match="nothing was done"):
            creating.create(store, account.id, [a_resume()], deadline_s=0.2)
        go_on.set()
        first.result()
    assert listing.list_page(store, account.id).entries == []


def test_s9_a_process_that_is_to_be_stopped_leaves_the_lanes_first(store: Store) -> None:
    seen = Seen()
    with ThreadPoolExecutor(1) as pool:
        with store.lane.left():
            call = pool.submit(store.write, seen, Of("a"))
            wait_until(lambda: store.lane.waiting)
            assert not seen.batches
        assert call.result() == Of("a")


def test_what_waits_is_written_before_the_store_is_closed(url: str) -> None:
    seen = Seen()
    store = open_store(url)
    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(store.write, seen, Of(str(number))) for number in range(20)]
        wait_until(lambda: sum(map(len, seen.batches)) + store.lane.waiting == 20)
        store.close()
        assert [call.result().account_id for call in calls] == [str(number) for number in range(20)]
    with pytest.raises(StoreUnavailable, match="closed"):
        store.write(seen, Of("a"))


def test_a_quota_holds_between_processes(store: Store, url: str, an_account: MakeAccount) -> None:
    plans.set_plan_limits(store, PlanChange("free", 10))
    account = an_account(plan="free")
    with open_store(url) as other, ThreadPoolExecutor(16) as pool:
        calls = [
            pool.submit(creating.create, one, account.id, [a_resume()])
            for one in (store, other) * 20
        ]
        outcomes = [outcome for call in calls for outcome in call.result()]
    assert sum(isinstance(outcome, Created) for outcome in outcomes) == 10
    assert sum(isinstance(outcome, QuotaReached) for outcome in outcomes) == 30
    ids = [entry.id for entry in listing.list_page(store, account.id).entries]
    assert ids == sorted(outcome.id for outcome in outcomes if isinstance(outcome, Created))


def test_who_goes_on_with_the_last_id_misses_nothing_that_several_processes_write(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    account = an_account(plan="business")
    seen: list[str] = []
    is_over = threading.Event()

    def follow() -> None:
        while True:
            is_last_look = is_over.is_set()
            page = listing.list_page(store, account.id, cursor=seen[-1] if seen else "", limit=100)
            seen.extend(entry.id for entry in page.entries)
            if is_last_look and not page.entries:
                return

    def create(one: Store) -> list[str]:
        outcomes = [creating.create(one, account.id, [a_resume()])[0] for _ in range(60)]
        return [outcome.id for outcome in outcomes if isinstance(outcome, Created)]

    with open_store(url) as second, open_store(url) as third, ThreadPoolExecutor(7) as pool:
        reader = pool.submit(follow)
        created = list(pool.map(create, (store, second, third) * 2))
        is_over.set()
        reader.result(30)
    assert seen == sorted(id_ for ids in created for id_ in ids)
    assert len(seen) == 360


def test_s20_what_waited_while_its_account_was_closed_does_not_enter_it(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    account = an_account()
    with psycopg.connect(url) as closing, ThreadPoolExecutor(2) as pool:
        closing.execute(
            "SELECT 1 FROM account_usage WHERE account_id = %s FOR UPDATE", [account.id]
        )
        closing.execute("UPDATE accounts SET closed_at = 'now' WHERE id = %s", [account.id])
        create = pool.submit(creating.create, store, account.id, [a_resume()])
        key = pool.submit(keys.create_key, store, "ana")
        wait_until(lambda: waiting_count(url) == 2)
        closing.commit()
        with pytest.raises(NotFound):
            create.result()
        with pytest.raises(NotFound):
            key.result()
    assert listing.list_page(store, account.id).entries == []
    assert counters.list_wrong(store) == []


@pytest.mark.parametrize(("allowed", "stored"), [(3, 3), (1, 2)])
def test_s20_what_waited_while_its_plan_was_lowered_has_the_room_that_is_left(
    store: Store, url: str, an_account: MakeAccount, allowed: int, stored: int
) -> None:
    account = an_account(plan="pro")
    creating.create(store, account.id, [a_resume(), a_resume()])
    with ThreadPoolExecutor(1) as pool:
        with held(url, account):
            create = pool.submit(creating.create, store, account.id, [a_resume()] * 4)
            wait_until(lambda: waiting_count(url) == 1)
            plans.set_plan_limits(store, PlanChange("pro", allowed))
        outcomes = create.result()
    told = [outcome.max_resumes for outcome in outcomes if isinstance(outcome, QuotaReached)]
    assert told == [allowed] * (4 + 2 - stored)
    assert len(listing.list_page(store, account.id).entries) == stored
    assert counters.list_wrong(store) == []


def test_an_account_changes_its_plan_when_what_is_being_created_is_committed(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    account = an_account(plan="pro")
    with ThreadPoolExecutor(1) as pool:
        with held(url, account):
            change = pool.submit(accounts.set_plan, store, "ana", "free")
            wait_until(lambda: waiting_count(url) == 1)
            assert accounts.get_account(store, "ana").plan == "pro"
        change.result()
    assert accounts.get_account(store, "ana").plan == "free"


def waiting_count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])
