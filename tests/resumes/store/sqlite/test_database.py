import gc
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import Store, accounts, creating, open_store
from resumes.store.sqlite.database import explain, sqlite_engine
from resumes.store.sqlite.driver import dbapi
from tests.importer.builders import a_full_disk
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import MakeAccount, sqlite_of
from tests.server.serving import wait_until

pytestmark = pytest.mark.sqlite("its files, pragmas and locks")

AT_ONCE = ("CHECKPOINT_BYTES", "CHECKPOINT_EVERY_S", "TRUNCATE_BYTES", "TRUNCATE_EVERY_S")
"""Set to 0, they have the log copied into the store, and emptied, after each write."""


def test_a_commit_is_on_the_disk_before_it_is_answered(store: Store) -> None:
    raw = sqlite_of(store)._lane_connection.connection.driver_connection
    assert raw is not None
    assert raw.execute("PRAGMA synchronous").fetchone() == (2,)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_reading_connection_cannot_write(store: Store) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"), store.read() as connection:
        connection.execute(text("DELETE FROM plans"))


def test_a_store_that_another_program_has_locked_is_unavailable(store: Store) -> None:
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


def test_a_log_that_is_too_long_is_emptied(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in AT_ONCE:
        monkeypatch.setattr(f"resumes.store.sqlite.database.{name}", 0)
    accounts.create_account(store, "ana")
    log = sqlite_of(store).path.with_name("resumes.db-wal")
    wait_until(lambda: log.stat().st_size == 0)


def test_a_log_that_cannot_be_copied_into_the_store_is_told_of_in_a_line_once(
    store: Store,
    an_account: MakeAccount,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in AT_ONCE:
        monkeypatch.setattr(f"resumes.store.sqlite.database.{name}", 0)
    account = an_account()
    path = sqlite_of(store).path
    wait_until(lambda: path.with_name("resumes.db-wal").stat().st_size == 0)
    with a_full_disk(path.stat().st_size):
        for _ in range(3):
            creating.create(store, account.id, [a_resume("Ada" * 1_000)])
    creating.create(store, account.id, [a_resume()])
    wait_until(lambda: len(caplog.records) > 1)
    assert caplog.messages == [
        "The store's log cannot be copied into it: disk I/O error",
        "The store's log is copied into it again",
    ]
    assert {record.exc_info for record in caplog.records} == {None}


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DBAPIError, match="unable to open"):
        sqlite_engine(tmp_path / "resumes.db", transactions=False).connect()
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_the_signs_of_an_address_is_opened_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "50% ?mode=memory#1 ü.db"
    with open_store(f"sqlite:///{path}") as store:
        accounts.create_account(store, "ana")
    assert path.stat().st_size > 0
    assert all(one.name.startswith(path.name) for one in tmp_path.iterdir())


def test_what_a_schema_holds_runs_nothing_of_ours(store: Store) -> None:
    with sqlite_engine(sqlite_of(store).path, transactions=False).connect() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        raw.create_function("ours", 0, lambda: 1)
        assert raw.execute("SELECT ours()").fetchone() == (1,)
        raw.execute("CREATE VIEW planted AS SELECT ours()")
        with pytest.raises(dbapi.Error, match="unsafe use"):
            raw.execute("SELECT * FROM planted")
        raw.execute("DROP VIEW planted")


def test_a_text_that_is_damaged_is_not_told(store: Store) -> None:
    planted = "Could not decode to UTF-8 column 'title' with text 'Ada Example"
    for error in (dbapi.OperationalError(planted), DBAPIError("", {}, Exception(planted))):
        explained = explain(error, sqlite_of(store).path)
        assert isinstance(explained, StoreIncompatible)
        assert "text that is no UTF-8" in explained.message
        assert "Ada" not in explained.message


def test_an_error_of_a_disk_without_room_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, path = dbapi.OperationalError("disk I/O error"), sqlite_of(store).path
    assert explain(error, path).message.endswith("disk I/O error")
    monkeypatch.setattr("resumes.store.sqlite.database.LEAST_ROOM_BYTES", 10**18)
    assert explain(error, path).message.endswith("cannot be used now: its disk is full")
    locked = dbapi.OperationalError("database is locked")
    assert explain(locked, path).message.endswith("database is locked")


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
