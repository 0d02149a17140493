"""A store whose files are removed or replaced while it is open."""

import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, open_store
from resumes.store.sqlite.identity import Identity
from tests.resumes.store.builders import dialect_of, sqlite_of
from tests.resumes.store.moving.builders import names_in
from tests.server.serving import wait_until

pytestmark = pytest.mark.sqlite("its files")


def remove(path: Path) -> None:
    """As `rm resumes.db*` does."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("gone.db"))


def replace(path: Path) -> None:
    new = path.with_name("new.db")
    shutil.copy(path, new)
    new.rename(path)


WAYS: dict[Callable[[Path], None], str] = {
    remove: "removed or renamed",
    rename: "removed or renamed",
    replace: "replaced by another",
}


@pytest.mark.parametrize("lose", WAYS)
def test_nothing_is_answered_as_stored_in_a_file_that_is_not_the_stores_any_more(
    lose: Callable[[Path], None], store: Store, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    accounts.create_account(store, "ana")
    path = sqlite_of(store).path
    lose(path)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match=f"{path} was {WAYS[lose]}.*nothing is read"):
            accounts.create_account(store, "bo")
    with pytest.raises(StoreUnavailable, match="Stop every program that uses it, put it back or"):
        accounts.list_accounts(store)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert WAYS[lose] in record.getMessage()


def test_what_was_refused_is_not_in_the_file_that_is_gone(store: Store, url: str) -> None:
    path = sqlite_of(store).path
    accounts.create_account(store, "ana")
    path.rename(path.with_name("gone.db"))
    with pytest.raises(StoreUnavailable):
        accounts.create_account(store, "bo")
    path.with_name("gone.db").rename(path)
    with open_store(url) as again:
        assert [account.name for account in accounts.list_accounts(again)] == ["ana"]


def test_a_file_that_is_put_back_counts_when_it_is_opened_again(store: Store, url: str) -> None:
    path = sqlite_of(store).path
    path.rename(path.with_name("gone.db"))
    with pytest.raises(StoreUnavailable):
        accounts.create_account(store, "ana")
    path.with_name("gone.db").rename(path)
    with pytest.raises(StoreUnavailable):
        accounts.create_account(store, "ana")
    store.close()
    with open_store(url) as again:
        assert accounts.create_account(again, "ana").name == "ana"


def test_a_commit_whose_file_went_meanwhile_is_unknown(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, dialect = sqlite_of(store).path, dialect_of(store)
    really = dialect.do_commit

    def commit_and_lose(connection: Any) -> None:
        really(connection)
        path.rename(path.with_name("gone.db"))

    monkeypatch.setattr(dialect, "do_commit", commit_and_lose)
    with pytest.raises(OutcomeUnknown):
        accounts.create_account(store, "ana")


def test_a_store_that_went_is_not_made_anew_by_who_reads_it(store: Store, tmp_path: Path) -> None:
    errors: list[StoreUnavailable] = []

    def read() -> None:
        try:
            accounts.list_accounts(store)
        except StoreUnavailable as error:
            errors.append(error)

    accounts.list_accounts(store)
    sqlite_of(store).path.rename(tmp_path / "gone.db")
    thread = threading.Thread(target=read)  # with a connection of its own
    thread.start()
    thread.join()
    assert "removed or renamed" in errors[0].message
    assert "resumes.db" not in names_in(tmp_path)


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_that_was_removed_is_noticed_and_nothing_in_it_is_lost(
    suffix: str, store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.store.sqlite.database.CHECKPOINT_EVERY_S", 0.0)
    accounts.create_account(store, "ana")
    path = sqlite_of(store).path
    path.with_name(path.name + suffix).unlink()

    refused: list[StoreUnavailable] = []

    def write() -> bool:
        try:
            accounts.set_plan(store, "ana", "free")
        except StoreUnavailable as error:
            refused.append(error)
        return bool(refused)

    wait_until(write)
    assert f"{suffix} was removed" in refused[0].message
    store.close()
    with open_store(url) as again:
        assert [account.name for account in accounts.list_accounts(again)] == ["ana"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_nothing_is_written_while_a_file_has_another_name(
    suffix: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.store.sqlite.database.CHECKPOINT_EVERY_S", 0.0)
    path = sqlite_of(store).path
    accounts.create_account(store, "ana")
    other = path.with_name("other")
    os.link(path.with_name(path.name + suffix), other)
    refused: list[StoreUnavailable] = []

    def write() -> bool:
        try:
            accounts.set_plan(store, "ana", "free")
        except StoreUnavailable as error:
            refused.append(error)
        return bool(refused)

    wait_until(write)
    assert f"{path}{suffix} has another name, {other}: " in refused[0].message
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="has another name"):
            accounts.create_account(store, "bo")
    other.unlink()
    accounts.create_account(store, "bo")


def test_who_begins_to_read_while_the_file_has_another_name_reads(store: Store) -> None:
    accounts.create_account(store, "ana")
    path = sqlite_of(store).path
    os.link(path, path.with_name("other"))
    found: list[str] = []

    def read() -> None:
        found.extend(account.name for account in accounts.list_accounts(store))

    thread = threading.Thread(target=read)  # with a connection of its own
    thread.start()
    thread.join()
    assert found == ["ana"]


def test_what_cannot_be_looked_at_is_refused_and_may_pass(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    path = sqlite_of(store).path
    gone = path.rename(path.with_name("gone.db"))
    path.symlink_to(path.name)  # a link to itself: the system gives up
    with pytest.raises(StoreUnavailable, match=r"cannot be looked at .*nothing was done"):
        accounts.create_account(store, "ana")
    gone.replace(path)
    assert accounts.create_account(store, "ana").name == "ana"
    assert caplog.records == []


def test_a_file_without_a_log_is_known_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "resumes.db"
    path.touch()
    identity = Identity(path)
    identity.check_all()
    (tmp_path / "resumes.db-wal").touch()
    identity.check_all()
    path.unlink()
    with pytest.raises(StoreUnavailable, match=f"{path} was removed"):
        identity.check_all()
    with pytest.raises(StoreUnavailable, match="removed"):
        identity.check_known()
