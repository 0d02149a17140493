"""An account on its way in."""

import io
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from resumes.errors import (
    Conflict,
    InvalidArgument,
    InvalidJson,
    InvalidKey,
    NotFound,
    StoreUnavailable,
)
from resumes.store import (
    Store,
    account_room,
    account_rows,
    accounts,
    counters,
    creating,
    identifiers,
    keys,
    ledger,
    listing,
    open_store,
    search_filler,
    search_index,
)
from resumes.store.account_file import Header, Kind, Row, Writer
from resumes.store.account_import import import_account
from resumes.store.accounts import AccountInfo
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import a_file
from tests.resumes.store.conftest import SteppingClock
from tests.resumes.store.exports import HEADER, NOW, a_row, an_export, exported, fill

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def take(store: Store, export: bytes, **options: Any) -> AccountInfo:
    return import_account(store, io.BytesIO(export), **options).account


def names(store: Store) -> list[str]:
    return [account.name for account in accounts.list_accounts(store, closed_too=True)]


def test_an_account_comes_back_as_it_was(store: Store, an_account: MakeAccount) -> None:
    ana = an_account()
    ids = fill(store, ana, 5)
    listing.delete_resume(store, ana.id, ids[-1])
    a_file(store, ana, "9" * 24)
    new = keys.create_key(store, "ana")
    ana = accounts.get_account(store, "ana")
    export = exported(store, with_keys=True)
    documents = [listing.get_resume(store, ana.id, one).document for one in ids[:-1]]
    entries = listing.list_page(store, ana.id)
    accounts.delete_account(store, "ana", with_resumes=True)

    back = take(store, export)

    assert (back.name, back.plan, back.created_at) == (ana.name, ana.plan, ana.created_at)
    assert (back.resume_count, back.last_id_us) == (4, ana.last_id_us)
    assert back.id != ana.id
    assert listing.list_page(store, back.id) == entries
    assert [listing.get_resume(store, back.id, one).document for one in ids[:-1]] == documents
    assert keys.authenticate(store, new.secret)[0].account_id == back.id
    assert ledger.get_file(store, "9" * 24, account_id=back.id).reason == "invalid_json"
    assert counters.list_wrong(store) == []


def test_an_account_goes_from_one_engine_to_another(
    store: Store, an_account: MakeAccount, tmp_path: Path
) -> None:
    fill(store, an_account(), 3)
    export = exported(store)
    with open_store(f"sqlite:///{tmp_path / 'other.db'}") as other:
        take(other, export)
        back = exported(other)
        take(store, back, name="again")
    first, *rest = exported(store, "again").splitlines()
    assert rest[:-1] == export.splitlines()[1:-1]
    assert b'"account":"again"' in first


def test_what_was_imported_once_is_known_after_the_move(
    store: Store, an_account: MakeAccount
) -> None:
    fill(store, an_account(), 2)
    back = take(store, exported(store), name="again")
    again = [a_resume("Ada 1", item=1, with_digest=True)]
    (same_claim,) = creating.create(store, back.id, again, claim=a_claim())
    (same_content,) = creating.create(store, back.id, again, claim=a_claim("7" * 24))
    assert isinstance(same_claim, creating.Created)
    assert same_claim.replayed
    assert isinstance(same_content, creating.Duplicate)
    assert accounts.get_account(store, "again").resume_count == 2


def test_new_resumes_come_after_those_that_were_there(
    store: Store, an_account: MakeAccount
) -> None:
    ids = fill(store, an_account(), 3)
    back = take(store, exported(store), name="again")
    (new,) = fill(store, back, 4)[-1:]
    assert new > ids[-1]


def test_an_imported_account_is_searched_like_others(store: Store, an_account: MakeAccount) -> None:
    fill(store, an_account(), 3)
    back = take(store, exported(store), name="again")
    search_filler.fill(store)
    with store.read() as connection:
        progress = search_index.find_progress(connection, back.id)
    assert progress is not None
    assert progress.last_seq == 3


def test_a_file_that_was_cut_off_stores_nothing(store: Store, an_account: MakeAccount) -> None:
    fill(store, an_account(), 3)
    export = exported(store)
    with pytest.raises(InvalidJson):
        take(store, export[:-20], name="again")
    assert names(store) == ["ana"]


