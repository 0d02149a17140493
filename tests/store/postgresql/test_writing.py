"""How a process writes to PostgreSQL: creates of accounts together, all else account by account, again
after a race, and never twice."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlmodel import Session, select

from resumes.errors import (
    NotFound,
    OutcomeUnknown,
    QuotaReached,
    StatementRefused,
    StoreUnavailable,
)
from resumes.store import (
    Store,
    accounts,
    api_keys,
    creation,
    idempotency,
    import_requests,
    open_store,
    plans,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.api_keys import KeyHolder
from resumes.store.creation import Creation
from resumes.store.plans import PlanChange
from resumes.store.postgresql import writer
from resumes.store.schema import ACCOUNT_TABLES, ResumeRow
from resumes.store.statements import driver
from resumes.store.write_queue import LostRace
from tests.support.clocks import SteppingClock
from tests.support.postgres import (
    WAITS,
    Server,
    count_sessions,
    count_transactions,
    find_backends,
    stopped,
)
from tests.support.proxy import Fault, Proxy
from tests.support.resumes import a_claim, a_document, a_resume
from tests.support.store.builders import (
    MakeAccount,
    Of,
    Seen,
    batched,
    damage,
    execute,
    hold_writer,
    listed_ids,
    made_ids,
    write_batched,
)
from tests.support.waiting import wait_until

# Accounts beside one another


@contextlib.contextmanager
def held(url: str, account: AccountInfo) -> Iterator[None]:
    """Somebody else has the account's row."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT 1 FROM account_usage WHERE account_id = %s FOR UPDATE", [account.id]
        )
        yield
        connection.rollback()


def test_s8_a_transaction_of_changes_holds_one_account(store: Store) -> None:
    seen = Seen()
    requests = [Of(account, number) for number in range(50) for account in "abc"]
    assert store.commit([batched(seen, request) for request in requests]) == requests
    assert all(len({one.account_id for one in batch}) == 1 for batch in seen.batches)
    assert sum(seen.sizes) == len(requests)


@pytest.mark.parametrize("is_async", [False, True])
def test_s8_deletes_in_a_busy_account_leave_a_thread_to_the_others(
    store: Store, url: str, an_account: MakeAccount, is_async: bool
) -> None:
    busy, calm = an_account("busy"), an_account("calm")
    first, *others = made_ids(creation.create(store, busy.id, [a_resume()] * writer.THREADS))
    with ThreadPoolExecutor(writer.THREADS) as pool:

        def delete(resume_id: str) -> None:
            if is_async:
                asyncio.run(stored_resumes.delete_resume_async(store, busy.id, resume_id))
            else:
                stored_resumes.delete_resume(store, busy.id, resume_id)

        with held(url, busy):
            deletes = [pool.submit(delete, first)]
            wait_until(lambda: count_sessions(url, WAITS) == 1)
            # From here on there are two seconds, after which a transaction gives up waiting.
            deletes += (pool.submit(delete, each) for each in others)
            wait_until(lambda: store.write_queue.waiting == len(others), within_s=2)
            creation.create(store, calm.id, [a_resume()])
            assert not any(call.done() for call in deletes)
        for call in deletes:
            call.result()
    assert listed_ids(store, busy) == []


