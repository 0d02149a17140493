"""One library, durable commits, a log that is kept short, and errors that tell no content."""

import gc
import logging
import threading
import weakref
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import Store, accounts, creation, open_store, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.store import explain, sqlite_engine
from resumes.store.sqlite.writer import message_of
from tests.support.inbox.builders import a_full_disk
from tests.support.resumes import a_resume
from tests.support.store.builders import path_of, run_python, sqlite_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.sqlite("its files, pragmas and locks")

AT_ONCE = ("CHECKPOINT_BYTES", "CHECKPOINT_INTERVAL_S", "TRUNCATE_BYTES", "TRUNCATE_INTERVAL_S")
"""Set to 0, they have the log copied into the store, and emptied, after each write."""


# The library

LIBRARIES = """
    import sys
    import resumes.store
    from resumes.store import open_store, accounts, api_keys, stored_resumes, migrations
    with open_store(sys.argv[1]) as store:
        accounts.create_account(store, "ana")
    print(*sorted(m for m in sys.modules if m.split(".")[-1] == "_sqlite3"))
"""
ADD = """
    import sys
    from resumes.store import open_store, accounts
    with open_store(sys.argv[1]) as store:
        accounts.create_account(store, "cy")
        print(*[a.name for a in accounts.list_accounts(store)])
"""


def test_s1_a_process_that_made_and_used_a_store_loaded_one_sqlite_library(url: str) -> None:
    run = run_python(LIBRARIES, url)
    assert len(run.stdout.split()) == 1, run.stdout + run.stderr
    assert dbapi.sqlite_version_info >= (3, 51, 3)  # without the WAL-reset bug


def test_s1_closing_one_store_leaves_the_locks_of_another_on_the_same_file(url: str) -> None:
    with open_store(url) as first:
        with open_store(url) as second:
            accounts.create_account(second, "ana")
        accounts.create_account(first, "bo")
        # Another process sees both, and may write: nothing was overwritten behind its back.
        run = run_python(ADD, url)
        assert run.stdout.split() == ["ana", "bo", "cy"], run.stderr
        assert [account.name for account in accounts.list_accounts(first)] == ["ana", "bo", "cy"]


# Connections


def test_a_commit_is_on_the_disk_before_it_is_answered(store: Store) -> None:
    names = ("synchronous", "journal_mode", "foreign_keys", "trusted_schema")
    values = store.write(
        lambda connection: [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names
        ]
    )
    assert values == [2, "wal", 1, 0]


def test_a_reading_connection_cannot_write(store: Store) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"), store.read() as connection:
        connection.execute(text("DELETE FROM plans"))


def test_a_store_that_another_program_has_locked_is_unavailable_until_it_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.store.sqlite.writer.BUSY_TIMEOUT_S", 0.2)
    shell = dbapi.connect(path_of(store), isolation_level=None)
    shell.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        accounts.create_account(store, "ana")
    shell.close()
    assert accounts.create_account(store, "ana").name == "ana"


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
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 0
    finally:
        leaving.join()


def test_a_thread_that_ends_takes_its_reading_connection_along(store: Store) -> None:
    connections: list[weakref.ref[Connection]] = []

    def read() -> None:
        with store.read() as connection:
            connections.append(weakref.ref(connection))

    for _ in range(20):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    read()
    assert [one() is not None for one in connections] == [False] * 20 + [True]


CLOSE_BELOW_READERS = """
    import sys, threading
    from sqlalchemy import text
    from resumes.errors import StoreUnavailable
    from resumes.store import open_store

    endless = text("WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
    store = open_store(sys.argv[1])
    begun = threading.Barrier(5)

    def read():
        try:
            store.ping()
            begun.wait()
            store.fetch(endless)
        except StoreUnavailable as error:
            sys.stdout.write(f"{error}\\n")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    store.close()
    for thread in threads:
        thread.join()
    read()
"""


def test_a_store_that_is_closed_while_threads_read_ends_their_reads(url: str) -> None:
    run = run_python(CLOSE_BELOW_READERS, url)
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()
    assert len(said) == 5
    assert all("interrupted" in line or "is closed" in line for line in said)


def test_what_a_schema_holds_runs_nothing_of_ours(store: Store) -> None:
    with sqlite_engine(path_of(store), transactions=False).connect() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        raw.create_function("ours", 0, lambda: 1)
        assert raw.execute("SELECT ours()").fetchone() == (1,)
        raw.execute("CREATE VIEW planted AS SELECT ours()")
        with pytest.raises(dbapi.Error, match="unsafe use"):
            raw.execute("SELECT * FROM planted")
        raw.execute("DROP VIEW planted")


