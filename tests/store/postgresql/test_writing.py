"""How a process writes to PostgreSQL: account by account, again after a race, and never twice."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import Connection, text

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
from resumes.store.schema import ACCOUNT_TABLES
from tests.support.clocks import SteppingClock
from tests.support.postgres import WAITS, Server, count_sessions
from tests.support.proxy import Fault, Proxy
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    MakeAccount,
    Of,
    Seen,
    batched,
    damage,
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


def test_s8_a_transaction_holds_one_account(store: Store) -> None:
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


# What the server refuses


def raised(state: str, times: int) -> Callable[[Connection, Sequence[Any]], Sequence[Any]]:
    """A write that the server refuses so often with this state."""
    left = iter(range(times))

    def apply(connection: Connection, requests: Sequence[Any]) -> Sequence[Any]:
        if next(left, None) is not None:
            connection.execute(
                text(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$")
            )
        return requests

    return apply


@pytest.mark.parametrize("state", ["40001", "40P01", "23505"])
def test_a_lost_race_is_tried_again_and_seen_by_nobody_unless_it_is_lost_for_ever(
    store: Store, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert write_batched(store, raised(state, 3), Of("a", 7)) == Of("a", 7)
    monkeypatch.setattr(writer, "RETRY_DELAYS_S", (0.001,))
    with pytest.raises(StoreUnavailable, match=rf"is busy: no \({state}\); try again"):
        write_batched(store, raised(state, 10_000), Of("a"))


REFUSED_VALUES = (StatementRefused, r"refused the values: \w+ \(STATE\)$")
AT_FAULT = (StoreUnavailable, r"cannot be used: no \(STATE\)")


@pytest.mark.parametrize(
    ("states", "error", "message"),
    [
        ("55P03", StoreUnavailable, "busy, so nothing was done"),
        ("57014", StoreUnavailable, "busy"),
        ("53100", StoreUnavailable, "full, so nothing was done"),
        ("22001 22P02 23502 23503 23514 54000 P0001", *REFUSED_VALUES),
        ("42501 42P01 XX000", *AT_FAULT),  # of no values
    ],
)
def test_what_waiting_does_not_mend_soon_is_told_at_once_and_not_sent_again(
    store: Store, states: str, error: type[Exception], message: str
) -> None:
    for state in states.split():
        tries: list[int] = []
        apply = raised(state, 10_000)

        def count(
            connection: Connection,
            requests: Sequence[Any],
            tries: list[int] = tries,
            apply: Any = apply,
        ) -> Sequence[Any]:
            tries.append(1)
            result: Sequence[Any] = apply(connection, requests)
            return result

        with pytest.raises(error, match=message.replace("STATE", state)):
            write_batched(store, count, Of("a"))
        assert len(tries) == 1


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
        with pytest.raises(OutcomeUnknown):
            creation.create(store, ana.id, [a_resume()], deadline_s=0.3)
        give_up()
        wait_until(lambda: not is_committing(server))
    # It was stored after all, as the answer allowed for; counter and rows are equal.
    assert accounts.get_account(store, "ana").resume_count == 1
    assert accounts.list_wrong(store) == []


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
    server.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
    server.execute("SELECT pg_reload_conf()")
    seen: list[str] = []

    def crash() -> None:
        pids = server.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        os.kill(int(str(pids[0][0])), signal.SIGKILL)
        # What follows has the number of what was lost.
        account = ana if is_same_account else bo
        seen.extend(made_ids(creation.create(store, account.id, [a_resume()], deadline_s=30)))

    lose_answer(proxy, crash, Fault(unsent=COMMITS))
    if is_same_account:
        with pytest.raises(OutcomeUnknown):
            creation.create(other, ana.id, [a_resume()])
        assert listed_ids(store, ana) == seen
    else:
        made = made_ids(creation.create(other, ana.id, [a_resume()]))
        assert listed_ids(store, ana) == made
    assert accounts.list_wrong(store) == []


def test_s2_a_commit_that_was_lost_is_done_again(
    store: Store, through_proxy: tuple[Store, Proxy], ana: AccountInfo
) -> None:
    other, proxy = through_proxy
    lose_answer(proxy, lambda: None, Fault(unsent=COMMITS))
    made = made_ids(creation.create(other, ana.id, [a_resume()]))
    assert proxy.cut_count == 1
    assert listed_ids(store, ana) == made
    assert accounts.list_wrong(store) == []
