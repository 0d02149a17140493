"""Connections to a server: shared by threads, they give up, end, and leave nothing behind."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from resumes import analyzer
from resumes.errors import StatementRefused, StoreUnavailable
from resumes.store import Store, accounts, creation, open_store, plans, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.addresses import PostgresAddress
from resumes.store.creation import NewResume
from resumes.store.postgresql.connection import (
    ErrorClass,
    ServerTimeout,
    TimeoutConnection,
    classify_error,
    connect,
    explain,
    postgres_engine,
)
from resumes.store.postgresql.store import BEGIN, LONG_TIMEOUT_S, RANDOM_PAGE_COST, set_page_cost
from resumes.store.statements import driver
from resumes.store.transfer.copies import digest_tables
from resumes.store.write_queue import LostRace
from tests.support.api.serving import make_certificate
from tests.support.postgres import Server, count_sessions, free_port, pooler, running
from tests.support.proxy import Fault, Proxy
from tests.support.resumes import a_document, a_resume
from tests.support.store.builders import fill_store, held_by, made_ids
from tests.support.waiting import wait_until


def backend_id(store: Store) -> int:
    with store.read() as connection:
        return int(driver(connection).info.backend_pid)


def test_threads_use_one_connection_after_the_other_until_it_is_ended(
    store: Store, server: Server
) -> None:
    first = backend_id(store)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(backend_id, store).result() == first
        with pytest.raises(StatementRefused, match="DivisionByZero"), store.read() as connection:
            connection.execute(text("SELECT 1 / 0"))
        assert backend_id(store) == first  # an error of a statement ends none
        with store.read():
            second = pool.submit(backend_id, store).result()
    assert second != first
    for backend in (first, second):
        server.execute(f"SELECT pg_terminate_backend({backend})")
    gone = f"SELECT 1 FROM pg_stat_activity WHERE pid IN ({first}, {second})"
    wait_until(lambda: not server.execute(gone))
    assert backend_id(store) not in (first, second)
    with (
        pytest.raises(StoreUnavailable, match="is unavailable: terminating connection"),
        store.read() as connection,
    ):
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert plans.list_plans(store)


def test_rows_that_are_not_read_to_their_end_keep_no_thread_waiting(store: Store) -> None:
    def read_some() -> None:
        with store.read() as connection:
            rows = driver(connection).cursor().stream("SELECT generate_series(1, 100000)")
            assert next(rows) == (1,)
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        read_some()
    assert plans.list_plans(store)


def test_each_statement_sees_what_is_committed_when_it_starts_and_a_snapshot_does_not(
    store: Store,
) -> None:
    fill_store(store)
    before = held_by(store)
    with store.snapshot() as snapshot, store.read() as connection:
        assert driver(snapshot).timeout_s == LONG_TIMEOUT_S > driver(connection).timeout_s
        assert digest_tables(snapshot) == before
        accounts.create_account(store, "late")
        assert connection.execute(text("SELECT count(*) FROM accounts")).scalar() == 3
        assert digest_tables(snapshot) == before
    assert held_by(store) != before
    with store.read() as first, store.read() as second:  # the same connections
        assert LONG_TIMEOUT_S not in (driver(first).timeout_s, driver(second).timeout_s)


def test_any_form_of_the_address_opens_it_and_none_shows_the_password(
    url: str, server: Server
) -> None:
    rest, name, port = url.partition("://")[2], url.rpartition("/")[2], free_port()
    hosts = f"127.0.0.1:{port},127.0.0.1:{server.port}"
    for address in (
        *(f"{one}://{rest}" for one in ("postgres", "postgresql+psycopg", "postgresql+asyncpg")),
        f"postgresql://resumes@{hosts}/{name}?target_session_attrs=read-write",
    ):
        with open_store(address) as store:
            assert [plan.name for plan in plans.list_plans(store)] == ["free", "pro", "business"]
            size = store.measure()
            assert size.data_bytes > 1_000_000
            assert size.log_bytes is None
            assert ("@" in store.label, "@" in store.url) == (False, True)
    for address, why in (
        (f"ana:hidden@127.0.0.1:{port}/db", rf"postgresql://127.0.0.1:{port}/db .*refused"),
        (f"resumes:hidden@127.0.0.1:{server.port}/missing", '"missing" does not exist'),
    ):
        with pytest.raises(StoreUnavailable, match=why) as told:
            open_store(f"postgresql://{address}")
        assert "hidden" not in told.value.message


@pytest.mark.timing
def test_who_only_looks_does_not_wait_for_ever(url: str) -> None:
    open_store(url).close()
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
        began_s = time.monotonic()
        with pytest.raises(StoreUnavailable, match="did not respond"):
            open_store(url)
        assert time.monotonic() - began_s < 30


def test_s17_a_silent_server_is_waited_for_by_one_connection_only(url: str) -> None:
    engine = postgres_engine(PostgresAddress(url), timeout_s=0.3)
    with engine.connect() as first, engine.connect() as idle:
        driver(idle).execute("SELECT 1")
        with pytest.raises(ServerTimeout, match=r"did not respond within 0\.3 seconds"):
            driver(first).execute("SELECT pg_sleep(30)")
        for given_up in (first, idle):
            assert not driver(given_up).is_usable
        with engine.connect() as anew:
            assert driver(anew).is_usable
        first.invalidate()


def test_a_slow_call_costs_no_connection_that_has_had_answers_since_it_began(url: str) -> None:
    engine = postgres_engine(PostgresAddress(url), timeout_s=2)
    with engine.connect() as slow, engine.connect() as other, ThreadPoolExecutor(1) as pool:
        call = pool.submit(driver(slow).execute, "SELECT pg_sleep(30)")
        wait_until(lambda: count_sessions(url, "wait_event = 'PgSleep'") == 1)
        driver(other).execute("SELECT 1")
        assert isinstance(call.exception(), ServerTimeout)
        assert driver(other).is_usable
        slow.invalidate()


ADD_PLANS = "INSERT INTO plans (name, api_listing) SELECT unnest(%s::text[]), true"


@contextmanager
def raw(url: str) -> Iterator[TimeoutConnection]:
    open_store(url).close()
    with connect(PostgresAddress(url), timeout_s=5) as connection:
        yield connection


def names(connection: TimeoutConnection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM plans ORDER BY name")]


def test_what_is_run_later_is_run_before_what_is_asked_next(url: str) -> None:
    with raw(url) as connection, raw(url) as other:
        connection.begin("BEGIN")
        connection.run_later(ADD_PLANS, [["a", "b"]], expected=2)
        connection.run_later("DELETE FROM plans WHERE name = ANY(%s)", [["free", "pro"]])
        assert names(other) == ["business", "free", "pro"]
        assert names(connection) == ["a", "b", "business"]
        assert "a" not in names(other)
        connection.run_later(ADD_PLANS, [["c"]])
        connection.commit()
        connection.begin("BEGIN")
        connection.run_later(ADD_PLANS, [["d"]])
        connection.rollback()
        assert names(connection) == names(other) == ["a", "b", "business", "c"]


def test_a_query_that_is_sent_with_changes_does_not_see_them_and_counts_them(url: str) -> None:
    with raw(url) as connection:
        connection.begin("BEGIN")
        connection.run_later(ADD_PLANS, [["a", "b"]], expected=2)
        assert connection.run_with_later("SELECT count(*) FROM plans") == (3,)
        connection.commit()
        assert len(names(connection)) == 5
        connection.begin("BEGIN")
        connection.run_later("DELETE FROM plans WHERE name = ANY(%s)", [["a", "x"]], expected=2)
        with pytest.raises(LostRace):
            connection.run_with_later("SELECT 1")
        connection.rollback()
        assert len(names(connection)) == 5


def test_a_transaction_begins_with_its_first_statement(url: str) -> None:
    with raw(url) as connection:
        for statement in (
            partial(connection.execute, "SELECT %s::text", ["a"]),
            partial(connection.cursor().execute, "SELECT 'a'"),
            partial(connection.run_with_later, "SELECT 'a'"),
        ):
            connection.begin("BEGIN;SET LOCAL lock_timeout = '7s'")
            assert "a" in next(iter(statement()))
            assert connection.execute("SHOW lock_timeout").fetchone() == ("7s",)
            connection.rollback()
            assert connection.execute("SHOW lock_timeout").fetchone() == ("0",)


def test_values_arrive_as_they_are_or_not_at_all(url: str) -> None:
    sql = "SELECT %s::text, %s::bigint, %s::bytea, %s::bytea, %s::text, length(%s::text)"
    large = "ü" * 3_000_000
    values = ["ä\r\n%s $1 \\ ''", 2**62, b"\0\xff", bytearray(b"x"), None, large]
    with raw(url) as connection:
        assert connection.execute(sql, values).fetchone() == (
            "ä\r\n%s $1 \\ ''", 2**62, b"\0\xff", b"x", None, len(large),
        )  # fmt: skip
        for text_, error in (("cut\0off", psycopg.DataError), ("\udcff", UnicodeEncodeError)):
            with pytest.raises(error):
                connection.execute("SELECT %s::text", [text_])
        assert connection.execute("SELECT 1 WHERE false").fetchone() is None


def test_a_statement_in_arrays_finds_what_it_finds_for_each_row(
    store: Store, ana: AccountInfo
) -> None:
    made = made_ids(creation.create(store, ana.id, [a_resume(f"Ada {n}") for n in range(3)]))
    wanted = [made[1], "0" * 24, made[0], made[1]]
    with store.read() as connection:
        rows = [{"account_id": ana.id, "id": resume_id} for resume_id in wanted]
        found = stored_resumes.ONE.run_each(connection, rows)
        assert [[row[0] for row in some] for some in found] == [
            [made[1]], [], [made[0]], [made[1]],
        ]  # fmt: skip
        assert found[0] == stored_resumes.ONE.run(connection, **rows[0]).fetchall()


def test_s18_a_session_is_left_as_it_was_found(store: Store, url: str) -> None:
    with psycopg.connect(url, application_name="resumes", client_encoding="UTF8") as other:
        before = other.execute("SELECT name, setting FROM pg_settings").fetchall()
    engine = postgres_engine(PostgresAddress(url), timeout_s=5, begin=BEGIN)
    with engine.connect() as connection:
        raw = driver(connection)
        with connection.begin():
            for _ in range(20):
                raw.execute("SELECT count(*) FROM plans WHERE name = %s", ["free"])
                raw.execute("SELECT count(*) FROM plans WHERE name = ANY(%s)", [["free", "pro"]])
            assert connection.execute(text("SHOW lock_timeout")).scalar() == "2s"
        assert raw.execute("SELECT name, setting FROM pg_settings").fetchall() == before
        assert raw.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        assert raw.execute(locks).fetchone() == (0,)


def test_a_server_is_verified_and_a_password_is_found_where_libpq_looks(
    url: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (
        "auth_type = scram-sha-256", "client_tls_sslmode = require",
        "client_tls_cert_file = {folder}/cert.pem", "client_tls_key_file = {folder}/cert.pem",
    )  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path))
    password_file = tmp_path / ".pgpass"
    with pooler(server, *settings, password="s3cret", prepare=make_readable_certificate) as (
        port,
        folder,
    ):

        def open_as(host: str = "127.0.0.1", root: str = "only.pem") -> None:
            tls = f"sslmode=verify-full&sslrootcert={folder / root}"
            address = f"postgresql://resumes@{host}:{port}/{url.rpartition('/')[2]}?{tls}"
            with open_store(address) as store:
                assert accounts.list_accounts(store) == []

        with pytest.raises(StoreUnavailable, match="no password supplied"):
            open_as()
        password_file.write_text("127.0.0.1:*:*:resumes:s3cret\n")
        password_file.chmod(0o600)
        open_as()
        monkeypatch.setenv("PGPASSWORD", "s3cret")
        open_as()
        with pytest.raises(StoreUnavailable, match="certificate verify failed"):
            open_as(root="other/only.pem")
        with pytest.raises(StoreUnavailable, match="does not match host name"):
            open_as(host="localhost")


def make_readable_certificate(folder: Path) -> None:
    """One that anybody may read, and another one."""
    (folder / "other").mkdir()
    make_certificate(folder / "other")
    make_certificate(folder).chmod(0o644)


def test_an_error_is_told_in_its_first_line_and_holds_nothing_of_what_was_to_be_written(
    url: str,
) -> None:
    with pytest.raises(psycopg.OperationalError) as lost:
        psycopg.connect("postgresql://ana@127.0.0.1:1/db", connect_timeout=2)
    assert classify_error(lost.value) is ErrorClass.UNAVAILABLE
    assert classify_error(ValueError("x")) is ErrorClass.OTHER
    for state in ("25006", "57P01", "57P03", "08006", "53300"):
        error = psycopg.errors.lookup(state)("no")
        assert classify_error(error) is ErrorClass.UNAVAILABLE, state
    told = explain(psycopg.OperationalError("connection refused"), "postgresql://host/db")
    assert isinstance(told, StoreUnavailable)
    assert told.message == ("The database postgresql://host/db is unavailable: connection refused")
    engine = postgres_engine(PostgresAddress(url), timeout_s=5)
    with engine.connect() as connection, pytest.raises(DBAPIError) as caught:
        connection.execute(text("SELECT 1 / 0, CAST(:secret AS text)"), {"secret": "planted"})
    assert "planted" not in str(caught.value)


def test_a_statement_that_the_server_does_not_support_is_no_outage_unless_the_server_is_a_standby(
    server: Server, url: str
) -> None:
    unsupported = "SELECT count(*) FROM accounts FOR UPDATE"
    runs: list[Session] = []

    def change(session: Session) -> None:
        runs.append(session)
        driver(session.connection()).execute(unsupported)

    with open_store(url) as store, pytest.raises(StoreUnavailable, match="cannot be used"):
        store.write(change)
    assert len(runs) == 1  # it is not tried again and again
    with running(server.version, is_standby=True) as standby:
        engine = postgres_engine(PostgresAddress(standby.url()), timeout_s=5, begin=BEGIN)
        with (
            pytest.raises(DBAPIError, match="FeatureNotSupported") as refused,
            engine.begin() as one,
        ):
            one.execute(text("SELECT 1"))
        assert classify_error(refused.value) is ErrorClass.UNAVAILABLE


COST = "SELECT setting FROM pg_settings WHERE name = 'random_page_cost'"


def cost(url: str) -> str:
    with psycopg.connect(url) as connection:
        (setting,) = connection.execute(COST).fetchone() or ("",)
    return str(setting)


def test_what_somebody_chose_is_left(server: Server) -> None:
    name = server.make_database()
    server.execute(f"ALTER DATABASE {name} SET random_page_cost = 3")
    open_store(server.url(name)).close()
    assert cost(server.url(name)) == "3"
    server.drop_database(name)


@pytest.mark.parametrize("owns", [True, False], ids=["its own database", "somebody's database"])
def test_a_role_without_rights_sets_its_own(server: Server, owns: bool) -> None:
    name = server.make_database()
    role = f"role_{name}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    server.execute(
        f"ALTER DATABASE {name} OWNER TO {role}"
        if owns
        else f"GRANT ALL ON SCHEMA public TO {role}",
        database=name,
    )
    url = server.url(name).replace("resumes@", f"{role}@")
    open_store(url).close()
    assert cost(url) == RANDOM_PAGE_COST
    assert cost(server.url(name)) != RANDOM_PAGE_COST
    server.drop_database(name)


def test_a_server_that_goes_while_the_cost_is_set_is_no_internal_error(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = server.make_database()
    is_ended: list[int] = []

    def end_connection(connection: Connection) -> None:
        if not is_ended:
            is_ended.append(driver(connection).info.backend_pid)
            server.execute(f"SELECT pg_terminate_backend({is_ended[0]}, 5000)")
        set_page_cost(connection)

    monkeypatch.setattr("resumes.store.postgresql.store.set_page_cost", end_connection)
    with pytest.raises(StoreUnavailable):
        open_store(server.url(name))
    assert server.execute("SELECT to_regclass('resumes')", database=name) == [(None,)]
    open_store(server.url(name)).close()
    server.drop_database(name)


# Slow networks


@pytest.fixture
def slowly(url: str, ana: AccountInfo, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store beyond a network of 1 MiB a second, whose server soon counts as frozen."""
    monkeypatch.setattr("resumes.store.postgresql.store.WRITE_TIMEOUT_S", 1.5)
    begin = BEGIN.replace("statement_timeout = '5s'", "statement_timeout = '1s'")
    monkeypatch.setattr("resumes.store.postgresql.store.BEGIN", begin)
    with Proxy(url) as proxy:
        proxy.choose = lambda: Fault(bytes_per_s=1024 * 1024)
        through = url.replace(urlsplit(url).netloc, f"resumes@127.0.0.1:{proxy.port}")
        with open_store(through, read_timeout_s=1.5) as store:
            yield store


