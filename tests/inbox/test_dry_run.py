"""What would become of the files."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from importer.dry_run import Ignored, find_why
from importer.service import Summary
from resumes.store import accounts
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import ENDINGS, EXTENSIONS, SkipReason
from tests.support.inbox.builders import (
    Inbox,
    bound_by_permissions,
    drop,
    lines,
)
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


def test_the_verdicts_are_those_of_the_import_itself(inbox: Inbox, dry_run: DryRun) -> None:
    drop_one_of_each(inbox.root)
    rehearsed = dry_run()
    assert rehearsed == Summary(done=4, failed=3, duplicate=2)
    foretold = verdicts(inbox)
    inbox.files.clear()
    importer = inbox.importer(settle_s=0)
    importer.round()
    assert verdicts(inbox) == foretold
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


def test_what_would_not_fit_would_be_held(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.limit(2)
    for age, name in enumerate("1213"):
        os.utime(inbox.drop(f"ana/{age}.json", a_document(name)), ns=(age, age))
    assert dry_run() == Summary(done=2, duplicate=1, held=1)
    assert inbox.outcomes()["ana/3.json"] == "held"


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


def test_nothing_is_changed(inbox: Inbox, dry_run: DryRun) -> None:
    drop_one_of_each(inbox.root)
    before = {path: path.stat().st_mtime_ns for path in inbox.root.rglob("*")}
    dry_run()
    assert {path: path.stat().st_mtime_ns for path in inbox.root.rglob("*")} == before
    assert inbox.names() == []
    assert inbox.rows() == []
    assert accounts.get_account(inbox.store, "ana").resume_count == 0


def test_it_is_said_where_each_file_would_go(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.drop("ana/1.json", a_document("1", nickname="one"))
    inbox.drop("ana/2.json", b"{")
    dry_run()
    done, failed = sorted(inbox.files, key=lambda one: one.name)
    assert (done.filed_as, done.warnings) == (f"{inbox.root}/_done/2027-01-15/ana", 1)
    assert done.resume_id is None
    assert failed.filed_as == f"{inbox.root}/_failed/invalid_json"


def test_what_is_stored_already_is_a_duplicate(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.drop("ana/1.json", a_document("1"))
    inbox.importer().round()
    inbox.files.clear()
    inbox.drop("ana/again.json", a_document("1"))
    assert dry_run() == Summary(duplicate=1)
    assert inbox.files[0].resume_id is not None


def test_behind_held_files_everything_would_be_held(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.limit(0)
    inbox.drop("ana/1.json", a_document("1"))
    inbox.importer().round()
    inbox.limit(5)
    inbox.drop("ana/2.json", a_document("2"))
    inbox.drop("ana/3.ndjson", a_document("3") + b"\n" + b"{}\n")
    assert dry_run() == Summary(held=2)


def test_files_that_would_be_left_are_counted_and_told(
    inbox: Inbox, ignored: list[Ignored], dry_run: DryRun
) -> None:
    inbox.drop("ana/bad.json", b"{")
    importer = inbox.importer(settle_s=0)
    importer.round()
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


def test_a_file_that_still_settles_is_judged_as_it_is(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.drop("ana/cut.json", a_document("cut")[:-1])
    assert dry_run(settle_s=60) == Summary(failed=1)


def test_what_cannot_be_read_is_said(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.drop("ana/1.json").chmod(0)
    with bound_by_permissions():
        assert dry_run() == Summary(failed=1)
    assert inbox.files[0].reason == "unreadable"


def test_files_that_could_not_be_taken_are_told_and_stay(inbox: Inbox, dry_run: DryRun) -> None:
    inbox.drop("ana/ours.json")
    (closed := inbox.drop("ana/closed/1.json").parent).chmod(0o500)
    (hidden := inbox.drop("ana/hidden/2.json").parent).chmod(0)
    try:
        with bound_by_permissions():
            foretold = dry_run()
            told_before = sorted(inbox.notices)
            inbox.notices.clear()
            assert inbox.drain() == foretold == Summary(done=1, waiting=1, stuck=2)
    finally:
        closed.chmod(0o700)
        hidden.chmod(0o700)
    assert told_before == sorted(inbox.notices)
    assert told_before[0].startswith("Cannot pick up ana/closed/1.json: Permission denied")


# Why a file is ignored


def test_the_endings_are_those_that_a_name_may_have() -> None:
    single = [extension for extension in EXTENSIONS if extension.count(".") == 1]
    assert re.findall(r"[.]\w+", ENDINGS) == single


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a.json", None),
        ("a.JSON.GZ", None),
        ("a.pdf", SkipReason.ENDING),
        (".a.json", SkipReason.HIDDEN),
        ("a.json.part", SkipReason.HIDDEN),
        ("#Recycle", SkipReason.SYSTEM),
    ],
)
def test_a_file_is_left_for_its_name(tmp_path: Path, name: str, why: SkipReason | None) -> None:
    (tmp_path / name).touch()
    assert find_why(str(tmp_path / name)) == why


def test_what_is_no_file_is_left_for_that(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch()
    (tmp_path / "link.json").symlink_to("a.json")
    (tmp_path / "lost.json").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "account").symlink_to(tmp_path)
    names = ("link.json", "lost.json", "account", "pipe.json")
    assert [find_why(str(tmp_path / name)) for name in names] == [
        SkipReason.LINK,
        SkipReason.LINK,
        SkipReason.LINK,
        SkipReason.NO_FILE,
    ]


def test_each_reason_has_its_sentence() -> None:
    assert len({why.sentence for why in SkipReason}) == len(SkipReason)
