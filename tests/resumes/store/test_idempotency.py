import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from resumes.errors import IdempotencyMismatch, StoreUnavailable
from resumes.store import Store, accounts, creating, idempotency, listing
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created, Outcome, create
from resumes.store.idempotency import KEPT, prune_soon
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import sqlite_of
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]
KEPT_S = KEPT.total_seconds()


def keyed(store: Store, account: AccountInfo, key: str = "k", name: str = "Ada") -> Outcome:
    """What became of a create with this key."""
    (outcome,) = create(store, account.id, [a_resume(name, idempotency=key)])
    return outcome


def made(outcome: Outcome) -> str:
    """The id of a resume that was made just now."""
    assert isinstance(outcome, Created)
    assert not outcome.replayed
    return outcome.id


def keys_in(store: Store) -> list[tuple[str, str]]:
    """The rows of keys, by account and key."""
    with store.read() as connection:
        rows = connection.execute(
            text("SELECT name, key FROM idempotency JOIN accounts ON id = account_id ORDER BY 1, 2")
        )
        return [(row.name, row.key) for row in rows]


def test_a_key_counts_for_24_hours(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    first = made(keyed(store, account))
    clock.advance(24 * 3_600 - 0.001)
    assert keyed(store, account) == Created(first, replayed=True)
    assert isinstance(keyed(store, account, name="Bo"), IdempotencyMismatch)
    clock.advance(0.001)
    assert made(keyed(store, account)) != first


def test_a_replay_does_not_make_a_key_count_for_longer(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    made(keyed(store, account))
    clock.advance(KEPT_S / 2)
    keyed(store, account)
    clock.advance(KEPT_S / 2)
    made(keyed(store, account))


def test_a_key_that_counted_no_more_counts_anew_for_any_body(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    made(keyed(store, account))
    clock.advance(KEPT_S)
    second = made(keyed(store, account, name="Bo"))
    clock.advance(KEPT_S - 1)
    assert keyed(store, account, name="Bo") == Created(second, replayed=True)
    assert len(keys_in(store)) == 1


def test_a_key_still_counts_when_the_clock_goes_back(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    first = made(keyed(store, account))
    clock.advance(-3_600)
    assert keyed(store, account) == Created(first, replayed=True)


def test_a_refusal_takes_no_key(store: Store, an_account: MakeAccount) -> None:
    account = an_account(plan="free")
    create(store, account.id, [a_resume() for _ in range(5)])
    assert not isinstance(keyed(store, account), Created)
    assert keys_in(store) == []


def test_a_key_outlives_its_resume(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    first = made(keyed(store, account))
    listing.delete_resume(store, account.id, first)
    assert keyed(store, account) == Created(first, replayed=True)
    assert listing.list_page(store, account.id).entries == []


def test_the_keys_of_an_account_go_with_it_and_leave_the_others(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    assert made(keyed(store, ana)) != made(keyed(store, bo))
    accounts.delete_account(store, "ana", with_resumes=True)
    assert keys_in(store) == [("bo", "k")]


def test_keys_that_count_no_more_are_pruned_whoever_they_are_of(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    for account in (ana, bo):
        keyed(store, account, "old")
    clock.advance(1)
    keyed(store, ana, "young")
    clock.advance(KEPT_S - 1)

    assert asyncio.run(prune_soon(store)) == 2

    assert keys_in(store) == [("ana", "young")]
    assert accounts.get_account(store, "ana").resume_count == 2


def test_pruning_goes_on_slice_by_slice_until_nothing_is_too_old(
    store: Store,
    an_account: MakeAccount,
    clock: SteppingClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idempotency, "SLICE_KEYS", 2)
    account = an_account()
    for number in range(5):
        keyed(store, account, str(number))
    clock.advance(KEPT_S)
    assert asyncio.run(prune_soon(store)) == 5
    assert keys_in(store) == []


def test_pruning_writes_only_when_there_is_something_to_prune(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    keyed(store, an_account())
    store.lane.close()
    assert asyncio.run(prune_soon(store)) == 0
    clock.advance(KEPT_S)
    with pytest.raises(StoreUnavailable):
        asyncio.run(prune_soon(store))


@pytest.mark.sqlite("how it goes about a statement")
@pytest.mark.parametrize(
    ("statement", "way"),
    [
        (idempotency._OLDEST, "ix_idempotency_created_at (created_at<?)"),
        (idempotency._PRUNE, "PRIMARY KEY (account_id=? AND key=?)"),
    ],
)
def test_pruning_finds_what_is_too_old_without_looking_at_the_rest(
    store: Store, statement: Any, way: str
) -> None:
    with store.read() as connection:
        sql, names, constants = statement._for(connection)
        values = {"since": "2027", "rows": 1, "account_id": "a", "key": "k"} | constants
        plan = connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN {sql}", tuple(values[name] for name in names)
        ).all()
    steps = [row[-1] for row in plan if "idempotency" in row[-1]]
    assert any(way in step for step in steps)
    assert not any(step.startswith("SCAN") for step in steps)


@pytest.mark.sqlite("what it says of each statement")
def test_a_create_without_a_key_runs_no_statement_about_keys(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    statements: list[str] = []
    raw: Any = sqlite_of(store)._lane_connection.connection.driver_connection
    raw.set_trace_callback(statements.append)

    creating.create(store, account.id, [a_resume(with_digest=True)], claim=a_claim())
    assert any("documents" in one for one in statements)
    assert not any("idempotency" in one for one in statements)

    keyed(store, account)
    assert any("idempotency" in one for one in statements)
    raw.set_trace_callback(None)


def test_an_event_loop_never_waits_for_a_network(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def find(*_: object) -> list[object]:
        threads.append(threading.current_thread())
        return []

    monkeypatch.setattr(idempotency, "_find_old", find)

    assert asyncio.run(prune_soon(store)) == 0
    is_elsewhere = threads != [threading.main_thread()]
    assert is_elsewhere == store.database.waits_for_network
