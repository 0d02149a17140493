"""Files that are held for want of a place, and what people ask of held and failed ones."""

import os
import shutil
import time
from pathlib import Path

import pytest

from importer.loop import Importer
from resumes import watched_folder
from resumes.errors import StoreUnavailable
from resumes.store import accounts, import_history, import_ledger, import_requests, importers
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from tests.support.inbox.builders import (
    Inbox,
    Moment,
    bound_by_permissions,
    die,
    during,
    filed,
    killing_at,
    lines,
    report_beside,
    rounds_until,
)
from tests.support.inbox.packing import gzipped, zipped
from tests.support.resumes import a_document
from tests.support.store.builders import an_importer as a_row


@pytest.fixture
def full(inbox: Inbox) -> Inbox:
    """An inbox whose account holds three files and has no place."""
    inbox.limit(0)
    inbox.drop_aged(*"012")
    inbox.importer(settle_s=0).round()
    assert len(inbox.filed("_held")) == 3
    return inbox


# Order and release


def test_what_does_not_fit_is_held_and_released_in_the_order_of_arrival(inbox: Inbox) -> None:
    inbox.limit(2)
    importer = inbox.importer()
    for number in range(5):
        path = inbox.drop(f"ana/{9 - number}.json", a_document(str(number)))
        os.utime(path, ns=(number, number))
    importer.round()
    assert inbox.names() == ["0", "1"]
    reports = [path.read_text() for path in (inbox.root / "_held").rglob("*.report.json")]
    assert ['"reason": "quota_reached"' in report for report in reports] == [True] * 3
    assert importer.summary().held == 3
    inbox.drop("ana/late.json", a_document("late"))
    inbox.limit(4)
    importer.round()
    assert inbox.names() == ["0", "1", "2", "3"]
    assert len(inbox.filed("_held")) == 2
    inbox.limit(None)
    importer.round()
    assert inbox.names() == ["0", "1", "2", "3", "4", "late"]
    assert inbox.names_below("_held") == []
    summary = importer.summary()
    assert (summary.done, summary.held, summary.waiting) == (6, 0, 0)
    assert accounts.list_wrong(inbox.store) == []
    assert {row.outcome for row in inbox.rows()} == {FileOutcome.DONE}


def test_a_store_that_fails_while_files_are_released_does_not_hold_them_for_ever(
    full: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **options: object) -> None:
        monkeypatch.undo()
        raise StoreUnavailable("It is locked")

    importer = full.importer(settle_s=0)
    full.limit(10)
    monkeypatch.setattr(import_ledger, "find_items", fail)
    with pytest.raises(StoreUnavailable):
        importer.round()
    importer.round()
    assert full.names() == ["0", "1", "2"]


def test_a_file_that_queues_behind_those_of_a_former_importer_says_why(full: Inbox) -> None:
    full.drop("ana/late.json", a_document("late"))
    full.importer(settle_s=0).round()
    reasons = {str(file.message) for file in full.files}
    assert len(full.files) == 4
    assert len(reasons) == 1
    assert "0 resumes" in reasons.pop()


def test_a_held_file_of_several_is_not_overtaken_while_it_waits_to_be_unpacked(
    inbox: Inbox,
) -> None:
    """Bundles are unpacked one after the other, also those of other accounts."""
    names = ("ana", "bo")
    inbox.limit(0)
    inbox.account("bo", 0)
    importer = inbox.importer(settle_s=0, slice_items=1)
    for name in names:
        inbox.drop(f"{name}/1.ndjson", a_document(f"{name} 1") + b"\n")
    rounds_until(importer, lambda: len(inbox.filed("_held")) == 2)
    for name in names:
        inbox.limit(1, name)
        inbox.drop(f"{name}/2.json", a_document(f"{name} 2"))
        inbox.drop(f"{name}/3.ndjson", a_document(f"{name} 3") + b"\n")
    rounds_until(importer, lambda: len(inbox.filed("_held")) == 4)
    assert (inbox.names(), inbox.names("bo")) == (["ana 1"], ["bo 1"])
    for name in names:
        inbox.limit(None, name)
    rounds_until(importer, lambda: inbox.names_below("_held") == [])
    assert inbox.names("bo") == ["bo 1", "bo 2", "bo 3"]


