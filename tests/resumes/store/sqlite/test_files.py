from pathlib import Path

import pytest

from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import Store, accounts, open_store
from resumes.store.sqlite import files
from resumes.store.sqlite.database import sqlite_engine
from tests.resumes.store.moving.builders import names_in


def test_a_copy_of_a_store_is_whole_and_its_owners_alone(source: Store, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    told: list[int] = []
    assert source.path is not None
    files.vacuum_into(source.path, copy, told.append)
    files.examine(copy, copy)

    assert copy.stat().st_mode & 0o777 == 0o600
    assert files.is_closed(copy)
    with open_store(f"sqlite:///{copy}", upgrade=False) as store:
        assert len(accounts.list_accounts(store)) == 2


def test_a_database_is_told_by_how_it_begins(source: Store, tmp_path: Path) -> None:
    assert source.path is not None
    good, stranger, empty = (tmp_path / name for name in ("good.db", "stranger", "empty"))
    files.vacuum_into(source.path, good, lambda _: None)
    stranger.write_bytes(b"no database at all")
    empty.touch()
    assert [files.is_database(path) for path in (good, stranger, empty)] == [True, False, False]


def test_what_is_damaged_is_told_from_what_is_no_store(source: Store, tmp_path: Path) -> None:
    assert source.path is not None
    good = tmp_path / "good.db"
    files.vacuum_into(source.path, good, lambda _: None)

    stranger, empty, damaged = (tmp_path / name for name in ("stranger", "empty", "damaged"))
    stranger.write_bytes(b"no database at all, but long enough to be looked at" * 40)
    empty.touch()
    content = bytearray(good.read_bytes())
    for page in range(2, len(content) // 4096, 3):
        content[page * 4096 : page * 4096 + 1_000] = bytes(1_000)
    damaged.write_bytes(content)

    for path, words in ((stranger, "not a database"), (empty, "no store"), (damaged, "damaged")):
        with pytest.raises(StoreIncompatible, match=words) as refused:
            files.examine(path, Path("/shown.db"))
        assert "/shown.db" in refused.value.message


def a_copy(source: Store, path: Path) -> Path:
    """Of the store, to be damaged."""
    assert source.path is not None
    files.vacuum_into(source.path, path, lambda _: None)
    return path


def test_what_only_a_look_at_all_of_it_finds_is_found(source: Store, tmp_path: Path) -> None:
    copy = a_copy(source, tmp_path / "copy.db")
    with sqlite_engine(copy, transactions=False).connect() as connection:
        # One index has the pages of another: each page by itself is as it should be.
        connection.exec_driver_sql("PRAGMA writable_schema=ON")
        first, second = connection.exec_driver_sql(
            "SELECT name, rootpage FROM sqlite_schema"
            " WHERE type = 'index' AND sql IS NOT NULL ORDER BY name LIMIT 2"
        ).all()
        connection.exec_driver_sql(
            "UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (second.rootpage, first.name)
        )
    with pytest.raises(StoreIncompatible, match=r"/shown\.db is damaged: .*Use another backup"):
        files.examine(copy, Path("/shown.db"))


def test_rows_that_refer_to_others_that_are_gone_are_found(source: Store, tmp_path: Path) -> None:
    copy = a_copy(source, tmp_path / "copy.db")
    with sqlite_engine(copy, transactions=False).connect() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql("DELETE FROM accounts WHERE name = 'ana'")
    with pytest.raises(StoreIncompatible, match=r"/shown\.db is damaged: rows refer to others"):
        files.examine(copy, Path("/shown.db"))


def test_what_was_examined_keeps_a_log_as_ours_do(source: Store, tmp_path: Path) -> None:
    copy = a_copy(source, tmp_path / "copy.db")
    files.examine(copy, copy)
    with sqlite_engine(copy, transactions=False).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"


def test_a_disk_without_room_is_refused_with_both_figures(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="free space, and 1,000,000,"):
        files.check_room(tmp_path, 10**18)


def test_what_a_store_needs_beside_its_data_is_room_that_is_needed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.check_room(tmp_path, 0)
    monkeypatch.setattr(files, "LEAST_ROOM_BYTES", 10**18)
    with pytest.raises(StoreUnavailable, match=r"1,000,000,000,000 MB are needed"):
        files.check_room(tmp_path, 0)


def test_an_exchange_keeps_what_was_there_with_its_log(tmp_path: Path) -> None:
    new, path, kept = tmp_path / "new", tmp_path / "r.db", tmp_path / "kept"
    new.write_text("new")
    path.write_text("old")
    (tmp_path / "r.db-wal").write_text("old log")
    (tmp_path / "r.db-shm").write_text("old index")

    assert files.exchange(new, path, kept)

    assert names_in(tmp_path) == ["kept", "kept-shm", "kept-wal", "r.db"]
    assert path.read_text() == "new"
    assert kept.read_text() == "old"
    assert (tmp_path / "kept-wal").read_text() == "old log"
    assert (tmp_path / "kept-shm").read_text() == "old index"


def test_a_log_without_its_store_is_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    new, path, kept = tmp_path / "new", tmp_path / "r.db", tmp_path / "kept"
    new.write_text("new")
    (tmp_path / "r.db-wal").write_text("left alone")

    assert not files.exchange(new, path, kept)

    assert names_in(tmp_path) == ["kept-wal", "r.db"]


def test_scratch_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with files.scratch_in(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "half").touch()
    assert names_in(tmp_path) == []
