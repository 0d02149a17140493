import gc
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from resumes.errors import StoreUnavailable
from resumes.store import Store, accounts, open_store
from resumes.store.sqlite.database import sqlite_engine
from resumes.store.sqlite.driver import dbapi
from tests.resumes.store.builders import sqlite_of

pytestmark = pytest.mark.sqlite("its files, pragmas and locks")


def test_a_commit_is_on_the_disk_before_it_is_answered(store: Store) -> None:
    raw = sqlite_of(store)._lane_connection.connection.driver_connection
    assert raw is not None
    assert raw.execute("PRAGMA synchronous").fetchone() == (2,)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_reading_connection_cannot_write(store: Store) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"), store.read() as connection:
        connection.execute(text("DELETE FROM plans"))


def test_a_store_that_another_program_has_locked_is_unavailable(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = sqlite_of(store)._lane_connection.connection.driver_connection
    assert raw is not None
    raw.execute("PRAGMA busy_timeout=10")
    shell = dbapi.connect(sqlite_of(store).path, isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        accounts.create_account(store, "ana")
    shell.execute("ROLLBACK")
    shell.close()
    assert accounts.create_account(store, "ana").name == "ana"


def test_the_log_is_kept_short(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resumes.store.sqlite.database.CHECKPOINT_BYTES", 100_000)
    monkeypatch.setattr("resumes.store.sqlite.database.CHECKPOINT_EVERY_S", 0.0)
    for n in range(60):
        accounts.create_account(store, f"account-{n}")
    log = sqlite_of(store).path.with_name("resumes.db-wal")
    assert log.stat().st_size < 400_000


def test_a_thread_that_ends_takes_its_reading_connection_along(store: Store) -> None:
    def read() -> None:
        accounts.list_accounts(store)

    for _ in range(20):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    gc.collect()
    assert len(sqlite_of(store)._connections) <= 1


def test_an_error_of_the_driver_does_not_say_what_was_to_be_written(store: Store) -> None:
    statement = text("INSERT INTO plans (name) VALUES (:name)")

    with (
        pytest.raises(DBAPIError) as caught,
        sqlite_of(store)._write_engine.connect() as connection,
    ):
        connection.execute(statement, {"name": "planted@example.com"})

    assert "NOT NULL" in str(caught.value)
    assert "planted" not in str(caught.value)


def test_a_connection_that_never_waits_for_writers_waits_while_it_is_opened(url: str) -> None:
    open_store(url).close()
    path = Path(url.removeprefix("sqlite:///"))
    other = dbapi.connect(str(path), isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    leaving = threading.Timer(0.2, other.close)
    leaving.start()
    try:
        with sqlite_engine(path, transactions=True, waits=False).connect() as connection:
            driver_connection = connection.connection.driver_connection
            assert driver_connection is not None
            assert driver_connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
    finally:
        leaving.join()


def test_a_file_that_is_no_database_is_not_left_open(tmp_path: Path) -> None:
    path = tmp_path / "stranger.db"
    path.write_bytes(b"this was a store once " * 1_000)
    log = tmp_path / "stranger.db-wal"
    log.write_bytes(b"and this its log")
    with pytest.raises(DBAPIError):
        sqlite_engine(path, transactions=False).connect()
    log.write_bytes(b"the log of the next file of this name")
    gc.collect()
    assert log.exists()
