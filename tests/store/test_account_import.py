"""An account on its way in."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from resumes.errors import Conflict, InvalidArgument, NotFound, StoreIncompatible, StoreUnavailable
from resumes.store import (
    Store,
    accounts,
    api_keys,
    creation,
    identifiers,
    import_history,
    stored_resumes,
)
from resumes.store.accounts import AccountInfo
from resumes.store.row_bounds import YEAR_US
from resumes.store.sqlite.store import MIN_FREE_BYTES
from resumes.store.transfer.account_import import import_account
from resumes.store.transfer.copies import CopyProgress, OnProgress, Stage
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    MakeAccount,
    a_file,
    exported,
    held_by,
    ids_of,
    import_resumes,
    tamper,
)

pytestmark = pytest.mark.engines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where an account file is put."""
    return tmp_path / "ana.account"


def take(store: Store, file: Path, **options: Any) -> AccountInfo:
    return import_account(store, file, **options)[0]


def at_slices(act: Callable[[int], object]) -> OnProgress:
    """After each slice it is called with how many rows are stored."""

    def report(progress: CopyProgress) -> None:
        if progress.stage is Stage.COPYING:
            act(progress.done)

    return report


def names(store: Store) -> list[str]:
    return [account.name for account in accounts.list_accounts(store, include_closed=True)]


def an_exported_account(store: Store, an_account: MakeAccount, count: int, path: Path) -> Path:
    """The file of the account `ana`, which holds so many resumes."""
    import_resumes(store, an_account("ana"), count)
    return exported(store, path)


def test_an_account_comes_back_as_it_was(store: Store, ana: AccountInfo, path: Path) -> None:
    ids = import_resumes(store, ana, 5)
    stored_resumes.delete_resume(store, ana.id, ids[-1])
    a_file(store, ana, "9" * 24)
    new = api_keys.create_key(store, "ana")
    ana = accounts.get_account(store, "ana")
    exported(store, path, with_keys=True)
    documents = [stored_resumes.get_resume(store, ana.id, one).document for one in ids[:-1]]
    entries = stored_resumes.list_page(store, ana.id)
    accounts.delete_account(store, "ana", with_resumes=True)

    back = take(store, path)

    assert (back.name, back.plan, back.created_at) == (ana.name, ana.plan, ana.created_at)
    assert (back.resume_count, back.last_id_us) == (4, ana.last_id_us)
    assert back.id != ana.id
    assert stored_resumes.list_page(store, back.id) == entries
    assert [
        stored_resumes.get_resume(store, back.id, one).document for one in ids[:-1]
    ] == documents
    assert api_keys.authenticate(store, new.secret).account_id == back.id
    assert import_history.get_file(store, "9" * 24, account_id=back.id).reason == "invalid_json"
    assert accounts.list_wrong(store) == []


def test_an_account_keeps_what_its_plan_here_does_not_allow(
    store: Store, an_account: MakeAccount, path: Path
) -> None:
    an_exported_account(store, an_account, 7, path)
    back = take(store, path, name="again", plan="free")
    assert (back.resume_count, back.is_over) == (7, True)


def test_a_name_that_is_taken_or_none_is_refused(
    store: Store, ana: AccountInfo, path: Path
) -> None:
    exported(store, path)
    with pytest.raises(Conflict, match="--name"):
        take(store, path)
    with pytest.raises(InvalidArgument):
        take(store, path, name="Ana~import")


def test_former_names_are_neither_taken_nor_brought(
    store: Store, ana: AccountInfo, path: Path
) -> None:
    exported(store, path)
    accounts.rename_account(store, "ana", "bea")
    with pytest.raises(Conflict, match=r'former name of the account "bea".*: choose another name'):
        take(store, path, name="ana")
    assert take(store, path, name="cleo").former_names == ""
    owner = accounts.find_owner(store, "ana")
    assert owner is not None
    assert owner.id == ana.id


def test_a_plan_that_is_not_here_is_refused_and_another_can_be_chosen(
    store: Store, ana: AccountInfo, path: Path
) -> None:
    plan = "UPDATE plans SET name = 'platinum'", "UPDATE accounts SET plan = 'platinum'"
    tamper(exported(store, path), *plan)
    with pytest.raises(NotFound, match=r"platinum.*free, pro, business"):
        take(store, path, name="again")
    assert take(store, path, name="again", plan="free").plan == "free"


def test_a_key_that_counts_here_is_refused_and_nothing_stays(
    store: Store, ana: AccountInfo, path: Path, tmp_path: Path
) -> None:
    new = api_keys.create_key(store, "ana")
    exported(store, path, with_keys=True)
    same_id = exported(store, tmp_path / "same-id", with_keys=True)
    tamper(same_id, "UPDATE key_directory SET key_hash = :hash", hash=b"z" * 32)
    for file in (path, same_id):
        with pytest.raises(Conflict, match="--with-keys"):
            take(store, file, name="again")
        assert names(store) == ["ana"]
    api_keys.revoke_key(store, new.id)
    assert take(store, same_id, name="again").name == "again"


