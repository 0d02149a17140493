"""A store's files: where they may lie, whose they are, what is no store, and what becomes of them."""

import contextlib
import logging
import os
import shutil
import socket
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resumes import filesystems
from resumes.errors import OutcomeUnknown, StoreIncompatible, StoreUnavailable
from resumes.store import Store, accounts, open_store
from resumes.store.sqlite import files
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.store import sqlite_engine
from resumes.store.transfer import backups
from tests.support.resumes import a_mount, mountinfo
from tests.support.store.builders import at_commit, names_in, path_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.sqlite("its files")


@pytest.mark.parametrize("is_there", [False, True])  # empty, and for all to read
def test_the_files_of_a_store_are_its_owners_alone_whatever_the_umask(
    place: str, tmp_path: Path, is_there: bool
) -> None:
    before = os.umask(0)
    try:
        if is_there:
            (tmp_path / "resumes.db").touch(mode=0o644)
        with open_store(place) as store:
            accounts.create_account(store, "ana")
            modes = [file.stat().st_mode & 0o777 for file in tmp_path.glob("resumes.db*")]
    finally:
        os.umask(before)
    assert modes == [0o600] * 5


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))  # an absolute one may be too long for a socket


@pytest.mark.parametrize(
    ("ending", "what", "make"),
    [
        ("-journal", "a pipe", os.mkfifo),
        ("-wal", "a pipe", os.mkfifo),
        ("-shm", "a folder", os.mkdir),
        ("-journal", "a socket", bind),
    ],
)
def test_what_is_no_file_under_the_name_of_a_part_of_the_store_is_refused_and_left(
    place: str, tmp_path: Path, ending: str, what: str, make: Callable[[Path], None]
) -> None:
    open_store(place).close()
    part = tmp_path / f"resumes.db{ending}"
    part.unlink(missing_ok=True)
    make(part)
    kind = stat.S_IFMT(part.stat().st_mode)

    with pytest.raises(
        StoreUnavailable, match=f"{part} is {what}, .*. Move it elsewhere, or use ano"
    ):
        open_store(place)

    assert stat.S_IFMT(part.stat().st_mode) == kind


def test_a_place_where_no_store_can_be_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    notes, other = tmp_path / "notes.txt", tmp_path / "other.db"
    notes.write_text("not a database, " * 200)
    with contextlib.closing(dbapi.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    for path, error, why in (
        (tmp_path / "absent" / "resumes.db", StoreUnavailable, r"Folder not found: .*/absent"),
        (tmp_path, StoreUnavailable, "is a folder"),
        (notes, StoreIncompatible, "not a SQLite database"),
        (other, StoreIncompatible, "another program"),
    ):
        with pytest.raises(error, match=why):
            open_store(f"sqlite:///{path}")
    with pytest.raises(StoreUnavailable, match="Database not found"):
        open_store(f"sqlite:///{tmp_path}/resumes.db", upgrade=False)
    assert notes.read_text() == "not a database, " * 200
    assert names_in(tmp_path) == ["notes.txt", "other.db"]


def test_those_who_come_by_a_link_share_the_locks_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "home").mkdir()
    # A name with the signs of an address is opened as it is.
    path = tmp_path / "store" / "50% ?mode=memory#1 ü.db"
    link = tmp_path / "home" / "resumes.db"
    link.symlink_to(path)  # to what is not there yet
    with open_store(f"sqlite:///{link}") as first:
        accounts.create_account(first, "ana")
        with open_store(f"sqlite:///{path}") as second:
            assert first.url == second.url
            assert accounts.get_account(second, "ana").name == "ana"
    assert names_in(tmp_path / "home") == ["resumes.db"]
    assert all(name.startswith(path.name) for name in names_in(tmp_path / "store"))
    assert path.stat().st_size > 0


