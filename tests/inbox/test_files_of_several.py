"""Files of several resumes."""

import json
import os
from pathlib import Path

import pytest

from importer.outcomes import MAX_LISTED_ITEMS
from resumes import analyzer
from resumes.errors import StoreUnavailable
from resumes.store import Store, accounts, import_history, import_requests, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import MAX_PROBLEMS, FileOutcome
from resumes.store.import_requests import RequestKind
from tests.support.inbox.builders import (
    FakeMonotonic,
    MakeAccount,
    MakeImporter,
    Moment,
    Told,
    an_account_with_room_for,
    counts,
    die,
    drop,
    filed,
    killing_at,
    lines,
    names_below,
    resume_names,
    rounds_until,
    set_limit,
    the_report,
)
from tests.support.inbox.packing import gzipped, zipped
from tests.support.resumes import a_document
from tests.support.store.builders import Busy, refusing


def test_each_resume_has_an_outcome_of_its_own(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    drop(root, "ana/many.ndjson", lines("1", "", "2", "1"))
    importer = an_importer(settle_s=5)
    importer.round()
    assert told.files == []
    monotonic.advance(5)
    importer.round()
    assert resume_names(store, ana.id) == ["1", "2"]
    report = the_report(root, "_failed/invalid_json")
    assert [(item["place"], item["outcome"]) for item in report["items"]] == [
        ("line 1", "done"),
        ("line 2", "failed"),
        ("line 3", "done"),
        ("line 4", "duplicate"),
    ]
    failed, duplicate = report["items"][1], report["items"][3]
    assert (failed["reason"], failed["byteOffset"]) == ("invalid_json", 1)
    assert duplicate["duplicateOf"] == report["items"][0]["resumeId"]
    (row,) = import_history.list_files(store)
    assert row.outcome is FileOutcome.FAILED
    assert row.items is not None
    assert (row.items.total, row.items.done, row.items.failed) == (4, 2, 1)
    assert [problem.place for problem in row.items.problems] == ["line 2", "line 4"]
    assert told.outcomes() == {"ana/many.ndjson": "failed"}


MARK = b"\xef\xbb\xbf"


def test_files_and_members_may_begin_with_a_byte_order_mark(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    files = {
        "a.json": MARK + a_document("one"),
        "b.json": MARK + b"[" + a_document("array 1") + b"," + a_document("array 2") + b"]",
        "c.ndjson": MARK + lines("line 1", "line 2"),
        "d.json": MARK + lines("look 1", "look 2"),
        "e.json.gz": gzipped(MARK + a_document("gzip")),
        "f.ndjson.gz": gzipped(MARK + lines("packed 1", "packed 2")),
        "g.zip": zipped(
            {"a.json": MARK + a_document("member"), "b.jsonl": MARK + lines("in 1", "in 2")}
        ),
    }
    for name, content in files.items():
        drop(root, f"ana/{name}", content)
    importer = an_importer(settle_s=0)
    for _ in files:
        importer.round()
    assert set(told.outcomes().values()) == {"done"}
    assert len(resume_names(store, ana.id)) == 13
    bad = {
        "middle.ndjson": lines("first") + MARK + a_document("second"),
        "alone.json": MARK,
        "blank.ndjson": MARK + b" \n",
        "in.json": b"[" + MARK + a_document("item") + b"]",
        "sixteen.json": a_document("x").decode().encode("utf-16"),
        "lines.ndjson": lines("x").decode().encode("utf-32"),
    }
    for name, content in bad.items():
        drop(root, f"ana/{name}", content)
    for _ in bad:
        importer.round()
    assert {told.outcomes()[f"ana/{name}"] for name in bad} == {"failed"}
    assert resume_names(store, ana.id)[13:] == ["first"]


D, F, U, H = "done", "failed", "duplicate", "held"


@pytest.mark.parametrize(
    ("outcomes", "end", "message"),
    [
        ([D], D, "Imported: 1 done"),
        ([U, U], U, "2 duplicate. line 1: "),
        ([U, D], D, "Imported: 1 done, 1 duplicate"),
        ([D, F, U], F, "1 done, 1 duplicate, 1 failed. line 2: Invalid JSON"),
        ([U, F], F, "1 duplicate, 1 failed. line 2: Invalid JSON"),
        ([D, F, H], H, "1 done, 1 held, 1 failed. line 3: Maximum resume limit"),
    ],
)
def test_the_file_comes_to_the_worst_end_and_is_a_duplicate_only_when_all_are(
    store: Store,
    root: Path,
    told: Told,
    an_importer: MakeImporter,
    outcomes: list[str],
    end: str,
    message: str,
) -> None:
    an_account_with_room_for(store, 1 + outcomes.count(D))
    importer = an_importer(settle_s=0)
    drop(root, "ana/before.json", a_document("twice"))
    importer.round()
    body = {D: a_document("new"), F: b"nonsense", U: a_document("twice"), H: a_document("held")}
    drop(root, "ana/many.ndjson", b"\n".join(body[outcome] for outcome in outcomes) + b"\n")
    importer.round()
    assert told.outcomes()["ana/many.ndjson"] == end
    report = the_report(root, f"_{end}")
    assert [item["outcome"] for item in report["items"]] == outcomes
    assert report["message"].startswith(message)
    assert (report["reason"] is None) == (end == D)


def test_the_ledger_tells_of_the_first_that_are_not_done(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/many.ndjson", b"nonsense\n" * (MAX_PROBLEMS + 20))
    an_importer(settle_s=0).round()
    (row,) = import_history.list_files(store)
    assert row.items is not None
    assert row.items.failed == MAX_PROBLEMS + 20
    assert len(row.items.problems) == MAX_PROBLEMS


def test_the_report_of_a_very_large_file_lists_failures_first_and_counts_the_rest(
    root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    warned = a_document("warned", hobby="x") + b"\n"
    twice = lines(*["twice"] * (MAX_LISTED_ITEMS + 200))
    drop(root, "ana/many.ndjson", twice + warned + lines("", "", ""))
    an_importer(settle_s=0, slice_items=10_000).round()
    report = the_report(root, "_failed")
    counts = {"total": 1_204, "done": 2, "duplicate": 1_199, "held": 0, "failed": 3}
    assert report["itemCounts"] == counts
    places = [item["place"] for item in report["items"]]
    assert places == [
        *(f"line {number}" for number in range(2, 998)),
        *("line 1201", "line 1202", "line 1203", "line 1204"),
    ]


def test_i20_a_report_has_a_size_whatever_there_is_to_say(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    bell = "\x07"
    fields = {f"{number}{bell * 60}": 1 for number in range(60)}
    warned = [a_document(f"{number}", **fields) for number in range(40)]
    drop(root, "ana/1.ndjson", b"\n".join(warned))
    names = [f"{number}{bell * 60}.json" for number in range(1_050)]
    drop(root, "ana/2.zip", zipped(dict.fromkeys(names, b"0")))
    drop(root, "ana/3.json", a_document("single", **fields))
    importer = an_importer(settle_s=0)
    rounds_until(importer, lambda: not names_below(root / "ana"))
    sizes = [path.stat().st_size for path in root.rglob("*.report.json")]
    assert len(sizes) == 3
    assert max(sizes) < 3_000_000
    rows = {Path(row.name).name: row for row in import_history.list_files(store)}
    assert rows["1.ndjson"].warnings == 40 * 51
    assert (rows["3.json"].warnings, rows["3.json"].items) == (51, None)
    report = the_report(root, "_failed")
    assert report["itemCounts"]["failed"] == 1_050
    assert len(report["items"]) > 500


def test_members_that_are_not_imported_are_named_in_the_report(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    members = {"a.json": a_document("1"), "notes.txt": b"x", "__MACOSX/._a.json": b"x"}
    drop(root, "ana/some.zip", zipped(members))
    drop(root, "ana/none.zip", zipped({"cv.pdf": b"x"}))
    an_importer(settle_s=0).round()
    report = the_report(root, "_done")
    assert report["message"] == (
        "Imported: 1 done. Skipped 2 members: notes.txt (not .json, .ndjson or .jsonl), "
        "__MACOSX/._a.json (in a system folder)"
    )
    assert [one["member"] for one in report["skipped"]] == ["notes.txt", "__MACOSX/._a.json"]
    assert report["skippedCount"] == 2
    done = import_history.list_files(store, outcome=FileOutcome.DONE)[0].items
    assert done is not None
    assert (done.skipped, done.warnings) == (2, 0)
    failed = the_report(root, "_failed")
    assert [one["reason"] for one in failed["skipped"]] == ["ending"]
    assert "cv.pdf (not .json" in failed["message"]


def test_a_file_of_one_has_no_items(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.json")
    an_importer().round()
    assert import_history.list_files(store)[0].items is None


@pytest.mark.parametrize("name", ["cv.json", "cv.ndjson", "cv.json.gz", "cv.ZIP", "cv.jsonl"])
def test_files_of_several_wait_until_they_were_quiet(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
    name: str,
) -> None:
    body = a_document("1")
    content = {"cv.json": b"[" + body + b"]", "cv.json.gz": gzipped(body)}
    content["cv.ZIP"] = zipped({"a.json": body})
    drop(root, f"ana/{name}", content.get(name, body))
    importer = an_importer(settle_s=5)
    importer.round()
    monotonic.advance(4.9)
    importer.round()
    assert resume_names(store, ana.id) == []
    monotonic.advance(0.1)
    importer.round()
    assert resume_names(store, ana.id) == ["1"]


def test_one_value_after_all_is_judged_as_one(
    root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.json", b'{"header": 5}')
    drop(root, "ana/cv.json.gz", gzipped(b'{"header": 5}'))
    an_importer(settle_s=0).round()
    messages = {
        path.read_text().split('"message":')[1].split(",")[0]
        for path in (root / "_failed").rglob("*.report.json")
    }
    assert len(messages) == 1


def test_a_file_that_cannot_be_unpacked_is_refused_whole(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cut.zip", zipped({"a.json": a_document("a")})[:-10])
    an_importer(settle_s=0).round()
    assert resume_names(store, ana.id) == []
    (row,) = import_history.list_files(store)
    assert row.reason == the_report(root, "_failed")["reason"] == "invalid_archive"


def test_a_member_that_cannot_be_had_is_refused_and_the_others_are_not(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.zip", zipped({"a.json": a_document("a"), "b.zip": b"PK\x03\x04"}))
    an_importer(settle_s=0).round()
    assert resume_names(store, ana.id) == ["a"]
    assert the_report(root, "_failed/invalid_archive")["items"][1]["place"] == "member b.zip"


def test_a_file_larger_than_may_be_unpacked_is_told_the_limit(
    root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/large.ndjson", lines("1", "2"))
    an_importer(settle_s=0, max_file_bytes=20).round()
    assert "max_file_bytes" in the_report(root, "_failed/too_large")["message"]


# Slices


def test_a_large_file_is_imported_in_slices_and_others_get_their_turn(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    drop(root, "ana/many.ndjson", lines(*"12345"))
    importer = an_importer(settle_s=0, slice_items=2)
    while not resume_names(store, ana.id):
        importer.turn()
    assert resume_names(store, ana.id) == ["1", "2"]
    assert importer.progress().waiting == 1
    drop(root, "bo/quick.json", a_document("quick"))
    importer.round()
    assert resume_names(store, ana.id) == list("12345")
    assert resume_names(store, bo.id) == ["quick"]
    assert [file.name for file in told.files] == ["bo/quick.json", "ana/many.ndjson"]


def test_a_slice_of_large_resumes_has_fewer(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/many.ndjson", lines(*"12345"))
    importer = an_importer(settle_s=0, slice_bytes=1)
    while not resume_names(store, ana.id):
        importer.turn()
    assert resume_names(store, ana.id) == ["1"]
    importer.round()
    assert resume_names(store, ana.id) == list("12345")


@pytest.mark.parametrize("names", ["S12345", "12S3S4", "12345S", "SS", "S"])
def test_what_the_store_cannot_take_fails_alone_and_the_rest_of_its_slice_is_imported(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    ana: AccountInfo,
    an_importer: MakeImporter,
    names: str,
) -> None:
    def strange(body: bytes, *_: object) -> object:
        resume = parse(body)
        return resume._replace(title="\ud800") if resume.name == "S" else resume

    parse = analyzer.parse_imported
    drop(root, "ana/many.ndjson", lines(*names))
    with monkeypatch.context() as patch:
        patch.setattr("resumes.analyzer.parse_imported", strange)
        an_importer(settle_s=0, slice_items=4).round()
    assert resume_names(store, ana.id) == list(names.replace("S", ""))
    report = the_report(root, "_failed/internal_error")
    assert [item["outcome"] for item in report["items"]] == [
        "failed" if name == "S" else "done" for name in names
    ]


@pytest.mark.parametrize("is_bundle", [False, True], ids=["files", "bundle"])
def test_what_the_database_refuses_fails_alone_and_its_content_is_not_logged(
    store: Store,
    root: Path,
    told: Told,
    an_account: MakeAccount,
    an_importer: MakeImporter,
    caplog: pytest.LogCaptureFixture,
    is_bundle: bool,
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    names = ["1", "Refused", "2", "Refused", "3"]
    if is_bundle:
        drop(root, "ana/many.ndjson", lines(*names))
    for number, name in enumerate([] if is_bundle else names):
        drop(root, f"ana/{number}.json", a_document(name, nickname=f"{number}"))
    drop(root, "bo/cv.json", a_document("bo"))
    importer = an_importer(settle_s=0)
    with refusing(store):
        for _ in range(2):
            importer.round()
    assert sorted(resume_names(store, ana.id)) == ["1", "2", "3"]
    assert resume_names(store, bo.id) == ["bo"]
    assert not importer.has_work
    failed = [row for row in import_history.list_files(store) if row.outcome == "failed"]
    assert {row.reason for row in failed} == {"internal_error"}
    assert len(failed) == (1 if is_bundle else 2)
    assert "refused the values" in caplog.text
    assert "Builds" not in caplog.text
    assert "Traceback" not in caplog.text
    import_requests.request_files(store, failed, RequestKind.RETRY)
    for _ in range(2):
        importer.round()
    assert {file.outcome for file in told.files[-len(failed) :]} <= {"done", "duplicate"}
    assert len(resume_names(store, ana.id)) == (4 if is_bundle else 5)


def test_it_is_gone_on_with_when_the_store_is_back(
    store: Store, root: Path, busy: Busy, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/many.ndjson", lines(*"12345"))
    importer = an_importer(settle_s=0, slice_items=2, write_timeout_s=0.5)
    while not resume_names(store, ana.id):
        importer.turn()
    with busy.held(), pytest.raises(StoreUnavailable):
        importer.round()
    assert resume_names(store, ana.id) == ["1", "2"]
    importer.round()
    assert resume_names(store, ana.id) == list("12345")
    assert the_report(root, "_done")["message"] == "Imported: 5 done"


def test_one_that_was_cut_off_is_gone_on_with_and_remembers_what_was_imported(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/many.ndjson", lines(*"12345"))
    dying = an_importer(settle_s=0, slice_items=2)
    while not resume_names(store, ana.id):
        dying.turn()
    (_, second) = stored_resumes.list_page(store, ana.id).entries
    stored_resumes.delete_resume(store, ana.id, second.id)
    dying.close()
    an_importer(settle_s=5).round()
    assert resume_names(store, ana.id) == ["1", "3", "4", "5"]
    assert the_report(root, "_done")["message"] == "Imported: 5 done"


@pytest.mark.parametrize("names", ["abcd", ""], ids=["changed", "deleted"])
def test_one_that_was_cut_off_and_is_not_what_it_was_is_not_listed_for_ever(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter, names: str
) -> None:
    path = drop(root, "ana/cv.ndjson", lines(*"abc"))
    die(an_importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    path.unlink()
    if names:
        path.write_bytes(lines(*names))
    an_importer(settle_s=0).round()
    assert {row.outcome for row in import_history.list_files(store)} <= {FileOutcome.DONE}
    assert resume_names(store, ana.id) == list(names or "a")


def test_one_whose_account_goes_meanwhile_says_so(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/many.ndjson", lines(*"12345"))
    importer = an_importer(settle_s=0, slice_items=2)
    while not resume_names(store, ana.id):
        importer.turn()
    accounts.delete_account(store, "ana", with_resumes=True)
    importer.round()
    assert the_report(root, "_failed")["reason"] == "account_deleted"
    assert names_below(root / "ana") == []


def test_one_that_changes_after_it_was_quiet_waits_once_more(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    alias = root.parent / "alias"
    os.link(drop(root, "ana/many.ndjson", lines("1", "2")), alias)
    importer = an_importer(settle_s=5)
    importer.round()
    monotonic.advance(4)
    with alias.open("ab") as file:
        file.write(lines("3"))
    for _ in range(2):
        importer.round()
        monotonic.advance(2)
    assert resume_names(store, ana.id) == []
    assert importer.summary().waiting == 1
    monotonic.advance(3)
    importer.round()
    assert resume_names(store, ana.id) == ["1", "2", "3"]


# More than the plan allows


def test_what_does_not_fit_is_imported_when_there_is_room(
    store: Store, root: Path, told: Told, an_importer: MakeImporter
) -> None:
    account = an_account_with_room_for(store, 2)
    drop(root, "ana/many.ndjson", lines("1", "2", "3", ""))
    importer = an_importer(settle_s=0)
    importer.round()
    assert resume_names(store, account.id) == ["1", "2"]
    assert the_report(root, "_held")["message"].startswith("2 done, 1 held, 1 failed")
    set_limit(store, "ana", 4)
    importer.round()
    assert resume_names(store, account.id) == ["1", "2", "3"]
    assert told.outcomes() == {"ana/many.ndjson": "failed"}
    assert counts(root, "failed", "held") == [1, 0]
    assert accounts.list_wrong(store) == []


def test_one_queues_behind_held_files_and_those_behind_it_are_told_of_the_plan(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    account = an_account_with_room_for(store, 0)
    importer = an_importer(settle_s=0)
    drop(root, "ana/2.ndjson", lines("2", "3"))
    importer.round()
    drop(root, "ana/4.json", a_document("4"))
    importer.changes.mark("ana")
    while counts(root, "held") == [1]:  # without a look at what is held
        importer.turn()
    reports = [json.loads(path.read_bytes()) for path in (root / "_held").rglob("*.report.json")]
    limit = "Maximum resume limit reached. Your plan allows 0 resumes"
    assert {report["file"]: report["message"] for report in reports} == {
        "ana/2.ndjson": f"2 held. line 1: {limit}",
        "ana/4.json": limit,
    }
    set_limit(store, "ana", None)
    importer.round()
    assert resume_names(store, account.id) == ["2", "3", "4"]


def test_a_held_array_is_gone_on_with_although_it_bears_the_name_of_one_resume(
    store: Store, root: Path, an_importer: MakeImporter
) -> None:
    account = an_account_with_room_for(store, 1)
    drop(root, "ana/three.json", b"[" + b",".join(map(a_document, "123")) + b"]")
    importer = an_importer(settle_s=0)
    importer.round()
    importer.close()
    set_limit(store, "ana", 10)
    an_importer(settle_s=5).round()
    assert resume_names(store, account.id) == ["1", "2", "3"]
    assert len(filed(root, "_done")) == 1