@pytest.mark.slow
def test_resumes_can_be_created_after_the_latest_id_that_a_file_can_have(
    store: Store, ana: AccountInfo, clock: SteppingClock, path: Path
) -> None:
    exported(store, path)
    last_id = "UPDATE account_usage SET last_id_us = :us"
    latest_us = clock() + YEAR_US
    tamper(path, last_id, us=latest_us + 1)
    with pytest.raises(StoreIncompatible, match=f"{latest_us + 1:,}, more than a year after"):
        take(store, path, name="later")
    back = take(store, tamper(path, last_id, us=latest_us), name="latest")
    first, second = import_resumes(store, back, 2)
    assert identifiers.resume_id(latest_us, "f" * 8) < first < second
    assert accounts.get_account(store, "latest").last_resume_at is not None
    exported(store, path, "latest")
    clock.advance(1)
    accounts.delete_account(store, "latest", with_resumes=True)
    assert take(store, path).resume_count == 2


# Cut off, or met by others


def test_while_it_arrives_nobody_sees_it_nothing_enters_it_and_others_write(
    store: Store, an_account: MakeAccount, path: Path
) -> None:
    an_exported_account(store, an_account, 3, path)
    (ana,) = accounts.list_accounts(store)

    def look(rows: int) -> None:
        assert [one.name for one in accounts.list_accounts(store)] == ["ana"]
        (arriving,) = [
            one for one in accounts.list_accounts(store, include_closed=True) if one.is_arriving
        ]
        with pytest.raises(NotFound):
            creation.create(store, arriving.id, [a_resume()])
        creation.create(store, ana.id, [a_resume(f"During {rows}")])

    take(store, path, name="again", on_progress=at_slices(look), slice_rows=2)
    assert len(ids_of(store, "ana")) > len(ids_of(store, "again")) == 3


class Killed(BaseException):
    """Ends an import as the end of its process does: nothing after it runs."""


@pytest.mark.slow
def test_an_import_that_was_killed_anywhere_is_begun_anew_and_doubles_nothing(
    store: Store, ana: AccountInfo, path: Path
) -> None:
    ids = import_resumes(store, ana, 2)
    key = api_keys.create_key(store, "ana")
    exported(store, path, with_keys=True)
    accounts.delete_account(store, "ana", with_resumes=True)
    steps = 0
    while True:
        left = [steps]

        def step(_: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        try:
            back = take(store, path, on_progress=at_slices(step), slice_rows=2)
        except Killed:
            assert names(store) == ["ana~import"]
            steps += 1
        else:
            break
    assert steps > 5
    assert names(store) == ["ana"]
    assert back.resume_count == 2
    assert ids_of(store, "ana") == ids
    assert api_keys.authenticate(store, key.secret).account_id == back.id


def test_a_file_that_changes_while_it_is_imported_is_imported_as_it_was(
    store: Store, an_account: MakeAccount, path: Path
) -> None:
    an_exported_account(store, an_account, 2, path)
    lose = at_slices(lambda rows: path.write_bytes(b"other"))
    assert take(store, path, name="again", on_progress=lose, slice_rows=2).resume_count == 2
    assert ids_of(store, "again") == ids_of(store, "ana")


def test_an_account_that_changed_on_its_way_is_not_opened(
    store: Store, an_account: MakeAccount, path: Path
) -> None:
    an_exported_account(store, an_account, 3, path)
    change = text("UPDATE resumes SET title = 'Other' WHERE account_id = :id")

    def meddle(rows: int) -> None:
        (arriving,) = [
            one.id for one in accounts.list_accounts(store, include_closed=True) if one.is_arriving
        ]
        store.write(lambda connection: connection.execute(change, {"id": arriving}))

    with pytest.raises(Conflict, match="was changed during the import"):
        take(store, path, name="again", on_progress=at_slices(meddle))
    assert names(store) == ["ana"]


@pytest.mark.slow
@pytest.mark.parametrize("is_at_the_end", [False, True])
def test_nothing_more_of_an_account_arrives_once_somebody_has_begun_to_delete_it(
    store: Store, an_account: MakeAccount, clock: SteppingClock, path: Path, is_at_the_end: bool
) -> None:
    an_exported_account(store, an_account, 6, path)
    stored: list[int] = []
    begins_at = 6 * 4 + 1 if is_at_the_end else 2  # in four tables, and the file

    def begin_to_delete(rows: int) -> None:
        stored.append(rows)
        if rows == begins_at:
            clock.advance(1)
            name = "again~import"
            accounts.delete_account(
                store, name, with_resumes=True, should_continue=lambda gone: False
            )

    with pytest.raises(Conflict, match=r"deleted during the import|changed during the import"):
        take(store, path, name="again", on_progress=at_slices(begin_to_delete), slice_rows=2)
    assert stored[-1] == begins_at
    assert names(store) == ["ana"]


def test_an_account_that_has_arrived_is_not_taken_for_what_was_left_of_it(
    store: Store, ana: AccountInfo
) -> None:
    with pytest.raises(NotFound):
        accounts.delete_account(store, "ana~import", account_id=ana.id, with_resumes=True)
    assert not accounts.get_account(store, "ana").is_closed


@pytest.mark.sqlite("a server's disk is not known")
def test_without_room_for_it_nothing_is_stored(
    store: Store, an_account: MakeAccount, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    an_exported_account(store, an_account, 5, path)
    before = held_by(store)
    needed = 3 * path.stat().st_size + MIN_FREE_BYTES
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=needed - 1))
    with pytest.raises(StoreUnavailable, match=r"MB of free space, .* MB is needed"):
        take(store, path, name="again")
    assert held_by(store) == before
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=needed))
    assert take(store, path, name="again").resume_count == 5
