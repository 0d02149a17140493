"""A sharded store, as far as a plain server can show it: here stands what the extension is told, and some
accounts do not answer."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import bindparam, func, select, text
from sqlmodel import Session

from resumes.errors import Conflict, StoreUnavailable
from resumes.store import Store, accounts, creation, open_store, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.addresses import PostgresAddress
from resumes.store.creation import Creation
from resumes.store.postgresql import connection, loop_reader, sharding
from resumes.store.postgresql.writer import THREADS
from resumes.store.schema import ACCOUNT_TABLES, account_usage
from resumes.store.statements import Prepared
from resumes.store.store import as_write
from tests.support.clocks import SteppingClock
from tests.support.inbox.builders import FakeMonotonic, Inbox, Moment, die, killing_at, lines
from tests.support.postgres import Server, count_transactions, find_backends
from tests.support.resumes import a_document, a_resume
from tests.support.store.builders import listed_ids, made_ids
from tests.support.waiting import wait_until

EXTENSION = """
    CREATE TABLE pg_dist_partition (logicalrelid regclass, beside text);
    CREATE FUNCTION create_reference_table(regclass) RETURNS void LANGUAGE sql
        AS 'INSERT INTO pg_dist_partition VALUES ($1)';
    CREATE FUNCTION create_distributed_table(regclass, text, colocate_with text) RETURNS void LANGUAGE sql
        AS 'INSERT INTO pg_dist_partition VALUES ($1, $3)';
    CREATE FUNCTION truncate_local_data_after_distributing_table(regclass) RETURNS void LANGUAGE sql
        AS 'DELETE FROM pg_dist_partition WHERE $1 IN (''plans''::regclass, ''accounts''::regclass)';
"""

DEAD = """
    CREATE TABLE dead (account_id text);
    CREATE FUNCTION answers(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT 1 FROM dead WHERE account_id = $1) THEN
            RAISE 'connection to the remote node failed' USING ERRCODE = '08006';
        END IF;
        RETURN true;
    END $$;
    CREATE FUNCTION check_shard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM answers(NEW.account_id);
        RETURN NEW;
    END $$;
    CREATE TRIGGER check_shard BEFORE INSERT ON resumes FOR EACH ROW EXECUTE FUNCTION check_shard();
"""


class Shards:
    """The shards of some accounts do not answer."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def lose(self, *lost: AccountInfo) -> None:
        for account in lost:
            self._connection.execute("INSERT INTO dead VALUES (%s)", [account.id])

    def bring_back(self) -> None:
        self._connection.execute("DELETE FROM dead")


@pytest.fixture
def shards(url: str) -> Iterator[Shards]:
    open_store(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(EXTENSION + DEAD)
        yield Shards(connection)


@pytest.fixture
def store(url: str, clock: SteppingClock, shards: Shards) -> Iterator[Store]:
    with open_store(url, clock=clock) as store:
        yield store


def make(store: Store, *names: str) -> list[AccountInfo]:
    return [accounts.create_account(store, name, plan="business") for name in names]


def test_accounts_share_neither_a_transaction_nor_a_message(store: Store, url: str) -> None:
    several = make(store, *"abc")

    async def use() -> list[list[str]]:
        made = (creation.create_async(store, account.id, a_resume()) for account in several)
        await asyncio.gather(*made)
        pages = (stored_resumes.list_page_async(store, account.id) for account in several)
        return [[entry.id for entry in page.entries] for page in await asyncio.gather(*pages)]

    assert asyncio.run(use()) == [listed_ids(store, account) for account in several]
    assert count_transactions(url, *(account.id for account in several)) == len(several)


def test_what_a_lost_shard_keeps_waiting_holds_no_thread_and_is_done_once_it_is_back(
    store: Store, shards: Shards
) -> None:
    *lost, calm = make(store, *(f"lost-{number}" for number in range(THREADS + 1)), "calm")
    shards.lose(*lost)
    with ThreadPoolExecutor(len(lost)) as pool:
        calls = [pool.submit(creation.create, store, each.id, [a_resume()]) for each in lost]
        for _ in range(20):
            creation.create(store, calm.id, [a_resume()])
        assert not any(call.done() for call in calls)
        shards.bring_back()
        made = [made_ids(call.result()) for call in calls]
    assert made == [listed_ids(store, each) for each in lost]
    assert len(listed_ids(store, calm)) == 20
    assert accounts.list_wrong(store) == []


def test_s17_frozen_shards_leave_a_thread_to_the_others(
    store: Store, url: str, server: Server
) -> None:
    *frozen, calm = make(store, *(f"frozen-{number}" for number in range(THREADS)), "calm")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;"
            "CREATE TRIGGER sleeps BEFORE INSERT ON resumes FOR EACH ROW"
            " WHEN (NEW.label = 'slow') EXECUTE FUNCTION sleep()"
        )
    slow = a_resume()._replace(label="slow")
    with ThreadPoolExecutor(len(frozen)) as pool:
        calls = [
            pool.submit(creation.create, store, each.id, [slow], deadline_s=1) for each in frozen
        ]
        asleep = "wait_event = 'PgSleep'"
        wait_until(lambda: len(find_backends(server, asleep)) == len(frozen))
        made = creation.create(store, calm.id, [a_resume()], deadline_s=4)
        for backend in find_backends(server, asleep):
            server.execute(f"SELECT pg_terminate_backend({backend})")
    assert made_ids(made) == listed_ids(store, calm)
    assert [type(call.exception()) for call in calls] == [StoreUnavailable] * len(frozen)