def large(size_bytes: int) -> NewResume:
    texts = [{"text": "x" * 16_000}] * (size_bytes // 16_000)
    section = {"column": 0, "items": texts}
    return NewResume(analyzer.parse(a_document(sections={"summaries": section})))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[100_000] * 25, [1_900_000]])
def test_what_moves_slowly_is_written_and_read_however_long_it_takes(
    store: Store, slowly: Store, ana: AccountInfo, sizes: list[int]
) -> None:
    new = [large(size) for size in sizes]
    began_s = time.monotonic()
    made = made_ids(creation.create(slowly, ana.id, new))
    assert time.monotonic() - began_s > 1.5  # more than a server has that says nothing
    assert len(made) == len(sizes)
    for resume_id in made[:2]:
        found = stored_resumes.get_resume(slowly, ana.id, resume_id)
        assert found == stored_resumes.get_resume(store, ana.id, resume_id)


def test_more_rows_than_one_message_has_are_stored_in_one_transaction(
    store: Store, url: str, ana: AccountInfo
) -> None:
    made = made_ids(creation.create(store, ana.id, [large(1_600_000)] * 4))
    assert [entry.id for entry in stored_resumes.list_page(store, ana.id).entries] == made
    with psycopg.connect(url) as connection:
        sql = "SELECT count(DISTINCT xmin::text), min(length(document)) FROM documents"
        transactions, least = connection.execute(sql).fetchone() or (0, 0)
    assert (transactions, least > 1_600_000) == (1, True)
