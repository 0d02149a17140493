"""An account on its way in."""

import io
import json
import shutil
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text

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
    accounts,
    api_keys,
    creation,
    identifiers,
    import_history,
    open_store,
    stored_resumes,
)
from resumes.store.account_archive.archive import (
    MAX_LOG_BYTES,
    MIN_ROOM_BYTES,
    SLICE_BYTES,
    check_room,
    import_account,
    iter_slices,
)
from resumes.store.account_archive.file_format import ArchiveRow, RowKind
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import MAX_ITEMS_CHARS, MAX_LEDGER_CHARS, SOURCE_BYTES
from resumes.store.row_bounds import YEAR_US
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_claim, a_resume
from tests.support.store.builders import (
    HEADER,
    NOW,
    MakeAccount,
    a_file,
    a_row,
    an_export,
    exported,
    import_resumes,
    index_all,
)

pytestmark = pytest.mark.engines


def take(store: Store, export: bytes, **options: Any) -> AccountInfo:
    return import_account(store, io.BytesIO(export), **options)[0]


def names(store: Store) -> list[str]:
    return [account.name for account in accounts.list_accounts(store, closed_too=True)]


def an_exported_account(store: Store, an_account: MakeAccount, count: int) -> bytes:
    """The export of the account `ana`, which holds so many resumes."""
    import_resumes(store, an_account("ana"), count)
    return exported(store)


def test_an_account_comes_back_as_it_was(store: Store, ana: AccountInfo) -> None:
    ids = import_resumes(store, ana, 5)
    stored_resumes.delete_resume(store, ana.id, ids[-1])
    a_file(store, ana, "9" * 24)
    new = api_keys.create_key(store, "ana")
    ana = accounts.get_account(store, "ana")
    export = exported(store, with_keys=True)
    documents = [stored_resumes.get_resume(store, ana.id, one).document for one in ids[:-1]]
    entries = stored_resumes.list_page(store, ana.id)
    accounts.delete_account(store, "ana", with_resumes=True)

    back = take(store, export)

    assert (back.name, back.plan, back.created_at) == (ana.name, ana.plan, ana.created_at)
    assert (back.resume_count, back.last_id_us) == (4, ana.last_id_us)
    assert back.id != ana.id
    assert stored_resumes.list_page(store, back.id) == entries
    assert [
        stored_resumes.get_resume(store, back.id, one).document for one in ids[:-1]
    ] == documents
    assert api_keys.authenticate(store, new.secret)[0].account_id == back.id
    assert import_history.get_file(store, "9" * 24, account_id=back.id).reason == "invalid_json"
    assert accounts.list_wrong(store) == []


def test_an_account_goes_from_one_engine_to_another(
    store: Store, an_account: MakeAccount, tmp_path: Path
) -> None:
    export = an_exported_account(store, an_account, 3)
    with open_store(f"sqlite:///{tmp_path / 'other.db'}") as other:
        take(other, export)
        back = exported(other)
        take(store, back, name="again")
    first, *rest = exported(store, "again").splitlines()
    assert rest[:-1] == export.splitlines()[1:-1]
    assert b'"account":"again"' in first


def test_what_was_imported_once_is_known_after_the_move_and_the_rest_comes_after_it(
    store: Store, ana: AccountInfo
) -> None:
    ids = import_resumes(store, ana, 3)
    back = take(store, exported(store), name="again", plan="free")
    again = [a_resume("Ada 2", item=2, with_digest=True)]
    (same_claim,) = creation.create(store, back.id, again, claim=a_claim())
    (same_content,) = creation.create(store, back.id, again, claim=a_claim("7" * 24))
    assert same_claim == creation.Created(ids[1], replayed=True)
    assert same_content == creation.Duplicate(ids[1])
    (new,) = import_resumes(store, back, 4)[-1:]
    assert new > ids[-1]
    index_all(store)
    with store.read() as connection:
        last_seq = text("SELECT last_seq FROM search_progress WHERE account_id = :id")
        assert connection.execute(last_seq, {"id": back.id}).scalar_one() == 4


def test_an_account_keeps_what_its_plan_here_does_not_allow(
    store: Store, an_account: MakeAccount
) -> None:
    export = an_exported_account(store, an_account, 7)
    back = take(store, export, name="again", plan="free")
    assert (back.resume_count, back.is_over) == (7, True)


