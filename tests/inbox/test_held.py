"""Files that are held for want of a place, and what people ask of held and failed ones."""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from importer.loop import Importer
from resumes import watched_folder
from resumes.errors import StoreUnavailable
from resumes.store import Store, accounts, import_history, import_ledger, import_requests, importers
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from tests.store.conftest import SteppingClock
from tests.support.inbox.builders import (
    FakeMonotonic,
    MakeAccount,
    MakeImporter,
    Moment,
    Told,
    an_account_with_room_for,
    bound_by_permissions,
    closing_folder,
    counts,
    die,
    drop,
    drop_aged,
    during,
    filed,
    killing_at,
    lines,
    names_below,
    report_beside,
    resume_names,
    rounds_until,
    set_limit,
    the_report,
)
from tests.support.inbox.mounts import Mounts, with_mounts
from tests.support.inbox.packing import gzipped, zipped
from tests.support.resumes import a_document
from tests.support.store.builders import an_importer as a_row


@pytest.fixture
def account(store: Store, root: Path, an_importer: MakeImporter) -> AccountInfo:
    """An account that holds three files and has no place."""
    account = an_account_with_room_for(store, 0)
    importer = an_importer(settle_s=0)
    drop_aged(root, *"012")
    importer.round()
    importer.close()
    assert len(filed(root, "_held")) == 3
    return account


# Order and release


