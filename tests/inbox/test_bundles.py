"""Bundles: files with several resumes."""

from pathlib import Path
from typing import Any

import pytest

from importer.outcomes import MAX_LISTED_ITEMS
from resumes.store import import_requests, stored_resumes
from resumes.store.import_ledger import MAX_PROBLEMS, FileOutcome
from resumes.store.import_requests import RequestKind
from tests.support.inbox import oracle
from tests.support.inbox.builders import Inbox, Moment, die, killing_at, lines, rounds_until
from tests.support.inbox.packing import gzipped, zipped
from tests.support.resumes import a_document
from tests.support.store.builders import refusing


def test_each_resume_has_an_outcome_of_its_own(inbox: Inbox) -> None:
    inbox.drop("ana/many.ndjson", lines("1", "", "2", "1"))
    importer = inbox.importer(settle_s=5)
    importer.round()
    assert inbox.files == []
    inbox.advance(5)
    importer.round()
    assert inbox.names() == ["1", "2"]
    report = inbox.report("_failed/invalid_json")
    assert [(item["place"], item["outcome"]) for item in report["items"]] == [
        ("line 1", "done"),
        ("line 2", "failed"),
        ("line 3", "done"),
        ("line 4", "duplicate"),
    ]
    failed, duplicate = report["items"][1], report["items"][3]
    assert (failed["reason"], failed["byteOffset"]) == ("invalid_json", 1)
    assert duplicate["duplicateOf"] == report["items"][0]["resumeId"]
    (row,) = inbox.rows()
    assert row.outcome is FileOutcome.FAILED
    assert row.items is not None
    assert (row.items.total, row.items.done, row.items.failed) == (4, 2, 1)
    assert [problem.place for problem in row.items.problems] == ["line 2", "line 4"]
    assert inbox.outcomes() == {"ana/many.ndjson": "failed"}


MARK = b"\xef\xbb\xbf"


def test_files_and_members_may_begin_with_a_byte_order_mark(inbox: Inbox) -> None:
    files = {
        "a.json": MARK + a_document("one"),
        "b.json": MARK + b"[" + a_document("array") + b"]",
        "c.ndjson": MARK + lines("line 1") + MARK + a_document("line 2, which may not"),
        "d.json": MARK + lines("look 1", "look 2"),
        "e.json.gz": gzipped(MARK + a_document("gzip")),
        "f.ndjson.gz": gzipped(MARK + lines("packed")),
        "g.zip": zipped({"a.json": MARK + a_document("member"), "b.jsonl": MARK + lines("in")}),
        "sixteen.json": a_document("x").decode().encode("utf-16"),
    }
    for name, content in files.items():
        inbox.drop(f"ana/{name}", content)
    inbox.rounds(inbox.importer(settle_s=0), len(files))
    failed = {name for name, outcome in inbox.outcomes().items() if outcome == "failed"}
    assert failed == {"ana/c.ndjson", "ana/sixteen.json"}
    names = ["one", "array", "line 1", "look 1", "look 2", "gzip", "packed", "member", "in"]
    assert sorted(inbox.names()) == sorted(names)


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
    inbox: Inbox, outcomes: list[str], end: str, message: str
) -> None:
    inbox.limit(1 + outcomes.count(D))
    importer = inbox.importer(settle_s=0)
    inbox.drop("ana/before.json", a_document("twice"))
    importer.round()
    body = {D: a_document("new"), F: b"nonsense", U: a_document("twice"), H: a_document("held")}
    inbox.drop("ana/many.ndjson", b"\n".join(body[outcome] for outcome in outcomes) + b"\n")
    importer.round()
    assert inbox.outcomes()["ana/many.ndjson"] == end
    report = inbox.report(f"_{end}")
    assert [item["outcome"] for item in report["items"]] == outcomes
    assert report["message"].startswith(message)
    assert (report["reason"] is None) == (end == D)


def test_the_report_of_a_very_large_file_lists_failures_first_and_counts_the_rest(
    inbox: Inbox,
) -> None:
    warned = a_document("warned", hobby="x") + b"\n"
    twice = lines(*["twice"] * (MAX_LISTED_ITEMS + 200))
    inbox.drop("ana/many.ndjson", twice + warned + lines("", "", ""))
    inbox.importer(settle_s=0, slice_items=10_000).round()
    report = inbox.report("_failed")
    counts = {"total": 1_204, "done": 2, "duplicate": 1_199, "held": 0, "failed": 3}
    assert report["itemCounts"] == counts
    places = [item["place"] for item in report["items"]]
    assert places == [
        *(f"line {number}" for number in range(2, 998)),
        *("line 1201", "line 1202", "line 1203", "line 1204"),
    ]