def test_a_name_that_is_taken_or_none_is_refused(store: Store, ana: AccountInfo) -> None:
    export = exported(store)
    with pytest.raises(Conflict, match="--name"):
        take(store, export)
    with pytest.raises(InvalidArgument):
        take(store, export, name="Ana~import")


def test_a_plan_that_is_not_here_is_refused_and_another_can_be_chosen(store: Store) -> None:
    export = an_export(header=HEADER.model_copy(update={"plan": "platinum"}))
    with pytest.raises(NotFound, match=r"platinum.*free, pro, business"):
        take(store, export)
    assert take(store, export, plan="free").plan == "free"


def a_key(number: int, *, key_hash: bytes | None = None) -> ArchiveRow:
    values = {
        "id": f"key_{number:012x}", "name": "", "masked": "enh_live_abc…", "created_at": NOW,
        "shown_at": None, "last_used_at": None, "expires_at": None, "revoked_at": None,
        "replaced_by": None,
        "key_hash": key_hash or bytes([number]) * 32,
    }  # fmt: skip
    return ArchiveRow(RowKind.KEY, values)


DIGEST = ArchiveRow(RowKind.DIGEST, {"digest": bytes(32), "resume_id": "0" * 23 + "2"})


@pytest.mark.parametrize(
    ("export", "why"),
    [
        (an_export(a_row())[:-20], "Not a complete account export"),
        (an_export(a_row("x" * 24)), "line 2"),
        (an_export(a_row("f" * 24)), "line 2"),
        (an_export(a_row(), DIGEST), f"digest of the resume {'0' * 23}2, but not the resume"),
        (
            an_export(a_key(1), a_key(2), a_key(3, key_hash=bytes([1]) * 32)),
            "key_000000000003 under another ID",
        ),
    ],
)
def test_a_file_that_contradicts_itself_stores_nothing(
    store: Store, export: bytes, why: str
) -> None:
    with pytest.raises(InvalidJson, match=why):
        take(store, export, slice_rows=2)
    assert names(store) == []


def test_a_key_that_counts_here_is_refused_before_anything_is_stored(
    store: Store, ana: AccountInfo
) -> None:
    new = api_keys.create_key(store, "ana")
    same_id = an_export(a_key(int(new.id.removeprefix("key_"), 16), key_hash=b"z" * 32))
    for export in (exported(store, with_keys=True), same_id):
        with pytest.raises(Conflict, match="--with-keys"):
            take(store, export, name="again")
        assert names(store) == ["ana"]
    api_keys.revoke_key(store, new.id)
    assert take(store, same_id, name="again").name == "again"


def test_a_key_that_was_revoked_and_came_back_can_be_rotated_and_revoked(
    store: Store, ana: AccountInfo
) -> None:
    new = api_keys.create_key(store, "ana")
    export = exported(store, with_keys=True)
    api_keys.revoke_key(store, new.id)

    bo = take(store, export, name="bo")

    assert api_keys.authenticate(store, new.secret)[0].account_id == bo.id
    assert api_keys.get_key(store, new.id).account == "bo"
    next_one = api_keys.rotate_key(store, new.id)
    assert api_keys.authenticate(store, next_one.secret)[0].account_id == bo.id
    api_keys.revoke_key(store, new.id)
    with pytest.raises(InvalidKey):
        api_keys.authenticate(store, new.secret)


def test_resumes_can_be_created_after_the_latest_id_that_a_file_can_have(
    store: Store, clock: SteppingClock
) -> None:
    latest_us = clock() + YEAR_US
    later, latest = (
        an_export(header=HEADER.model_copy(update={"last_id_us": last_id_us}))
        for last_id_us in (latest_us + 1, latest_us)
    )
    with pytest.raises(InvalidJson, match=f'"lastIdUs" is {latest_us + 1:,}, more than a year'):
        take(store, later)
    back = take(store, latest)
    first, second = import_resumes(store, back, 2)
    assert identifiers.resume_id(latest_us, "f" * 8) < first < second
    assert accounts.get_account(store, "ana").last_resume_at is not None
    clock.advance(1)
    accounts.delete_account(store, "ana", with_resumes=True)


def a_file_row(**values: Any) -> ArchiveRow:
    row: dict[str, Any] = {
        "claim_id": "1" * 24, "name": "ana/a.json", "outcome": "failed", "reason": "invalid_json",
        "message": "m", "path": "p", "byte_offset": 0, "size_bytes": 1, "claimed_at": NOW,
        "finished_at": NOW, "resume_id": None, "source": b"{", "root": "/srv", "items": None,
    }  # fmt: skip
    return ArchiveRow(RowKind.FILE, row | values)