def test_the_order_of_arrival_outlives_a_kill_and_then_a_clock_that_is_set_back(
    inbox: Inbox,
) -> None:
    inbox.limit(0)
    inbox.drop("ana/early.json", a_document("early"))
    die(inbox.importer(settle_s=0, observe=killing_at(Moment.COMMITTED)))  # held, and not moved yet
    inbox.clock.advance(-7_200)
    inbox.drop("ana/late.json", a_document("late"))
    inbox.importer(settle_s=0).round()
    inbox.limit(1)
    inbox.importer(settle_s=0).round()
    assert inbox.names() == ["early"]


def test_a_number_that_no_clock_can_have_given_does_not_set_the_order_of_others(
    full: Inbox,
) -> None:
    (first, *_) = sorted(full.filed("_held"))
    report_beside(first).unlink()
    first.rename(first.with_name("f" * 24 + first.name[24:]))
    full.drop("ana/late.json", a_document("late"))
    full.importer(settle_s=0).round()
    names = sorted(path.name for path in full.filed("_held"))
    assert [name.startswith("f" * 24) for name in names] == [False, False, False, True]
    assert [len(name.partition("-")[0]) for name in names] == [24] * 4


def test_held_files_of_one_account_are_one_queue_wherever_they_lie(full: Inbox) -> None:
    for path in sorted(full.filed("_held"))[::2]:
        for one in (path, report_beside(path)):
            target = full.root / "_held" / "her-later-name" / one.name
            target.parent.mkdir(exist_ok=True)
            one.rename(target)
    for name in ("_held/ana/by-hand.json", "_held/ana/notes.txt", "_held/stray.json"):
        full.drop(name)
    full.limit(10)
    full.importer(settle_s=0).round()
    assert full.names() == ["0", "1", "2"]
    assert full.names_below("_held") == ["ana/by-hand.json", "ana/notes.txt", "stray.json"]


def test_without_its_report_or_with_an_edited_one_a_held_file_is_released_all_the_same(
    full: Inbox,
) -> None:
    first, second, third = sorted(full.filed("_held"))
    report_beside(first).unlink()
    for path, was, is_now in (
        (second, '"ana"', '"../../../../elsewhere"'),
        (third, "ana/2.json", "\\ud800\\u001b[2J"),
    ):
        report = report_beside(path)
        report.write_text(report.read_text().replace(was, is_now))
    full.limit(10)
    full.importer(settle_s=0).round()
    assert full.names() == ["0", "1", "2"]
    assert all(row.name.isprintable() for row in full.rows())
    places = {(path.parent.name, path.suffix) for path in full.filed("_done")}
    assert places == {("ana", ".json"), (full.ana.id, ".json")}


def test_a_held_file_under_the_number_of_another_is_a_file_of_its_own(inbox: Inbox) -> None:
    inbox.limit(0)
    inbox.drop("ana/2.json", a_document("first"))
    importer = inbox.importer(settle_s=0)
    importer.round()
    (held,) = inbox.filed("_held")
    held.with_name(held.name.replace("2.json", "2-copy.json")).write_bytes(a_document("copy"))
    inbox.limit(10)
    inbox.rounds(importer, 3)
    assert sorted(inbox.names()) == ["copy", "first"]
    assert inbox.counts("done") == [2]
    inbox.limit(2)
    inbox.drop("ana/3.json", a_document("later"))
    importer.round()
    assert inbox.counts("held") == [1]
    inbox.limit(10)
    inbox.rounds(importer, 2)
    assert inbox.counts("done", "held") == [3, 0]


@pytest.mark.parametrize("name", ["cv.ndjson", "cv.json.gz", "cv.ZIP", "cv.report.json"])
def test_files_of_every_kind_are_held_and_released(inbox: Inbox, name: str) -> None:
    inbox.limit(0)
    body = a_document("1")
    content = {"cv.json.gz": gzipped(body), "cv.ZIP": zipped({"a.json": body})}.get(name, body)
    inbox.drop(f"ana/{name}", content)
    importer = inbox.importer(settle_s=0)
    importer.round()
    assert inbox.counts("held") == [1]
    inbox.limit(1)
    importer.round()
    assert inbox.names() == ["1"]
    assert inbox.counts("done", "held") == [1, 0]