def test_i20_a_report_has_a_size_whatever_there_is_to_say(inbox: Inbox) -> None:
    bell = "\x07"
    fields = {f"{number}{bell * 60}": 1 for number in range(60)}
    warned = [a_document(f"{number}", **fields) for number in range(40)]
    inbox.drop("ana/1.ndjson", b"\n".join(warned))
    names = [f"{number}{bell * 60}.json" for number in range(1_050)]
    inbox.drop("ana/2.zip", zipped(dict.fromkeys(names, b"0")))
    inbox.drop("ana/3.json", a_document("single", **fields))
    rounds_until(inbox.importer(settle_s=0), lambda: not inbox.names_below("ana"))
    sizes = [path.stat().st_size for path in inbox.root.rglob("*.report.json")]
    assert len(sizes) == 3
    assert max(sizes) < 3_000_000
    rows = {Path(row.name).name: row for row in inbox.rows()}
    assert rows["1.ndjson"].warnings == 40 * 51
    assert (rows["3.json"].warnings, rows["3.json"].items) == (51, None)
    items = rows["2.zip"].items
    assert items is not None
    assert (items.failed, len(items.problems)) == (1_050, MAX_PROBLEMS)
    report = inbox.report("_failed")
    assert report["itemCounts"]["failed"] == 1_050
    assert len(report["items"]) > 500


def test_members_that_are_not_imported_are_named_in_the_report(inbox: Inbox) -> None:
    members = {"a.json": a_document("1"), "notes.txt": b"x", "__MACOSX/._a.json": b"x"}
    inbox.drop("ana/some.zip", zipped(members))
    inbox.drop("ana/none.zip", zipped({"cv.pdf": b"x"}))
    inbox.importer(settle_s=0).round()
    report = inbox.report("_done")
    assert report["message"] == (
        "Imported: 1 done. Skipped 2 members: notes.txt (not .json, .ndjson or .jsonl), "
        "__MACOSX/._a.json (in a system folder)"
    )
    assert [one["member"] for one in report["skipped"]] == ["notes.txt", "__MACOSX/._a.json"]
    assert report["skippedCount"] == 2
    done = inbox.rows(outcome=FileOutcome.DONE)[0].items
    assert done is not None
    assert (done.skipped, done.warnings) == (2, 0)
    failed = inbox.report("_failed")
    assert [one["reason"] for one in failed["skipped"]] == ["ending"]
    assert "cv.pdf (not .json" in failed["message"]


def test_each_format_gives_the_same_resumes_and_again_they_are_duplicates(inbox: Inbox) -> None:
    names = [f"number {number}" for number in range(20)]
    bodies = [*map(a_document, names)]
    files = {
        "array.json": b"[" + b",\n".join(bodies) + b"]",
        "lines.json": b"\n".join(bodies) + b"\n",
        "lines.jsonl": b"\n".join(bodies),
        "lines.ndjson.gz": gzipped(b"\n".join(bodies)),
        "array.json.gz": gzipped(b"[" + b",".join(bodies) + b"]"),
        "files.zip": zipped({f"in/{number}.json": body for number, body in enumerate(bodies)}),
        "lines.zip": zipped({"all.ndjson": b"\n".join(bodies)}),
    }
    for number, (name, content) in enumerate(files.items()):
        inbox.account(f"first-{number}")
        for folder in (f"first-{number}", "ana"):
            inbox.drop(f"{folder}/{name}", content)
    rounds_until(inbox.importer(settle_s=0), lambda: len(inbox.files) == 2 * len(files))
    for number in range(len(files)):
        assert inbox.names(f"first-{number}") == names
    assert inbox.names() == names
    assert inbox.counts("done", "duplicate") == [len(files) + 1, len(files) - 1]


# Slices


@pytest.mark.parametrize(("full", "first"), [({"slice_items": 2}, "12"), ({"slice_bytes": 1}, "1")])
def test_a_large_file_is_imported_in_slices_and_others_get_their_turn(
    inbox: Inbox, full: dict[str, Any], first: str
) -> None:
    inbox.account("bo")
    inbox.drop("ana/many.ndjson", lines(*"12345"))
    importer = inbox.importer(settle_s=0, **full)
    while not inbox.names():
        importer.turn()
    assert inbox.names() == list(first)
    assert importer.progress().waiting == 1
    inbox.drop("bo/quick.json", a_document("quick"))
    importer.round()
    assert inbox.names() == list("12345")
    assert inbox.names("bo") == ["quick"]
    assert [file.name for file in inbox.files] == ["bo/quick.json", "ana/many.ndjson"]