def test_a_write_that_waited_in_vain_says_why_and_those_of_other_accounts_are_done(
    store: Store, shards: Shards
) -> None:
    lost, calm = make(store, "lost", "calm")
    shards.lose(lost)
    with pytest.raises(StoreUnavailable, match="connection to the remote node failed"):
        creation.create(store, lost.id, [a_resume()], deadline_s=0.3)
    files = [Creation(each.id, [a_resume()], store.clock()) for each in (lost, calm)]
    of_lost, of_calm = creation.create_files(store, files, deadline_s=0.3)
    assert isinstance(of_lost, StoreUnavailable)
    assert isinstance(of_calm, list)
    assert made_ids(of_calm) == listed_ids(store, calm)
    assert listed_ids(store, lost) == []


def test_a_later_write_does_not_overtake_one_that_has_to_wait(store: Store, shards: Shards) -> None:
    (ana,) = make(store, "ana")
    tried: list[str] = []

    def first(session: Session) -> None:
        tried.append("first")
        if len(tried) == 1:
            raise RuntimeError("so that each write is tried alone")
        shards.bring_back() if len(tried) == 3 else shards.lose(ana)
        session.execute(select(func.answers(ana.id)))

    def second(session: Session) -> None:
        tried.append("second")

    store.commit([as_write(change, ana.id, 10.0) for change in (first, second)])
    assert tried == ["first", "first", "first", "second"]


def test_what_is_looked_for_in_all_accounts_is_found_in_those_that_answer(
    store: Store, shards: Shards
) -> None:
    lost, *calm = make(store, "lost", "a", "b")
    owner = account_usage.c.account_id
    asked = select(owner).where(text("answers(account_id)"))
    assert {*store.fetch_reachable(asked, owner)} == {(each.id,) for each in (lost, *calm)}
    shards.lose(lost)
    with pytest.raises(StoreUnavailable):
        store.fetch(asked)
    assert {*store.fetch_reachable(asked, owner)} == {(each.id,) for each in calm}


def test_reads_of_a_lost_shard_delay_no_others(
    store: Store, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_reader, "DEADLINE_S", 600.0)
    monkeypatch.setattr(loop_reader, "ANSWER_TIMEOUTS_S", (60.0,))
    monkeypatch.setattr(connection, "RETRY_DELAYS_S", (60.0,))
    answers = Prepared(select(func.answers(bindparam("account_id"))))
    lost, calm = make(store, "lost", "calm")

    async def read(account: AccountInfo) -> list[tuple[object, ...]]:
        return [*await store.fetch_async(answers, account_id=account.id)]

    async def ask() -> None:
        shards.lose(lost)
        waiting = asyncio.create_task(read(lost))
        async with asyncio.timeout(20):
            for _ in range(20):
                assert await read(calm) == [(True,)]
        assert not waiting.done()
        waiting.cancel()

    asyncio.run(ask())