def test_a_name_that_is_taken_is_refused(store: Store, an_account: MakeAccount) -> None:
    an_account()
    export = exported(store)
    with pytest.raises(Conflict, match="--name"):
        take(store, export)
    with pytest.raises(InvalidArgument):
        take(store, export, name="Ana~import")


def test_a_plan_that_is_not_here_is_refused_and_another_can_be_chosen(
    store: Store, an_account: MakeAccount
) -> None:
    an_account()
    export = exported(store).replace(b"business", b"platinum")
    export = resealed(export)
    with pytest.raises(NotFound, match=r"platinum.*business, free, pro"):
        take(store, export, name="again")
    assert take(store, export, name="again", plan="free").plan == "free"


def resealed(export: bytes) -> bytes:
    """The export with the last line that its others ask for."""
    reader_header, *_ = export.splitlines(keepends=True)
    writer = Writer()
    writer._sha256.update(reader_header)
    return reader_header + writer.end()


def test_an_account_keeps_what_its_plan_here_does_not_allow(
    store: Store, an_account: MakeAccount
) -> None:
    fill(store, an_account(), 7)
    back = take(store, exported(store), name="again", plan="free")
    assert (back.resume_count, back.is_over) == (7, True)


def test_a_key_that_counts_here_is_refused_before_anything_is_stored(
    store: Store, an_account: MakeAccount
) -> None:
    an_account()
    keys.create_key(store, "ana")
    export = exported(store, with_keys=True)
    with pytest.raises(Conflict, match="--with-keys"):
        take(store, export, name="again")
    assert names(store) == ["ana"]


def test_a_key_that_was_revoked_and_came_back_can_be_rotated_and_revoked(
    store: Store, an_account: MakeAccount
) -> None:
    an_account()
    new = keys.create_key(store, "ana")
    export = exported(store, with_keys=True)
    keys.revoke_key(store, new.id)

    bo = take(store, export, name="bo")

    assert keys.authenticate(store, new.secret)[0].account_id == bo.id
    assert keys.get_key(store, new.id).account == "bo"
    next_one = keys.rotate_key(store, new.id)
    assert keys.authenticate(store, next_one.secret)[0].account_id == bo.id
    keys.revoke_key(store, new.id)
    with pytest.raises(InvalidKey):
        keys.authenticate(store, new.secret)


def test_while_it_arrives_nobody_sees_the_account_and_nothing_enters_it(
    store: Store, an_account: MakeAccount
) -> None:
    fill(store, an_account(), 3)
    export = exported(store)
    seen: list[Any] = []

    def look(step: str, rows: int) -> None:
        if step == "stored" and not seen:
            seen.append([one.name for one in accounts.list_accounts(store)])
            (arriving,) = [
                one for one in accounts.list_accounts(store, closed_too=True) if one.is_arriving
            ]
            with pytest.raises(NotFound):
                creating.create(store, arriving.id, [a_resume()])

    take(store, export, name="again", told=look)
    assert seen == [["ana"]]


class Killed(BaseException):
    """Ends an import as the end of its process does: nothing after it runs."""


def test_an_import_that_was_killed_anywhere_is_begun_anew_and_doubles_nothing(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_rows, "SLICE_ROWS", 2)
    fill(store, an_account(), 5)
    keys.create_key(store, "ana")
    export = exported(store, with_keys=True)
    accounts.delete_account(store, "ana", with_resumes=True)
    steps = 0
    while True:
        left = [steps]

        def told(step: str, rows: int, left: list[int] = left) -> None:
            if step == "stored":
                left[0] -= 1
                if left[0] < 0:
                    raise Killed

        try:
            back = take(store, export, told=told)
        except Killed:
            assert names(store) == ["ana~import"]
            steps += 1
        else:
            break
    assert steps > 5
    assert names(store) == ["ana"]
    assert back.resume_count == 5
    assert exported(store, with_keys=True).splitlines()[1:][:-1] == export.splitlines()[1:-1]