ITEMS = json.dumps(
    {"total": 1, "done": 0, "duplicate": 0, "held": 0, "failed": 1, "problems": [
        {"item": 1, "place": "x" * MAX_ITEMS_CHARS, "outcome": "failed"}
    ]}
)  # fmt: skip


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((name, "x" * (MAX_LEDGER_CHARS + 1)) for name in ("name", "message", "path", "root")),
        ("items", ITEMS),
        ("items", ITEMS.replace("x" * MAX_ITEMS_CHARS, "").replace(
            '"problems": [', '"problems": [' + '{"item": 1, "place": "", "outcome": "failed"},' * 50
        )),
        ("source", bytes(SOURCE_BYTES + 1)),
    ],
)  # fmt: skip
def test_a_file_of_the_ledger_is_no_larger_than_an_importer_makes_it(
    store: Store, column: str, value: Any
) -> None:
    with pytest.raises(InvalidJson, match=f'"{column}" is .*line 2'):
        take(store, an_export(a_file_row(**{column: value})))
    most = a_file_row(**dict.fromkeys(("name", "message", "root"), "x" * MAX_LEDGER_CHARS))
    assert take(store, an_export(most)).name == "ana"


# Cut off, or met by others


def test_while_it_arrives_nobody_sees_the_account_and_nothing_enters_it(
    store: Store, an_account: MakeAccount
) -> None:
    export = an_exported_account(store, an_account, 3)
    seen: list[Any] = []

    def look(step: str, rows: int) -> None:
        if step == "stored" and not seen:
            seen.append([one.name for one in accounts.list_accounts(store)])
            (arriving,) = [
                one for one in accounts.list_accounts(store, closed_too=True) if one.is_arriving
            ]
            with pytest.raises(NotFound):
                creation.create(store, arriving.id, [a_resume()])

    take(store, export, name="again", on_progress=look)
    assert seen == [["ana"]]


class Killed(BaseException):
    """Ends an import as the end of its process does: nothing after it runs."""


def test_an_import_that_was_killed_anywhere_is_begun_anew_and_doubles_nothing(
    store: Store, ana: AccountInfo
) -> None:
    import_resumes(store, ana, 5)
    api_keys.create_key(store, "ana")
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
            back = take(store, export, on_progress=told, slice_rows=2)
        except Killed:
            assert names(store) == ["ana~import"]
            steps += 1
        else:
            break
    assert steps > 5
    assert names(store) == ["ana"]
    assert back.resume_count == 5
    assert exported(store, with_keys=True).splitlines()[1:][:-1] == export.splitlines()[1:-1]


def test_a_key_of_an_import_that_was_killed_is_said_to_be_of_that(
    store: Store, ana: AccountInfo
) -> None:
    new = api_keys.create_key(store, "ana")
    export = exported(store, with_keys=True)
    accounts.delete_account(store, "ana")

    def told(step: str, rows: int) -> None:
        if step == "stored":
            raise Killed

    with pytest.raises(Killed):
        take(store, export, on_progress=told)
    with pytest.raises(Conflict, match=f"{new.id} .* `resumes accounts delete ana~import --with"):
        take(store, export, name="bo")
    accounts.delete_account(store, "ana~import", with_resumes=True)
    assert take(store, export, name="bo").name == "bo"


@pytest.mark.parametrize("is_begun_anew", [False, True])
def test_what_stays_of_an_import_whose_store_went_away_is_told_with_how_to_go_on(
    store: Store, an_account: MakeAccount, url: str, is_begun_anew: bool
) -> None:
    export = an_exported_account(store, an_account, 2)

    def cut(step: str, rows: int) -> None:
        if step == "stored":
            store.write_queue.close()

    with pytest.raises(StoreUnavailable) as failure:
        take(store, export, name="again", on_progress=cut)
    assert "import the account again" in failure.value.message
    assert "`resumes accounts delete again~import --with-resumes --yes`" in failure.value.message
    with open_store(url) as other:
        if is_begun_anew:
            assert take(other, export, name="again").resume_count == 2
        else:
            accounts.delete_account(other, "again~import", with_resumes=True)
        assert names(other) == ["again", "ana"][not is_begun_anew :]


