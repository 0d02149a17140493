"""Connections that give up, and that leave nothing behind for the next who has them."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from resumes.errors import StoreUnavailable
from resumes.store import Store, creating, listing, open_store
from resumes.store.addresses import PostgresAddress
from resumes.store.postgresql.database import BEGIN
from resumes.store.postgresql.driver import ServerSilent, is_usable, postgres_engine
from resumes.store.statements import driver
from tests.postgres import Server
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import MakeAccount


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """All processes of the server stand still; the system answers for them all the same."""
    assert server.process is not None
    processes = [server.process.pid, *children(server.process.pid)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def children(process_id: int) -> list[int]:
    listed = Path(f"/proc/{process_id}/task/{process_id}/children").read_text(encoding="ascii")
    return [int(child) for child in listed.split()]


@pytest.mark.timing
def test_s17_a_statement_that_has_no_answer_ends_by_its_deadline(url: str) -> None:
    engine = postgres_engine(PostgresAddress(url), patience_s=0.3)
    with engine.connect() as connection:
        began_s = time.monotonic()
        with pytest.raises(ServerSilent, match=r"did not answer within 0\.3 seconds"):
            driver(connection).execute("SELECT pg_sleep(30)")
        assert time.monotonic() - began_s < 3
        assert not is_usable(driver(connection))
        connection.invalidate()


def test_s17_a_silent_server_is_waited_for_by_one_connection_only(url: str) -> None:
    engine = postgres_engine(PostgresAddress(url), patience_s=0.3)
    with engine.connect() as first, engine.connect() as idle:
        with pytest.raises(ServerSilent):
            driver(first).execute("SELECT pg_sleep(30)")
        assert not is_usable(driver(idle))
        with engine.connect() as anew:
            assert is_usable(driver(anew))
        first.invalidate()


@pytest.mark.timing
def test_s17_a_frozen_server_hangs_nobody(
    url: str, server: Server, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.store.postgresql.database.WRITE_PATIENCE_S", 0.5)
    account = an_account()
    with open_store(url, read_patience_s=0.5) as store:
        listing.list_page(store, account.id)
        creating.create(store, account.id, [a_resume()])
        with frozen(server):
            began_s = time.monotonic()
            with pytest.raises(StoreUnavailable, match="did not answer"):
                listing.list_page(store, account.id)
            with pytest.raises(StoreUnavailable):
                creating.create(store, account.id, [a_resume()], deadline_s=1)
            # Connecting anew is tried, which is given three seconds.
            assert time.monotonic() - began_s < 12
        creating.create(store, account.id, [a_resume()])
        assert len(listing.list_page(store, account.id).entries) == 2


def test_a_connection_that_the_server_has_ended_is_not_used(url: str, server: Server) -> None:
    engine = postgres_engine(PostgresAddress(url), patience_s=5)
    with engine.connect() as connection:
        assert is_usable(driver(connection))
        server.execute(f"SELECT pg_terminate_backend({driver(connection).info.backend_pid})")
        ends_at = time.monotonic() + 10
        while is_usable(driver(connection)):
            assert time.monotonic() < ends_at
        connection.invalidate()


def test_s18_a_session_is_left_as_it_was_found(store: Store, url: str) -> None:
    """A pooler gives the next transaction another session, and this one to somebody else."""
    before = settings(url)
    engine = postgres_engine(PostgresAddress(url), patience_s=5, begin=BEGIN)
    with engine.connect() as connection:
        with connection.begin():
            for _ in range(20):
                driver(connection).execute("SELECT count(*) FROM plans WHERE name = %s", ["free"])
            assert connection.execute(text("SHOW lock_timeout")).scalar() == "2s"
        raw = driver(connection)
        assert dict(raw.execute("SELECT name, setting FROM pg_settings").fetchall()) == before
        assert raw.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert raw.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        ).fetchone() == (0,)


def settings(url: str) -> dict[str, str]:
    with psycopg.connect(url, application_name="resumes", client_encoding="UTF8") as connection:
        rows = connection.execute("SELECT name, setting FROM pg_settings").fetchall()
    return dict(rows)


def test_an_error_holds_nothing_of_what_was_to_be_written(url: str) -> None:
    engine = postgres_engine(PostgresAddress(url), patience_s=5)
    with engine.connect() as connection, pytest.raises(DBAPIError) as caught:
        connection.execute(text("SELECT 1 / 0, CAST(:secret AS text)"), {"secret": "planted"})
    assert "planted" not in str(caught.value)