def test_a_file_that_is_no_database_is_neither_made_nor_left_open(tmp_path: Path) -> None:
    path, log = tmp_path / "stranger.db", tmp_path / "stranger.db-wal"
    with pytest.raises(DBAPIError, match="unable to open"):
        sqlite_engine(path, transactions=False).connect()
    assert not path.exists()
    path.write_bytes(b"this was a store once " * 1_000)
    log.write_bytes(b"and this its log")
    with pytest.raises(DBAPIError):
        sqlite_engine(path, transactions=False).connect()
    log.write_bytes(b"the log of the next file of this name")
    gc.collect(1)  # a connection that was left open closes, and takes the log along
    assert log.exists()


# The log


def test_s10_the_log_is_kept_short_and_emptied_when_it_is_too_long(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = path_of(store).with_name("resumes.db-wal")
    for name, value in zip(AT_ONCE, (100_000, 0.0, 10**9, 0.0), strict=True):
        monkeypatch.setattr(f"resumes.store.sqlite.store.{name}", value)
    for n in range(60):
        accounts.create_account(store, f"account-{n}")
    assert log.stat().st_size < 400_000
    for name in AT_ONCE:
        monkeypatch.setattr(f"resumes.store.sqlite.store.{name}", 0)
    accounts.create_account(store, "ana")
    wait_until(lambda: log.stat().st_size == 0)


def test_a_log_that_cannot_be_copied_into_the_store_is_logged_in_a_line_once(
    store: Store,
    ana: AccountInfo,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in AT_ONCE:
        monkeypatch.setattr(f"resumes.store.sqlite.store.{name}", 0)
    path = path_of(store)
    accounts.set_plan(store, "ana", "business")
    wait_until(lambda: path.with_name("resumes.db-wal").stat().st_size == 0)
    with a_full_disk(path.stat().st_size):
        for _ in range(3):
            creation.create(store, ana.id, [a_resume("Ada" * 1_000)])
    creation.create(store, ana.id, [a_resume()])
    wait_until(lambda: len(caplog.records) > 1)
    assert caplog.messages == [
        "The store's log cannot be checkpointed: disk I/O error",
        "The store's log can be checkpointed again",
    ]
    assert {(record.levelno, record.exc_info) for record in caplog.records} == {
        (logging.WARNING, None)
    }


# Errors


def test_an_error_tells_neither_what_was_to_be_written_nor_what_is_damaged(store: Store) -> None:
    insert = text("INSERT INTO plans (name) VALUES (:name)")
    with (
        pytest.raises(DBAPIError) as caught,
        sqlite_engine(path_of(store), transactions=True).connect() as connection,
    ):
        connection.execute(insert, {"name": "planted@example.com"})
    assert "NOT NULL" in str(caught.value)
    assert "planted" not in str(caught.value)
    assert message_of(caught.value) == "NOT NULL constraint failed: plans.api_listing"

    planted = "Could not decode to UTF-8 column 'title' with text 'Ada Example"
    for error in (dbapi.OperationalError(planted), DBAPIError("", {}, Exception(planted))):
        explained = explain(error, path_of(store))
        assert isinstance(explained, StoreIncompatible)
        assert "text that is not UTF-8" in explained.message
        assert "Ada" not in explained.message


def test_bytes_in_the_place_of_a_text_are_damage(store: Store, ana: AccountInfo) -> None:
    creation.create(store, ana.id, [a_resume()])
    shell = dbapi.connect(path_of(store))
    shell.execute("UPDATE resumes SET title = x'41'")
    shell.commit()
    shell.close()
    with pytest.raises(StoreIncompatible, match="damaged"):
        stored_resumes.list_page(store, ana.id)


def test_an_error_of_a_disk_without_room_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, path = dbapi.OperationalError("disk I/O error"), sqlite_of(store).path
    assert explain(error, path).message.endswith("disk I/O error")
    monkeypatch.setattr("resumes.store.sqlite.store.MIN_FREE_BYTES", 10**18)
    assert explain(error, path).message.endswith("is unavailable: its disk is full")
    locked = dbapi.OperationalError("database is locked")
    assert explain(locked, path).message.endswith("database is locked")
