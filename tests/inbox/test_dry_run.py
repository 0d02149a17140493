"""What would become of the files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from importer.dry_run import Ignored
from importer.service import Summary
from resumes.store import accounts
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import SkipReason
from tests.support.inbox.builders import Inbox, bound_by_permissions, drop, lines
from tests.support.inbox.packing import gzipped, zipped
from tests.support.resumes import a_document


@pytest.fixture
def ignored() -> list[Ignored]:
    """What was told to be left."""
    return []


@pytest.fixture
def dry_run(inbox: Inbox, ignored: list[Ignored]) -> Callable[..., Summary]:
    """Rehearses the import of ROOT: `dry_run(account="ana")`."""

    def run(**options: Any) -> Summary:
        return inbox.drain(dry_run=True, on_ignored=ignored.append, **options)

    return run


DryRun = Callable[..., Summary]


def drop_one_of_each(root: Path) -> None:
    """Files of every kind, and for every outcome but held."""
    contents = {
        "1.json": a_document("1"),
        "2.json": b" " + a_document("1"),
        "3.json": b"nonsense",
        "4.json": b'{"header": {}}',
        "5.ndjson": a_document("5") + b"\n" + a_document("1") + b"\n",
        "6.json.gz": gzipped(a_document("6", nickname="six")),
        "7.zip": zipped({"a.txt": b"nothing"}),
        "8.json": a_document("8"),
        "9.json": a_document("8"),
    }
    for age, (name, content) in enumerate(contents.items()):
        os.utime(drop(root, f"ana/{name}", content), ns=(age, age))


def test_the_verdicts_are_those_of_the_import_itself_and_nothing_is_changed(
    inbox: Inbox, dry_run: DryRun
) -> None:
    inbox.drop("ana/before.json", a_document("before"))
    inbox.importer().round()
    inbox.files.clear()
    drop_one_of_each(inbox.root)
    inbox.drop("ana/stored.json", a_document("before"))
    inbox.drop("ana/cut.json", a_document("cut")[:-1])
    before = {path: path.stat().st_mtime_ns for path in inbox.root.rglob("*")}
    rehearsed = dry_run(settle_s=60)
    assert rehearsed == Summary(done=4, failed=4, duplicate=3)
    assert {path: path.stat().st_mtime_ns for path in inbox.root.rglob("*")} == before
    assert inbox.names() == ["before"]
    assert len(inbox.rows()) == accounts.get_account(inbox.store, "ana").resume_count == 1
    foretold = verdicts(inbox)
    folders = {one.name: Path(one.filed_as) for one in inbox.files}
    again = {one.name: one.resume_id for one in inbox.files if one.resume_id}
    assert again.keys() == {"ana/stored.json"}
    inbox.files.clear()
    importer = inbox.importer(settle_s=0)
    importer.round()
    assert verdicts(inbox) == foretold
    assert {one.name: Path(one.filed_as).parent for one in inbox.files} == folders
    assert importer.summary() == rehearsed


def verdicts(inbox: Inbox) -> dict[str, tuple[str | None, str | None, int]]:
    """What is said of each file, by name."""
    return {
        one.name: (
            one.reason or one.outcome.value,
            one.message if one.outcome is FileOutcome.FAILED else None,
            one.warnings,
        )
        for one in inbox.files
    }


def test_what_would_not_fit_or_is_behind_held_files_would_be_held(
    inbox: Inbox, dry_run: DryRun
) -> None:
    inbox.limit(2)
    for age, name in enumerate("1213"):
        os.utime(inbox.drop(f"ana/{age}.json", a_document(name)), ns=(age, age))
    assert dry_run() == Summary(done=2, duplicate=1, held=1)
    assert inbox.outcomes()["ana/3.json"] == "held"
    inbox.limit(0)
    inbox.importer().round()
    inbox.limit(5)
    inbox.drop("ana/2.json", a_document("2"))
    inbox.drop("ana/3.ndjson", lines("3", ""))
    assert dry_run() == Summary(held=2)


def test_a_folder_and_the_files_beside_it_are_one_account_s(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.limit(2)
    for name, content in (("1.json", "1"), ("ana/2.json", "1"), ("ana/3.json", "3")):
        inbox.drop(name, a_document(content))
    assert dry_run(account="ana") == Summary(done=2, duplicate=1)


def test_files_of_several_come_after_the_others_whatever_their_age(
    inbox: Inbox, dry_run: DryRun
) -> None:
    inbox.limit(2)
    contents = {"1.ndjson": lines("1", "2", "3"), "2.json": a_document("1")}
    for age, (name, content) in enumerate(contents.items()):
        os.utime(inbox.drop(f"ana/{name}", content), ns=(age, age))
    assert dry_run(settle_s=0.05) == Summary(done=1, held=1)
    foretold = verdicts(inbox)
    inbox.files.clear()
    inbox.drain(settle_s=0.05)
    assert verdicts(inbox) == foretold


def test_files_that_would_be_left_are_counted_and_told(
    inbox: Inbox, ignored: list[Ignored], dry_run: DryRun
) -> None:
    inbox.drop("ana/bad.json", b"{")
    inbox.importer(settle_s=0).round()
    (report,) = (inbox.root / "_failed").rglob("*.report.json")
    report.rename(inbox.root / "ana/old.json")
    inbox.notices.clear()
    inbox.drop("ana/notes.txt")
    inbox.drop("nobody/1.json")
    inbox.drop("2.json")
    assert dry_run() == Summary(ignored=2, waiting=2)
    assert ignored == [("ana/notes.txt", SkipReason.ENDING), ("ana/old.json", SkipReason.REPORT)]
    assert [notice.split(". Use ")[0] for notice in inbox.notices] == [
        "Files directly in the watched folder are ignored",
        'The folder "nobody" does not match any account, so its files are waiting. They will '
        "be imported as soon as an account with that name exists",
    ]
    inbox.notices.clear()
    assert dry_run(account="ana") == Summary(done=1, ignored=2, waiting=1)


def test_files_that_could_not_be_taken_are_told_and_stay(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.drop("ana/ours.json")
    inbox.drop("ana/unread.json").chmod(0)
    (closed := inbox.drop("ana/closed/1.json").parent).chmod(0o500)
    (hidden := inbox.drop("ana/hidden/2.json").parent).chmod(0)
    try:
        with bound_by_permissions():
            foretold = dry_run()
            told_before = sorted(inbox.notices)
            inbox.notices.clear()
            assert {one.reason for one in inbox.files} == {None, "unreadable"}
            assert inbox.drain() == foretold == Summary(done=1, failed=1, waiting=1, stuck=2)
    finally:
        closed.chmod(0o700)
        hidden.chmod(0o700)
    assert told_before == sorted(inbox.notices)
    assert told_before[0].startswith("Cannot pick up ana/closed/1.json: Permission denied")


# Why a file is ignored
