"""Where files are put away, and the reports beside them."""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from importer import files, filing
from importer.claims import File
from importer.job import Step
from resumes.store import accounts, stored_resumes
from tests.support.inbox.builders import (
    Inbox,
    Moment,
    bound_by_permissions,
    die,
    drop,
    during,
    killing_at,
    names_below,
    report_beside,
)
from tests.support.inbox.mounts import Mounts, with_mounts
from tests.support.resumes import a_document
from tests.support.store.builders import damage


def put_away(inbox: Inbox, content: bytes, name: str = "cv.json") -> Path:
    """The file after it came to its end."""
    before = set(inbox.root.glob("_*/**/*"))
    inbox.drop(f"ana/{name}", content)
    inbox.importer(settle_s=0).round()
    (path,) = [
        path
        for path in set(inbox.root.glob("_*/**/*")) - before
        if path.is_file() and not path.name.endswith(".report.json")
    ]
    return path


@pytest.mark.parametrize(
    ("end", "folder", "content"),
    [
        ("done", "_done/2027-01-15/ana", a_document("Ada")),
        ("failed", "_failed/invalid_json", b"nonsense"),
        ("duplicate", "_duplicate", a_document("twice")),
        ("held", "_held/ana", a_document("Bo")),
    ],
)
def test_each_outcome_has_its_folder(inbox: Inbox, end: str, folder: str, content: bytes) -> None:
    put_away(inbox, a_document("twice"), "before.json")
    if end == "held":
        inbox.limit(1)
    path = put_away(inbox, content)
    (row,) = [row for row in inbox.rows() if row.name == "ana/cv.json"]
    number = f"{row.claim_id}-{inbox.ana.id}-cv" if end == "held" else f"cv-{row.claim_id[16:]}"
    assert path == inbox.root / folder / f"{number}.json"
    assert path.read_bytes() == content
    assert report_beside(path).exists() == (end != "done")
    assert inbox.is_tidy()


@pytest.mark.parametrize("extension", [".json.gz", ".ndjson", ".zip", ".gz"])
def test_a_file_keeps_its_extension_and_has_its_report_under_the_same_name(
    inbox: Inbox, extension: str
) -> None:
    path = put_away(inbox, b"nonsense", f"cv{extension.upper()}")
    stem = path.name.removesuffix(extension)
    assert path.name == f"{stem}{extension}"
    assert path.with_name(f"{stem}.report.json").exists()
    assert inbox.report("_failed")["file"] == f"ana/cv{extension.upper()}"


# Reports


def test_a_report_says_what_it_was_and_what_to_do(inbox: Inbox) -> None:
    os.utime(inbox.drop("ana/Zoë.json", b"[7"), (0, 1_700_000_000))
    inbox.importer(settle_s=0).round()
    report = inbox.report("_failed")
    (path,) = (inbox.root / "_failed").rglob("*.report.json")
    assert path.read_text("utf-8") == json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    (row,) = inbox.rows()
    assert report.pop("hint").startswith("Have the analyzer write the file again")
    assert report.pop("message").startswith("Invalid JSON at byte ")
    for field in ("claimedAt", "finishedAt"):
        assert report.pop(field).startswith("2027-01-15T")
    assert report == {
        "resumes_import_report": 1,
        "file": "ana/Zoë.json",
        "account": "ana",
        "accountId": inbox.ana.id,
        "claimId": row.claim_id,
        "outcome": "failed",
        "reason": "invalid_json",
        "path": None,
        "byteOffset": 2,
        "issues": [],
        "warnings": [],
        "replaced": [],
        "items": [],
        "itemCounts": None,
        "skipped": [],
        "skippedCount": 0,
        "resumeId": None,
        "duplicateOf": None,
        "sizeBytes": 2,
        "sha256": hashlib.sha256(b"[7").hexdigest(),
        "modifiedAt": "2023-11-14T22:13:20.000Z",
    }


