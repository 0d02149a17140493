import gc
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from resumes.errors import InvalidArgument, StoreIncompatible, StoreUnavailable
from resumes.store import Store, accounts, keys, listing, open_store
from resumes.store.addresses import SqliteAddress, parse_address
from resumes.store.sqlite.database import sqlite_engine
from resumes.store.sqlite.driver import dbapi
from tests.resumes.store.builders import sqlite_of


def test_a_new_store_has_the_three_plans(store: Store) -> None:
    with store.read() as connection:
        rows = connection.execute(text("SELECT name, max_resumes, api_listing FROM plans")).all()
    assert sorted(map(tuple, rows)) == [("business", 1000, 1), ("free", 5, 0), ("pro", 50, 0)]


def test_the_files_of_a_store_are_its_owners_alone(store: Store) -> None:
    accounts.create_account(store, "ana")
    files = list(sqlite_of(store).path.parent.glob("resumes.db*"))
    assert len(files) == 5
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)


def test_a_commit_is_on_the_disk_before_it_is_answered(store: Store) -> None:
    raw = sqlite_of(store)._lane_connection.connection.driver_connection
    assert raw is not None
    assert raw.execute("PRAGMA synchronous").fetchone() == (2,)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_reading_connection_cannot_write(store: Store) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"), store.read() as connection:
        connection.execute(text("DELETE FROM plans"))


def test_what_is_written_is_there_after_opening_again(url: str) -> None:
    with open_store(url) as store:
        accounts.create_account(store, "ana")
    with open_store(url) as store:
        assert [account.name for account in accounts.list_accounts(store)] == ["ana"]


OPEN_TOGETHER = """
    import sys
    from resumes.store import open_store, accounts
    sys.stdin.readline()
    with open_store(sys.argv[1]) as store:
        accounts.create_account(store, sys.argv[2])
"""


def test_processes_that_open_a_new_store_at_once_all_come_up(url: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(OPEN_TOGETHER), url, f"account-{n}"],
            stdin=subprocess.PIPE,
        )
        for n in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    assert [child.wait(60) for child in children] == [0] * 4
    with open_store(url) as store:
        assert len(accounts.list_accounts(store)) == 4


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"Folder not found: .*/absent"):
        open_store(f"sqlite:///{tmp_path}/absent/resumes.db")


def test_a_missing_file_is_not_made_when_only_an_existing_store_will_do(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="Database not found"):
        open_store(f"sqlite:///{tmp_path}/resumes.db", upgrade=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is a folder"):
        open_store(f"sqlite:///{tmp_path}")


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 200)
    with pytest.raises(StoreIncompatible, match="no SQLite database"):
        open_store(f"sqlite:///{path}")
    assert path.read_text() == "not a database, " * 200
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = dbapi.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreIncompatible, match="another program"):
        open_store(f"sqlite:///{path}")


def test_a_damaged_store_is_named_when_it_is_read(url: str, tmp_path: Path) -> None:
    with open_store(url) as store:
        accounts.create_account(store, "ana")
    path = tmp_path / "resumes.db"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    with pytest.raises(StoreIncompatible, match="damaged"), open_store(url) as store:
        accounts.list_accounts(store)


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


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/lib/r.db", "/var/lib/r.db"),
        ("sqlite+pysqlite:////var/lib/r.db", "/var/lib/r.db"),
    ],
)
def test_the_address_of_a_file(url: str, path: str) -> None:
    assert parse_address(url) == SqliteAddress(Path(path))


def test_a_relative_address_is_taken_from_the_working_folder() -> None:
    assert parse_address("sqlite:///r.db") == SqliteAddress(Path.cwd() / "r.db")


@pytest.mark.parametrize("url", ["", "resumes.db", "sqlite://", "sqlite:///", "mysql://h/d"])
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="use sqlite:///PATH"):
        parse_address(url)


def test_a_refused_address_never_shows_its_password() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_address("mysql://ana:secret@host/db")
    assert "secret" not in caught.value.message


def test_a_thread_that_ends_takes_its_reading_connection_along(store: Store) -> None:
    def read() -> None:
        accounts.list_accounts(store)

    for _ in range(20):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    gc.collect()
    assert len(sqlite_of(store)._connections) <= 1


def test_a_word_that_is_not_utf_8_is_refused_wherever_it_is_looked_up(store: Store) -> None:
    for call in (
        lambda: accounts.get_account(store, "a\udcff"),
        lambda: listing.get_resume(store, "0" * 16, "\udcff"),
        lambda: listing.delete_resume(store, "0" * 16, "\udcff"),
        lambda: keys.revoke_key(store, "\udcff"),
    ):
        with pytest.raises(InvalidArgument, match="Not UTF-8 text"):
            call()


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