def lie_on(kind: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mountinfo").write_text(mountinfo(a_mount(str(place), kind)))
    monkeypatch.setattr(filesystems, "MOUNTINFO", tmp_path / "mountinfo")


@pytest.mark.parametrize(
    ("kind", "is_shared"),
    [("nfs4", True), ("cifs", True), ("fuse.sshfs", True), ("9p", False), ("fuse.unknown", False)],
)
def test_a_file_that_other_machines_can_open_is_refused(
    kind: str, is_shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie_on(kind, tmp_path, tmp_path, monkeypatch)
    if not is_shared:
        open_store(f"sqlite:///{tmp_path}/resumes.db").close()
        return
    with pytest.raises(StoreUnavailable, match=f"is on {kind}, a .*PostgreSQL"):
        open_store(f"sqlite:///{tmp_path}/resumes.db")
    assert names_in(tmp_path) == ["mountinfo"]


def test_a_link_to_such_a_file_a_mount_of_its_own_and_a_backup_are_refused_too(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = backups.back_up(source, tmp_path / "backup.db").path
    share, home = tmp_path / "share", tmp_path / "home"
    share.mkdir()
    home.mkdir()
    (home / "linked.db").symlink_to(share / "resumes.db")
    lie_on("nfs4", share, tmp_path, monkeypatch)
    with pytest.raises(StoreUnavailable, match=f"{share}/resumes.db is on nfs4"):
        open_store(f"sqlite:///{home}/linked.db")
    with pytest.raises(StoreUnavailable, match=rf"^The database {share}/new\.db is on nfs4"):
        backups.restore(backup, f"sqlite:///{share / 'new.db'}")
    assert (names_in(home), names_in(share)) == (["linked.db"], [])
    (home / "resumes.db").touch()
    lie_on("nfs4", home / "resumes.db", tmp_path, monkeypatch)
    with pytest.raises(StoreUnavailable, match="is on nfs4"):
        open_store(f"sqlite:///{home}/resumes.db")


def zero_pages(path: Path) -> None:
    roots = "SELECT rootpage FROM sqlite_schema WHERE name IN ('resumes', 'documents')"
    with sqlite_engine(path, transactions=False).connect() as connection:
        pages = connection.exec_driver_sql(roots).scalars().all()
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * 4096)
            file.write(bytes(1_000))


def swap_indexes(path: Path) -> None:
    """One index has the pages of another: each page by itself is as it should be."""
    with sqlite_engine(path, transactions=False).connect() as connection:
        connection.exec_driver_sql("PRAGMA writable_schema=ON")
        first, second = connection.exec_driver_sql(
            "SELECT name, rootpage FROM sqlite_schema"
            " WHERE type = 'index' AND sql IS NOT NULL ORDER BY name LIMIT 2"
        ).all()
        connection.exec_driver_sql(
            "UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (second.rootpage, first.name)
        )


def lose_an_account(path: Path) -> None:
    with sqlite_engine(path, transactions=False).connect() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql("DELETE FROM accounts WHERE name = 'ana'")


def test_what_is_damaged_is_told_from_what_is_no_store(source: Store, tmp_path: Path) -> None:
    for number, (harm, why) in enumerate(
        (
            (zero_pages, "damaged"),
            (swap_indexes, r"/shown\.db is damaged: .*Use another file"),
            (lose_an_account, r"/shown\.db is damaged: rows refer to rows"),
        )
    ):
        copy = tmp_path / f"{number}.db"
        files.vacuum_into(path_of(source), copy, lambda _: None)
        files.examine(copy, copy)
        assert files.is_closed(copy)
        with sqlite_engine(copy, transactions=False).connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        harm(copy)
        with pytest.raises(StoreIncompatible, match=why) as refused:
            files.examine(copy, Path("/shown.db"))
        assert "/shown.db" in refused.value.message


def remove(path: Path) -> None:
    """As `rm resumes.db*` does, in the order of names: the store is gone before its log."""
    for file in sorted(path.parent.glob(f"{path.name}*")):
        file.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("gone.db"))


def replace(path: Path) -> None:
    new = path.with_name("new.db")
    shutil.copy(path, new)
    new.rename(path)


def refusal_of_a_write(store: Store) -> str:
    """What a write is refused with, as soon as the store has looked at its files."""
    refused: list[str] = []

    def write() -> bool:
        try:
            accounts.set_plan(store, "ana", "free")
        except StoreUnavailable as error:
            refused.append(error.message)
        return bool(refused)

    wait_until(write)
    return refused[0]


@pytest.mark.parametrize(
    ("lose", "how"),
    [
        (remove, "removed or renamed"),
        (move_away, "removed or renamed"),
        (replace, "replaced by another"),
    ],
)
def test_nothing_is_answered_as_stored_in_a_file_that_is_not_the_stores_any_more(
    lose: Callable[[Path], None], how: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    accounts.create_account(store, "ana")
    path = path_of(store)
    lose(path)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match=f"{path} was {how}.*nothing is read"):
            accounts.create_account(store, "bo")
    for read in (store.ping, lambda: accounts.list_accounts(store)):
        with pytest.raises(
            StoreUnavailable, match="Stop every program that uses it, put the file back or"
        ):
            read()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert how in record.getMessage()
    if lose is move_away:
        assert not path.exists()  # nor is it made anew
        path.with_name("gone.db").rename(path)
        with pytest.raises(StoreUnavailable):
            accounts.create_account(store, "bo")
        # What is put back counts when it is opened again, without what was refused.
        store.close()
        with open_store(store.url) as again:
            accounts.create_account(again, "cy")
            assert [one.name for one in accounts.list_accounts(again)] == ["ana", "cy"]


def test_a_commit_whose_file_went_meanwhile_is_unknown(store: Store) -> None:
    with at_commit(lambda: move_away(path_of(store))), pytest.raises(OutcomeUnknown):
        accounts.create_account(store, "ana")


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_that_was_removed_is_noticed_and_nothing_in_it_is_lost(
    suffix: str, store: Store, url: str
) -> None:
    accounts.create_account(store, "ana")
    path = path_of(store)
    path.with_name(path.name + suffix).unlink()
    assert f"{suffix} was removed" in refusal_of_a_write(store)
    store.close()
    with open_store(url) as again:
        assert [account.name for account in accounts.list_accounts(again)] == ["ana"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_s19_nothing_is_written_while_a_file_has_another_name(
    suffix: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    path = path_of(store)
    accounts.create_account(store, "ana")
    other = path.with_name("other")
    os.link(path.with_name(path.name + suffix), other)
    assert f"{path}{suffix} has another name, {other}: " in refusal_of_a_write(store)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="has another name"):
            accounts.create_account(store, "bo")
    with ThreadPoolExecutor(1) as pool:  # who begins to read meanwhile reads
        assert [one.name for one in pool.submit(accounts.list_accounts, store).result()] == ["ana"]
    other.unlink()
    accounts.create_account(store, "bo")
    noticed, over = caplog.messages
    assert "has another name" in noticed
    assert "no longer have a second name" in over


def test_what_cannot_be_looked_at_is_refused_and_may_pass(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    path = path_of(store)
    gone = path.rename(path.with_name("gone.db"))
    path.symlink_to(path.name)  # a link to itself: the system gives up
    with pytest.raises(StoreUnavailable, match=r"cannot be checked .*nothing was done"):
        accounts.create_account(store, "ana")
    gone.replace(path)
    assert accounts.create_account(store, "ana").name == "ana"
    assert caplog.records == []