def test_all_issues_and_warnings_are_listed_with_the_resume(inbox: Inbox) -> None:
    put_away(inbox, a_document(title=7, style=5))
    refused = inbox.report("_failed")
    assert refused["path"] == "title"
    assert sorted(issue["path"] for issue in refused["issues"]) == ["style", "title"]
    put_away(inbox, a_document(nickname="a", motto="b"))
    warned = inbox.report("_done")
    assert warned["message"] == "Imported, with 2 warnings"
    assert warned["hint"].startswith("Each resume in the file is stored")
    assert [warned[field] for field in ("reason", "path", "byteOffset")] == [None] * 3
    assert sorted(one["path"] for one in warned["warnings"]) == ["motto", "nickname"]
    (entry,) = stored_resumes.list_page(inbox.store, inbox.ana.id).entries
    assert (warned["resumeId"], warned["duplicateOf"]) == (entry.id, None)
    put_away(inbox, a_document(nickname="a", motto="b"))
    doubled = inbox.report("_duplicate")
    assert (doubled["resumeId"], doubled["duplicateOf"]) == (None, entry.id)


def test_no_control_character_and_no_surrogate_gets_into_a_report(inbox: Inbox) -> None:
    body = b'{"header": {"name": "a"}, "x\\ud800\\u001b\\n": 1, "sections": {"\\u202e": 5}}'
    put_away(inbox, body)
    (path,) = inbox.root.rglob("*.report.json")
    text = path.read_bytes().decode()
    assert not {"\x1b", "\u202e"} & set(text)
    assert not {"\x1b", "\n", "\u202e", "\ud800"} & set(str(json.loads(text)["message"]))


@pytest.mark.parametrize(
    "body",
    [
        a_document(),
        b'{"resumes_import_report": 1',
        b'["resumes_import_report"]',
        b'{"resumes_import_report": 2}',
        b'{"resumes_import_report": 1, "a": ' + b"[" * 100_000,
        b" " * 300 + b'{"resumes_import_report": 1}',
    ],
)
def test_what_only_looks_like_a_report_is_none(body: bytes) -> None:
    assert not filing.parse_report(body)


# What lies in the way


def test_a_file_that_lies_under_the_name_of_a_report_stays(inbox: Inbox) -> None:
    mine: list[Path] = []

    def be_quicker() -> None:
        for row in inbox.rows():
            name = f"cv-{row.claim_id[16:]}"
            for ending in (".report.json", ".json"):
                mine.append(inbox.drop(f"_failed/invalid_json/{name}{ending}", b"mine"))

    inbox.drop("ana/cv.json", b"nonsense")
    inbox.importer(settle_s=0, observe=during(Moment.COMMITTED, be_quicker)).round()
    assert [path.read_bytes() for path in mine] == [b"mine"] * len(mine)
    (row,) = inbox.rows()
    (path,) = [path for path in inbox.filed("_failed") if path.read_bytes() == b"nonsense"]
    assert row.claim_id in path.name
    assert json.loads(report_beside(path).read_bytes())["claimId"] == row.claim_id


@pytest.mark.parametrize(
    ("content", "outcome", "was"),
    [
        (b"nonsense", "_failed/invalid_json", "rejected"),
        (a_document(), "_done/2027-01-15/ana", "imported"),
    ],
)
def test_a_file_whose_every_name_is_taken_stays_until_one_is_free(
    inbox: Inbox, content: bytes, outcome: str, was: str
) -> None:
    folder = inbox.root / outcome

    def take_names() -> None:
        for row in inbox.rows():
            for end in (row.claim_id[16:], row.claim_id):
                drop(folder, f"cv-{end}.json", b"mine")

    inbox.drop("ana/cv.json", content)
    importer = inbox.importer(settle_s=0, observe=during(Moment.COMMITTED, take_names))
    importer.round()
    (row,) = inbox.rows()
    assert inbox.notices == [
        f"Cannot move ana/cv.json: Every name for {row.claim_id} is taken in {folder}. It was "
        f"{was} and stays where it is; the move will be retried, and no new files will be imported "
        "until then"
    ]
    free = folder / f"cv-{row.claim_id}.json"
    free.unlink()
    importer.round()
    assert free.read_bytes() == content
    assert (folder / f"cv-{row.claim_id[16:]}.json").read_bytes() == b"mine"