def test_files_of_a_lost_shard_wait_in_the_inbox_while_others_are_imported(
    store: Store, shards: Shards, clock: SteppingClock, tmp_path: Path
) -> None:
    monotonic = FakeMonotonic()
    inbox = Inbox(store, tmp_path, clock, monotonic)
    bo = inbox.account("bo")
    shards.lose(bo)
    importer = inbox.importer(settle_s=0.0, write_timeout_s=0.3)
    for name in ("ana/one", "bo/two", "ana/three"):
        inbox.drop(f"{name}.json", a_document(name))
    inbox.rounds(importer, 3, 0.5)
    assert inbox.names() == ["ana/one", "ana/three"]
    assert inbox.names_below("bo") == ["two.json"]
    assert any("does not answer for the account bo" in notice for notice in inbox.notices)
    inbox.drop("ana/four.json", a_document("Four"))
    inbox.rounds(importer, 3, 0.5)
    assert inbox.names()[2:] == ["Four"]
    shards.bring_back()
    inbox.rounds(importer, 4, 5.0)
    assert inbox.names("bo") == ["bo/two"]
    assert inbox.counts("done", "failed", "duplicate") == [4, 0, 0]
    assert inbox.is_tidy()


def test_a_shard_that_is_lost_again_is_told_again_though_no_file_was_imported_between(
    store: Store, shards: Shards, clock: SteppingClock, tmp_path: Path
) -> None:
    inbox = Inbox(store, tmp_path, clock, FakeMonotonic())
    bo = inbox.account("bo")
    importer = inbox.importer(settle_s=0.0, write_timeout_s=0.3)
    for outage in (1, 2):
        shards.lose(bo)
        path = inbox.drop("bo/one.json", a_document("One"))
        inbox.rounds(importer, 2, 0.5)
        assert len([one for one in inbox.notices if "does not answer" in one]) == outage
        path.unlink()
        shards.bring_back()
        inbox.rounds(importer, 3, 30.0)


def test_an_importer_ends_and_begins_while_files_of_a_lost_shard_are_under_way(
    store: Store, shards: Shards, clock: SteppingClock, tmp_path: Path
) -> None:
    inbox = Inbox(store, tmp_path, clock, FakeMonotonic())
    bo = inbox.account("bo")
    cut_off = inbox.importer(settle_s=0.0, observe=killing_at(Moment.NOTED))
    inbox.drop("bo/killed.json", a_document("Killed"))
    die(cut_off)
    shards.lose(bo)
    for name in ("ana", "bo"):
        inbox.drop(f"{name}/one.json", a_document(f"{name} one"))
        inbox.drop(f"{name}/many.jsonl", lines(f"{name} two", f"{name} three"))
    summary = inbox.drain(write_timeout_s=0.3)
    assert summary.stuck == len(inbox.names_below("bo"))
    assert sorted(inbox.names()) == ["ana one", "ana three", "ana two"]
    shards.bring_back()
    inbox.drain()
    assert sorted(inbox.names("bo")) == ["Killed", "bo one", "bo three", "bo two"]
    assert inbox.counts("done", "failed", "duplicate") == [5, 0, 0]
    assert inbox.is_tidy()


def test_only_a_server_with_the_extension_distributes_and_each_table_once(url: str) -> None:
    open_store(url).close()
    with pytest.raises(Conflict, match="lacks the extension citus"):
        sharding.distribute(PostgresAddress(url))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(EXTENSION)
        connection.execute("ALTER FUNCTION create_reference_table RENAME TO absent")
        with pytest.raises(StoreUnavailable, match="create_reference_table"):
            sharding.distribute(PostgresAddress(url))
        count = "SELECT count(*) FROM pg_constraint WHERE conname = 'search_progress_number_key'"
        assert connection.execute(count).fetchone() == (1,)
        connection.execute("ALTER FUNCTION absent RENAME TO create_reference_table")
        connection.execute("SELECT create_distributed_table('resumes', 'account_id', 'none')")
        added = sharding.distribute(PostgresAddress(url))
        assert added[:3] == ["plans", "accounts", "account_usage"]
        told: dict[str, str | None] = dict(
            connection.execute("SELECT * FROM pg_dist_partition").fetchall()
        )
        # A table that another one refers to comes before it, and all of an account are together.
        assert {told.pop("plans"), told.pop("accounts")} == {None}
        assert {told.pop("account_usage"), told.pop("resumes")} == {"none"}
        assert {*told.values()} == {"account_usage"}
        alone = {"api_keys", "import_requests", "key_directory"}
        known = {table.name for table in ACCOUNT_TABLES} - {"account_usage", "resumes"}
        assert told.keys() == known - alone
        assert sharding.distribute(PostgresAddress(url)) == []
        assert connection.execute(count).fetchone() == (0,)
