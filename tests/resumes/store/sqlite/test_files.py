from pathlib import Path

import pytest

from resumes.errors import Conflict, StoreIncompatible, StoreUnavailable
from resumes.store import Store, accounts, open_store
from resumes.store.sqlite import files
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


def test_a_disk_without_room_is_refused_with_both_figures(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="free space, and 1,000,000,"):
        files.check_room(tmp_path, 10**18)


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    new, taken = tmp_path / "new", tmp_path / "taken"
    new.write_text("new")
    taken.write_text("taken")
    with pytest.raises(Conflict, match="exists already"):
        files.place(new, taken)
    assert taken.read_text() == "taken"
    files.place(new, tmp_path / "free")
    assert (tmp_path / "free").read_text() == "new"


def test_an_exchange_keeps_what_was_there_with_its_log(tmp_path: Path) -> None:
    new, path, kept = tmp_path / "new", tmp_path / "r.db", tmp_path / "kept"
    new.write_text("new")
    path.write_text("old")
    (tmp_path / "r.db-wal").write_text("old log")

    assert files.exchange(new, path, kept)

    assert names_in(tmp_path) == ["kept", "kept-wal", "r.db"]
    assert path.read_text() == "new"
    assert kept.read_text() == "old"
    assert (tmp_path / "kept-wal").read_text() == "old log"


def test_a_log_without_its_store_is_not_taken_for_the_new_ones(tmp_path: Path) -> None:
    new, path, kept = tmp_path / "new", tmp_path / "r.db", tmp_path / "kept"
    new.write_text("new")
    (tmp_path / "r.db-wal").write_text("left alone")

    assert not files.exchange(new, path, kept)

    assert names_in(tmp_path) == ["kept-wal", "r.db"]


def test_scratch_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with files.scratch_beside(tmp_path / "r.db") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "half").touch()
    assert names_in(tmp_path) == []
