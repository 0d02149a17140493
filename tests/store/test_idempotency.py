"""Idempotency keys, which count for 24 hours."""

import asyncio

import pytest
from sqlalchemy import text

from resumes.errors import IdempotencyMismatch, StoreUnavailable
from resumes.store import Store, accounts, creation, open_store, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created, Outcome, create
from resumes.store.idempotency import KEPT, SLICE_KEYS, prune_async
from resumes.store.statements import driver
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    MakeAccount,
    add_resumes,
    count_rows,
    damage,
    hold_writer,
    listed_ids,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engines

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


def let_pass(store: Store, clock: SteppingClock, seconds: float) -> None:
    """So much time passes for keys; a server's own clock stands, and they get older instead."""
    clock.advance(seconds)
    if store.is_remote and count_rows(store, "idempotency"):
        older = f"(created_at::timestamptz - interval '{seconds} seconds') AT TIME ZONE 'UTC'"
        pattern = '\'YYYY-MM-DD"T"HH24\\:MI\\:SS.MS"Z"\''
        damage(store, f"UPDATE idempotency SET created_at = to_char({older}, {pattern})")


def keys_in(store: Store) -> list[tuple[str, str]]:
    """The rows of keys, by account and key."""
    with store.read() as connection:
        rows = connection.execute(
            text("SELECT name, key FROM idempotency JOIN accounts ON id = account_id ORDER BY 1, 2")
        )
        return [(row.name, row.key) for row in rows]


def test_a_key_counts_for_24_hours_from_its_first_use_and_then_anew_for_any_body(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    assert KEPT_S == 24 * 3_600
    first = made(keyed(store, ana))
    let_pass(store, clock, KEPT_S - 60)
    assert keyed(store, ana) == Created(first, replayed=True)
    assert isinstance(keyed(store, ana, name="Bo"), IdempotencyMismatch)
    let_pass(store, clock, 60)
    second = made(keyed(store, ana, name="Bo"))
    assert second != first
    let_pass(store, clock, KEPT_S - 60)
    assert keyed(store, ana, name="Bo") == Created(second, replayed=True)
    assert len(keys_in(store)) == 1


def test_a_key_still_counts_when_the_clock_goes_back_or_its_resume_went(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    first = made(keyed(store, ana))
    clock.advance(-3_600)
    assert keyed(store, ana) == Created(first, replayed=True)
    stored_resumes.delete_resume(store, ana.id, first)
    assert keyed(store, ana) == Created(first, replayed=True)
    assert stored_resumes.list_page(store, ana.id).entries == []


def test_a_refusal_takes_no_key(store: Store, an_account: MakeAccount) -> None:
    account = an_account(plan="free")
    add_resumes(store, account, 5)
    assert not isinstance(keyed(store, account), Created)
    assert keys_in(store) == []


def test_the_keys_of_an_account_are_its_own_and_go_with_it(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    assert made(keyed(store, ana)) != made(keyed(store, bo))
    accounts.delete_account(store, "ana", with_resumes=True)
    assert keys_in(store) == [("bo", "k")]


def test_keys_that_count_no_more_are_pruned_whoever_they_are_of_and_however_many(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    old = [a_resume(idempotency=f"old-{number}") for number in range(SLICE_KEYS + 1)]
    create(store, ana.id, old)
    keyed(store, bo, "old")
    let_pass(store, clock, 60)
    keyed(store, ana, "young")
    let_pass(store, clock, KEPT_S - 60)

    assert asyncio.run(prune_async(store)) == SLICE_KEYS + 2

    assert keys_in(store) == [("ana", "young")]
    assert count_rows(store, "resumes") == SLICE_KEYS + 3


def test_a_key_that_is_used_anew_while_it_is_pruned_stays(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    keyed(store, ana)
    let_pass(store, clock, KEPT_S)

    async def scenario() -> int:
        go_on, holder = await asyncio.to_thread(hold_writer, store)
        again = asyncio.create_task(
            creation.create_async(store, ana.id, a_resume("Bo", idempotency="k"))
        )
        await asyncio.to_thread(wait_until, lambda: store.write_queue.waiting == 1)
        pruning = asyncio.create_task(prune_async(store))
        await asyncio.to_thread(wait_until, lambda: store.write_queue.waiting == 2)
        go_on.set()
        await asyncio.to_thread(holder.join)
        made(await again)
        return await pruning

    assert asyncio.run(scenario()) == 0
    assert keys_in(store) == [("ana", "k")]


def test_pruning_writes_only_when_there_is_something_to_prune(
    store: Store, ana: AccountInfo, clock: SteppingClock
) -> None:
    keyed(store, ana)
    store.write_queue.close()
    assert asyncio.run(prune_async(store)) == 0
    let_pass(store, clock, KEPT_S)
    with pytest.raises(StoreUnavailable):
        asyncio.run(prune_async(store))


@pytest.mark.parametrize("ahead_s", [KEPT_S + 60, -KEPT_S - 60])
def test_a_machine_whose_clock_is_wrong_neither_forgets_nor_doubles_what_has_a_key(
    store: Store, url: str, ana: AccountInfo, ahead_s: float
) -> None:
    if not store.is_remote:
        pytest.skip("a store in a file has one machine, with one clock")
    wrong = SteppingClock()
    wrong.advance(ahead_s)
    with open_store(url, clock=wrong) as other:
        first = made(keyed(store, ana))
        assert asyncio.run(prune_async(other)) == 0
        assert keyed(other, ana) == Created(first, replayed=True)
        second = made(keyed(other, ana, "theirs"))
        assert asyncio.run(prune_async(store)) == 0
        assert keyed(store, ana, "theirs") == Created(second, replayed=True)
    assert listed_ids(store, ana) == sorted([first, second])


@pytest.mark.sqlite("what it says of each statement")
def test_a_create_without_a_key_runs_no_statement_about_keys(
    store: Store, ana: AccountInfo
) -> None:
    statements: list[str] = []
    store.write(lambda connection: driver(connection).set_trace_callback(statements.append))
    creation.create(store, ana.id, [a_resume(with_digest=True)], claim=a_claim())
    assert any("documents" in one for one in statements)
    assert not any("idempotency" in one for one in statements)

    keyed(store, ana)
    assert any("idempotency" in one for one in statements)