@pytest.mark.parametrize("is_bundle", [False, True], ids=["files", "bundle"])
@pytest.mark.parametrize("names", ["1R2R3", "R12345", "12345R", "RR", "R"])
def test_what_the_database_refuses_fails_alone_and_its_content_is_not_logged(
    inbox: Inbox, caplog: pytest.LogCaptureFixture, names: str, is_bundle: bool
) -> None:
    inbox.account("bo")
    bodies = [
        a_document("Refused" if name == "R" else name, nickname=str(number))
        for number, name in enumerate(names)
    ]
    if is_bundle:
        inbox.drop("ana/many.ndjson", b"\n".join(bodies))
    for number, body in enumerate([] if is_bundle else bodies):
        inbox.drop(f"ana/{number}.json", body)
    inbox.drop("bo/cv.json", a_document("bo"))
    importer = inbox.importer(settle_s=0, slice_items=4)
    with refusing(inbox.store):
        inbox.rounds(importer, 2)
    assert sorted(inbox.names()) == sorted(names.replace("R", ""))
    assert inbox.names("bo") == ["bo"]
    assert not importer.schedule.has_work
    failed = inbox.rows(outcome=FileOutcome.FAILED)
    assert {row.reason for row in failed} == {"internal_error"}
    assert len(failed) == (1 if is_bundle else names.count("R"))
    if is_bundle:
        items = inbox.report("_failed/internal_error")["items"]
        assert [item["outcome"] == "failed" for item in items] == [name == "R" for name in names]
    assert "refused the values" in caplog.text
    assert "Builds" not in caplog.text
    assert "Traceback" not in caplog.text
    import_requests.request_files(inbox.store, failed, RequestKind.RETRY)
    inbox.rounds(importer, 2)
    assert {file.outcome for file in inbox.files[-len(failed) :]} == {"done"}
    assert len(inbox.names()) == len(names)


def test_one_that_was_cut_off_is_gone_on_with_and_remembers_what_was_imported(inbox: Inbox) -> None:
    inbox.drop("ana/many.ndjson", lines(*"12345"))
    dying = inbox.importer(settle_s=0, slice_items=2)
    while not inbox.names():
        dying.turn()
    (_, second) = stored_resumes.list_page(inbox.store, inbox.ana.id).entries
    stored_resumes.delete_resume(inbox.store, inbox.ana.id, second.id)
    dying.close()
    inbox.importer(settle_s=5).round()
    assert inbox.names() == ["1", "3", "4", "5"]
    assert inbox.report("_done")["message"] == "Imported: 5 done"


@pytest.mark.parametrize("names", ["abcd", ""], ids=["changed", "deleted"])
def test_one_that_was_cut_off_and_is_not_what_it_was_is_not_listed_for_ever(
    inbox: Inbox, names: str
) -> None:
    path = inbox.drop("ana/cv.ndjson", lines(*"abc"))
    die(inbox.importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    path.unlink()
    if names:
        path.write_bytes(lines(*names))
    inbox.importer(settle_s=0).round()
    assert {row.outcome for row in inbox.rows()} <= {FileOutcome.DONE}
    assert inbox.names() == list(names or "a")


# More than the plan allows


def test_one_queues_behind_held_files_and_those_behind_it_are_told_of_the_plan(
    inbox: Inbox,
) -> None:
    inbox.limit(0)
    importer = inbox.importer(settle_s=0)
    inbox.drop("ana/2.ndjson", lines("2", "3"))
    importer.round()
    inbox.drop("ana/4.json", a_document("4"))
    importer.changes.mark("ana")
    while inbox.counts("held") == [1]:  # without a look at what is held
        importer.turn()
    reports = oracle.reports_of(inbox.root, "held")
    limit = "Maximum resume limit reached. Your plan allows 0 resumes"
    assert {name: report["message"] for name, report in reports.items()} == {
        "ana/2.ndjson": f"2 held. line 1: {limit}",
        "ana/4.json": limit,
    }
    inbox.limit(None)
    importer.round()
    assert inbox.names() == ["2", "3", "4"]
