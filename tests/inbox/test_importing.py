"""Files of one resume: what is imported, what is left, and what is told of it."""

import json
import os
import re
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from importer.loop import Importer
from importer.notices import Summary
from resumes.analyzer import Format
from resumes.export import Exporter, ExportFormat
from resumes.store import Store, accounts, import_history, import_ledger, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import SOURCE_BYTES, FileOutcome
from resumes.store.importers import ImporterState
from resumes.watched_names import SYSTEM_FOLDERS
from tests.inbox.conftest import Drain
from tests.support.inbox.builders import (
    FakeMonotonic,
    MakeAccount,
    MakeImporter,
    Moment,
    Told,
    an_account_with_room_for,
    bound_by_permissions,
    drop,
    drop_aged,
    during,
    filed,
    is_tidy,
    names_below,
    resume_names,
    rounds_until,
    the_report,
)
from tests.support.resumes import a_document


def mark(importer: Importer, *names: str) -> None:
    """Events came from these parts of ROOT."""
    importer.changes.mark(*names)


# One file


def test_a_whole_resume_is_imported_at_once(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/sub/cv.json", a_document("Ada"))
    assert an_importer().round() == 1
    (file,) = told.files
    assert (file.account, file.name, file.outcome) == ("ana", "ana/sub/cv.json", FileOutcome.DONE)
    (entry,) = stored_resumes.list_page(store, ana.id).entries
    assert (entry.name, file.resume_id) == ("Ada", entry.id)
    assert Path(file.filed_as).read_bytes() == a_document("Ada")
    assert names_below(root / "ana") == []
    (row,) = import_history.list_files(store)
    assert (row.name, row.outcome) == ("ana/sub/cv.json", FileOutcome.DONE)
    assert (row.claim_id, row.root) == (file.claim_id, str(root))


def test_a_json_resume_is_one_too(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.json", b'{"basics": {"name": "Ada"}, "work": []}')
    an_importer().round()
    assert resume_names(store, ana.id) == ["Ada"]


def test_a_refused_file_gets_a_report_and_a_row(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.json", b'{"header": {}, "sections": 5}')
    an_importer(settle_s=0).round()
    report = the_report(root, "_failed/invalid_resume")
    (row,) = import_history.list_files(store)
    told_in_report = (report["reason"], report["message"], report["path"])
    assert (row.reason, row.message, row.path) == told_in_report
    assert report["file"] == "ana/cv.json"
    assert told.files[0].reason == "invalid_resume"
    assert import_history.find_source(store, row) == b'{"header": {}, "sections": 5}'


def read_bytes() -> int:
    """How much this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_a_file_over_the_limit_is_refused_after_settling(
    root: Path, told: Told, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    os.truncate(drop(root, "ana/large.json", a_document()), 50_000_000)
    importer = an_importer(settle_s=5, format=Format(max_bytes=1_000_000), max_file_bytes=2_000_000)
    importer.round()
    assert told.files == []
    monotonic.advance(5)
    before_bytes = read_bytes()
    importer.round()
    assert read_bytes() - before_bytes < 10_000_000  # the file may be made of nothing
    report = the_report(root, "_failed/too_large")
    assert report["sha256"] is None
    assert "2000000 bytes" in report["message"]
    assert report["sizeBytes"] == 50_000_000


def test_one_resume_that_is_too_large_is_refused_in_the_words_of_the_api(
    root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/large.json", a_document(filler="x" * 500))
    an_importer(settle_s=0, format=Format(max_bytes=300)).round()
    report = the_report(root, "_failed/too_large")
    assert report["message"] == "Resume too large: the limit is 300 bytes"


def test_a_fault_of_ours_is_an_internal_error_of_that_file_alone(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    def broken(body: bytes, *_: object) -> object:
        if b"broken" in body:
            raise RuntimeError("a fault")
        return parse(body)

    from resumes import analyzer

    parse = analyzer.parse_imported
    account = an_account()
    for name in ("1", "broken", "2"):
        drop(root, f"ana/{name}.json", a_document(name))
    with monkeypatch.context() as patch:
        patch.setattr("resumes.analyzer.parse_imported", broken)
        an_importer(settle_s=0).round()
    assert sorted(resume_names(store, account.id)) == ["1", "2"]
    report = the_report(root, "_failed/internal_error")
    assert report["message"].split()[2].rstrip(";") in caplog.text
    assert "RuntimeError: a fault" in caplog.text


@pytest.mark.parametrize("others", [["1"], ["1", "2"]], ids=len)
def test_one_file_that_the_store_cannot_take_does_not_fail_its_batch(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    an_account: MakeAccount,
    an_importer: MakeImporter,
    others: list[str],
) -> None:
    from resumes import analyzer

    def strange(body: bytes, *_: object) -> object:
        resume = parse(body)
        return resume._replace(title="\ud800") if resume.name == "strange" else resume

    parse = analyzer.parse_imported
    account = an_account()
    drop_aged(root, "strange", *others)
    with monkeypatch.context() as patch:
        patch.setattr("resumes.analyzer.parse_imported", strange)
        an_importer().round()
    assert resume_names(store, account.id) == others
    batch = f"A batch of {len(others) + 1} files failed; importing them one by one"
    assert batch in [record.getMessage() for record in caplog.records]
    rows = {row.name: row.reason for row in import_history.list_files(store)}
    assert rows["ana/strange.json"] == the_report(root, "_failed")["reason"] == "internal_error"


def test_a_file_that_the_ledger_cannot_take_is_put_away_and_stops_no_other(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    def record(*_: object, **options: object) -> None:
        raise RuntimeError("a fault")

    drop(root, "ana/1.zip", b"nonsense")
    drop(root, "ana/2.ndjson", a_document("2") + b"\n")
    with monkeypatch.context() as patch:
        patch.setattr(import_ledger, "record", record)
        an_importer(settle_s=0).round()
    assert resume_names(store, ana.id) == ["2"]
    claim_ids = [
        json.loads(path.read_bytes())["claimId"]
        for outcome in ("_failed", "_done")
        for path in (root / outcome).rglob("*.report.json")
    ]
    messages = [one.getMessage() for one in caplog.records]
    assert messages == [f"No ledger row for claim {claim_id}" for claim_id in claim_ids]


@pytest.mark.parametrize(
    ("name", "content", "room", "moment"),
    [
        ("cv.json", b"{", 9, Moment.READ),
        ("cv.json", a_document("Ada"), 0, Moment.READ),
        ("cv.json", b"x" * 70_000, 9, Moment.READ),
        ("cv.ndjson", b"{}\n{}\n", 9, Moment.COMMITTED),
        ("cv.jsonl", a_document("Ada") + b"\n", 0, Moment.COMMITTED),
    ],
    ids=["rejected", "held", "long", "bundle", "held bundle"],
)
def test_the_ledger_keeps_the_beginning_of_what_was_read_whatever_has_its_name_since(
    store: Store,
    root: Path,
    an_importer: MakeImporter,
    name: str,
    content: bytes,
    room: int,
    moment: Moment,
) -> None:
    an_account_with_room_for(store, room)
    path = drop(root, f"ana/{name}", content)
    others = [drop(root, f"ana/.{name}", b"another version")]

    def replace() -> None:
        while others:
            others.pop().replace(path)

    an_importer(settle_s=0, observe=during(moment, replace)).round()
    first = import_history.list_files(store)[-1]
    assert import_history.find_source(store, first) == content[:SOURCE_BYTES]


def test_files_are_read_by_no_thread_that_others_wait_for(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    names = ["bad.json", "good.json", "several.ndjson", "broken.zip", "deep/bad.json"]
    for name in names:
        drop(root, f"ana/{name}", b"" if name == "good.json" else b"nonsense")
    threads: dict[str, set[int]] = {name: set() for name in names}
    watching = [True]

    def hook(event: str, args: tuple[object, ...]) -> None:
        if watching and event == "open":
            for name in names:
                if str(args[0]).endswith(name.removeprefix("deep/")):
                    threads[name].add(threading.get_ident())

    sys.addaudithook(hook)
    an_importer(settle_s=0).round()
    watching.clear()  # a hook is never removed
    assert threads == {name: {threading.get_ident()} for name in names}


# Names, and what is no file to import


IMPORTED = ["1.JSON", "deep/er/2.Json", "_done/3.json", "_4.json"]
IGNORED = [
    *(".a.json", "._a.json", "a.json.part", "a.json.tmp", "a.json~", "a.json.crdownload"),
    *("a.json.FILEPART", "a.txt", "json", "a.csv.zip~"),
]
NOT_LOOKED_INTO = [".hidden/a.json", "@eaDir/a.json", "x/__MACOSX/a.json", "poses.json/a.json"]


def test_names_decide_what_is_imported(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    for name in (*IMPORTED, *IGNORED, *NOT_LOOKED_INTO):
        drop(root, f"ana/{name}")
    importer = an_importer(settle_s=0)
    importer.round()
    assert sorted(told.outcomes()) == sorted(f"ana/{name}" for name in IMPORTED)
    assert importer.summary().ignored == len(IGNORED) + len(NOT_LOOKED_INTO)
    assert names_below(root / "ana") == sorted([*IGNORED, *NOT_LOOKED_INTO])


SYSTEM = [
    *(name.replace(".Trash-", ".Trash-1000") for name in SYSTEM_FOLDERS),
    *("#RECYCLE", "@recycle", "$Recycle.Bin", "recycler", "SYSTEM VOLUME INFORMATION", "@EADIR"),
]


@pytest.mark.parametrize("name", SYSTEM)
def test_i19_recycle_bins_and_snapshots_are_left_alone_and_told_once(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter, name: str
) -> None:
    drop(root, f"ana/deep/{name}/hourly.0/a.json")
    drop(root, f"ana/{name}/b.ZIP")
    drop(root, f"ana/{name}/c.json")
    drop(root, f"ana/{name}/notes.txt")
    drop(root, f"ana/{name}.json")  # a file of this name is a file
    importer = an_importer(settle_s=0)
    for _ in range(3):
        importer.round()
    assert told.outcomes() == ({} if name[0] == "." else {f"ana/{name}.json": "done"})
    found = {f"2 files in ana/{name}", f"1 file in ana/deep/{name}"}
    why = " will not be imported: recycle bins, snapshots and other system folders"
    (notice,) = told.notices
    assert {*notice.removesuffix(why).split(" and ")} == found


def test_recycle_bins_that_cannot_be_written_to_are_no_problem_and_the_first_are_named(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/a.json")
    drop(root, "@Recycle/a.json")
    for number in range(5):
        drop(root, f"ana/{number}/#recycle/a.json").parent.chmod(0o500)
    (root / "ana/@eaDir").mkdir()  # nothing is lost in an empty one
    (root / "ana/@tmp").symlink_to(root / "ana/1/#recycle")
    importer = an_importer(settle_s=0)
    try:
        with bound_by_permissions():
            importer.round()
    finally:
        for number in range(5):
            (root / f"ana/{number}/#recycle").chmod(0o700)
    assert told.outcomes() == {"ana/a.json": "done"}
    of_root, of_ana = sorted(told.notices, key=len)
    assert of_root.startswith("1 file in @Recycle will not be imported")
    assert len(re.findall(r"1 file in ana/./#recycle", of_ana)) == 3
    assert " and those in 2 more folders will not be imported" in of_ana
    assert importer.notices.state is ImporterState.OK


def test_of_a_large_snapshot_only_a_part_is_counted(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    (root / "ana/.snapshot").mkdir(parents=True)
    for number in range(1_500):
        (root / f"ana/.snapshot/{number}.json").touch()
    an_importer(settle_s=0).round()
    assert told.notices[0].startswith("1,000 files or more in ana/.snapshot will not")


def test_an_account_may_have_the_name_of_a_recycle_bin_of_old(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account("recycler")
    drop(root, "recycler/a.json")
    drop(root, "recycler/RECYCLER/b.json")
    an_importer(settle_s=0).round()
    assert told.outcomes() == {"recycler/a.json": "done"}
    assert len(told.notices) == 1


def test_a_folder_named_in_shift_jis_is_not_temporary(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    names = [os.fsdecode("ミ".encode("cp932")), "old~", "ミ~"]
    for name in names:
        drop(root, f"ana/{name}/a.json")
    an_importer(settle_s=0).round()
    assert list(told.outcomes()) == ["ana/\\x83~/a.json"]


def test_what_is_no_file_is_left_untouched_and_links_are_not_followed(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    target = drop(root.parent, "outside/secret.json")
    (root / "ana").mkdir()
    (root / "ana/link.json").symlink_to(target)
    (root / "ana/folder").symlink_to(target.parent)
    (root / "ana/dangling.json").symlink_to("nowhere")
    (root / "bo").symlink_to(target.parent)
    os.mkfifo(root / "ana/pipe.json")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(root / "ana/s.json"))
        importer = an_importer(settle_s=0)
        importer.round()
    assert told.files == []
    assert importer.summary().ignored == 6
    assert target.exists()


@pytest.mark.parametrize("kind", ["a link", "below a link", "a file"])
def test_what_took_a_folders_place_after_the_look_is_not_followed(
    store: Store, root: Path, tmp_path: Path, ana: AccountInfo, an_importer: MakeImporter, kind: str
) -> None:
    drop(root, "ana/sub/cv.json", a_document("inside"))
    theirs = drop(tmp_path / "elsewhere", "sub/cv.json", a_document("outside"))
    top = root / "ana" if kind == "below a link" else root / "ana/sub"

    def replace() -> None:
        if top.is_symlink() or not top.is_dir():
            return
        top.rename(tmp_path / "gone")
        if kind == "a file":
            top.touch()
        else:
            top.symlink_to(tmp_path / "elsewhere" / ("" if kind == "below a link" else "sub"))

    importer = an_importer(settle_s=0, observe=during(Moment.NOTED, replace))
    for _ in range(2):
        importer.round()
    assert resume_names(store, ana.id) == []
    assert theirs.read_bytes() == a_document("outside")


def test_files_that_lie_under_names_of_ours_are_nobody_s(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    for name in ("_done/2027-01-15/3.json", "_later.json", "_failed/x/4.json", "_other/5.json"):
        drop(root, name)
    importer = an_importer(account="ana", settle_s=0)
    importer.round()
    assert told.files == []


# Whose files they are


def test_files_that_nobody_owns_are_told_of_once_and_imported_as_soon_as_somebody_does(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    drop(root, "bo/1.json")
    drop(root, "2.json")
    (root / "empty").mkdir()
    importer = an_importer(settle_s=0)
    for _ in range(2):
        importer.round()
    assert told.files == []
    assert len(told.notices) == 2
    assert "--account" in told.notices[0]
    assert '"bo" does not match any account' in told.notices[1]
    assert importer.summary().waiting == 2
    an_account("bo")
    importer.round()
    assert told.outcomes() == {"bo/1.json": "done"}
    assert (root / "2.json").exists()


def test_files_in_root_wait_for_the_chosen_account(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    drop(root, "1.json")
    importer = an_importer(account="bo")
    importer.round()
    assert 'The account "bo" does not exist' in told.notices[0]
    an_account("bo")
    importer.round()
    assert [(file.account, file.name) for file in told.files] == [("bo", "1.json")]


def test_an_account_that_goes_leaves_its_folder_untouched(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer()
    drop(root, "ana/1.json")
    importer.round()
    accounts.delete_account(store, "ana", with_resumes=True)
    drop(root, "ana/2.json")
    importer.round()
    assert (root / "ana/2.json").exists()
    assert '"ana" does not match any account' in told.notices[0]


# Order, batches and what it comes to


def test_the_oldest_file_comes_first(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop_aged(root, *"30214")
    importer = an_importer(batch_files=2)
    rounds_until(importer, lambda: len(resume_names(store, ana.id)) == 5)
    assert resume_names(store, ana.id) == list("30214")


def test_accounts_take_turns_within_a_batch(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    for name in ("ana", "bo"):
        an_account(name)
    for number in range(5):
        drop(root, f"ana/{number}.json")
    drop(root, "bo/0.json")
    an_importer(batch_files=4).turn()
    assert "bo/0.json" in told.outcomes()
    assert len(told.files) == 4


@pytest.mark.parametrize(
    ("full", "batches"),
    [
        ({"batch_files": 3}, 3),
        ({"batch_bytes": 1}, 7),
        ({"batch_bytes": 2 * len(a_document("0"))}, 4),
        ({"batch_bytes": 2 * len(a_document("0")) + 1}, 3),
    ],
)
def test_a_batch_is_full_with_files_or_with_bytes(
    root: Path, ana: AccountInfo, an_importer: MakeImporter, full: dict[str, int], batches: int
) -> None:
    commits: list[int] = []
    for number in range(7):
        drop(root, f"ana/{number}.json", a_document(f"{number}"))
    an_importer(observe=during(Moment.COMMITTED, lambda: commits.append(1)), **full).round()
    assert len(commits) == batches
    assert len(filed(root, "_done")) == 7


def test_the_summary_accounts_for_every_file(store: Store, root: Path, drain: Drain) -> None:
    an_account_with_room_for(store, 5)
    for number in range(7):
        drop(root, f"ana/{number}.json")
    drop(root, "ana/again.json", (root / "ana/6.json").read_bytes())
    drop(root, "ana/bad.json", b"{}")
    drop(root, "ana/notes.txt")
    drop(root, "nobody/1.json")
    summary = drain()
    assert (summary.done, summary.failed) == (5, 1)
    assert summary.duplicate + summary.held == 3
    assert (summary.ignored, summary.waiting) == (1, 1)


def test_the_progress_counts_what_is_left(
    root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    for number in range(5):
        drop(root, f"ana/{number}.json")
    drop(root, "ana/cut.json", b"{")
    os.utime(root / "ana/cut.json", ns=(0, 0))
    importer = an_importer(batch_files=3)
    assert importer.progress().waiting == 0
    importer.turn()
    progress = importer.progress()
    assert (progress.done, progress.waiting, progress.is_complete) == (2, 4, True)
    importer.turn()
    progress = importer.progress()
    assert (progress.done, progress.waiting) == (5, 1)


def test_other_bytes_of_the_same_resume_are_other_content(
    store: Store, root: Path, tmp_path: Path, ana: AccountInfo, drain: Drain
) -> None:
    turned = dict(reversed(json.loads(a_document("Ada")).items()))
    drop(root, "ana/1.json", a_document("Ada"))
    drop(root, "ana/2.json", json.dumps(turned).encode())
    assert drain() == Summary(done=2)
    (first, _) = stored_resumes.list_page(store, ana.id).entries
    with Exporter(ExportFormat.ANALYZER, Format(), home=tmp_path) as exporter:
        exported = exporter.export(stored_resumes.get_resume(store, ana.id, first.id))
    drop(root, "ana/3.json", exported.body)
    assert drain() == Summary(done=1)


# When folders are looked through


@pytest.mark.parametrize(("took_s", "again_s"), [(0, 2), (1, 10)])
def test_a_folder_is_looked_through_again_after_the_interval_or_ten_times_what_a_look_took(
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
    monkeypatch: pytest.MonkeyPatch,
    took_s: float,
    again_s: float,
) -> None:
    really_scan = os.scandir

    def scan(path: str | int) -> Any:
        monotonic.advance(took_s if str(path).endswith("/ana") else 0)
        return really_scan(path)

    (root / "ana").mkdir()
    monkeypatch.setattr(os, "scandir", scan)
    importer = an_importer(scan_s=2)
    importer.turn()
    drop(root, "ana/1.json")
    monotonic.advance(again_s - 1)
    importer.turn()
    assert told.files == []
    assert 0 < importer.wait_s() <= 2
    monotonic.advance(1)
    importer.turn()
    assert told.outcomes() == {"ana/1.json": "done"}


def test_a_folder_that_is_heard_of_is_looked_for_at_once(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer(scan_s=600)
    importer.turn()
    assert importer.intake.folders == []
    drop(root, "ana/1.json")
    mark(importer, "ana")
    assert importer.changes.wait(0)
    importer.turn()
    importer.turn()
    assert importer.intake.folders == ["ana"]
    assert told.outcomes() == {"ana/1.json": "done"}
    assert importer.wait_s() > 0


def test_an_importer_whose_folder_was_emptied_goes_on(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer()
    importer.round()
    with drop(root, "ana/0.json").open("r+b"):
        importer.round()
        for path in sorted(root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    drop(root, "ana/1.json")
    importer.round()
    assert told.outcomes() == {"ana/1.json": "done"}
    assert importer.summary().waiting == 0
    importer.close()
    assert is_tidy(root)