def test_i12_files_that_return_make_no_other_account_wait_and_are_not_overtaken(
    full: Inbox,
) -> None:
    full.account("bo")
    full.limit(4)
    for name in ("bo/fresh.json", "ana/fresh.json"):
        full.drop(name)
    full.files.clear()
    rounds_until(full.importer(settle_s=0, batch_files=1), lambda: len(full.files) == 5)
    names = [file.name for file in full.files]
    assert names.index("bo/fresh.json") == 1
    assert [name for name in names if name.startswith("ana")] == [
        *(f"ana/{number}.json" for number in "012"),
        "ana/fresh.json",
    ]
    assert full.counts("held") == [0]


def test_a_held_file_that_somebody_has_open_is_released(full: Inbox) -> None:
    full.limit(1)
    with sorted(full.filed("_held"))[0].open("ab"):
        full.rounds(full.importer(), 2)
    assert full.names() == ["0"]


# What people ask for


@pytest.fixture
def failed(inbox: Inbox) -> Path:
    """A file of ana's that failed."""
    inbox.drop("ana/cv.json", b"{}")
    inbox.importer(settle_s=0).round()
    (path,) = inbox.filed("_failed")
    return path


def test_a_failed_file_is_tried_again_when_somebody_asks(inbox: Inbox, failed: Path) -> None:
    inbox.ask(RequestKind.RETRY)
    importer = inbox.importer(settle_s=0)
    importer.round()
    assert [Path(file.filed_as) for file in inbox.files] == [failed, failed]
    (row,) = inbox.ask(RequestKind.RETRY)
    inbox.drop("ana/other.json", b"{}")
    failed.write_bytes(a_document("corrected"))
    importer.round()
    assert inbox.outcomes() == {"ana/cv.json": "done", "ana/other.json": "failed"}
    again = import_history.get_file(inbox.store, row.claim_id)
    assert (again.outcome, again.reason) == (FileOutcome.DONE, None)
    assert import_requests.list_requests(inbox.store) == []
    assert inbox.report("_failed")["file"] == "ana/other.json"


