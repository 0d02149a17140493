"""A store whose files are removed, replaced or given another name while it is open."""

import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import Store, accounts, open_store
from resumes.store.sqlite.identity import Identity
from tests.resumes.store.builders import at_commit, names_in, path_of
from tests.waiting import wait_until

pytestmark = pytest.mark.sqlite("its files")


def remove(path: Path) -> None:
    """As `rm resumes.db*` does."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("gone.db"))


def replace(path: Path) -> None:
    new = path.with_name("new.db")
    shutil.copy(path, new)
    new.rename(path)


def in_another_thread(action: Callable[[], object]) -> None:
    """With a connection of its own."""
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


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
    with pytest.raises(StoreUnavailable, match="Stop every program that uses it, put it back or"):
        accounts.list_accounts(store)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert how in record.getMessage()


def test_a_file_that_is_put_back_counts_when_it_is_opened_again_without_what_was_refused(
    store: Store, url: str, tmp_path: Path
) -> None:
    accounts.create_account(store, "ana")
    path = path_of(store)
    move_away(path)
    errors: list[str] = []

    def read() -> None:
        try:
            accounts.list_accounts(store)
        except StoreUnavailable as error:
            errors.append(error.message)

    in_another_thread(read)
    assert "removed or renamed" in errors[0]
    assert "resumes.db" not in names_in(tmp_path)  # nor is it made anew
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            accounts.create_account(store, "bo")
        if not path.exists():
            path.with_name("gone.db").rename(path)
    store.close()
    with open_store(url) as again:
        accounts.create_account(again, "cy")
        assert [account.name for account in accounts.list_accounts(again)] == ["ana", "cy"]


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
def test_s19_nothing_is_written_while_a_file_has_another_name(suffix: str, store: Store) -> None:
    path = path_of(store)
    accounts.create_account(store, "ana")
    other = path.with_name("other")
    os.link(path.with_name(path.name + suffix), other)
    assert f"{path}{suffix} has another name, {other}: " in refusal_of_a_write(store)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="has another name"):
            accounts.create_account(store, "bo")
    found: list[str] = []
    in_another_thread(lambda: found.extend(one.name for one in accounts.list_accounts(store)))
    assert found == ["ana"]  # who begins to read meanwhile reads
    other.unlink()
    accounts.create_account(store, "bo")


def test_what_cannot_be_looked_at_is_refused_and_may_pass(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    path = path_of(store)
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
    for check in (identity.check_all, identity.check_known):
        with pytest.raises(StoreUnavailable, match=f"{path} was removed"):
            check()