def test_s8_creates_of_accounts_share_a_transaction_and_wait_for_none_that_is_locked(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    busy, *calm = (an_account(name) for name in ("busy", "a", "b", "c"))

    async def create() -> list[str]:
        with held(url, busy):
            held_up, *others = (
                asyncio.create_task(creation.create_async(store, account.id, a_resume()))
                for account in (busy, *calm)
            )
            await asyncio.gather(*others)
            assert not held_up.done()
        return made_ids([await held_up])

    assert asyncio.run(create()) == listed_ids(store, busy)
    ids = [account.id for account in calm]
    assert count_transactions(url, *ids) == 1
    assert count_transactions(url, busy.id, *ids) == 2
    assert accounts.list_wrong(store) == []


def test_s17_few_accounts_share_a_transaction_since_its_server_may_be_frozen(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    several = [an_account(f"a{number}") for number in range(2 * writer.SHARED_ACCOUNTS)]

    async def create() -> list[Any]:
        creates = (creation.create_async(store, each.id, a_resume()) for each in several)
        with store.write_queue.paused():  # until all creates are waiting
            together = asyncio.gather(*creates)
            await asyncio.sleep(0)
        return await together

    assert len(made_ids(asyncio.run(create()))) == len(several)
    assert count_transactions(url, *(account.id for account in several)) == 2


def test_s8_what_is_created_in_a_locked_account_keeps_its_order(
    store: Store, url: str, ana: AccountInfo
) -> None:
    with ThreadPoolExecutor(2) as pool:
        with held(url, ana):
            first = pool.submit(creation.create, store, ana.id, [a_resume("First")])
            wait_until(lambda: count_sessions(url, WAITS) == 1)
            second = pool.submit(creation.create, store, ana.id, [a_resume("Second")])
            wait_until(lambda: store.write_queue.waiting == 1, within_s=2)
        made = [*made_ids(first.result()), *made_ids(second.result())]
    assert listed_ids(store, ana) == made


def test_s8_accounts_that_are_locked_leave_a_thread_to_the_others(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    calm, *busy = (an_account(f"a{number}") for number in range(writer.THREADS + 2))

    async def create() -> None:
        with contextlib.ExitStack() as stack:
            for account in busy:
                stack.enter_context(held(url, account))
            held_up = [
                asyncio.create_task(creation.create_async(store, account.id, a_resume()))
                for account in busy
            ]
            await asyncio.to_thread(
                wait_until, lambda: count_sessions(url, WAITS) == writer.THREADS - 1
            )
            await creation.create_async(store, calm.id, a_resume())
            assert not any(each.done() for each in held_up)
        await asyncio.gather(*held_up)

    asyncio.run(create())
    assert [len(listed_ids(store, account)) for account in busy] == [1] * len(busy)


def test_s8_writes_that_cannot_share_leave_a_thread_to_the_others_after_an_outage(
    store: Store, ana: AccountInfo
) -> None:
    go_on, entered = threading.Event(), threading.Semaphore(0)
    began: set[str] = set()

    def apply(connection: Connection, requests: Sequence[Of]) -> Sequence[Of]:
        if not {request.account_id for request in requests} <= began:
            began.update(request.account_id for request in requests)
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        entered.release()
        go_on.wait(60)
        return requests

    writes = [batched(apply, Of(f"a{number}"), deadline_s=60) for number in range(writer.THREADS)]
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(store.commit, writes)
        try:
            for _ in range(writer.THREADS - 1):
                assert entered.acquire(timeout=60)
            assert len(made_ids(creation.create(store, ana.id, [a_resume()]))) == 1
        finally:
            go_on.set()
        assert call.result() == [write.request for write in writes]


def test_a_create_overtakes_no_earlier_change_of_its_account(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")

    def count(session: Session) -> int:
        return len(session.exec(select(ResumeRow.id).where(ResumeRow.account_id == ana.id)).all())

    async def write() -> None:
        go_on, holder = hold_writer(store)
        writes = [
            asyncio.create_task(creation.create_async(store, bo.id, a_resume())),
            asyncio.create_task(store.write_async(count, account_id=ana.id)),
            *(
                asyncio.create_task(creation.create_async(store, account.id, a_resume()))
                for account in (ana, bo)
            ),
        ]
        await asyncio.to_thread(wait_until, lambda: store.write_queue.waiting == len(writes))
        go_on.set()
        await asyncio.to_thread(holder.join)
        _, counted, *_ = await asyncio.gather(*writes)
        assert counted == 0

    for _ in range(5):
        asyncio.run(write())
        for resume_id in listed_ids(store, ana):
            stored_resumes.delete_resume(store, ana.id, resume_id)
    assert len(listed_ids(store, bo)) == 10


QUOTA: Final = """
import asyncio, sys
from resumes import analyzer
from resumes.store import creation, open_store
from resumes.store.creation import Created, NewResume

async def create(store, account_id, body):
    new = NewResume(analyzer.parse(body))
    return isinstance(await creation.create_async(store, account_id, new, deadline_s=60), Created)

async def main():
    url, *account_ids = sys.argv[1:]
    body = sys.stdin.buffer.read()
    with open_store(url) as store:
        print("open", flush=True)
        for _ in range(10):
            creates = (create(store, each, body) for each in account_ids * 4)
            print(sum(await asyncio.gather(*creates)), flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
def test_processes_that_create_in_the_same_accounts_fill_each_exactly(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    full = [an_account(f"full-{number}", plan="pro") for number in range(4)]
    free = [an_account(f"free-{number}") for number in range(4)]
    names = [account.id for account in (*full, *free)]
    command = [sys.executable, "-c", QUOTA, url, *names]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)
    ]
    created = 0
    for process in running:
        assert process.stdin is not None
        process.stdin.write(a_document())
        process.stdin.close()
    for process in running:
        with process:
            assert process.stdout is not None
            first, *counts = process.stdout.read().splitlines()
            assert first == b"open"
            created += sum(map(int, counts))
        assert process.returncode == 0
    stored = [accounts.get_account(store, account.name).resume_count for account in (*full, *free)]
    assert stored == [50] * 4 + [120] * 4
    assert created == 4 * (50 + 120)
    assert accounts.list_wrong(store) == []


WRITES: Final[Mapping[str, Callable[[Store, KeyHolder, str], object]]] = {
    "delete a resume": lambda store, holder, resume_id: stored_resumes.delete_resume(
        store, holder.account_id, resume_id
    ),
    "update a resume": lambda store, holder, resume_id: stored_resumes.update_resume(
        store, holder.account_id, resume_id, a_resume().resume
    ),
    "note a key's use": lambda store, holder, _: asyncio.run(
        api_keys.mark_used_async(store, holder)
    ),
    "mark a key as shown": lambda store, holder, _: api_keys.mark_shown(store, holder.key_id),
    "revoke a key": lambda store, holder, _: api_keys.revoke_key(store, holder.key_id),
    "refuse a request": lambda store, holder, _: import_requests.refuse_request(
        store, holder.account_id, "1" * 24, "gone"
    ),
    "remove old Idempotency-Keys": lambda store, *_: asyncio.run(idempotency.prune_async(store)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_s8_a_write_has_its_account_before_it_touches_anything_of_it(
    store: Store,
    url: str,
    clock: SteppingClock,
    ana: AccountInfo,
    write: Callable[[Store, KeyHolder, str], object],
) -> None:
    key = api_keys.create_key(store, "ana")
    holder = api_keys.authenticate(store, key.secret)
    [resume_id] = made_ids(creation.create(store, ana.id, [a_resume(idempotency="once")]))
    creation.create_files(
        store, [Creation(ana.id, [a_resume(with_digest=True)], store.clock(), a_claim("1" * 24))]
    )
    clock.advance(7 * 86_400)
    damage(store, "UPDATE idempotency SET created_at = '2026-01-31T09\\:00\\:00.000Z'")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM account_usage WHERE account_id = %s FOR UPDATE", [ana.id])
        call = pool.submit(write, store, holder, resume_id)
        wait_until(lambda: count_sessions(url, WAITS) == 1)
        # Whoever has the account may change what is in it; in the other order, both could wait.
        for table in ACCOUNT_TABLES:
            other.execute(f"SELECT 1 FROM {table.name} FOR UPDATE NOWAIT".encode())
        other.commit()
        call.result()


# Frozen processes of the server


SLEEP: Final = """
    CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
    CREATE TRIGGER sleeps BEFORE INSERT ON resumes
        FOR EACH ROW WHEN (NEW.label = 'slow') EXECUTE FUNCTION sleep();
"""


@pytest.fixture(params=["between transactions", "in one"])
def beside_frozen(
    request: pytest.FixtureRequest, store: Store, url: str, server: Server, an_account: MakeAccount
) -> Iterator[list[AccountInfo]]:
    """Some connections of the store have no answer: those that are idle, or one whose transaction has locked
    an account. These are other accounts."""
    slow, *others = (an_account(f"a{number}") for number in range(17))
    if request.param == "between transactions":
        with stopped(*find_backends(server, "state = 'idle'")):
            yield others
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SLEEP.encode())
    with ThreadPoolExecutor(1) as pool:
        late = a_resume()._replace(label="slow")
        call = pool.submit(creation.create, store, slow.id, [late], deadline_s=1)
        wait_until(lambda: bool(find_backends(server, "wait_event = 'PgSleep'")))
        backends = find_backends(server, "wait_event = 'PgSleep'")
        with stopped(*backends):
            yield others
        server.execute(f"SELECT pg_terminate_backend({backends[0]})")
        with pytest.raises(StoreUnavailable):
            call.result()


async def use_all(store: Store, several: Sequence[AccountInfo]) -> float:
    """Each account creates and reads; return how long the slowest took."""

    async def use(account: AccountInfo) -> float:
        began_s = time.monotonic()
        made = await creation.create_async(store, account.id, a_resume(), deadline_s=4)
        page = await stored_resumes.list_page_async(store, account.id)
        assert [entry.id for entry in page.entries] == made_ids([made])
        return time.monotonic() - began_s

    return max(await asyncio.gather(*map(use, several)))


def test_s17_frozen_connections_do_not_make_other_accounts_wait_for_them(
    store: Store, beside_frozen: list[AccountInfo]
) -> None:
    asyncio.run(use_all(store, beside_frozen))


@pytest.mark.timing
def test_s17_frozen_connections_delay_other_accounts_for_about_a_second(
    store: Store, beside_frozen: list[AccountInfo]
) -> None:
    assert asyncio.run(use_all(store, beside_frozen)) < 3


# Processes beside one another


def test_two_who_take_one_name_at_once_are_told_apart(store: Store, url: str) -> None:
    with open_store(url) as other, ThreadPoolExecutor(2) as pool:
        for number in range(10):
            name = f"ana-{number}"
            calls = [pool.submit(accounts.create_account, one, name) for one in (store, other)]
            errors = [call.exception() for call in calls]
            assert sorted(type(error).__name__ for error in errors) == ["Conflict", "NoneType"]


def test_s20_what_waited_while_its_account_was_closed_does_not_enter_it(
    store: Store, url: str, ana: AccountInfo
) -> None:
    with psycopg.connect(url) as closing, ThreadPoolExecutor(2) as pool:
        closing.execute("SELECT 1 FROM account_usage WHERE account_id = %s FOR UPDATE", [ana.id])
        closing.execute("UPDATE accounts SET closed_at = 'now' WHERE id = %s", [ana.id])
        create = pool.submit(creation.create, store, ana.id, [a_resume()])
        key = pool.submit(api_keys.create_key, store, "ana")
        wait_until(lambda: count_sessions(url, WAITS) == 2)
        closing.commit()
        for call in (create, key):
            with pytest.raises(NotFound):
                call.result()
    assert listed_ids(store, ana) == []
    assert accounts.list_wrong(store) == []


@pytest.mark.parametrize(("allowed", "stored"), [(3, 3), (1, 2)])
def test_s20_what_waited_while_its_plan_was_lowered_has_the_room_that_is_left(
    store: Store, url: str, an_account: MakeAccount, allowed: int, stored: int
) -> None:
    account = an_account(plan="pro")
    creation.create(store, account.id, [a_resume(), a_resume()])
    with ThreadPoolExecutor(2) as pool:
        with held(url, account):
            create = pool.submit(creation.create, store, account.id, [a_resume()] * 4)
            wait_until(lambda: count_sessions(url, WAITS) == 1)
            plans.set_plan_limits(store, PlanChange("pro", allowed))
        outcomes = create.result()
    told = [outcome.max_resumes for outcome in outcomes if isinstance(outcome, QuotaReached)]
    assert told == [allowed] * (4 + 2 - stored)
    assert len(listed_ids(store, account)) == stored
    assert accounts.list_wrong(store) == []
    # An account changes its plan when what is being created is committed.
    with ThreadPoolExecutor(1) as pool:
        with held(url, account):
            change = pool.submit(accounts.set_plan, store, "ana", "free")
            wait_until(lambda: count_sessions(url, WAITS) == 1)
            assert accounts.get_account(store, "ana").plan == "pro"
        change.result()
    assert accounts.get_account(store, "ana").plan == "free"


def test_s20_each_account_of_a_shared_transaction_has_the_room_that_its_plan_has_left(
    store: Store, url: str, an_account: MakeAccount
) -> None:
    full, other = an_account("ana", plan="pro"), an_account("bo")
    files = [creation.Creation(one.id, [a_resume()], store.clock()) for one in (full, other)]
    with psycopg.connect(url) as locking, ThreadPoolExecutor(1) as pool:
        locking.execute("LOCK TABLE resumes IN SHARE MODE")
        creating = pool.submit(creation.create_files, store, files)
        wait_until(lambda: count_sessions(url, WAITS) == 1)
        locking.execute("UPDATE plans SET max_resumes = 0 WHERE name = 'pro'")
        locking.commit()
        refused, made = creating.result()
    assert isinstance(refused, list)
    assert [type(outcome) for outcome in refused] == [QuotaReached]
    assert made == [creation.Created(only) for only in listed_ids(store, other)]
    assert listed_ids(store, full) == []
    assert accounts.list_wrong(store) == []


def test_s13_a_create_that_waits_for_its_tables_learns_that_the_store_was_closed_meanwhile(
    store: Store, url: str, ana: AccountInfo
) -> None:
    with psycopg.connect(url) as closing, ThreadPoolExecutor(1) as pool:
        closing.execute("LOCK TABLE resumes IN SHARE MODE")
        create = pool.submit(creation.create, store, ana.id, [a_resume()])
        wait_until(lambda: count_sessions(url, WAITS) == 1)
        # What it has read by now does not say so.
        closing.execute("UPDATE store_facts SET value = 'elsewhere' WHERE name = 'closed_for'")
        closing.commit()
        with pytest.raises(StoreUnavailable, match="is being moved to elsewhere"):
            create.result()
    assert listed_ids(store, ana) == []


# What the server refuses


def raised(
    state: str, left: Iterator[object]
) -> Callable[[Connection, Sequence[Any]], Sequence[Any]]:
    """A write that the server refuses with this state, as long as something is left."""

    def apply(connection: Connection, requests: Sequence[Any]) -> Sequence[Any]:
        if next(left, None) is not None:
            refuse = f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$"
            with connection.begin_nested():
                driver(connection).execute(refuse)
        return requests

    return apply


@pytest.mark.parametrize("state", ["40001", "40P01", "23505"])
def test_s7_a_lost_race_is_tried_again_and_seen_only_by_a_write_that_loses_it_for_ever(
    store: Store, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(writer, "MAX_RACES", 3)
    assert write_batched(store, raised(state, iter(range(3))), Of("a", 7)) == Of("a", 7)
    lost, good = (batched(raised(state, left), Of("a")) for left in (count(), iter(())))
    error, made = store.commit([lost, good])
    assert made == Of("a")
    assert type(error) is StoreUnavailable
    assert f"is busy: no ({state}); try again" in str(error)


def test_a_race_that_the_program_itself_finds_lost_is_told_as_the_servers_are(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_RACES", 3)

    def lose(connection: Connection, requests: Sequence[Of]) -> Sequence[Of]:
        raise LostRace("the data has changed")

    with pytest.raises(StoreUnavailable, match="is busy: the data has changed"):
        write_batched(store, lose, Of("a"))


REFUSED_VALUES = (StatementRefused, r"refused the values: \w+ \(STATE\)$")
AT_FAULT = (StoreUnavailable, r"cannot be used: no \(STATE\)")


@pytest.mark.parametrize(
    ("states", "error", "message"),
    [
        ("55P03", StoreUnavailable, "busy, so nothing was done"),
        ("57014", StoreUnavailable, "busy"),
        ("53100", StoreUnavailable, "full, so nothing was done"),
        ("22001 22P02 23502 23503 23514 54000 P0001", *REFUSED_VALUES),
        ("0A000 42501 42P01 XX001", *AT_FAULT),  # of no values
    ],
)
def test_what_waiting_does_not_mend_soon_is_told_at_once_and_not_sent_again(
    store: Store, states: str, error: type[Exception], message: str
) -> None:
    for state in states.split():
        tries = count()
        with pytest.raises(error, match=message.replace("STATE", state)):
            write_batched(store, raised(state, tries), Of("a"))
        assert next(tries) == 1


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("SELECT CAST('secret' AS integer)", "InvalidTextRepresentation (22P02)"),
        ("DO $$ BEGIN RAISE 'secret'; END $$", "RaiseException (P0001)"),
        (
            "INSERT INTO plans (name) VALUES ('secret')",
            'NotNullViolation (23502), table "plans", column "api_listing"',
        ),
        (
            "INSERT INTO accounts SELECT 'secret', 'secret', 'secret', created_at FROM accounts",
            'ForeignKeyViolation (23503), table "accounts", constraint "accounts_plan_fkey"',
        ),
    ],
)
def test_what_the_server_refuses_is_told_by_its_kind_and_place_without_values(
    store: Store, ana: AccountInfo, statement: str, named: str
) -> None:
    with pytest.raises(StatementRefused) as caught, store.read() as connection:
        connection.execute(text(statement))
    assert caught.value.message.endswith(f" refused the values: {named}")


REFUSE_LABEL: Final = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'not here' USING ERRCODE = '%s'; END $$;
    CREATE TRIGGER refuses BEFORE INSERT ON resumes
        FOR EACH ROW WHEN (NEW.label = 'bad') EXECUTE FUNCTION refuse();
"""


@pytest.mark.parametrize(
    ("state", "error"),
    [("22001", StatementRefused), ("23514", StatementRefused), ("57014", StoreUnavailable)],
)
def test_s7_a_row_that_is_refused_takes_no_other_of_its_shared_transaction_along(
    store: Store, url: str, an_account: MakeAccount, state: str, error: type[Exception]
) -> None:
    bad, *others = (an_account(name) for name in ("bad", "a", "b"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((REFUSE_LABEL % state).encode())
    refused = a_resume()._replace(label="bad")

    async def create() -> list[Any]:
        wanted = [(bad, refused), (bad, a_resume()), *((each, a_resume()) for each in others)]
        creates = (creation.create_async(store, account.id, new) for account, new in wanted)
        return await asyncio.gather(*creates, return_exceptions=True)

    first, *made = asyncio.run(create())
    assert type(first) is error
    if state == "57014":  # of time, which those of the same account share
        assert type(made.pop(0)) is error
    assert len(made_ids(made)) == len(made)
    assert [len(listed_ids(store, account)) for account in others] == [1, 1]
    if state != "57014":  # it goes alone from now on, and the others share
        before = count_transactions(url, *(account.id for account in others))
        first, *made = asyncio.run(create())
        assert (type(first), len(made_ids(made))) == (error, len(made))
        assert count_transactions(url, *(account.id for account in others)) == before + 1
    assert accounts.list_wrong(store) == []


@pytest.mark.parametrize(
    ("state", "error", "told"),
    [
        ("22001", StatementRefused, 0),
        ("57P01", StoreUnavailable, 2),  # the server is gone
        ("XX000", StoreUnavailable, 2),  # Citus has lost a worker
    ],
)
def test_s7_a_write_whose_time_is_over_gets_the_servers_error_but_not_that_of_another_account(
    store: Store, url: str, an_account: MakeAccount, state: str, error: type[Exception], told: int
) -> None:
    bad, *busy = (an_account(f"a{number}") for number in range(writer.THREADS + 2))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((REFUSE_LABEL % state).encode())

    async def create() -> list[Any]:
        wanted = [(bad, a_resume()._replace(label="bad")), *((each, a_resume()) for each in busy)]
        creates = (
            creation.create_async(store, account.id, new, deadline_s=1) for account, new in wanted
        )
        return await asyncio.gather(*creates, return_exceptions=True)

    with contextlib.ExitStack() as stack:
        for account in busy:
            stack.enter_context(held(url, account))
        first, *others = asyncio.run(create())
    assert type(first) is error
    assert [type(other) for other in others] == [StoreUnavailable] * len(busy)
    # A write that was tried alone knows better: its account is locked.
    assert sum(f"is unavailable: not here ({state})" in str(each) for each in others) >= told


def test_values_that_are_refused_at_the_commit_are_refused_at_once(
    store: Store, url: str, ana: AccountInfo, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'not here'; END $$;"
            "CREATE CONSTRAINT TRIGGER refuses AFTER INSERT ON resumes"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    with pytest.raises(StatementRefused, match="P0001"):
        creation.create(store, ana.id, [a_resume()])
    assert "No response to a commit" not in caplog.text
    assert listed_ids(store, ana) == []


def test_a_server_that_is_lost_before_the_commit_is_asked_again(store: Store) -> None:
    tries: list[int] = []

    def end_my_connection(connection: Connection, requests: Sequence[Of]) -> Sequence[Of]:
        tries.append(1)
        if len(tries) < 3:
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        return requests

    assert write_batched(store, end_my_connection, Of("a", 1)) == Of("a", 1)
    assert len(tries) == 3


def test_a_server_that_is_no_longer_writable_is_left(store: Store, server: Server) -> None:
    raise_once = raised("25006", iter(range(1)))
    backends: list[int] = []

    def apply(connection: Connection, requests: Sequence[Of]) -> Sequence[Any]:
        backends.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        return raise_once(connection, requests)

    assert write_batched(store, apply, Of("a", 1)) == Of("a", 1)
    first, _ = backends
    wait_until(lambda: not server.execute(f"SELECT 1 FROM pg_stat_activity WHERE pid = {first}"))


# Commits without an answer


@contextlib.contextmanager
def a_standby_that_never_answers(server: Server) -> Iterator[Callable[[], None]]:
    """COMMIT waits for it, until the call."""

    def give_up() -> None:
        server.execute("ALTER SYSTEM RESET synchronous_standby_names")
        server.execute("SELECT pg_reload_conf()")

    server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    server.execute("SELECT pg_reload_conf()")
    wait_until(lambda: server.execute("SHOW synchronous_standby_names") == [("nobody",)])
    try:
        yield give_up
    finally:
        give_up()


def is_committing(server: Server) -> bool:
    return bool(server.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))


def is_asked_about(server: Server) -> bool:
    """Whether a connection was used that is younger than the commit that waits."""
    return bool(
        server.execute(
            "SELECT 1 FROM pg_stat_activity one, pg_stat_activity other "
            "WHERE one.wait_event = 'SyncRep' AND other.backend_start > one.query_start "
            "AND other.pid != pg_backend_pid() AND other.query <> ''"
        )
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer a write is soon taken for frozen."""
    monkeypatch.setattr("resumes.store.postgresql.store.WRITE_TIMEOUT_S", 0.6)


@pytest.mark.parametrize("is_of_files", [False, True])
def test_s2_a_commit_without_an_answer_is_found_out_and_done_once(
    impatient: None, store: Store, server: Server, ana: AccountInfo, is_of_files: bool
) -> None:
    def create() -> list[str]:
        if not is_of_files:
            return made_ids(creation.create(store, ana.id, [a_resume()], deadline_s=8))
        files = [
            Creation(ana.id, [a_resume()], store.clock(), a_claim(digit * 24)) for digit in "12"
        ]
        outcomes = creation.create_files(store, files, deadline_s=8)
        return [id_ for some in outcomes if isinstance(some, list) for id_ in made_ids(some)]

    with a_standby_that_never_answers(server) as give_up, ThreadPoolExecutor(1) as pool:
        call = pool.submit(create)
        wait_until(lambda: is_committing(server))
        # The thread takes its server for frozen, and asks another connection until it has ended.
        wait_until(lambda: is_asked_about(server))
        give_up()
        made = call.result()
    assert len(made) == (2 if is_of_files else 1)
    assert listed_ids(store, ana) == made
    assert accounts.list_wrong(store) == []


def test_s2_what_cannot_be_found_out_is_unknown(
    impatient: None, store: Store, server: Server, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PROOF_TIMEOUT_S", 0.3)
    with a_standby_that_never_answers(server) as give_up:
        with pytest.raises(OutcomeUnknown) as unknown:
            creation.create(store, ana.id, [a_resume()], deadline_s=0.3)
        give_up()
        wait_until(lambda: not is_committing(server))
    # It was stored after all, as the answer allowed for; counter and rows are equal.
    assert accounts.get_account(store, "ana").resume_count == 1
    assert accounts.list_wrong(store) == []
    # A log that shows the error has nothing of what was written.
    (resume_id,) = listed_ids(store, ana)
    assert resume_id not in "".join(traceback.format_exception(unknown.value))


@pytest.fixture
def through_proxy(url: str, store: Store) -> Iterator[tuple[Store, Proxy]]:
    """A second store over the database of the first, through a proxy."""
    with (
        Proxy(url) as proxy,
        open_store(url.replace(urlsplit(url).netloc, f"resumes@127.0.0.1:{proxy.port}")) as other,
    ):
        yield other, proxy


COMMITS: Final = re.compile(rb"closed_for.*COMMIT\0", re.DOTALL)
"""The end of a write's transaction. SQLAlchemy commits one of its own when it first connects."""

UNANSWERED: Final = Fault(unanswered=COMMITS)


def lose_answer(proxy: Proxy, then: Callable[[], object], fault: Fault = UNANSWERED) -> None:
    """The next COMMIT has no answer, and something happens before the next connection."""
    happened: list[object] = []

    def choose() -> Fault:
        if not proxy.cut_count:
            return fault
        if not happened:
            happened.append(then())
        return Fault()

    proxy.choose = choose


@pytest.mark.parametrize(
    ("made", "deleted"), [(1, [0]), (3, [0]), (3, [0, 1]), (3, [0, 1, 2]), (3, [])]
)
def test_s2_what_was_committed_is_not_created_again_whatever_is_deleted_meanwhile(
    store: Store,
    through_proxy: tuple[Store, Proxy],
    ana: AccountInfo,
    made: int,
    deleted: list[int],
) -> None:
    other, proxy = through_proxy
    seen: list[str] = []

    def delete() -> None:
        seen.extend(listed_ids(store, ana))
        for number in deleted:
            stored_resumes.delete_resume(store, ana.id, seen[number])
        # Others go on, too: the account's last ID is not that of what was lost.
        seen.extend(made_ids(creation.create(store, ana.id, [a_resume()])))

    lose_answer(proxy, delete)
    outcomes = creation.create(other, ana.id, [a_resume()] * made)
    assert made_ids(outcomes) == seen[:-1]
    assert listed_ids(store, ana) == [one for one in seen if seen.index(one) not in deleted]
    assert accounts.list_wrong(store) == []


def test_s2_a_shared_commit_without_an_answer_is_known_for_all_its_accounts(
    store: Store, through_proxy: tuple[Store, Proxy], an_account: MakeAccount
) -> None:
    several = [an_account(name) for name in "abc"]
    other, proxy = through_proxy
    lose_answer(proxy, lambda: None)
    files = [
        Creation(account.id, [a_resume()], store.clock(), a_claim(f"{number}" * 24))
        for number, account in enumerate(several)
    ]
    made = [
        made_ids(some) for some in creation.create_files(other, files) if isinstance(some, list)
    ]
    assert proxy.cut_count == 1
    assert made == [listed_ids(store, account) for account in several]
    assert [len(some) for some in made] == [1, 1, 1]
    assert accounts.list_wrong(store) == []


RARE_WRITES: Final[Mapping[str, Callable[[Store], object]]] = {
    "create an account": lambda store: accounts.create_account(store, "bo").name,
    "create a key": lambda store: api_keys.create_key(store, "ana").id,
    "change a plan": lambda store: accounts.set_plan(store, "ana", "free"),
    "delete an account": lambda store: accounts.delete_account(store, "ana"),
}


@pytest.mark.parametrize("write", RARE_WRITES.values(), ids=RARE_WRITES)
def test_s2_any_write_without_an_answer_is_known_to_be_committed(
    through_proxy: tuple[Store, Proxy], ana: AccountInfo, write: Callable[[Store], object]
) -> None:
    other, proxy = through_proxy
    lose_answer(proxy, lambda: None)
    write(other)
    assert proxy.cut_count == 1


@pytest.mark.parametrize("is_same_account", [False, True])
def test_s2_a_number_that_a_crashed_server_gives_again_proves_nothing(
    store: Store,
    server: Server,
    through_proxy: tuple[Store, Proxy],
    an_account: MakeAccount,
    is_same_account: bool,
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    other, proxy = through_proxy
    find = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
    writer_pid = int(str(server.execute(find)[0][0]))
    seen: list[str] = []

    def crash() -> None:
        os.kill(writer_pid, signal.SIGKILL)
        # What follows has the number of what was lost.
        account = ana if is_same_account else bo
        seen.extend(made_ids(creation.create(store, account.id, [a_resume()], deadline_s=30)))

    lose_answer(proxy, crash, Fault(unsent=COMMITS))
    # While it stands still, nobody writes what shall be lost; it has ended where it would go on.
    with contextlib.suppress(ProcessLookupError), stopped(writer_pid):
        if is_same_account:
            with pytest.raises(OutcomeUnknown):
                creation.create(other, ana.id, [a_resume()])
            assert listed_ids(store, ana) == seen
        else:
            made = made_ids(creation.create(other, ana.id, [a_resume()]))
            assert listed_ids(store, ana) == made
    assert accounts.list_wrong(store) == []


def test_s2_an_error_of_the_stored_rows_proves_nothing(
    store: Store, url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PROOF_TIMEOUT_S", 0.3)
    # In a sharded store only the rows can prove anything.
    execute(store, "CREATE TABLE pg_dist_partition ()")
    other, proxy = request.getfixturevalue("through_proxy")
    lose_answer(proxy, lambda: None)
    tries: list[int] = []

    def apply(connection: Connection, requests: Sequence[Of]) -> Sequence[Of]:
        tries.append(1)
        connection.execute(text("UPDATE plans SET max_resumes = max_resumes + 1"))
        return requests

    def prove(connection: Connection, *_: Any) -> None:
        driver(connection).execute("SELECT pg_xact_status('18446744073709551615'::xid8)")

    with pytest.raises(OutcomeUnknown):
        write_batched(other, apply, Of("a"), deadline_s=0.3, proof=prove)
    assert len(tries) == 1


def test_s2_a_commit_that_was_lost_is_done_again(
    store: Store, through_proxy: tuple[Store, Proxy], ana: AccountInfo
) -> None:
    other, proxy = through_proxy
    lose_answer(proxy, lambda: None, Fault(unsent=COMMITS))
    made = made_ids(creation.create(other, ana.id, [a_resume()]))
    assert proxy.cut_count == 1
    assert listed_ids(store, ana) == made
    assert accounts.list_wrong(store) == []