@pytest.mark.parametrize(
    ("end", "is_killed"), [("failed", False), ("failed", True), ("held", False)]
)
def test_a_file_of_several_that_was_corrected_where_it_was_filed_keeps_its_id(
    inbox: Inbox, end: str, is_killed: bool
) -> None:
    inbox.limit(1 if end == "held" else None)
    inbox.drop("ana/cv.ndjson", lines("1", "" if end == "failed" else "2"))
    inbox.importer(settle_s=0).round()
    (row,) = inbox.ask(RequestKind.RETRY)
    (filed_as,) = inbox.filed(f"_{end}")
    inbox.limit(None)
    filed_as.write_bytes(lines(*"213"))
    if is_killed:
        die(inbox.importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    inbox.importer(settle_s=0).round()
    (again,) = inbox.rows()
    assert (again.claim_id, again.outcome) == (row.claim_id, FileOutcome.DONE)
    assert inbox.names() == list("123")
    assert inbox.counts("done", end) == [1, 0]
    assert import_requests.list_requests(inbox.store) == []


def test_a_retried_bundle_that_is_gone_after_a_kill_in_the_middle_says_so(inbox: Inbox) -> None:
    inbox.drop("ana/cv.ndjson", lines("1", ""))
    inbox.importer(settle_s=0).round()
    (filed_as,) = inbox.filed("_failed")
    filed_as.write_bytes(lines(*"123"))
    inbox.ask(RequestKind.RETRY)
    die(inbox.importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    filed_as.unlink()
    inbox.rounds(inbox.importer(settle_s=0), 3)
    (row,) = inbox.rows()
    assert row.outcome is FileOutcome.FAILED
    assert row.message == (
        "Its import was cut off, and it is no longer in its folder. Retry it when it is back"
    )
    assert import_requests.list_requests(inbox.store) == []


@pytest.mark.parametrize("obstacle", ["closed", "a link"])
def test_a_held_file_that_cannot_be_taken_is_tried_again_in_peace(
    inbox: Inbox, obstacle: str
) -> None:
    inbox.limit(0)
    inbox.drop("ana/cv.json")
    importer = inbox.importer()
    importer.round()
    (held,) = inbox.filed("_held")
    inbox.limit(9)
    folder, elsewhere = inbox.root / "_held", inbox.root.with_name("elsewhere")
    if obstacle == "closed":
        held.parent.chmod(0o555)
    else:
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
    with bound_by_permissions():
        importer.round()
        assert not importer.schedule.has_work
        assert importer.schedule.wait_s() > 0
    if obstacle == "closed":
        held.parent.chmod(0o755)
    else:
        folder.unlink()
        elsewhere.rename(folder)
    importer.round()
    assert inbox.outcomes() == {"ana/cv.json": "done"}


def test_a_request_whose_file_could_not_be_reached_is_still_there(
    inbox: Inbox, failed: Path
) -> None:
    failed.write_bytes(a_document("corrected"))
    inbox.ask(RequestKind.RETRY)
    die(inbox.importer(settle_s=0, observe=killing_at(Moment.READ)))
    failed.parent.chmod(0)
    importer = inbox.importer(settle_s=0)
    with bound_by_permissions():
        importer.round()
    failed.parent.chmod(0o755)
    inbox.rounds(importer, 2)
    assert inbox.outcomes() == {"ana/cv.json": "done"}
    assert import_requests.list_requests(inbox.store) == []


@pytest.mark.parametrize("moment", [Moment.READ, Moment.COMMITTED])
def test_who_asks_again_while_a_file_is_tried_has_it_tried_again(
    inbox: Inbox, failed: Path, moment: Moment
) -> None:
    def correct() -> None:
        if failed.read_bytes() != a_document("corrected"):
            failed.write_bytes(a_document("corrected"))
            inbox.clock.advance(1)
            inbox.ask(RequestKind.RETRY)

    inbox.ask(RequestKind.RETRY)
    importer = inbox.importer(settle_s=0, observe=during(moment, correct))
    rounds_until(importer, lambda: len(inbox.filed("_done")) == 1)
    assert import_requests.list_requests(inbox.store) == []


def test_a_file_that_an_importer_was_killed_over_is_taken_up_once_though_somebody_asked(
    inbox: Inbox,
) -> None:
    inbox.limit(0)
    inbox.drop("ana/cv.json", b"{")
    inbox.importer(settle_s=0).round()
    (path,) = inbox.filed("_failed")
    path.write_bytes(a_document("corrected"))
    inbox.ask(RequestKind.RETRY)
    die(inbox.importer(settle_s=0, observe=killing_at(Moment.NOTED)))
    importer = inbox.importer(settle_s=0)
    importer.turn()
    assert inbox.counts("held", "failed") == [1, 0]
    inbox.limit(1)
    for _ in range(3):
        inbox.advance(1)
        importer.turn()
    assert inbox.names() == ["corrected"]
    assert inbox.counts("done", "held", "failed") == [1, 0, 0]
    assert import_requests.list_requests(inbox.store) == []
    assert [file.outcome for file in inbox.files] == ["failed", "held", "done"]


@pytest.mark.parametrize("what", ["the file", "its report"])
def test_a_request_for_a_file_that_is_not_there_says_so(
    inbox: Inbox, failed: Path, what: str
) -> None:
    (failed if what == "the file" else report_beside(failed)).unlink()
    inbox.limit(0)
    inbox.drop("ana/held.json")
    inbox.importer(settle_s=0).round()
    inbox.filed("_held")[0].unlink()
    inbox.ask(RequestKind.RETRY)
    inbox.importer(settle_s=0).round()
    rows = {row.outcome: str(row.message) for row in inbox.rows()}
    assert rows.keys() == {FileOutcome.HELD, FileOutcome.FAILED}
    assert rows[FileOutcome.FAILED].startswith("Could not retry it: the file is no longer in")
    assert "the file is no longer in" in rows[FileOutcome.HELD]
    assert import_requests.list_requests(inbox.store) == []


def test_a_request_for_a_failed_file_that_cannot_be_moved_yet_waits_for_it(inbox: Inbox) -> None:
    obstacle = inbox.drop("_failed", b"in the way")
    inbox.drop("ana/cv.json", b"{")
    importer = inbox.importer(settle_s=0)
    importer.round()
    (before,) = inbox.ask(RequestKind.RETRY)
    importer.round()
    (row,) = inbox.rows()
    assert row.message == before.message
    obstacle.unlink()
    rounds_until(importer, lambda: len(inbox.files) == 2)
    importer.round()
    assert [file.outcome for file in inbox.files] == [FileOutcome.FAILED] * 2
    assert import_requests.list_requests(inbox.store) == []


def rest(root: Path) -> None:
    """Let nothing in `_failed` have changed for a while."""
    for folder in [root / "_failed", *map(Path, watched_folder.list_folders(root / "_failed"))]:
        os.utime(folder, (1, folder.stat().st_mtime - 60))


def test_a_failed_file_that_is_gone_or_was_moved_back_needs_attention_no_more(inbox: Inbox) -> None:
    for name in ("deleted", "fixed", "kept", "taken"):
        path = inbox.drop(f"ana/{name}.json", b"{")
    take = during(Moment.COMMITTED, lambda: path.unlink(missing_ok=True))  # before it is moved
    importer = inbox.importer(settle_s=0, observe=take)
    importer.round()
    deleted, fixed, kept = inbox.filed("_failed")
    deleted.unlink()
    fixed.write_bytes(a_document("Ada"))
    fixed.rename(inbox.root / "ana" / fixed.name)
    os.utime(kept.parent, (1, time.time() + 30))  # it changed just now, however long a round takes
    importer.round()
    inbox.clock.advance(11)
    importer.round()
    assert len(inbox.rows(outcome=FileOutcome.FAILED)) == 4

    rest(inbox.root)
    importer.round()

    (failed,) = inbox.rows(outcome=FileOutcome.FAILED)
    assert failed.name == "ana/kept.json"
    assert inbox.names() == ["Ada"]
    assert inbox.notices == [
        "Dismissed 3 failed files that someone deleted or moved out of _failed"
    ]


def test_a_file_that_has_just_failed_is_not_missing_yet(inbox: Inbox, failed: Path) -> None:
    failed.unlink()
    rest(inbox.root)
    inbox.clock.advance(9)
    importer = inbox.importer(settle_s=0)
    importer.round()
    assert len(inbox.rows()) == 1
    inbox.clock.advance(2)
    importer.round()
    assert inbox.rows() == []


def names_listed(inbox: Inbox) -> set[str]:
    """The names of the files that the list of failed files has."""
    return {row.name for row in inbox.rows(outcome=FileOutcome.FAILED)}


def see_what_is_gone(inbox: Inbox, importer: Importer) -> None:
    """The importer has looked for what is gone, long after anything changed."""
    inbox.clock.advance(11)
    for _ in range(2):
        if (inbox.root / "_failed").is_dir():
            rest(inbox.root)
        importer.round()


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
    inbox: Inbox, tmp_path: Path, failed: Path, below: str, instead: str
) -> None:
    folder, away = inbox.root / below, tmp_path / "away"
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
    importer = inbox.importer(settle_s=0)
    with bound_by_permissions():
        if instead == "a folder in use":
            inbox.drop("ana/below.json", b"{}")
            importer.round()
            assert "ana/below.json" in names_listed(inbox)
        for _ in range(2):
            see_what_is_gone(inbox, importer)
        assert "ana/cv.json" in names_listed(inbox)
        importer.close()
    if instead == "closed":
        folder.chmod(0o755)
    else:
        if folder.is_dir():
            shutil.rmtree(folder)
        folder.unlink(missing_ok=True)
        away.rename(folder)
    importer = inbox.importer(settle_s=0)
    see_what_is_gone(inbox, importer)
    assert "ana/cv.json" in names_listed(inbox)
    failed.write_bytes(a_document("fixed"))
    inbox.ask(RequestKind.RETRY)
    importer.round()
    assert inbox.outcomes()["ana/cv.json"] == "done"
    assert ("ana/below.json" in names_listed(inbox)) == (instead == "a folder in use")


@pytest.mark.parametrize("pattern", ["*/*", "*", "."])
def test_failed_files_that_were_deleted_with_their_folder_are_dismissed_by_hand(
    inbox: Inbox, failed: Path, pattern: str
) -> None:
    for path in (
        [inbox.root / "_failed"] if pattern == "." else (inbox.root / "_failed").glob(pattern)
    ):
        if path.name.startswith("."):  # as a shell takes `*`
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    see_what_is_gone(inbox, inbox.importer(settle_s=0))
    rows = inbox.rows()
    assert len(rows) == (pattern != "*/*")
    import_requests.dismiss_files(inbox.store, rows)
    assert inbox.rows() == []


def test_nothing_is_followed_out_of_the_folder(inbox: Inbox, tmp_path: Path, failed: Path) -> None:
    away = failed.parent.rename(tmp_path / "away")
    (inbox.root / "_failed" / "invalid_resume").symlink_to(away)
    inbox.ask(RequestKind.RETRY)
    inbox.files.clear()
    inbox.importer(settle_s=0).round()
    assert inbox.files == []
    assert (away / failed.name).exists()


def test_held_files_can_be_dismissed_and_those_that_are_there_are_imported_all_the_same(
    full: Inbox,
) -> None:
    full.filed("_held")[0].unlink()
    import_requests.dismiss_files(full.store, full.rows())
    assert full.rows() == []
    importer = full.importer()
    importer.round()
    full.limit(3)
    importer.round()
    assert len(full.names()) == 2
    assert {row.outcome for row in full.rows()} == {FileOutcome.DONE}


# A folder that was moved


def test_a_request_is_answered_where_the_folder_was_moved_to(inbox: Inbox, failed: Path) -> None:
    (row,) = inbox.ask(RequestKind.RETRY)
    moved = inbox.root.rename(inbox.root.with_name("moved"))
    (moved / failed.relative_to(inbox.root)).write_bytes(a_document("Ada"))
    inbox.importer(settle_s=0, at=moved).round()
    again = import_history.get_file(inbox.store, row.claim_id)
    assert (again.outcome, again.root) == (FileOutcome.DONE, str(moved))
    assert import_requests.list_requests(inbox.store) == []


def test_what_is_not_in_this_folder_is_left_to_the_importer_of_the_other(full: Inbox) -> None:
    rows = full.ask(RequestKind.RELEASE)
    other = full.root.with_name("other")
    other.mkdir()
    full.rounds(full.importer(at=other), 2)
    assert len(import_requests.list_requests(full.store)) == len(rows)
    assert full.rows() == rows


def test_what_is_in_a_folder_of_the_same_path_on_another_machine_is_left_to_its_importer(
    inbox: Inbox, failed: Path
) -> None:
    (there,) = inbox.ask(RequestKind.RETRY)
    inbox.root.rename(inbox.root.with_name("of-another-machine"))
    importers.register(inbox.store, a_row(root=str(inbox.root)))
    inbox.drop("ana/here.json", b"{")
    importer = inbox.importer(settle_s=0)
    importer.round()
    see_what_is_gone(inbox, importer)
    assert import_history.get_file(inbox.store, there.claim_id).message == there.message
    assert [one.claim_id for one in import_requests.list_requests(inbox.store)] == [there.claim_id]
    assert len(inbox.rows(outcome=FileOutcome.FAILED)) == 2
    assert inbox.notices == []


def test_a_file_whose_folder_somebody_watches_is_left_to_that_one(full: Inbox) -> None:
    full.limit(None)
    rows = full.ask(RequestKind.RELEASE)
    importers.register(full.store, a_row(root=str(full.root)))
    moved = full.root.rename(full.root.with_name("moved"))
    for path in filed(moved, "_held"):
        path.rename(path.with_name(f"x{path.name}"))
    full.importer(at=moved).round()
    assert len(import_requests.list_requests(full.store)) == len(rows)