def test_an_import_whose_store_goes_away_leaves_nothing_that_the_next_one_does_not_remove(
    store: Store, an_account: MakeAccount, url: str
) -> None:
    fill(store, an_account(), 2)
    export = exported(store)

    def cut(step: str, rows: int) -> None:
        if step == "stored":
            store.lane.close()

    with pytest.raises(StoreUnavailable):
        take(store, export, name="again", told=cut)
    with open_store(url) as other:
        assert take(other, export, name="again").resume_count == 2
        assert names(other) == ["again", "ana"]


def test_a_file_that_changes_while_it_is_imported_is_refused_and_leaves_nothing(
    store: Store, an_account: MakeAccount
) -> None:
    fill(store, an_account(), 2)
    export = exported(store)
    file = io.BytesIO(export)

    def change(step: str, rows: int) -> None:
        if step == "checked" and rows == export.count(b"\n") - 2:
            writer = Writer()
            header = Header("ana", "free", "2027", "2027", 1, 0)
            file.seek(0)
            file.truncate()
            file.write(writer.header(header) + writer.end())

    with pytest.raises(InvalidJson):
        import_account(store, file, name="again", told=change)
    assert names(store) == ["ana"]


@pytest.mark.parametrize("resume_id", ["x" * 24, "f" * 24])
def test_an_id_that_no_store_gave_is_refused(store: Store, resume_id: str) -> None:
    with pytest.raises(InvalidJson, match="line 2"):
        take(store, b"".join(an_export(a_row(resume_id))), plan="free")
    assert names(store) == []


def a_key(number: int, *, key_hash: bytes | None = None) -> Row:
    return Row(
        Kind.KEY,
        {
            "id": f"key_{number:012x}", "name": "", "masked": "enh_live_abc…", "created_at": NOW,
            "shown_at": None, "last_used_at": None, "expires_at": None, "revoked_at": None,
            "key_hash": key_hash or bytes([number]) * 32,
        },
    )  # fmt: skip


def test_one_key_under_two_ids_is_refused(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_rows, "SLICE_ROWS", 2)
    export = an_export(a_key(1), a_key(2), a_key(3, key_hash=bytes([1]) * 32))
    with pytest.raises(InvalidJson, match="key_000000000003 under another id"):
        take(store, b"".join(export))
    assert names(store) == []


def test_a_key_with_the_id_of_one_that_counts_here_is_refused(
    store: Store, an_account: MakeAccount
) -> None:
    an_account("bo")
    new = keys.create_key(store, "bo")
    export = an_export(a_key(int(new.id.removeprefix("key_"), 16), key_hash=b"z" * 32))
    with pytest.raises(Conflict, match="--with-keys"):
        take(store, b"".join(export), name="again")
    keys.revoke_key(store, new.id)
    assert take(store, b"".join(export), name="again").name == "again"


def test_resumes_can_be_created_after_the_latest_id_that_a_file_can_have(
    store: Store, clock: SteppingClock
) -> None:
    header = replace(HEADER, last_id_us=identifiers.LATEST_US)
    writer = Writer()
    back = take(store, writer.header(header) + writer.end())
    first, second = creating.create(store, back.id, [a_resume("Ada"), a_resume("Bo")])
    assert isinstance(first, creating.Created)
    assert isinstance(second, creating.Created)
    assert identifiers.resume_id(identifiers.LATEST_US, "f" * 8) < first.id < second.id
    assert accounts.get_account(store, "ana").last_resume_at is not None


@pytest.mark.sqlite("a server's disk is not known")
def test_without_room_for_it_nothing_is_stored(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, an_account(), 3)
    export = exported(store)
    free = [2 * len(export) + account_room.LEAST_BYTES - 1]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(free[0]))
    with pytest.raises(StoreUnavailable, match=r"MB of free space, .* MB are needed"):
        take(store, export, name="again")
    assert names(store) == ["ana"]
    free[0] += 1
    assert take(store, export, name="again").resume_count == 3


class Disk(NamedTuple):
    free: int


@pytest.mark.sqlite("a server's disk is not known")
def test_a_disk_that_others_fill_meanwhile_ends_the_import_and_nothing_stays(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_rows, "SLICE_ROWS", 2)
    fill(store, an_account(), 5)
    export = exported(store)
    free = [10**9]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(free[0]))

    def others(step: str, rows: int) -> None:
        if step == "stored" and rows == 4:
            free[0] = account_room.LEAST_BYTES

    with pytest.raises(StoreUnavailable, match="of free space"):
        take(store, export, name="again", told=others)
    assert names(store) == ["ana"]