@pytest.mark.parametrize("end", ["done", "failed"])
def test_a_folder_of_outcomes_that_somebody_removed_is_made_again(inbox: Inbox, end: str) -> None:
    importer = inbox.importer(settle_s=0)
    for number in range(2):
        content = a_document(str(number)) if end == "done" else b"nonsense"
        inbox.drop(f"ana/{number}.json", content)
        inbox.rounds(importer, 2)
        assert inbox.counts(end) == [1]
        shutil.rmtree(inbox.root / f"_{end}")


def test_a_folder_of_outcomes_that_is_removed_before_the_move_is_told_and_made_again(
    inbox: Inbox,
) -> None:
    inbox.drop("ana/cv.json", b"nonsense")
    remove = during(Moment.REPORTED, lambda: shutil.rmtree(inbox.root / "_failed"))
    inbox.importer(settle_s=0, observe=remove).round()
    assert inbox.notices == [
        "Cannot move ana/cv.json: No such file or directory. It was rejected and stays where it is; "
        "the move will be retried, and no new files will be imported until then"
    ]
    inbox.importer(settle_s=0).round()
    (path,) = inbox.filed("_failed")
    assert report_beside(path).exists()


@pytest.fixture
def other_disk(root: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder on another disk, where files lie that came to their end."""
    other = Path("/dev/shm")
    if tmp_path.is_relative_to(other):
        other = Path("/var/tmp")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other disk")
    with tempfile.TemporaryDirectory(dir=other) as folder:
        for name in ("_done", "_failed"):
            Path(folder, name).mkdir()
            (root / name).symlink_to(Path(folder, name))
        yield Path(folder)


FAR = pytest.mark.parametrize("content", [a_document("Ada"), b"nonsense"], ids=["done", "failed"])


@FAR
def test_outcomes_may_lie_on_another_disk_and_are_synced_there_before_the_source_is_removed(
    inbox: Inbox, other_disk: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    source = inbox.drop("ana/cv.json", content)
    os.utime(source, ns=(0, 5_000_000_000))
    inode, really_sync = source.stat().st_ino, os.fsync
    synced, before = set[int](), set[int]()

    def sync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        really_sync(descriptor)

    def note() -> None:
        assert inode in {path.lstat().st_ino for path in inbox.root.rglob("*")}
        before.update(synced)

    monkeypatch.setattr(os, "fsync", sync)
    inbox.importer(settle_s=0, observe=during(Moment.COPIED, note)).round()
    copy = check_far(inbox, other_disk, content)
    assert [Path(one.filed_as).resolve() for one in inbox.files] == [copy]
    assert copy.stat().st_mtime_ns == 5_000_000_000
    assert {copy.stat().st_ino, copy.parent.stat().st_ino} <= before


@FAR
@pytest.mark.parametrize("moment", [Moment.SET_ASIDE, Moment.COPIED])
def test_a_file_is_copied_to_another_disk_once_however_often_that_is_cut_off(
    inbox: Inbox, other_disk: Path, content: bytes, moment: Moment
) -> None:
    inbox.drop("ana/cv.json", content)
    die(inbox.importer(settle_s=0, observe=killing_at(moment)))
    if moment is Moment.COPIED:
        die(inbox.importer(settle_s=0, observe=killing_at(moment)))
    else:  # or in the middle of the copy
        (aside,) = (inbox.root / "ana").glob(".*.aside")
        folders = [path for path in other_disk.rglob("*") if path.is_dir()]
        deepest = max(folders, key=lambda path: len(path.parts))
        (deepest / f"{aside.stem}.part").write_bytes(content[:3])
    inbox.importer(settle_s=0).round()
    check_far(inbox, other_disk, content)


def check_far(inbox: Inbox, folder: Path, content: bytes) -> Path:
    """The content lies on the other disk once, and nothing else of the importer's anywhere."""
    (path,) = [path for path in folder.rglob("cv-*.json") if ".report" not in path.name]
    assert path.read_bytes() == content
    assert report_beside(path).exists() == (content == b"nonsense")
    assert [path for path in folder.rglob(".*") if not path.is_dir()] == []
    assert inbox.names_below("ana") == []
    assert inbox.is_tidy()
    return path


@pytest.mark.parametrize(
    ("moment", "is_replaced", "files"),
    [
        (Moment.COMMITTED, False, 1),
        (Moment.COMMITTED, True, 1),
        (Moment.SET_ASIDE, True, 2),
        (Moment.COPIED, True, 2),
    ],
)
def test_what_is_written_to_a_file_or_its_place_before_it_is_copied_is_a_file_of_its_own(
    inbox: Inbox, other_disk: Path, moment: Moment, is_replaced: bool, files: int
) -> None:
    path = inbox.drop("ana/cv.json", a_document("First"))
    contents = iter([a_document("Second")])

    def write() -> None:
        if (content := next(contents, None)) is not None:
            if is_replaced:
                path.unlink(missing_ok=True)
            path.write_bytes(content)

    inbox.rounds(inbox.importer(settle_s=0, observe=during(moment, write)), 3)
    assert inbox.names() == ["First", "Second"]
    assert inbox.counts("done") == [files]


def test_what_cannot_be_copied_yet_is_copied_later_and_is_never_removed(
    inbox: Inbox, other_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        if ".part" in os.readlink(f"/proc/self/fd/{descriptor}"):  # noqa: PTH115
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    fsync = os.fsync

    inbox.limit(1)
    for name in ("first", "held"):
        inbox.drop(f"ana/{name}.json", a_document(name))
    importer = inbox.importer(settle_s=0)
    importer.round()
    inbox.limit(None)
    inbox.drop("ana/third.json", a_document("third"))
    with monkeypatch.context() as faults:
        faults.setattr(os, "fsync", full)
        importer.round()
        assert not importer.schedule.is_stuck  # others may be smaller
        assert "there is not enough room to copy it to another disk" in inbox.notices[-1]
    inbox.advance(60)
    inbox.rounds(importer, 4, 60)
    assert sorted(inbox.names()) == ["first", "held", "third"]
    assert inbox.counts("done", "held", "duplicate") == [3, 0, 0]
    assert inbox.is_tidy()


def test_what_is_written_while_it_is_copied_is_a_new_version(
    inbox: Inbox, other_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By somebody who has had the file open all along, where no lease tells."""
    path = inbox.drop("ana/cv.json", a_document("First"))
    contents = iter([a_document("Second")])
    copy_as_read = filing._copy_as_read
    monkeypatch.setattr(files, "find_writer", lambda descriptor: None)

    with path.open("r+b") as writer:

        def copy(file: File, source: int, target: Path) -> None:
            copy_as_read(file, source, target)
            if (content := next(contents, None)) is not None:
                writer.write(content)
                writer.truncate()
                writer.flush()

        monkeypatch.setattr(filing, "_copy_as_read", copy)
        inbox.rounds(inbox.importer(settle_s=0), 4)
    assert inbox.names() == ["First", "Second"]
    assert inbox.counts("done") == [1]


HOLES_BYTES = 3 * 1024 * 1024


@pytest.mark.parametrize("name", ["cv.json", "cv.ndjson", "cv.zip"])
@pytest.mark.parametrize("start", [b"", b"nonsense" * 1_000], ids=["empty", "begun"])
def test_a_copy_takes_no_more_room_than_what_was_dropped(
    inbox: Inbox, other_disk: Path, name: str, start: bytes
) -> None:
    path = inbox.drop(f"ana/{name}", start or b"x")
    os.truncate(path, len(start))
    os.truncate(path, HOLES_BYTES)
    path.chmod(0o6755)  # the copy is the importer's own, and must not lend its rights
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    inbox.importer(settle_s=0).round()
    (copy,) = inbox.filed("_failed")
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == sha256
    assert copy.stat().st_blocks * 512 <= len(start) + 4_096
    assert copy.stat().st_mode & 0o7777 == 0o755
    assert inbox.names_below("ana") == []


@pytest.mark.parametrize("name", ["cv.json", "cv.ndjson", "cv.zip", "cv.json.gz"])
def test_what_is_too_large_to_be_taken_is_not_copied_and_keeps_no_other_waiting(
    inbox: Inbox, other_disk: Path, name: str
) -> None:
    path = inbox.drop(f"ana/{name}", b"x")
    os.truncate(path, HOLES_BYTES)
    importer = inbox.importer(settle_s=0, max_file_bytes=HOLES_BYTES - 1)
    inbox.rounds(importer, 3, 60)
    inbox.drop("ana/other.json")
    importer.round()
    assert inbox.outcomes() == {f"ana/{name}": "failed", "ana/other.json": "done"}
    kept, _ = inbox.files
    assert (kept.filed_as, kept.is_kept) == (str(path), True)
    assert inbox.notices == [
        f"ana/{name} was rejected and stays where it is: it is too large to be moved to another disk. "
        "Delete it"
    ]
    summary = importer.summary()
    assert (summary.failed, summary.done, summary.waiting, summary.stuck) == (1, 1, 0, 0)
    (report,) = (inbox.root / "_failed/too_large").glob("cv-*")
    assert filing.load_report(report)["file"] == f"ana/{name}"
    written_at = report.stat().st_mtime_ns
    inbox.advance(60)
    importer.round()
    assert report.stat().st_mtime_ns == written_at
    assert [row.reason for row in inbox.rows()] == [None, "too_large"]
    assert inbox.names_below("ana") == [name]
    path.unlink()
    inbox.advance(60)
    inbox.rounds(importer, 2, 60)
    assert importer.job.notices.findings() == ()
    assert inbox.names_below("_failed") == []
    assert (importer.summary().failed, len(inbox.files)) == (1, 2)
    assert inbox.is_tidy()


@pytest.mark.parametrize("moment", [Moment.SET_ASIDE, Moment.COPIED])
@pytest.mark.parametrize("content", [a_document("Ada"), b"nonsense"], ids=["valid", "rejected"])
def test_what_is_killed_on_its_way_to_another_disk_is_not_imported_again_if_its_name_is_taken(
    inbox: Inbox, other_disk: Path, content: bytes, moment: Moment
) -> None:
    inbox.drop("ana/cv.json", content)
    die(inbox.importer(settle_s=0, observe=killing_at(moment)))
    for entry in stored_resumes.list_page(inbox.store, inbox.ana.id).entries:
        stored_resumes.delete_resume(inbox.store, inbox.ana.id, entry.id)
    inbox.drop("ana/cv.json", a_document("Bob"))
    inbox.rounds(inbox.importer(settle_s=0), 2, 5)
    assert inbox.names() == ["Bob"]
    assert len(inbox.filed("_done")) + len(inbox.filed("_failed")) == 2


@pytest.mark.parametrize("content", ["valid", "set aside", "rejected", "held", "duplicate"])
def test_where_a_copy_has_no_room_that_file_waits_alone_and_its_message_says_its_outcome(
    inbox: Inbox, content: str
) -> None:
    inbox.account("eve", 0 if content == "held" else None)
    inbox.account("bob")
    large = a_document("eve", nickname="x" * 19_000).ljust(1_000_000)
    if content == "duplicate":
        inbox.drop("eve/0.json", large.strip())
        inbox.importer(settle_s=0).round()
        inbox.files.clear()
    elif content == "rejected":
        large = os.urandom(1_000_000)
    was = {"rejected": "was rejected", "held": "is held", "duplicate": "is a duplicate"}
    shutil.rmtree(inbox.root)

    def act(mounts: Mounts) -> None:
        mounts.mount(inbox.root, 3_000_000)
        mounts.mount(inbox.root / "eve", 2_000_000)
        filler = inbox.root / "_filler"
        fillings = [b"x" * 1_900_000]

        def fill() -> None:
            while fillings:
                filler.write_bytes(fillings.pop())  # a tenth of the disk is to stay free

        if content != "set aside":
            fill()
        importer = inbox.importer(settle_s=0, observe=during(Moment.SET_ASIDE, fill))
        inbox.drop("eve/large.json", large)
        for number in range(3):
            importer.round()
            inbox.drop(f"bob/{number}.json", a_document(str(number)))
            # Which is on the same disk, and need not be copied.
            inbox.drop(f"bob/bad{number}.json", b"nonsense".ljust(0 if number else 900_000))
            importer.round()
            assert not importer.schedule.is_stuck
            inbox.advance(60)
        assert Counter(inbox.outcomes().values()) == {"done": 3, "failed": 3}
        assert inbox.names_below("eve") == ["large.json"]
        assert inbox.notices == [
            f"eve/large.json {was.get(content, 'was imported')}, but cannot be moved: there is not "
            "enough room to copy it to another disk. It stays where it is; the move will be retried"
        ]
        filler.unlink()
        inbox.advance(60)
        importer.round()
        assert inbox.names_below("eve") == []
        assert len(inbox.files) == 7
        importer.close()

    with_mounts(act)
    assert accounts.get_account(inbox.store, "eve").resume_count == (
        content in ("valid", "set aside", "duplicate")
    )


@pytest.mark.parametrize(
    ("is_removed", "change"),
    [
        (True, os.mkfifo),
        (True, lambda aside: aside.symlink_to("/dev/zero")),
        (True, Path.mkdir),
        (False, lambda aside: drop(aside.parent, ".other", b"another").replace(aside)),
        (False, lambda aside: os.truncate(aside, 1)),
        (False, lambda aside: os.truncate(aside, 1 << 40)),
        (False, lambda aside: os.truncate(aside, 100_000)),
        (False, os.unlink),
    ],
    ids=["pipe", "link", "folder", "another", "cut", "huge", "grown", "gone"],
)
@FAR
def test_what_becomes_of_a_file_before_it_is_copied_concerns_that_file_alone(
    inbox: Inbox, other_disk: Path, is_removed: bool, change: Callable[[Path], None], content: bytes
) -> None:
    waiting = [change]

    def act() -> None:
        (aside,) = (inbox.root / "ana").glob(".*.aside")
        while waiting:
            if is_removed:
                aside.unlink()
            waiting.pop()(aside)

    inbox.drop("ana/cv.json", content)
    importer = inbox.importer(settle_s=0, observe=during(Moment.SET_ASIDE, act))
    importer.round()
    assert not importer.schedule.is_stuck
    inbox.drop("ana/other.json", a_document("other"))
    inbox.advance(60)
    inbox.rounds(importer, 3, 60)
    assert inbox.outcomes()["ana/other.json"] == "done"
    assert [name for name in names_below(other_disk) if name.endswith((".part", ".aside"))] == []
    assert all(path.stat().st_size < 100_000 for path in inbox.filed("_done"))


@pytest.mark.parametrize("problem", ["it is open for writing", "Permission denied"])
def test_a_file_that_is_open_or_may_not_be_read_when_it_is_to_be_copied_is_done_later(
    inbox: Inbox, other_disk: Path, problem: str
) -> None:
    path = inbox.drop("ana/cv.json", a_document("Ada"))
    writers: list[BinaryIO] = []

    def hinder() -> None:
        if problem == "Permission denied":
            path.chmod(0)
        else:
            writers.append(path.open("r+b"))

    importer = inbox.importer(settle_s=0, observe=during(Moment.COMMITTED, hinder))
    with bound_by_permissions():
        importer.round()
    assert inbox.counts("done") == [0]
    assert inbox.notices == [
        f"ana/cv.json was imported, but cannot be moved: {problem}. It stays where it is; the move "
        "will be retried"
    ]
    if writers:
        writers[0].close()
    else:
        path.chmod(0o644)  # it was not even set aside
    inbox.advance(10)
    importer.round()
    assert inbox.counts("done", "duplicate") == [1, 0]
    assert inbox.names() == ["Ada"]


def test_a_file_that_was_set_aside_is_put_away_though_the_other_disk_is_gone(
    inbox: Inbox, other_disk: Path
) -> None:
    inbox.drop("ana/cv.json", a_document("Ada"))
    die(inbox.importer(observe=killing_at(Moment.SET_ASIDE)))
    (inbox.root / "_done").unlink()
    inbox.importer().round()
    assert [path.read_bytes() for path in inbox.filed("_done")] == [a_document("Ada")]
    assert inbox.names_below("ana") == []
    assert inbox.is_tidy()


def test_a_file_that_was_set_aside_and_the_ledger_does_not_know_is_put_back(
    inbox: Inbox, other_disk: Path
) -> None:
    inbox.drop("ana/cv.json", b"nonsense")
    die(inbox.importer(settle_s=0, observe=killing_at(Moment.SET_ASIDE)))
    damage(inbox.store, "DELETE FROM imported_files")  # as when it is restored
    inbox.importer(settle_s=0).round()
    assert [row.name for row in inbox.rows()] == ["ana/cv.json"]
    check_far(inbox, other_disk, b"nonsense")


@pytest.mark.parametrize(
    ("disks", "name", "moment", "added", "mode"),
    [
        (2, "cv.zip", Step.REPORTS_TIDIED, b"", 0o644),  # whose content is not compared
        (1, "cv.zip", Step.ENDED, b"", 0o644),
        (1, "cv.zip", Step.REPORTS_TIDIED, b"x", 0o644),
        (1, "cv.json", Step.REPORTS_TIDIED, b"", 0o644),
        (1, "cv.json", Step.REPORTS_TIDIED, b"x", 0o644),
        (1, "cv.json", Step.REPORTS_TIDIED, b"x", 0),
    ],
)
def test_a_copy_on_another_disk_or_on_one_that_is_seen_as_two_is_known_after_a_kill(
    inbox: Inbox, tmp_path: Path, disks: int, name: str, moment: Step, added: bytes, mode: int
) -> None:
    def act(mounts: Mounts) -> None:
        if disks == 2:
            mounts.mount(inbox.root / "_failed")
        else:
            mounts.bind(drop(tmp_path, "other/notes.txt").parent, inbox.root / "_failed")
        inbox.drop(f"ana/{name}", b"nonsense")
        die(inbox.importer(settle_s=0, observe=killing_at(moment)))
        (copy,) = inbox.root.glob("_failed/*/cv-????????" + Path(name).suffix)
        copy.write_bytes(b"nonsense" + added)
        copy.chmod(mode)
        with bound_by_permissions():
            inbox.importer(settle_s=0).round()
        assert inbox.outcomes() == ({} if added else {f"ana/{name}": "failed"})
        assert ["was changed during" in notice for notice in inbox.notices] == [True] * len(added)
        inbox.close()

    with_mounts(act)


BEYOND_S = 2**57
"""A time whose year is more than the C library can say."""


def test_a_file_from_beyond_the_calendar_is_put_away_like_any_other(inbox: Inbox) -> None:
    def act(mounts: Mounts) -> None:
        mounts.mount(inbox.root)  # other file systems keep no such times
        for name, content in (("good", b""), ("bad", b"{")):
            os.utime(inbox.drop(f"ana/{name}.json", content), (0, BEYOND_S))
        inbox.importer(settle_s=0).round()
        assert inbox.counts("done", "failed") == [1, 1]
        assert inbox.report("_failed")["modifiedAt"] is None
        inbox.close()

    with_mounts(act)