def test_what_does_not_fit_is_held_and_released_in_the_order_of_arrival(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    account = an_account_with_room_for(store, 2)
    importer = an_importer()
    for number in range(5):
        path = drop(root, f"ana/{9 - number}.json", a_document(str(number)))
        os.utime(path, ns=(number, number))
    importer.round()
    assert resume_names(store, account.id) == ["0", "1"]
    reports = [path.read_text() for path in (root / "_held").rglob("*.report.json")]
    assert ['"reason": "quota_reached"' in report for report in reports] == [True] * 3
    assert importer.summary().held == 3
    drop(root, "ana/late.json", a_document("late"))
    set_limit(store, "ana", 4)
    importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2", "3"]
    assert len(filed(root, "_held")) == 2
    set_limit(store, "ana", None)
    importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2", "3", "4", "late"]
    assert names_below(root / "_held") == []
    summary = importer.summary()
    assert (summary.done, summary.held, summary.waiting) == (6, 0, 0)
    assert accounts.list_wrong(store) == []
    assert {row.outcome for row in import_history.list_files(store)} == {FileOutcome.DONE}


def test_a_file_that_was_just_held_is_not_overtaken_when_a_place_becomes_free(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    ana = an_account_with_room_for(store, 0)
    make_room = during(Moment.COMMITTED, lambda: set_limit(store, "ana", 1))
    importer = an_importer(settle_s=0, batch_files=1, observe=make_room)
    drop_aged(root, *"12")
    rounds_until(importer, lambda: len(filed(root, "_done")) == 1)
    assert resume_names(store, ana.id) == ["1"]
    assert len(filed(root, "_held")) == 1


@pytest.mark.parametrize(("more_bytes", "batches"), [(0, 2), (1, 1)])
def test_large_files_are_released_in_several_batches(
    store: Store,
    root: Path,
    account: AccountInfo,
    an_importer: MakeImporter,
    more_bytes: int,
    batches: int,
) -> None:
    commits: list[int] = []
    observe = during(Moment.COMMITTED, lambda: commits.append(1))
    importer = an_importer(batch_bytes=2 * len(a_document("0")) + more_bytes, observe=observe)
    set_limit(store, "ana", None)
    importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2"]
    assert len(commits) == batches


def test_a_store_that_fails_while_files_are_released_does_not_hold_them_for_ever(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    account: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    def fail(*_: object) -> None:
        monkeypatch.undo()
        raise StoreUnavailable("It is locked")

    importer = an_importer(settle_s=0)
    set_limit(store, "ana", 10)
    monkeypatch.setattr(import_ledger, "find_items", fail)
    with pytest.raises(StoreUnavailable):
        importer.round()
    importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2"]


def test_a_held_file_of_several_is_not_overtaken_while_it_waits_to_be_unpacked(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    """Files of several are unpacked one after the other, also those of other accounts."""
    names = ("ana", "bo")
    ana, bo = (an_account_with_room_for(store, 0, name) for name in names)
    importer = an_importer(settle_s=0, slice_items=1)
    for name in names:
        drop(root, f"{name}/1.ndjson", a_document(f"{name} 1") + b"\n")
    rounds_until(importer, lambda: len(filed(root, "_held")) == 2)
    for name in names:
        set_limit(store, name, 1)
        drop(root, f"{name}/2.json", a_document(f"{name} 2"))
        drop(root, f"{name}/3.ndjson", a_document(f"{name} 3") + b"\n")
    rounds_until(importer, lambda: len(filed(root, "_held")) == 4)
    assert (resume_names(store, ana.id), resume_names(store, bo.id)) == (["ana 1"], ["bo 1"])
    for name in names:
        set_limit(store, name, None)
    rounds_until(importer, lambda: names_below(root / "_held") == [])
    assert resume_names(store, bo.id) == ["bo 1", "bo 2", "bo 3"]


def test_a_held_file_of_several_that_was_imported_is_put_away_though_the_account_is_full_now(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    ana = an_account_with_room_for(store, 0)
    drop(root, "ana/cv.ndjson", a_document("1") + b"\n" + a_document("2") + b"\n")
    an_importer(settle_s=0).round()
    assert counts(root, "held") == [1]
    set_limit(store, "ana", 2)
    die(an_importer(settle_s=0, observe=killing_at(Moment.REPORTED)))
    an_importer(settle_s=0).round()
    assert resume_names(store, ana.id) == ["1", "2"]
    assert counts(root, "held", "done") == [0, 1]


def test_a_file_of_several_that_changes_while_it_is_held_again_is_a_new_one(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    account = an_account_with_room_for(store, 1, name="bo")
    drop(root, "bo/cv.ndjson", lines(*"123"))
    an_importer(settle_s=0).round()
    (held,) = filed(root, "_held")
    set_limit(store, "bo", 2)

    def rewrite() -> None:
        held.write_bytes(lines(*"abc"))

    an_importer(settle_s=0, observe=during(Moment.COMMITTED, rewrite)).round()
    assert resume_names(store, account.id) == ["1", "2"]
    set_limit(store, "bo", None)
    an_importer(settle_s=0).round()
    assert resume_names(store, account.id) == ["1", "2", "a", "b", "c"]


def test_an_account_in_a_report_that_was_edited_leads_nowhere(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    for path in filed(root, "_held"):
        report = report_beside(path)
        report.write_text(report.read_text().replace('"ana"', '"../../../../elsewhere"'))
    set_limit(store, "ana", None)
    rounds_until(an_importer(settle_s=0), lambda: len(resume_names(store, account.id)) == 3)
    assert {path.parent.name for path in filed(root, "_done")} == {account.id}


def test_the_order_of_arrival_outlives_a_clock_that_is_set_back(
    store: Store, root: Path, clock: SteppingClock, account: AccountInfo, an_importer: MakeImporter
) -> None:
    clock.advance(-6 * 24 * 3_600)
    drop(root, "ana/late.json", a_document("late"))
    an_importer(settle_s=0).round()
    set_limit(store, "ana", None)
    importer = an_importer(settle_s=0)
    importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2", "late"]


def test_the_order_of_arrival_outlives_a_kill_and_then_a_clock_that_is_set_back(
    store: Store, root: Path, clock: SteppingClock, an_importer: MakeImporter
) -> None:
    ana = an_account_with_room_for(store, 0)
    drop(root, "ana/early.json", a_document("early"))
    die(an_importer(settle_s=0, observe=killing_at(Moment.COMMITTED)))  # held, and not moved yet
    clock.advance(-7_200)
    drop(root, "ana/late.json", a_document("late"))
    an_importer(settle_s=0).round()
    set_limit(store, "ana", 1)
    an_importer(settle_s=0).round()
    assert resume_names(store, ana.id) == ["early"]


def test_a_number_that_no_clock_can_have_given_does_not_set_the_order_of_others(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    (first, *_) = sorted(filed(root, "_held"))
    report_beside(first).unlink()
    first.rename(first.with_name("f" * 24 + first.name[24:]))
    drop(root, "ana/late.json", a_document("late"))
    importer = an_importer(settle_s=0)
    importer.round()
    names = sorted(path.name for path in filed(root, "_held"))
    assert [name.startswith("f" * 24) for name in names] == [False, False, False, True]
    assert [len(name.partition("-")[0]) for name in names] == [24] * 4


def test_held_files_of_one_account_are_one_queue_wherever_they_lie(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    for path in sorted(filed(root, "_held"))[::2]:
        for one in (path, report_beside(path)):
            target = root / "_held" / "her-later-name" / one.name
            target.parent.mkdir(exist_ok=True)
            one.rename(target)
    for name in ("_held/ana/by-hand.json", "_held/ana/notes.txt", "_held/stray.json"):
        drop(root, name)
    set_limit(store, "ana", 10)
    an_importer(settle_s=0).round()
    assert resume_names(store, account.id) == ["0", "1", "2"]
    assert names_below(root / "_held") == ["ana/by-hand.json", "ana/notes.txt", "stray.json"]


def test_files_held_by_another_importer_meanwhile_are_seen(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    importer, other = an_importer(settle_s=0), an_importer(settle_s=0)
    importer.round()
    drop(root, "ana/late.json", a_document("late"))
    other.round()
    other.close()
    set_limit(store, "ana", 10)
    for _ in range(3):
        importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2", "late"]


def test_without_its_report_a_held_file_is_released_all_the_same(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    first, second, _ = sorted(filed(root, "_held"))
    report_beside(first).unlink()
    edited = report_beside(second).read_text().replace("ana/1.json", "\\ud800\\u001b[2J.json")
    report_beside(second).write_text(edited)
    set_limit(store, "ana", 10)
    an_importer(settle_s=0).round()
    assert resume_names(store, account.id) == ["0", "1", "2"]
    assert all(row.name.isprintable() for row in import_history.list_files(store))


def test_a_held_file_under_the_number_of_another_is_a_file_of_its_own(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    account = an_account_with_room_for(store, 0)
    drop(root, "ana/2.json", a_document("first"))
    importer = an_importer(settle_s=0)
    importer.round()
    (held,) = filed(root, "_held")
    held.with_name(held.name.replace("2.json", "2-copy.json")).write_bytes(a_document("copy"))
    set_limit(store, "ana", 10)
    for _ in range(3):
        importer.round()
    assert sorted(resume_names(store, account.id)) == ["copy", "first"]
    assert counts(root, "done") == [2]


@pytest.mark.parametrize("name", ["cv.ndjson", "cv.json.gz", "cv.ZIP", "cv.report.json"])
def test_files_of_every_kind_are_held_and_released(
    store: Store, root: Path, an_importer: MakeImporter, name: str
) -> None:
    account = an_account_with_room_for(store, 0)
    body = a_document("1")
    content = {"cv.json.gz": gzipped(body), "cv.ZIP": zipped({"a.json": body})}.get(name, body)
    drop(root, f"ana/{name}", content)
    importer = an_importer(settle_s=0)
    importer.round()
    assert counts(root, "held") == [1]
    set_limit(store, "ana", 1)
    importer.round()
    assert resume_names(store, account.id) == ["1"]
    assert counts(root, "done", "held") == [1, 0]


def test_held_files_are_released_in_a_folder_that_was_emptied_of_what_was_under_way(
    store: Store, root: Path, monotonic: FakeMonotonic, an_importer: MakeImporter
) -> None:
    ana = an_account_with_room_for(store, 0)
    importer = an_importer(settle_s=0)
    drop(root, "ana/1.json", a_document("1"))
    importer.round()
    obstacle = drop(root, "_done", b"in the way")
    set_limit(store, "ana", 2)
    importer.round()
    assert importer.is_stuck
    shutil.rmtree(root / ".importer")
    obstacle.unlink()
    drop(root, "ana/2.json", a_document("2"))
    for _ in range(3):
        monotonic.advance(6)
        importer.round()
    assert resume_names(store, ana.id) == ["1", "2"]
    assert counts(root, "held") == [0]


def test_i12_files_that_return_make_no_other_account_wait_and_are_not_overtaken(
    store: Store,
    root: Path,
    told: Told,
    account: AccountInfo,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    an_account("bo")
    set_limit(store, "ana", 4)
    for name in ("bo/fresh.json", "ana/fresh.json"):
        drop(root, name)
    told.files.clear()
    importer = an_importer(settle_s=0, batch_files=1)
    rounds_until(importer, lambda: len(told.files) == 5)
    names = [file.name for file in told.files]
    assert names.index("bo/fresh.json") == 1
    assert [name for name in names if name.startswith("ana")] == [
        *(f"ana/{number}.json" for number in "012"),
        "ana/fresh.json",
    ]
    assert counts(root, "held") == [0]


def test_files_of_an_account_that_is_gone_are_not_held_on(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    accounts.delete_account(store, "ana")
    an_importer().round()
    assert names_below(root / "_held") == []
    assert len(filed(root, "_failed/account_deleted")) == 3


def test_a_held_file_that_somebody_has_open_is_released(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    set_limit(store, "ana", 1)
    with sorted(filed(root, "_held"))[0].open("ab"):
        importer = an_importer()
        for _ in range(2):
            importer.round()
    assert resume_names(store, account.id) == ["0"]


# What people ask for


@pytest.fixture
def failed(root: Path, an_account: MakeAccount, an_importer: MakeImporter) -> Path:
    """A file of ana's that failed."""
    an_account()
    drop(root, "ana/cv.json", b"{}")
    importer = an_importer(settle_s=0)
    importer.round()
    importer.close()
    (path,) = filed(root, "_failed")
    return path


def ask_for_all(store: Store, action: RequestKind) -> Sequence[import_history.FileRow]:
    rows = import_history.list_files(store)
    import_requests.request_files(store, rows, action)
    return rows


def test_a_failed_file_is_tried_again_when_somebody_asks(
    store: Store, root: Path, told: Told, failed: Path, an_importer: MakeImporter
) -> None:
    (row,) = ask_for_all(store, RequestKind.RETRY)
    importer = an_importer(settle_s=0)
    drop(root, "ana/other.json", b"{}")
    failed.write_bytes(a_document("corrected"))
    importer.round()
    assert told.outcomes() == {"ana/cv.json": "done", "ana/other.json": "failed"}
    again = import_history.get_file(store, row.claim_id)
    assert (again.outcome, again.reason) == (FileOutcome.DONE, None)
    assert import_requests.list_requests(store) == []
    assert the_report(root, "_failed")["file"] == "ana/other.json"


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_failed_file_of_several_that_was_corrected_keeps_its_id(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter, is_killed: bool
) -> None:
    drop(root, "ana/cv.ndjson", lines("1", ""))
    an_importer(settle_s=0).round()
    (row,) = ask_for_all(store, RequestKind.RETRY)
    (failed,) = filed(root, "_failed")
    failed.write_bytes(lines(*"213"))
    if is_killed:
        die(an_importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    an_importer(settle_s=0).round()
    (again,) = import_history.list_files(store)
    assert (again.claim_id, again.outcome) == (row.claim_id, FileOutcome.DONE)
    assert resume_names(store, ana.id) == list("123")
    assert counts(root, "done", "failed") == [1, 0]
    assert import_requests.list_requests(store) == []


def test_a_held_file_of_several_that_was_edited_keeps_its_id(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    account = an_account_with_room_for(store, 1)
    drop(root, "ana/cv.ndjson", lines(*"12"))
    an_importer(settle_s=0).round()
    (held,) = filed(root, "_held")
    held.write_bytes(lines(*"13"))
    set_limit(store, "ana", 9)
    (row,) = import_history.list_files(store)
    an_importer(settle_s=0).round()
    (again,) = import_history.list_files(store)
    assert (again.claim_id, again.outcome) == (row.claim_id, FileOutcome.DONE)
    assert resume_names(store, account.id) == list("13")
    assert names_below(root / "_held") == []


def test_a_held_file_that_cannot_be_taken_is_tried_again_in_peace(
    store: Store, root: Path, told: Told, an_importer: MakeImporter
) -> None:
    an_account_with_room_for(store, 0)
    drop(root, "ana/cv.json")
    importer = an_importer()
    importer.round()
    (held,) = filed(root, "_held")
    set_limit(store, "ana", 9)
    held.parent.chmod(0o555)
    with bound_by_permissions():
        importer.round()
        assert not importer.has_work
        assert importer.wait_s() > 0
    held.parent.chmod(0o755)
    importer.round()
    assert told.outcomes() == {"ana/cv.json": "done"}


def test_held_files_that_a_link_leads_to_are_waited_for_in_peace(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    account = an_account_with_room_for(store, 0)
    drop(root, "ana/cv.json", a_document("Ada"))
    importer = an_importer()
    importer.round()
    elsewhere = root.with_name("elsewhere")
    (root / "_held").rename(elsewhere)
    (root / "_held").symlink_to(elsewhere)
    set_limit(store, "ana", 9)
    importer.round()
    assert not importer.has_work
    (root / "_held").unlink()
    elsewhere.rename(root / "_held")
    importer.round()
    assert resume_names(store, account.id) == ["Ada"]


def test_a_corrected_file_of_several_of_a_dead_importer_stays_on_the_list_until_it_can_be_read(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.ndjson", lines("1", ""))
    an_importer(settle_s=0).round()
    ask_for_all(store, RequestKind.RETRY)
    (failed,) = filed(root, "_failed")
    failed.write_bytes(lines(*"213"))
    die(an_importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    importer = an_importer(settle_s=0, observe=closing_folder(failed.parent, Moment.READ))
    with bound_by_permissions():
        importer.round()
    failed.parent.chmod(0o755)
    rounds_until(importer, lambda: counts(root, "done", "failed") == [1, 0])
    (row,) = import_history.list_files(store)
    assert row.outcome is FileOutcome.DONE
    assert resume_names(store, ana.id) == list("123")
    assert import_requests.list_requests(store) == []


def test_a_request_whose_file_could_not_be_reached_is_still_there(
    store: Store, root: Path, failed: Path, told: Told, an_importer: MakeImporter
) -> None:
    failed.write_bytes(a_document("corrected"))
    ask_for_all(store, RequestKind.RETRY)
    die(an_importer(settle_s=0, observe=killing_at(Moment.READ)))
    failed.parent.chmod(0)
    importer = an_importer(settle_s=0)
    with bound_by_permissions():
        importer.round()
    failed.parent.chmod(0o755)
    for _ in range(2):
        importer.round()
    assert told.outcomes() == {"ana/cv.json": "done"}
    assert import_requests.list_requests(store) == []


@pytest.mark.parametrize("moment", [Moment.READ, Moment.COMMITTED])
def test_who_asks_again_while_a_file_is_tried_has_it_tried_again(
    store: Store,
    root: Path,
    failed: Path,
    clock: SteppingClock,
    an_importer: MakeImporter,
    moment: Moment,
) -> None:
    def correct() -> None:
        if failed.read_bytes() != a_document("corrected"):
            failed.write_bytes(a_document("corrected"))
            clock.advance(1)
            ask_for_all(store, RequestKind.RETRY)

    ask_for_all(store, RequestKind.RETRY)
    importer = an_importer(settle_s=0, observe=during(moment, correct))
    rounds_until(importer, lambda: len(filed(root, "_done")) == 1)
    assert import_requests.list_requests(store) == []


def test_a_report_that_cannot_be_removed_is_in_nobody_s_way(
    store: Store, told: Told, failed: Path, an_importer: MakeImporter
) -> None:
    ask_for_all(store, RequestKind.RETRY)
    failed.write_bytes(a_document("corrected"))
    forbid = during(Moment.MOVED, lambda: failed.parent.chmod(0o555))
    with bound_by_permissions():
        an_importer(settle_s=0, observe=forbid).round()
    assert told.outcomes() == {"ana/cv.json": "done"}
    assert report_beside(failed).exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("cv.ndjson", b"{}\n{}\n"), ("cv.json.gz", gzipped(b"{}")), ("cv.zip", zipped({}))],
)
def test_failed_files_of_every_kind_are_tried_again(
    store: Store,
    root: Path,
    told: Told,
    ana: AccountInfo,
    an_importer: MakeImporter,
    name: str,
    content: bytes,
) -> None:
    drop(root, f"ana/{name}", content)
    importer = an_importer(settle_s=0)
    importer.round()
    before = names_below(root / "_failed")
    ask_for_all(store, RequestKind.RETRY)
    importer.round()
    first, again = told.files
    assert first.outcome is again.outcome is FileOutcome.FAILED
    assert first.filed_as == again.filed_as
    assert names_below(root / "_failed") == before
    assert import_requests.list_requests(store) == []


def test_a_request_outlives_an_importer_that_was_killed_before_it_took_the_file(
    store: Store, told: Told, failed: Path, an_importer: MakeImporter
) -> None:
    ask_for_all(store, RequestKind.RETRY)
    die(an_importer(observe=killing_at(Moment.NOTED)))
    told.files.clear()
    an_importer().round()
    assert told.outcomes() == {"ana/cv.json": "failed"}
    assert import_requests.list_requests(store) == []


def test_a_file_that_an_importer_was_killed_over_is_taken_up_once_though_somebody_asked(
    store: Store, root: Path, told: Told, an_importer: MakeImporter, monotonic: FakeMonotonic
) -> None:
    account = an_account_with_room_for(store, 0)
    drop(root, "ana/cv.json", b"{")
    an_importer(settle_s=0).round()
    (path,) = filed(root, "_failed")
    path.write_bytes(a_document("corrected"))
    ask_for_all(store, RequestKind.RETRY)
    die(an_importer(settle_s=0, observe=killing_at(Moment.NOTED)))
    importer = an_importer(settle_s=0)
    importer.turn()
    assert counts(root, "held", "failed") == [1, 0]
    set_limit(store, "ana", 1)
    for _ in range(3):
        monotonic.advance(1)
        importer.turn()
    assert resume_names(store, account.id) == ["corrected"]
    assert counts(root, "done", "held", "failed") == [1, 0, 0]
    assert import_requests.list_requests(store) == []
    assert [file.outcome for file in told.files] == ["failed", "held", "done"]


@pytest.mark.parametrize("what", ["the file", "its report"])
def test_a_request_for_a_file_that_is_not_there_says_so(
    store: Store, failed: Path, an_importer: MakeImporter, what: str
) -> None:
    (failed if what == "the file" else report_beside(failed)).unlink()
    ask_for_all(store, RequestKind.RETRY)
    an_importer(settle_s=0).round()
    (row,) = import_history.list_files(store)
    assert row.outcome is FileOutcome.FAILED
    assert row.message is not None
    assert row.message.startswith("Could not retry it: the file is no longer in")
    assert import_requests.list_requests(store) == []


def test_a_request_for_a_failed_file_that_cannot_be_moved_yet_waits_for_it(
    store: Store,
    root: Path,
    told: Told,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    obstacle = drop(root, "_failed", b"in the way")
    drop(root, "ana/cv.json", b"{")
    importer = an_importer(settle_s=0)
    importer.round()
    (before,) = ask_for_all(store, RequestKind.RETRY)
    importer.round()
    (row,) = import_history.list_files(store)
    assert row.message == before.message
    obstacle.unlink()
    rounds_until(importer, lambda: len(told.files) == 2)
    importer.round()
    assert [file.outcome for file in told.files] == [FileOutcome.FAILED] * 2
    assert import_requests.list_requests(store) == []


def rest(root: Path) -> None:
    """Let nothing in `_failed` have changed for a while."""
    for folder in [root / "_failed", *map(Path, watched_folder.list_folders(root / "_failed"))]:
        os.utime(folder, (1, folder.stat().st_mtime - 60))


def test_a_failed_file_that_is_gone_or_was_moved_back_needs_attention_no_more(
    store: Store,
    root: Path,
    told: Told,
    ana: AccountInfo,
    clock: SteppingClock,
    an_importer: MakeImporter,
) -> None:
    for name in ("deleted", "fixed", "kept"):
        drop(root, f"ana/{name}.json", b"{")
    importer = an_importer(settle_s=0)
    importer.round()
    deleted, fixed, kept = filed(root, "_failed")
    deleted.unlink()
    fixed.write_bytes(a_document("Ada"))
    fixed.rename(root / "ana" / fixed.name)
    os.utime(kept.parent, (1, time.time() + 30))  # it changed just now, however long a round takes
    importer.round()
    clock.advance(11)
    importer.round()
    assert len(import_history.list_files(store, outcome=FileOutcome.FAILED)) == 3

    rest(root)
    importer.round()

    (failed,) = import_history.list_files(store, outcome=FileOutcome.FAILED)
    assert failed.name == "ana/kept.json"
    assert resume_names(store, ana.id) == ["Ada"]
    assert told.notices == ["Dismissed 2 failed files that someone deleted or moved out of _failed"]


def test_what_is_gone_is_found_without_asking_for_each_account(
    store: Store,
    root: Path,
    failed: Path,
    clock: SteppingClock,
    an_importer: MakeImporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(60):
        accounts.create_account(store, f"other-{number}")
    clock.advance(11)
    importer = an_importer(settle_s=0)
    statements: list[str] = []
    fetch = store.fetch

    def counted(statement: Any, /, **values: Any) -> Any:
        statements.append(str(statement))
        return fetch(statement, **values)

    failed.unlink()
    rest(root)
    monkeypatch.setattr(store, "fetch", counted)
    importer.round()
    assert len(statements) < 60
    monkeypatch.undo()
    assert import_history.list_files(store) == []


def test_a_failed_file_that_was_moved_back_and_settles_needs_attention_no_more(
    store: Store,
    root: Path,
    told: Told,
    ana: AccountInfo,
    clock: SteppingClock,
    monotonic: FakeMonotonic,
    an_importer: MakeImporter,
) -> None:
    importer = an_importer(settle_s=5)
    dropped = drop(root, "ana/cv.ndjson", lines("1", ""))
    for _ in range(2):
        importer.round()
        monotonic.advance(6)
    (failed,) = filed(root, "_failed")
    failed.write_bytes(lines("1", "2"))
    failed.rename(dropped)
    clock.advance(11)
    rest(root)
    for _ in range(3):
        importer.round()
        monotonic.advance(6)
    assert told.outcomes() == {"ana/cv.ndjson": "done"}
    assert import_history.list_files(store, outcome=FileOutcome.FAILED) == []


def test_a_file_that_has_just_failed_is_not_missing_yet(
    store: Store,
    root: Path,
    failed: Path,
    clock: SteppingClock,
    an_importer: MakeImporter,
) -> None:
    failed.unlink()
    rest(root)
    importer = an_importer(settle_s=0)
    importer.round()
    assert len(import_history.list_files(store)) == 1
    clock.advance(11)
    importer.round()
    assert import_history.list_files(store) == []


def test_a_failed_file_of_a_folder_that_has_another_in_its_place_stays_on_the_list(
    store: Store,
    root: Path,
    failed: Path,
    clock: SteppingClock,
    told: Told,
    an_importer: MakeImporter,
) -> None:
    clock.advance(60)
    disk = root.rename(root.with_name("disk"))
    drop(root, "ana/below.json", b"{")  # of the folder below, while the disk is not mounted
    watched_folder.set_owner(root, watched_folder.owner_of(store))
    os.utime(root / ".importer" / "store", (clock() / 1e6, clock() / 1e6))
    importer = an_importer(settle_s=0)
    importer.round()
    below = filed(root, "_failed")[0]
    clock.advance(11)
    rest(root)
    importer.round()
    assert len(import_history.list_files(store)) == 2
    below.unlink()
    rest(root)
    importer.round()
    assert [one.name for one in import_history.list_files(store)] == ["ana/cv.json"]

    importer.close()
    root.rename(root.with_name("below"))
    disk.rename(root)
    failed.unlink()
    rest(root)
    an_importer(settle_s=0).round()
    assert import_history.list_files(store) == []


def names_listed(store: Store) -> set[str]:
    """The names of the files that the list of failed files has."""
    return {row.name for row in import_history.list_files(store, outcome=FileOutcome.FAILED)}


def see_what_is_gone(root: Path, clock: SteppingClock, importer: Importer) -> None:
    """The importer has looked for what is gone, long after anything changed."""
    clock.advance(11)
    for _ in range(2):
        if (root / "_failed").is_dir():
            rest(root)
        importer.round()


def check_known_again(
    store: Store, root: Path, told: Told, clock: SteppingClock, importer: Importer, failed: Path
) -> None:
    """What had failed is on the list, and imported once it was fixed."""
    see_what_is_gone(root, clock, importer)
    assert "ana/cv.json" in names_listed(store)
    failed.write_bytes(a_document("fixed"))
    ask_for_all(store, RequestKind.RETRY)
    importer.round()
    assert told.outcomes()["ana/cv.json"] == "done"


@pytest.mark.parametrize(
    ("below", "instead"),
    [
        *((below, "an empty folder") for below in ("", "_failed", "_failed/invalid_resume")),
        *((below, "a folder in use") for below in ("", "_failed", "_failed/invalid_resume")),
        *(("_failed", instead) for instead in ("nothing", "a file", "a dangling link")),
        *(("_failed/invalid_resume", one) for one in ("nothing", "a file", "a dangling link")),
        ("_failed", "closed"),
        ("_failed/invalid_resume", "closed"),
    ],
)
def test_a_failed_file_whose_folder_is_away_stays_on_the_list_and_is_known_when_that_is_back(
    store: Store,
    root: Path,
    tmp_path: Path,
    told: Told,
    failed: Path,
    clock: SteppingClock,
    an_importer: MakeImporter,
    below: str,
    instead: str,
) -> None:
    folder, away = root / below, tmp_path / "away"
    if instead == "closed":
        folder.chmod(0)
    else:
        folder.rename(away)
    if "folder" in instead:
        folder.mkdir()
    elif instead == "a file":
        folder.write_bytes(b"")
    elif instead == "a dangling link":
        folder.symlink_to(tmp_path / "unmounted")
    importer = an_importer(settle_s=0)
    with bound_by_permissions():
        if instead == "a folder in use":
            drop(root, "ana/below.json", b"{}")
            importer.round()
            assert "ana/below.json" in names_listed(store)
        for _ in range(2):
            see_what_is_gone(root, clock, importer)
        assert "ana/cv.json" in names_listed(store)
        importer.close()
    if instead == "closed":
        folder.chmod(0o755)
    else:
        if folder.is_dir():
            shutil.rmtree(folder)
        folder.unlink(missing_ok=True)
        away.rename(folder)
    check_known_again(store, root, told, clock, an_importer(settle_s=0), failed)
    assert ("ana/below.json" in names_listed(store)) == (instead == "a folder in use")


@pytest.mark.parametrize("below", ["", "_failed", "_failed/invalid_resume"])
def test_a_disk_with_failed_files_may_come_and_go(
    store: Store,
    root: Path,
    tmp_path: Path,
    told: Told,
    ana: AccountInfo,
    clock: SteppingClock,
    an_importer: MakeImporter,
    below: str,
) -> None:
    def act(mounts: Mounts) -> None:
        disk, other = mounts.mount(tmp_path / "disk"), mounts.mount(tmp_path / "other")
        mounts.bind(disk, root / below)
        importer = an_importer(settle_s=0)

        def fail(name: str) -> Path:
            before = filed(root, "_failed")
            drop(root, f"ana/{name}.json", b"{}")
            importer.round()
            (path,) = set(filed(root, "_failed")) - {*before}
            return path

        failed = fail("cv")
        on_other = None
        for there in (None, disk, other, None, disk):
            mounts.unmount(root / below)
            mounts.bind(there, root / below) if there else mounts.bind(root / below, root / below)
            if there is other:
                on_other = fail("other")
            elif there is None:
                fail(f"below {len(told.files)}")
            see_what_is_gone(root, clock, importer)
            assert "ana/cv.json" in names_listed(store)
        listed = names_listed(store)
        assert len(listed) == 4
        fail("gone").unlink()
        see_what_is_gone(root, clock, importer)
        assert names_listed(store) == listed
        mounts.unmount(root / below)
        mounts.bind(other, root / below)
        assert on_other is not None
        on_other.unlink()
        see_what_is_gone(root, clock, importer)
        assert names_listed(store) == listed - {"ana/other.json"}
        mounts.unmount(root / below)
        mounts.bind(disk, root / below)
        check_known_again(store, root, told, clock, importer, failed)
        importer.close()

    with_mounts(act)


@pytest.mark.parametrize("pattern", ["*/*", "*", "."])
def test_failed_files_that_were_deleted_with_their_folder_are_dismissed_by_hand(
    store: Store,
    root: Path,
    failed: Path,
    clock: SteppingClock,
    an_importer: MakeImporter,
    pattern: str,
) -> None:
    for path in [root / "_failed"] if pattern == "." else (root / "_failed").glob(pattern):
        if path.name.startswith("."):  # as a shell takes `*`
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    see_what_is_gone(root, clock, an_importer(settle_s=0))
    rows = import_history.list_files(store)
    assert len(rows) == (pattern != "*/*")
    import_requests.dismiss_files(store, rows)
    assert import_history.list_files(store) == []


@pytest.mark.parametrize("end", ["_failed", "_held"])
def test_a_file_of_several_whose_disk_goes_away_while_it_is_tried_again_is_known_when_it_is_back(
    store: Store, root: Path, tmp_path: Path, told: Told, an_importer: MakeImporter, end: str
) -> None:
    account = an_account_with_room_for(store, 1 if end == "_held" else None)
    drop(root, "ana/many.ndjson", lines("1", "" if end == "_failed" else "2", "3"))
    an_importer(settle_s=0).round()
    (path,) = filed(root, end)
    set_limit(store, "ana", None)
    path.write_bytes(lines("1", "2", "3"))
    ask_for_all(store, RequestKind.RETRY)
    die(an_importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    away = (root / end).rename(tmp_path / "away")
    an_importer(settle_s=0).round()
    assert names_listed(store) == {"ana/many.ndjson"}
    away.rename(root / end)
    ask_for_all(store, RequestKind.RETRY)
    importer = an_importer(settle_s=0)
    for _ in range(2):
        importer.round()
    assert told.outcomes() == {"ana/many.ndjson": "done"}
    assert sorted(resume_names(store, account.id)) == ["1", "2", "3"]
    assert names_listed(store) == set()


def test_nothing_is_followed_out_of_the_folder(
    store: Store, root: Path, tmp_path: Path, told: Told, failed: Path, an_importer: MakeImporter
) -> None:
    away = failed.parent.rename(tmp_path / "away")
    (root / "_failed" / "invalid_resume").symlink_to(away)
    ask_for_all(store, RequestKind.RETRY)
    told.files.clear()
    an_importer(settle_s=0).round()
    assert told.files == []
    assert (away / failed.name).exists()


def test_a_held_file_that_is_released_too_early_is_held_on(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    before = names_below(root / "_held")
    ask_for_all(store, RequestKind.RELEASE)
    importer = an_importer()
    importer.round()
    assert names_below(root / "_held") == before
    assert import_requests.list_requests(store) == []
    set_limit(store, "ana", 3)
    importer.round()
    assert resume_names(store, account.id) == ["0", "1", "2"]


def test_a_held_file_that_is_released_does_not_overtake_earlier_ones(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    last = [row for row in import_history.list_files(store) if row.name == "ana/2.json"]
    import_requests.request_files(store, last, RequestKind.RELEASE)
    make_room = during(Moment.READ, lambda: set_limit(store, "ana", 1))
    importer = an_importer(settle_s=0, observe=make_room)
    rounds_until(importer, lambda: counts(root, "done") == [1])
    assert resume_names(store, account.id) == ["0"]


def test_a_held_file_that_is_gone_is_answered(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    rows = ask_for_all(store, RequestKind.RELEASE)
    for path in filed(root, "_held"):
        path.unlink()
    an_importer().round()
    assert import_requests.list_requests(store) == []
    assert "no longer in" in (import_history.get_file(store, rows[0].claim_id).message or "")


def test_held_files_can_be_dismissed_and_those_that_are_there_are_imported_all_the_same(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    filed(root, "_held")[0].unlink()
    import_requests.dismiss_files(store, import_history.list_files(store))
    assert import_history.list_files(store) == []
    importer = an_importer()
    importer.round()
    set_limit(store, "ana", 3)
    importer.round()
    assert len(resume_names(store, account.id)) == 2
    assert {row.outcome for row in import_history.list_files(store)} == {FileOutcome.DONE}


# A folder that was moved


def test_a_request_is_answered_where_the_folder_was_moved_to(
    store: Store, root: Path, failed: Path, an_importer: MakeImporter
) -> None:
    (row,) = ask_for_all(store, RequestKind.RETRY)
    moved = root.rename(root.with_name("moved"))
    (moved / failed.relative_to(root)).write_bytes(a_document("Ada"))
    an_importer(settle_s=0, at=moved).round()
    again = import_history.get_file(store, row.claim_id)
    assert (again.outcome, again.root) == (FileOutcome.DONE, str(moved))
    assert import_requests.list_requests(store) == []


def test_what_is_not_in_this_folder_is_left_to_the_importer_of_the_other(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    rows = ask_for_all(store, RequestKind.RELEASE)
    other = root.with_name("other")
    other.mkdir()
    importer = an_importer(at=other)
    for _ in range(2):
        importer.round()
    assert len(import_requests.list_requests(store)) == len(rows)
    assert import_history.list_files(store) == rows


def test_what_is_in_a_folder_of_the_same_path_on_another_machine_is_left_to_its_importer(
    store: Store,
    root: Path,
    failed: Path,
    told: Told,
    clock: SteppingClock,
    an_importer: MakeImporter,
) -> None:
    (there,) = ask_for_all(store, RequestKind.RETRY)
    root.rename(root.with_name("of-another-machine"))
    importers.announce(store, a_row(root=str(root)))
    drop(root, "ana/here.json", b"{")
    importer = an_importer(settle_s=0)
    importer.round()
    clock.advance(11)
    rest(root)
    importer.round()
    assert import_history.get_file(store, there.claim_id).message == there.message
    assert [one.claim_id for one in import_requests.list_requests(store)] == [there.claim_id]
    assert len(import_history.list_files(store, outcome=FileOutcome.FAILED)) == 2
    assert told.notices == []


def test_a_file_whose_folder_somebody_watches_is_left_to_that_one(
    store: Store, root: Path, account: AccountInfo, an_importer: MakeImporter
) -> None:
    set_limit(store, "ana", None)
    rows = ask_for_all(store, RequestKind.RELEASE)
    importers.announce(store, a_row(root=str(root)))
    moved = root.rename(root.with_name("moved"))
    for path in filed(moved, "_held"):
        path.rename(path.with_name(f"x{path.name}"))
    an_importer(at=moved).round()
    assert len(import_requests.list_requests(store)) == len(rows)


def test_a_failed_folder_that_cannot_be_listed_stops_no_import(
    store: Store,
    root: Path,
    failed: Path,
    clock: SteppingClock,
    an_importer: MakeImporter,
) -> None:
    drop(root, "ana/new.json", a_document("new"))
    clock.advance(11)
    rest(root)
    failed.parent.chmod(0)
    try:
        with bound_by_permissions():
            an_importer(settle_s=0).round()
    finally:
        failed.parent.chmod(0o700)
    assert resume_names(store, accounts.get_account(store, "ana").id) == ["new"]
    assert len(import_history.list_files(store, outcome=FileOutcome.FAILED)) == 1