def test_what_stays_of_an_import_that_failed_is_told_with_how_to_go_on(
    store: Store, an_account: MakeAccount, url: str
) -> None:
    fill(store, an_account(), 2)
    export = exported(store)

    def cut(step: str, rows: int) -> None:
        if step == "stored":
            store.lane.close()

    with pytest.raises(StoreUnavailable) as failure:
        take(store, export, name="again", told=cut)
    assert "import it again" in failure.value.message
    assert "`resumes accounts delete again~import --with-resumes --yes`" in failure.value.message
    with open_store(url) as other:
        accounts.delete_account(other, "again~import", with_resumes=True)
        assert names(other) == ["ana"]


def test_an_account_that_somebody_else_has_begun_to_delete_does_not_arrive(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    fill(store, an_account(), 3)
    export = exported(store)
    accounts.delete_account(store, "ana", with_resumes=True)

    def begin_to_delete(step: str, rows: int) -> None:
        if step == "stored" and names(store) == ["ana~import"]:
            clock.advance(1)
            arriving = accounts.get_account(store, "ana~import", closed_too=True)
            # As far as another import of the same name gets before this one goes on.
            closing = accounts._Closing(arriving.id, "ana~import", True, "2027-01-15T08:00:01.000Z")
            store.write(accounts._close, closing)

    with pytest.raises(Conflict, match="deleted while it was imported"):
        take(store, export, told=begin_to_delete)
    assert names(store) == []


def test_nothing_more_of_an_account_arrives_once_somebody_has_begun_to_delete_it(
    store: Store, an_account: MakeAccount, clock: SteppingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_rows, "SLICE_ROWS", 2)
    fill(store, an_account(), 6)
    export = exported(store)
    stored: list[int] = []

    def begin_to_delete(step: str, rows: int) -> None:
        if step == "stored":
            clock.advance(1)
            stored.append(rows)
            name = "again~import"
            accounts.delete_account(store, name, with_resumes=True, goes_on=lambda gone: False)

    with pytest.raises(Conflict, match="deleted while it was imported"):
        take(store, export, name="again", told=begin_to_delete)
    assert stored == [2]
    assert names(store) == ["ana"]


def test_an_import_that_another_has_replaced_leaves_the_other_alone(
    store: Store, an_account: MakeAccount, clock: SteppingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_rows, "SLICE_ROWS", 2)
    fill(store, an_account(), 6)
    export = exported(store)
    has_begun, go_on = threading.Event(), threading.Event()

    def wait(step: str, rows: int) -> None:
        if (step, rows) == ("stored", 2):
            has_begun.set()
            assert go_on.wait(30)

    with ThreadPoolExecutor(1) as pool:
        others: list[Future[AccountInfo]] = []

        def be_replaced(step: str, rows: int) -> None:
            if (step, rows) == ("stored", 2):
                clock.advance(1)
                others.append(pool.submit(take, store, export, name="again", told=wait))
                assert has_begun.wait(30)

        with pytest.raises(Conflict, match="deleted while it was imported"):
            take(store, export, name="again", told=be_replaced)
        go_on.set()
        assert others[0].result().resume_count == 6
    assert names(store) == ["again", "ana"]
    assert counters.list_wrong(store) == []


def test_an_account_that_has_arrived_is_not_taken_for_what_was_left_of_it(
    store: Store, an_account: MakeAccount
) -> None:
    ana = an_account()
    late = accounts._Closing(ana.id, "ana~import", True, "2027-01-15T08:00:01.000Z")

    with pytest.raises(NotFound):
        store.write(accounts._close, late)

    assert not accounts.get_account(store, "ana").is_closed


def test_a_content_that_counts_as_stored_has_to_be(store: Store) -> None:
    digest = Row(Kind.DIGEST, {"digest": bytes(32), "resume_id": "0" * 23 + "2"})

    with pytest.raises(InvalidJson, match=f"digest of the resume {'0' * 23}2, and not the resume"):
        take(store, b"".join(an_export(a_row(), digest)))

    assert names(store) == []
