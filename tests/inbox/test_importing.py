"""Files of one resume: what is imported, what is left, and what is told of it."""

import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from importer.files import escaped
from resumes.analyzer import Format
from resumes.store import accounts, import_history, import_ledger, stored_resumes
from resumes.store.import_ledger import SOURCE_BYTES, FileOutcome
from resumes.watched_names import SYSTEM_FOLDERS
from tests.support.inbox import oracle
from tests.support.inbox.builders import Inbox, Moment, drop, during, rounds_until
from tests.support.inbox.strangers import NAMES
from tests.support.resumes import a_document

# One file


def test_a_whole_resume_is_imported_at_once(inbox: Inbox) -> None:
    inbox.drop("ana/sub/cv.json", a_document("Ada"))
    assert inbox.importer().round() == 1
    (file,) = inbox.files
    assert (file.account, file.name, file.outcome) == ("ana", "ana/sub/cv.json", FileOutcome.DONE)
    (entry,) = stored_resumes.list_page(inbox.store, inbox.ana.id).entries
    assert (entry.name, file.resume_id) == ("Ada", entry.id)
    assert Path(file.filed_as).read_bytes() == a_document("Ada")
    assert inbox.names_below("ana") == []
    (row,) = inbox.rows()
    assert (row.name, row.outcome) == ("ana/sub/cv.json", FileOutcome.DONE)
    assert (row.claim_id, row.root) == (file.claim_id, str(inbox.root))