def test_a_file_that_changes_while_it_is_imported_is_refused_and_leaves_nothing(
    store: Store, an_account: MakeAccount
) -> None:
    export = an_exported_account(store, an_account, 2)
    file = io.BytesIO(export)

    def change(step: str, rows: int) -> None:
        if step == "checked" and rows == export.count(b"\n") - 2:
            file.seek(0)
            file.truncate()
            file.write(an_export(header=HEADER.model_copy(update={"plan": "free", "resumes": 0})))

    with pytest.raises(InvalidJson):
        import_account(store, file, name="again", on_progress=change)
    assert names(store) == ["ana"]


@pytest.mark.parametrize("is_at_the_end", [False, True])
def test_nothing_more_of_an_account_arrives_once_somebody_has_begun_to_delete_it(
    store: Store, an_account: MakeAccount, clock: SteppingClock, is_at_the_end: bool
) -> None:
    export = an_exported_account(store, an_account, 6)
    stored: list[int] = []
    begins_at = export.count(b"\n") - 2 if is_at_the_end else 2

    def begin_to_delete(step: str, rows: int) -> None:
        if step == "stored":
            stored.append(rows)
        if (step, rows) == ("stored", begins_at):
            clock.advance(1)
            name = "again~import"
            accounts.delete_account(store, name, with_resumes=True, goes_on=lambda gone: False)

    with pytest.raises(Conflict, match="deleted during the import"):
        take(store, export, name="again", on_progress=begin_to_delete, slice_rows=2)
    assert stored[-1] == begins_at
    assert names(store) == ["ana"]


def test_an_import_that_another_has_replaced_leaves_the_other_alone(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    export = an_exported_account(store, an_account, 6)
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
                other = pool.submit(
                    take, store, export, name="again", on_progress=wait, slice_rows=2
                )
                others.append(other)
                assert has_begun.wait(30)

        with pytest.raises(Conflict, match="deleted during the import"):
            take(store, export, name="again", on_progress=be_replaced, slice_rows=2)
        go_on.set()
        assert others[0].result().resume_count == 6
    assert names(store) == ["again", "ana"]
    assert accounts.list_wrong(store) == []


def test_an_account_that_has_arrived_is_not_taken_for_what_was_left_of_it(
    store: Store, ana: AccountInfo
) -> None:
    with pytest.raises(NotFound):
        accounts.delete_account(store, "ana~import", account_id=ana.id, with_resumes=True)
    assert not accounts.get_account(store, "ana").is_closed


# Room


class Disk(NamedTuple):
    free: int


@pytest.mark.sqlite("a server's disk is not known")
def test_without_room_for_it_nothing_is_stored_and_nothing_stays(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = an_exported_account(store, an_account, 5)
    free = [2 * len(export) + MIN_ROOM_BYTES - 1]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(free[0]))
    with pytest.raises(StoreUnavailable, match=r"MB of free space, .* MB is needed"):
        take(store, export, name="again")
    assert names(store) == ["ana"]

    def others(step: str, rows: int) -> None:
        if step == "stored" and rows == 4:
            free[0] = MIN_ROOM_BYTES

    free[0] += 1
    with pytest.raises(StoreUnavailable, match="of free space"):
        take(store, export, name="again", on_progress=others, slice_rows=2)
    assert names(store) == ["ana"]
    free[0] = 2 * len(export) + MIN_ROOM_BYTES
    assert take(store, export, name="again").resume_count == 5


@pytest.mark.sqlite("a server's disk is not known")
def test_there_has_to_be_room_for_the_rows_and_the_log(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for check, size_bytes, needed_bytes in (
        (check_room, 0, 0),
        (check_room, 1_000, 2_000),
        (check_room, MAX_LOG_BYTES, 2 * MAX_LOG_BYTES),
        (check_room, 10 * MAX_LOG_BYTES, 11 * MAX_LOG_BYTES),
    ):
        free = MIN_ROOM_BYTES + needed_bytes
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: Disk(free))
        check(store, size_bytes)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: Disk(free - 1))
        with pytest.raises(StoreUnavailable):
            check(store, size_bytes)


def test_a_slice_is_of_one_kind_and_bounded_in_rows_and_bytes() -> None:
    small, large = ArchiveRow(RowKind.ITEM, {}), ArchiveRow(RowKind.RESUME, {}, b"x" * SLICE_BYTES)
    rows = [large, large, small, small, small, small]
    assert [len(some) for some in iter_slices(rows, 3)] == [1, 1, 3, 1]
