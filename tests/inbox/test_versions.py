"""Newer versions of a person's resume in the watched folder, in an account that replaces older ones."""

import pytest

from resumes.analyzer import parse
from resumes.store import accounts, import_ledger, stored_resumes
from resumes.store.creation import Created, NewResume, create
from resumes.store.import_ledger import FileOutcome
from resumes.store.import_requests import RequestKind
from tests.support.inbox.builders import Inbox, Moment, die, killing_at, rounds_until
from tests.support.resumes import a_document


@pytest.fixture
def replacing(inbox: Inbox) -> Inbox:
    """An inbox whose account replaces older versions."""
    accounts.set_options(inbox.store, "ana", {"on_newer": "replace"})
    return inbox


def titles(inbox: Inbox) -> list[str]:
    """The titles of ana's resumes, oldest first."""
    page = stored_resumes.list_page(inbox.store, inbox.ana.id, limit=100)
    return [entry.title or "" for entry in page.entries]


def send(inbox: Inbox, name: str, title: str) -> Created:
    """A client creates a resume, a second later."""
    inbox.clock.advance(1)
    new = NewResume(parse(a_document(name, title=title)))
    (outcome,) = create(inbox.store, inbox.ana.id, [new])
    assert isinstance(outcome, Created)
    inbox.clock.advance(1)
    return outcome


def test_a_newer_file_replaces_the_older_one_and_its_report_says_so(replacing: Inbox) -> None:
    replacing.drop("ana/old.json", a_document(title="Old"))
    replacing.drain()
    (old,) = stored_resumes.list_page(replacing.store, replacing.ana.id).entries

    replacing.clock.advance(1)
    path = replacing.drop("ana/new.json", a_document(title="New"))
    replacing.drain()

    assert titles(replacing) == ["New"]
    new_row, old_row = replacing.rows()
    assert (new_row.outcome, old_row.outcome) == (FileOutcome.DONE, FileOutcome.DONE)
    replaced = import_ledger.list_replaced(replacing.store, replacing.ana.id, new_row.claim_id)
    assert replaced == (old.id,)
    assert replacing.files[-1].message == f"Imported. It replaced {old.id}"
    assert replacing.report("_done")["replaced"] == [old.id]
    assert not path.exists()

    # What was replaced is a duplicate of what replaced it.
    replacing.drop("ana/again.json", a_document(title="Old"))
    replacing.drain()
    assert titles(replacing) == ["New"]
    assert "A newer version of this resume is already stored as" in str(replacing.files[-1].message)


@pytest.mark.parametrize("name", ["new.json", "new.ndjson"])
@pytest.mark.parametrize("moment", [Moment.NOTED, Moment.READ, Moment.COMMITTED, Moment.MOVED])
def test_what_was_replaced_is_reported_however_the_import_was_cut_off(
    replacing: Inbox, moment: Moment, name: str
) -> None:
    old = send(replacing, "Ada Example", "Old")
    replacing.drop(f"ana/{name}", a_document(title="New"))
    die(replacing.importer(settle_s=0, observe=killing_at(moment)))
    rounds_until(replacing.importer(settle_s=0), lambda: len(replacing.filed("_done")) == 1)
    assert titles(replacing) == ["New"]
    report = replacing.report("_done")
    items = report["items"] or [report]
    assert [item["replaced"] for item in items] == [[old.id]]
    assert accounts.list_wrong(replacing.store) == []


@pytest.mark.parametrize("moment", [Moment.COMMITTED, Moment.MOVED])
def test_an_older_file_is_said_to_be_older_even_after_its_import_was_cut_off(
    replacing: Inbox, moment: Moment
) -> None:
    replacing.limit(0)
    replacing.drop("ana/old.json", a_document(title="Old"))
    replacing.importer(settle_s=0).round()
    replacing.limit(1)
    newer = send(replacing, "Ada Example", "New")
    replacing.limit(2)
    die(replacing.importer(settle_s=0, observe=killing_at(moment)))
    rounds_until(replacing.importer(settle_s=0), lambda: len(replacing.filed("_duplicate")) == 1)
    assert titles(replacing) == ["New"]
    report = replacing.report("_duplicate")
    assert report["duplicateOf"] == newer.id
    assert report["message"] == f"A newer version of this resume is already stored as {newer.id}"
    assert [row.message for row in replacing.rows()] == [report["message"]]


def test_a_newer_version_passes_the_files_that_are_held(replacing: Inbox) -> None:
    replacing.limit(1)
    send(replacing, "Ada", "Old")
    for number, (name, title) in enumerate((("Bo", "Held"), ("Ada", "New"), ("Cy", "Held"))):
        replacing.drop(f"ana/{number}.json", a_document(name, title=title))
        replacing.importer(settle_s=0).round()
    assert titles(replacing) == ["New"]
    assert replacing.counts("done", "held") == [1, 2]
    replacing.limit(2)
    replacing.importer(settle_s=0).round()
    assert titles(replacing) == ["New", "Held"]
    assert replacing.names() == ["Ada", "Bo"]


def test_s26_a_failed_file_that_is_corrected_does_not_replace_what_came_after_it(
    replacing: Inbox,
) -> None:
    replacing.drop("ana/old.json", b"{}")
    replacing.drain()
    send(replacing, "Ada Example", "New")
    (failed,) = replacing.filed("_failed")
    failed.write_bytes(a_document(title="Old"))
    replacing.ask(RequestKind.RETRY)
    replacing.drain()
    assert titles(replacing) == ["New"]
    assert replacing.counts("done", "duplicate", "failed") == [0, 1, 0]


def test_the_items_of_a_bundle_replace_each_other_and_the_counts_say_so(replacing: Inbox) -> None:
    old = send(replacing, "Ada", "0")
    texts = [a_document(name, title=str(n)) for n, name in enumerate(("Ada", "Bo", "Ada"), 1)]
    replacing.drop("ana/all.ndjson", b"\n".join(texts))
    replacing.drain()
    assert titles(replacing) == ["2", "3"]
    assert replacing.files[-1].message == "Imported: 3 done. Replaced 2 older versions"
    first, _, third = replacing.report("_done")["items"]
    assert (first["replaced"], third["replaced"]) == ([old.id], [first["resumeId"]])


def test_a_dry_run_knows_what_would_be_replaced(replacing: Inbox) -> None:
    replacing.limit(1)
    send(replacing, "Ada", "Old")
    replacing.drop_aged("Ada", "Bo")
    replacing.files.clear()
    replacing.drain(dry_run=True)
    told = replacing.outcomes()
    assert told == {"ana/Ada.json": FileOutcome.DONE, "ana/Bo.json": FileOutcome.HELD}
    assert titles(replacing) == ["Old"]
