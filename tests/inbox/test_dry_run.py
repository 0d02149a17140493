"""What would become of the files."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from importer.dry_run import Ignored, find_why
from importer.service import Summary
from resumes.store import Store, accounts, import_history
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome
from resumes.watched_names import ENDINGS, EXTENSIONS, SkipReason
from tests.inbox.conftest import Drain
from tests.support.inbox.builders import (
    MakeAccount,
    MakeImporter,
    Told,
    an_account_with_room_for,
    bound_by_permissions,
    drop,
    lines,
    resume_names,
    set_limit,
)
from tests.support.inbox.packing import gzipped, zipped
from tests.support.resumes import a_document


@pytest.fixture
def ignored() -> list[Ignored]:
    """What was told to be left."""
    return []


@pytest.fixture
def dry_run(drain: Drain, ignored: list[Ignored]) -> Callable[..., Summary]:
    """Rehearses the import of ROOT: `dry_run(account="ana")`."""

    def run(**options: Any) -> Summary:
        return drain(dry_run=True, on_ignored=ignored.append, **options)

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


def test_the_verdicts_are_those_of_the_import_itself(
    root: Path, told: Told, dry_run: DryRun, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop_one_of_each(root)
    rehearsed = dry_run()
    assert rehearsed == Summary(done=4, failed=3, duplicate=2)
    foretold = verdicts(told)
    told.files.clear()
    importer = an_importer(settle_s=0)
    importer.round()
    assert verdicts(told) == foretold
    assert importer.summary() == rehearsed


def verdicts(told: Told) -> dict[str, tuple[str | None, str | None, int]]:
    """What is said of each file, by name."""
    return {
        one.name: (
            one.reason or one.outcome.value,
            one.message if one.outcome is FileOutcome.FAILED else None,
            one.warnings,
        )
        for one in told.files
    }


def test_what_would_not_fit_would_be_held(
    store: Store, root: Path, told: Told, dry_run: DryRun, an_account: MakeAccount
) -> None:
    an_account_with_room_for(store, 2)
    for age, name in enumerate("1213"):
        os.utime(drop(root, f"ana/{age}.json", a_document(name)), ns=(age, age))
    assert dry_run() == Summary(done=2, duplicate=1, held=1)
    assert told.outcomes()["ana/3.json"] == "held"


def test_a_folder_and_the_files_beside_it_are_one_account_s(
    store: Store, root: Path, dry_run: DryRun
) -> None:
    an_account_with_room_for(store, 2)
    for name, content in (("1.json", "1"), ("ana/2.json", "1"), ("ana/3.json", "3")):
        drop(root, name, a_document(content))
    assert dry_run(account="ana") == Summary(done=2, duplicate=1)


def test_files_of_several_come_after_the_others_whatever_their_age(
    store: Store, root: Path, told: Told, drain: Drain, dry_run: DryRun
) -> None:
    an_account_with_room_for(store, 2)
    contents = {"1.ndjson": lines("1", "2", "3"), "2.json": a_document("1")}
    for age, (name, content) in enumerate(contents.items()):
        os.utime(drop(root, f"ana/{name}", content), ns=(age, age))
    assert dry_run(settle_s=0.05) == Summary(done=1, held=1)
    foretold = verdicts(told)
    told.files.clear()
    drain(settle_s=0.05)
    assert verdicts(told) == foretold


def test_nothing_is_changed(store: Store, root: Path, dry_run: DryRun, ana: AccountInfo) -> None:
    drop_one_of_each(root)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    dry_run()
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    assert resume_names(store, ana.id) == []
    assert import_history.list_files(store) == []
    assert accounts.get_account(store, "ana").resume_count == 0


def test_it_is_said_where_each_file_would_go(
    root: Path, told: Told, dry_run: DryRun, ana: AccountInfo
) -> None:
    drop(root, "ana/1.json", a_document("1", nickname="one"))
    drop(root, "ana/2.json", b"{")
    dry_run()
    done, failed = sorted(told.files, key=lambda one: one.name)
    assert (done.filed_as, done.warnings) == (f"{root}/_done/2027-01-15/ana", 1)
    assert done.resume_id is None
    assert failed.filed_as == f"{root}/_failed/invalid_json"


def test_what_is_stored_already_is_a_duplicate(
    root: Path, told: Told, dry_run: DryRun, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/1.json", a_document("1"))
    an_importer().round()
    told.files.clear()
    drop(root, "ana/again.json", a_document("1"))
    assert dry_run() == Summary(duplicate=1)
    assert told.files[0].resume_id is not None


def test_behind_held_files_everything_would_be_held(
    store: Store, root: Path, dry_run: DryRun, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account_with_room_for(store, 0)
    drop(root, "ana/1.json", a_document("1"))
    an_importer().round()
    set_limit(store, "ana", 5)
    drop(root, "ana/2.json", a_document("2"))
    drop(root, "ana/3.ndjson", a_document("3") + b"\n" + b"{}\n")
    assert dry_run() == Summary(held=2)


def test_files_that_would_be_left_are_counted_and_told(
    root: Path,
    told: Told,
    ignored: list[Ignored],
    dry_run: DryRun,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    drop(root, "ana/bad.json", b"{")
    importer = an_importer(settle_s=0)
    importer.round()
    (report,) = (root / "_failed").rglob("*.report.json")
    report.rename(root / "ana/old.json")
    told.notices.clear()
    drop(root, "ana/notes.txt")
    drop(root, "nobody/1.json")
    drop(root, "2.json")
    assert dry_run() == Summary(ignored=2, waiting=2)
    assert ignored == [("ana/notes.txt", SkipReason.ENDING), ("ana/old.json", SkipReason.REPORT)]
    assert [notice.split(". Use ")[0] for notice in told.notices] == [
        "Files directly in the watched folder are ignored",
        'The folder "nobody" does not match any account, so its files are waiting. They will '
        "be imported as soon as an account with that name exists",
    ]
    told.notices.clear()
    assert dry_run(account="ana") == Summary(done=1, ignored=2, waiting=1)


def test_a_file_that_still_settles_is_judged_as_it_is(
    root: Path, dry_run: DryRun, ana: AccountInfo
) -> None:
    drop(root, "ana/cut.json", a_document("cut")[:-1])
    assert dry_run(settle_s=60) == Summary(failed=1)


def test_what_cannot_be_read_is_said(
    root: Path, told: Told, dry_run: DryRun, ana: AccountInfo
) -> None:
    drop(root, "ana/1.json").chmod(0)
    with bound_by_permissions():
        assert dry_run() == Summary(failed=1)
    assert told.files[0].reason == "unreadable"


def test_files_that_could_not_be_taken_are_told_and_stay(
    root: Path, told: Told, drain: Drain, dry_run: DryRun, ana: AccountInfo
) -> None:
    drop(root, "ana/ours.json")
    (closed := drop(root, "ana/closed/1.json").parent).chmod(0o500)
    (hidden := drop(root, "ana/hidden/2.json").parent).chmod(0)
    try:
        with bound_by_permissions():
            foretold = dry_run()
            told_before = sorted(told.notices)
            told.notices.clear()
            assert drain() == foretold == Summary(done=1, waiting=1, stuck=2)
    finally:
        closed.chmod(0o700)
        hidden.chmod(0o700)
    assert told_before == sorted(told.notices)
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
