"""How a batch is written to PostgreSQL: again after a race, and never twice."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, text

from resumes.errors import NotFound, OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, counters, creating, listing, open_store
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created
from resumes.store.engine import each
from resumes.store.postgresql import writer
from resumes.store.writes import proved_by
from tests.postgres import Server
from tests.resumes.builders import a_resume
from tests.resumes.store.postgresql.builders import Of, wait_until

MakeAccount = Callable[..., AccountInfo]


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


def test_s7_one_bad_row_does_not_fail_the_rest_of_its_batch(store: Store) -> None:
    go_on, is_begun = threading.Event(), threading.Event()

    def wait(_: Connection, requests: Sequence[Of]) -> Sequence[Of]:
        is_begun.set()
        assert go_on.wait(60)
        return requests

    def divide(connection: Connection, requests: Sequence[Of]) -> list[Any]:
        return [
            connection.execute(text("SELECT 12 / :by"), {"by": one.number}).scalar()
            for one in requests
        ]

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(store.write, wait, Of("a"))
        assert is_begun.wait(60)
        good, bad, last = (
            pool.submit(store.write, divide, Of("a", number)) for number in (3, 0, 4)
        )
        wait_until(lambda: store.lane.waiting == 3)
        go_on.set()
        first.result()
        assert (good.result(), last.result()) == (4, 3)
        with pytest.raises(StoreUnavailable, match="division by zero"):
            bad.result()


@pytest.mark.parametrize("state", ["40001", "40P01", "23505"])
def test_a_lost_race_is_tried_again_and_seen_by_nobody(store: Store, state: str) -> None:
    assert store.write(raised(state, 3), Of("a", 7)) == Of("a", 7)


def test_a_race_that_is_lost_for_ever_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PAUSES_S", (0.001,))
    with pytest.raises(StoreUnavailable, match="cannot be used now: no"):
        store.write(raised("40001", 10_000), Of("a"))


@pytest.mark.parametrize(
    ("state", "message"),
    [("55P03", "busy; nothing was done"), ("57014", "busy"), ("53100", "full; nothing was done")],
)
def test_what_waiting_does_not_mend_soon_is_told_at_once(
    store: Store, state: str, message: str
) -> None:
    with pytest.raises(StoreUnavailable, match=message):
        store.write(raised(state, 1), Of("a"))


def test_two_who_take_one_name_at_once_are_told_apart(store: Store, url: str) -> None:
    with open_store(url) as other, ThreadPoolExecutor(2) as pool:
        for number in range(10):
            name = f"ana-{number}"
            calls = [pool.submit(accounts.create_account, one, name) for one in (store, other)]
            errors = [call.exception() for call in calls]
            assert sorted(type(error).__name__ for error in errors) == ["Conflict", "NoneType"]


def test_a_server_that_is_lost_before_the_commit_is_asked_again(store: Store) -> None:
    tries: list[int] = []

    def end_my_connection(connection: Connection, requests: Sequence[Of]) -> Sequence[Of]:
        tries.append(1)
        if len(tries) < 3:
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        return requests

    assert store.write(end_my_connection, Of("a", 1)) == Of("a", 1)
    assert len(tries) == 3


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
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    return bool(server.execute(waiting))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer a write is soon taken for frozen."""
    monkeypatch.setattr("resumes.store.postgresql.database.WRITE_PATIENCE_S", 1.0)


def test_s2_a_commit_without_an_answer_is_found_out_and_done_once(
    impatient: None, store: Store, server: Server, an_account: MakeAccount
) -> None:
    account = an_account()
    with a_standby_that_never_answers(server) as give_up, ThreadPoolExecutor(1) as pool:
        call = pool.submit(creating.create, store, account.id, [a_resume()], deadline_s=8)
        wait_until(lambda: is_committing(server))
        # The thread takes its server for frozen, asks another connection, and waits for the row.
        wait_until(lambda: "FOR UPDATE" in waiting_for_a_lock(server))
        give_up()
        (outcome,) = call.result()
    assert isinstance(outcome, Created)
    page = listing.list_page(store, account.id)
    assert [entry.id for entry in page.entries] == [outcome.id]
    assert counters.list_wrong(store) == []


def waiting_for_a_lock(server: Server) -> str:
    rows = server.execute("SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    return " ".join(str(row[0]) for row in rows)


def test_s2_what_cannot_be_found_out_is_unknown(
    impatient: None,
    store: Store,
    server: Server,
    an_account: MakeAccount,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "FIND_OUT_S", 1.0)
    account = an_account()
    with a_standby_that_never_answers(server) as give_up:
        with pytest.raises(OutcomeUnknown):
            creating.create(store, account.id, [a_resume()], deadline_s=1)
        give_up()
        wait_until(lambda: not is_committing(server))
    # It was stored after all, as the answer allowed for; counter and rows are equal.
    assert accounts.get_account(store, "ana").resume_count == 1
    assert counters.list_wrong(store) == []


def test_s2_a_commit_that_was_lost_is_done_again(
    store: Store, server: Server, an_account: MakeAccount
) -> None:
    account = an_account()
    ended: list[int] = []

    @each
    def end_at_commit(connection: Connection, request: Of) -> None:
        if not ended:
            ended.append(1)
            # The constraint is looked at by COMMIT, and its function ends the connection there.
            connection.execute(text("INSERT INTO ends_at_commit VALUES (1)"))

    database = server.url(store.url.rpartition("/")[2])
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE ends_at_commit (one integer)")
        connection.execute(
            "CREATE FUNCTION end_it() RETURNS trigger LANGUAGE plpgsql AS $$"
            " BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5);"
            " RETURN NULL; END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON ends_at_commit"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION end_it()"
        )

    def create_and_end(connection: Connection, requests: Sequence[Any]) -> Sequence[Any]:
        end_at_commit(connection, [Of(account.id)])
        return creating.apply_creations(connection, requests)

    proved_by(creating.were_stored)(create_and_end)
    request = creating.Creation(account.id, [a_resume()], store.clock())
    (outcome,) = store.write(create_and_end, request)
    assert ended == [1]
    page = listing.list_page(store, account.id)
    assert [entry.id for entry in page.entries] == [outcome.id]
    assert counters.list_wrong(store) == []


def test_a_refusal_is_no_failure(store: Store) -> None:
    with pytest.raises(NotFound):
        creating.create(store, "f" * 16, [a_resume()])
