"""Files of people who were erased."""

import json

from importer.service import Summary
from resumes.store import forgotten
from resumes.store.forgotten import Subject
from resumes.store.import_requests import RequestKind
from tests.support.inbox.builders import Inbox
from tests.support.inbox.packing import zipped
from tests.support.resumes import a_document

ADA = "lovelace@example.com"


def of_ada() -> bytes:
    return a_document(header={"name": "Ada Lovelace", "email": ADA})


def test_a_file_of_an_erased_person_fails_and_its_report_names_nobody(inbox: Inbox) -> None:
    forgotten.remember(inbox.store, [Subject.of_email(ADA)])
    inbox.drop("ana/class/ada-lovelace.json", of_ada())
    assert inbox.drain(dry_run=True) == Summary(failed=1)
    inbox.files.clear()
    inbox.drain()

    (filed,) = inbox.filed("_failed")
    assert filed.parent.name == "forgotten"
    assert filed.name.startswith("forgotten-")
    report = inbox.report("_failed")
    assert (report["reason"], report["message"]) == ("forgotten", "This person was erased")
    (row,) = inbox.rows()
    assert row.name == report["file"] == "ana/forgotten.json"
    assert "lovelace" not in json.dumps(report).lower()

    # A retry is refused, too, until it is allowed.
    inbox.ask(RequestKind.RETRY)
    inbox.drain()
    assert inbox.filed("_failed") == [filed]
    forgotten.lift(inbox.store, [Subject.of_email(ADA)])
    inbox.ask(RequestKind.RETRY)
    inbox.drain()
    assert inbox.counts("failed", "done") == [0, 1]


def test_the_others_of_a_bundle_are_imported(inbox: Inbox) -> None:
    forgotten.remember(inbox.store, [Subject.of_email(ADA)])
    members = {
        "bo.json": a_document("Bo"),
        "ada-lovelace.json": of_ada(),
        "eve.json": a_document("Eve"),
    }
    inbox.drop("ana/class.zip", zipped(members))
    inbox.drain()

    (filed,) = inbox.filed("_failed")
    assert filed.parent.name == "forgotten"
    report = inbox.report("_failed")
    assert [item["outcome"] for item in report["items"]] == ["done", "failed", "done"]
    assert "lovelace" not in json.dumps(report).lower()
    (row,) = inbox.rows()
    assert row.items is not None
    assert row.items.problems[0].place == "item 2"