def read_bytes() -> int:
    """How much this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_a_file_over_the_limit_is_refused_after_settling(inbox: Inbox) -> None:
    os.truncate(inbox.drop("ana/large.json", a_document()), 50_000_000)
    importer = inbox.importer(
        settle_s=5, format=Format(max_bytes=1_000_000), max_file_bytes=2_000_000
    )
    importer.round()
    assert inbox.files == []
    inbox.advance(5)
    before_bytes = read_bytes()
    importer.round()
    assert read_bytes() - before_bytes < 10_000_000  # the file may be made of nothing
    report = inbox.report("_failed/too_large")
    assert report["sha256"] is None
    assert "2000000 bytes" in report["message"]
    assert report["sizeBytes"] == 50_000_000


def test_one_resume_that_is_too_large_is_refused_in_the_words_of_the_api(inbox: Inbox) -> None:
    inbox.drop("ana/large.json", a_document(filler="x" * 500))
    inbox.importer(settle_s=0, format=Format(max_bytes=300)).round()
    report = inbox.report("_failed/too_large")
    assert report["message"] == "Resume too large: the limit is 300 bytes"


def test_a_fault_of_ours_is_an_internal_error_of_that_file_alone(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(body: bytes, *_: object) -> object:
        if b"broken" in body:
            raise RuntimeError("a fault")
        return parse(body)

    from resumes import analyzer

    parse = analyzer.parse_imported
    for name in ("1", "broken", "2"):
        inbox.drop(f"ana/{name}.json", a_document(name))
    with monkeypatch.context() as patch:
        patch.setattr("resumes.analyzer.parse_imported", broken)
        inbox.importer(settle_s=0).round()
    assert sorted(inbox.names()) == ["1", "2"]
    report = inbox.report("_failed/internal_error")
    assert report["message"].split()[2].rstrip(";") in caplog.text
    assert "RuntimeError: a fault" in caplog.text


def test_a_file_that_the_ledger_cannot_take_is_put_away_and_stops_no_other(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def record(*_: object, **options: object) -> None:
        raise RuntimeError("a fault")

    inbox.drop("ana/1.zip", b"nonsense")
    inbox.drop("ana/2.ndjson", a_document("2") + b"\n")
    with monkeypatch.context() as patch:
        patch.setattr(import_ledger, "record", record)
        inbox.importer(settle_s=0).round()
    assert inbox.names() == ["2"]
    claim_ids = [
        json.loads(path.read_bytes())["claimId"]
        for outcome in ("_failed", "_done")
        for path in (inbox.root / outcome).rglob("*.report.json")
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
    inbox: Inbox, name: str, content: bytes, room: int, moment: Moment
) -> None:
    inbox.limit(room)
    path = inbox.drop(f"ana/{name}", content)
    others = [inbox.drop(f"ana/.{name}", b"another version")]

    def replace() -> None:
        while others:
            others.pop().replace(path)

    inbox.importer(settle_s=0, observe=during(moment, replace)).round()
    first = inbox.rows()[-1]
    assert import_history.find_source(inbox.store, first) == content[:SOURCE_BYTES]


def test_files_are_read_by_no_thread_that_others_wait_for(inbox: Inbox) -> None:
    names = ["bad.json", "good.json", "several.ndjson", "broken.zip", "deep/bad.json"]
    for name in names:
        inbox.drop(f"ana/{name}", b"" if name == "good.json" else b"nonsense")
    threads: dict[str, set[int]] = {name: set() for name in names}
    watching = [True]

    def hook(event: str, args: tuple[object, ...]) -> None:
        if watching and event == "open":
            for name in names:
                if str(args[0]).endswith(name.removeprefix("deep/")):
                    threads[name].add(threading.get_ident())

    sys.addaudithook(hook)
    inbox.importer(settle_s=0).round()
    watching.clear()  # a hook is never removed
    assert threads == {name: {threading.get_ident()} for name in names}


# Names, and what is no file to import


IMPORTED = ["1.JSON", "deep/er/2.Json", "_done/3.json", "_4.json"]
IGNORED = [
    *(".a.json", "._a.json", "a.json.part", "a.json.tmp", "a.json~", "a.json.crdownload"),
    *("a.json.FILEPART", "a.txt", "json", "a.csv.zip~"),
    "~$a.json",
]
NOT_LOOKED_INTO = [
    *(".hidden/a.json", "@eaDir/a.json", "x/__MACOSX/a.json", "poses.json/a.json"),
    *("old~/a.json", "ミ~/a.json"),
]


def test_names_decide_what_is_imported(inbox: Inbox) -> None:
    inbox.account("recycler")  # as a recycle bin is called
    shift_jis = os.fsdecode("ミ".encode("cp932"))  # whose second byte is a tilde
    for name in (*IMPORTED, f"{shift_jis}/a.json", *IGNORED, *NOT_LOOKED_INTO):
        inbox.drop(f"ana/{name}")
    for name in ("recycler/a.json", "recycler/RECYCLER/b.json", "_done/2027-01-15/3.json"):
        inbox.drop(name)
    for name in ("_later.json", "_failed/x/4.json", "_other/5.json"):
        inbox.drop(name)
    importer = inbox.importer(settle_s=0, account="ana")
    importer.round()
    names = {*(f"ana/{name}" for name in IMPORTED), "ana/\\x83~/a.json", "recycler/a.json"}
    assert inbox.outcomes().keys() == names
    assert importer.summary().ignored >= len(IGNORED) + len(NOT_LOOKED_INTO)
    assert inbox.names_below("ana") == sorted([*IGNORED, *NOT_LOOKED_INTO])


SYSTEM = [
    *(f"{name}1000" if name[-1] in "-_" else name for name in SYSTEM_FOLDERS),
    *("#RECYCLE", "@recycle", "$Recycle.Bin", "recycler", "SYSTEM VOLUME INFORMATION", "@EADIR"),
    *("Recycled", "TRASHBOX", "@gmt-2026.11.20-12.00.00", "_nas_recycle_tosraid"),
]


@pytest.mark.parametrize("name", SYSTEM)
def test_i19_recycle_bins_and_snapshots_are_left_alone_and_told_once(
    inbox: Inbox, name: str
) -> None:
    inbox.drop(f"ana/deep/{name}/hourly.0/a.json")
    inbox.drop(f"ana/{name}/b.ZIP")
    inbox.drop(f"ana/{name}/c.json")
    inbox.drop(f"ana/{name}/notes.txt")
    inbox.drop(f"ana/{name}.json")  # a file of this name is a file
    inbox.rounds(inbox.importer(settle_s=0), 3)
    assert inbox.outcomes() == ({} if name[0] == "." else {f"ana/{name}.json": "done"})
    found = {f"2 files in ana/{name}", f"1 file in ana/deep/{name}"}
    why = " will not be imported: recycle bins, snapshots and other system folders"
    (notice,) = inbox.notices
    assert {*notice.removesuffix(why).split(" and ")} == found


def test_what_is_no_file_is_left_untouched_and_links_are_not_followed(inbox: Inbox) -> None:
    target = drop(inbox.root.parent, "outside/secret.json")
    (inbox.root / "ana").mkdir()
    (inbox.root / "ana/link.json").symlink_to(target)
    (inbox.root / "ana/folder").symlink_to(target.parent)
    (inbox.root / "ana/dangling.json").symlink_to("nowhere")
    (inbox.root / "bo").symlink_to(target.parent)
    os.mkfifo(inbox.root / "ana/pipe.json")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(inbox.root / "ana/s.json"))
        importer = inbox.importer(settle_s=0)
        importer.round()
    assert inbox.files == []
    assert importer.summary().ignored == 6
    assert target.exists()


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("ana", "a link"),
        ("ana/sub", "a link"),
        ("ana/sub", "a file"),
        ("ana/sub/cv.json", "a link"),
    ],
)
def test_what_took_the_place_of_a_file_or_its_folder_after_the_look_is_not_followed(
    inbox: Inbox, tmp_path: Path, what: str, instead: str
) -> None:
    inbox.drop("ana/sub/cv.json", a_document("inside"))
    theirs = drop(tmp_path / "elsewhere", "ana/sub/cv.json", a_document("outside"))
    path = inbox.root / what

    def replace() -> None:
        if not (tmp_path / "gone").exists():
            path.rename(tmp_path / "gone")
            if instead == "a file":
                path.touch()
            else:
                path.symlink_to(tmp_path / "elsewhere" / what)

    inbox.rounds(inbox.importer(settle_s=0, observe=during(Moment.NOTED, replace)), 15, 5)
    assert inbox.names() == []
    assert theirs.read_bytes() == a_document("outside")
    assert inbox.names_below("_done") == []


def test_no_name_decides_over_a_file_and_reports_hold_its_exact_bytes(inbox: Inbox) -> None:
    for number, name in enumerate(NAMES):
        inbox.drop(os.fsdecode(b"ana/" + name), a_document(f"owner {number}"))
        inbox.drop(os.fsdecode(b"ana/bad/" + name), b"[")
    inbox.importer(settle_s=0).round()
    assert sorted(inbox.names()) == sorted(f"owner {number}" for number in range(len(NAMES)))
    oracle.check_reports(inbox.root)
    reports = oracle.reports_of(inbox.root, "failed")
    assert reports.keys() == {f"ana/bad/{escaped(os.fsdecode(name))}" for name in NAMES}
    for path in inbox.filed("_failed"):
        assert len(os.fsencode(path.name)) < 200
        assert path.name.isprintable()
    assert not list(inbox.root.parent.rglob("evil"))


# Whose files they are


def test_files_that_nobody_owns_are_told_of_once_and_imported_as_soon_as_somebody_does(
    inbox: Inbox,
) -> None:
    inbox.drop("bo/1.json")
    inbox.drop("2.json")
    (inbox.root / "empty").mkdir()
    importer = inbox.importer(settle_s=0)
    inbox.rounds(importer, 2)
    assert inbox.files == []
    assert len(inbox.notices) == 2
    assert "--account" in inbox.notices[0]
    assert '"bo" does not match any account' in inbox.notices[1]
    assert importer.summary().waiting == 2
    inbox.account("bo")
    importer.round()
    assert inbox.outcomes() == {"bo/1.json": "done"}
    assert (inbox.root / "2.json").exists()


def test_files_in_root_wait_for_the_chosen_account(inbox: Inbox) -> None:
    inbox.drop("1.json")
    importer = inbox.importer(account="bo")
    importer.round()
    assert 'The account "bo" does not exist' in inbox.notices[0]
    inbox.account("bo")
    importer.round()
    assert [(file.account, file.name) for file in inbox.files] == [("bo", "1.json")]


def test_an_account_that_goes_leaves_its_files_to_the_next_of_its_name(inbox: Inbox) -> None:
    importer = inbox.importer()
    for number in range(2):
        inbox.drop(f"ana/{number}.json", a_document(str(number)))
        importer.round()
        accounts.delete_account(inbox.store, "ana", with_resumes=True)
        late = inbox.drop(f"ana/late{number}.json", a_document(f"late {number}"))
        importer.round()
        assert late.exists()
        assert '"ana" does not match any account' in inbox.notices[-1]
        inbox.account("ana")
        importer.round()
        assert inbox.names() == [f"late {number}"]


# Order, batches and what it comes to


def test_the_oldest_file_comes_first(inbox: Inbox) -> None:
    inbox.drop_aged(*"30214")
    rounds_until(inbox.importer(batch_files=2), lambda: len(inbox.names()) == 5)
    assert inbox.names() == list("30214")


def test_accounts_take_turns_within_a_batch(inbox: Inbox) -> None:
    inbox.account("bo")
    for number in range(5):
        inbox.drop(f"ana/{number}.json")
    inbox.drop("bo/0.json")
    inbox.importer(batch_files=4).turn()
    assert "bo/0.json" in inbox.outcomes()
    assert len(inbox.files) == 4


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
    inbox: Inbox, full: dict[str, Any], batches: int
) -> None:
    commits: list[int] = []
    for number in range(7):
        inbox.drop(f"ana/{number}.json", a_document(f"{number}"))
    inbox.importer(observe=during(Moment.COMMITTED, lambda: commits.append(1)), **full).round()
    assert len(commits) == batches
    assert len(inbox.filed("_done")) == 7


def test_the_summary_accounts_for_every_file(inbox: Inbox) -> None:
    inbox.limit(5)
    for number in range(7):
        inbox.drop(f"ana/{number}.json")
    inbox.drop("ana/again.json", (inbox.root / "ana/6.json").read_bytes())
    inbox.drop("ana/bad.json", b"{}")
    inbox.drop("ana/notes.txt")
    inbox.drop("nobody/1.json")
    summary = inbox.drain()
    assert (summary.done, summary.failed) == (5, 1)
    assert summary.duplicate + summary.held == 3
    assert (summary.ignored, summary.waiting) == (1, 1)


# When folders are looked through


@pytest.mark.parametrize(("took_s", "again_s"), [(0, 2), (1, 10)])
def test_a_folder_is_looked_through_again_after_the_interval_or_ten_times_what_a_look_took(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, took_s: float, again_s: float
) -> None:
    really_scan = os.scandir

    def scan(path: str | int) -> Any:
        inbox.advance(took_s if str(path).endswith("/ana") else 0)
        return really_scan(path)

    (inbox.root / "ana").mkdir()
    monkeypatch.setattr(os, "scandir", scan)
    importer = inbox.importer(scan_s=2)
    importer.turn()
    inbox.drop("ana/1.json")
    inbox.advance(again_s - 1)
    importer.turn()
    assert inbox.files == []
    assert 0 < importer.schedule.wait_s() <= 2
    inbox.advance(1)
    importer.turn()
    assert inbox.outcomes() == {"ana/1.json": "done"}
