"""Reading from PostgreSQL: a connection for each thread, and another when it has ended."""

import threading

import pytest
from sqlalchemy import text

from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.store import Store, accounts, plans
from resumes.store.postgresql.database import PostgresDatabase
from resumes.store.statements import driver
from tests.postgres import Server


def backend_id(store: Store) -> int:
    with store.read() as connection:
        return int(driver(connection).info.backend_pid)


def test_a_thread_keeps_its_connection_and_each_has_its_own(store: Store) -> None:
    mine = backend_id(store)
    others: list[int] = []
    thread = threading.Thread(target=lambda: others.append(backend_id(store)))
    thread.start()
    thread.join()
    assert backend_id(store) == mine
    assert others != [mine]


def test_a_connection_that_was_ended_is_opened_again(store: Store, server: Server) -> None:
    first = backend_id(store)
    server.execute(f"SELECT pg_terminate_backend({first})")
    while server.execute(f"SELECT 1 FROM pg_stat_activity WHERE pid = {first}"):
        pass
    assert backend_id(store) != first
    assert plans.list_plans(store)


def test_one_that_ends_in_the_middle_is_told_and_the_next_call_has_another(store: Store) -> None:
    with (
        pytest.raises(StoreUnavailable, match="cannot be used now: terminating connection"),
        store.read() as connection,
    ):
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert plans.list_plans(store)


def test_a_connection_that_ends_by_another_name_is_opened_again(
    store: Store, server: Server
) -> None:
    if server.version == "16":
        pytest.skip("transaction_timeout came with PostgreSQL 17")
    with store.read() as connection:
        connection.execute(text("SET transaction_timeout = '50ms'"))
    with pytest.raises(StoreUnavailable), store.read() as connection:
        connection.execute(text("SELECT pg_sleep(5)"))
    for _ in range(2):
        assert accounts.list_accounts(store) == []


def test_an_error_of_the_statement_ends_no_connection(store: Store) -> None:
    first = backend_id(store)
    with pytest.raises(StoreUnavailable, match="division by zero"), store.read() as connection:
        connection.execute(text("SELECT 1 / 0"))
    assert backend_id(store) == first


def test_each_statement_sees_what_is_committed_when_it_starts(store: Store) -> None:
    with store.read() as connection:
        assert not accounts.list_accounts(store)
        accounts.create_account(store, "ana")
        count = connection.execute(text("SELECT count(*) FROM accounts")).scalar()
    assert count == 1


def test_words_that_are_no_text_are_told(store: Store) -> None:
    with pytest.raises(InvalidArgument, match="Not UTF-8 text"):
        accounts.find_account(store, "\udcff")


def test_its_size_is_what_the_server_says(store: Store) -> None:
    size = store.database.measure()
    assert size.data_bytes > 1_000_000
    assert size.log_bytes is None


def test_its_label_holds_no_password(database: PostgresDatabase) -> None:
    assert "@" not in database.label
    assert "@" in database.url
