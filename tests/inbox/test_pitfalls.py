"""The importer's scenarios of docs/pitfalls.md, each test named after its row."""

import errno
import fcntl
import mmap
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options, Tuning
from importer.watcher import EVERYTHING, Changes, Watcher
from resumes import analyzer
from resumes.analyzer import Format
from resumes.store import Store, accounts, import_history, open_store, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.import_ledger import FileOutcome
from tests.support.inbox import killed_importer
from tests.support.inbox.builders import (
    FakeMonotonic,
    MakeAccount,
    MakeImporter,
    Moment,
    Told,
    a_full_disk,
    an_account_with_room_for,
    counts,
    die,
    drop,
    drop_aged,
    during,
    filed,
    is_tidy,
    killing_at,
    names_below,
    report_beside,
    resume_names,
    rounds_until,
    set_limit,
    the_report,
    wait_until,
)
from tests.support.inbox.homes import Drain, drain
from tests.support.inbox.killed_importer import Task, Victim
from tests.support.inbox.packing import gzipped
from tests.support.resumes import a_document
from tests.support.waiting import children_of

__all__ = ["drain"]  # a fixture


# I1: contents and claims are two questions


def test_i1_a_deleted_resume_can_be_dropped_again_and_a_refused_file_is_no_duplicate(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer(settle_s=0)
    drop(root, "ana/1.json", a_document("Ada"))
    drop(root, "ana/bad1.json", b"{}")
    importer.round()
    (entry,) = stored_resumes.list_page(store, ana.id).entries
    stored_resumes.delete_resume(store, ana.id, entry.id)
    drop(root, "ana/2.json", a_document("Ada"))
    drop(root, "ana/bad2.json", b"{}")
    importer.round()
    assert told.outcomes() == {
        "ana/1.json": "done",
        "ana/2.json": "done",
        "ana/bad1.json": "failed",
        "ana/bad2.json": "failed",
    }


def test_i1_killed_after_the_commit_then_deleted_then_recovered_does_not_bring_it_back(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/1.json", a_document("Ada"))
    die(an_importer(observe=killing_at(Moment.COMMITTED)))
    (entry,) = stored_resumes.list_page(store, ana.id).entries
    stored_resumes.delete_resume(store, ana.id, entry.id)
    an_importer().round()
    assert resume_names(store, ana.id) == []
    assert len(filed(root, "_done")) == 1


# I2: the same content twice at once


def test_i2_repeats_in_a_file_are_duplicates_of_its_first(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    lines = [a_document("1"), b" " + a_document("1") + b"\t", a_document("2"), a_document("1")]
    drop(root, "ana/many.ndjson", b"\r\n".join(lines))
    an_importer(settle_s=0).round()
    assert resume_names(store, ana.id) == ["1", "2"]
    items = the_report(root, "_done")["items"]
    assert [item["outcome"] for item in items] == ["done", "duplicate", "done", "duplicate"]
    assert items[1]["duplicateOf"] == items[3]["duplicateOf"] == items[0]["resumeId"]
    assert accounts.list_wrong(store) == []


def test_i2_of_equal_files_in_a_batch_one_is_imported(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    set_limit(store, "one", 1)
    account = an_account(plan="one")
    for number in range(5):
        drop(root, f"ana/{number}.json", a_document("1") + b"\n" * number)
    an_importer().round()
    assert resume_names(store, account.id) == ["1"]
    counts = [len(filed(root, outcome)) for outcome in ("_done", "_duplicate", "_held")]
    assert counts == [1, 4, 0]


def test_i2_a_file_beside_itself_compressed_is_imported_once(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.json", a_document("1"))
    drop(root, "ana/cv.json.gz", gzipped(a_document("1")))
    an_importer(settle_s=0).round()
    assert resume_names(store, ana.id) == ["1"]
    counts = [len(filed(root, outcome)) for outcome in ("_done", "_duplicate")]
    assert counts == [1, 1]


# I3: beginnings that look like something else


def test_i3_a_writer_first_puts_an_empty_object_or_zeros_and_nothing_is_judged_too_soon(
    root: Path, told: Told, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer(settle_s=5)
    drop(root, "ana/1.json", b"{}")
    drop(root, "ana/2.json", b"\x00" * 500)
    drop(root, "ana/3.json", a_document("Cut")[:40])
    drop(root, "ana/4.json", b"{}")
    importer.round()
    monotonic.advance(4.9)
    importer.round()
    assert told.files == []
    for number in (1, 2, 3):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    monotonic.advance(0.2)
    importer.round()
    assert told.outcomes() == {
        "ana/1.json": "done",
        "ana/2.json": "done",
        "ana/3.json": "done",
        "ana/4.json": "failed",
    }


def test_i3_lines_that_grow_under_a_json_name_are_not_taken_for_their_first(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer(settle_s=5)
    path = drop(root, "ana/many.json", a_document("1") + b"\n" + a_document("2")[:50])
    importer.round()
    monotonic.advance(4)
    path.write_bytes(a_document("1") + b"\n" + a_document("2") + b"\n")
    importer.round()
    assert resume_names(store, ana.id) == []
    monotonic.advance(5)
    importer.round()
    assert resume_names(store, ana.id) == ["1", "2"]


# I4: a writer that goes on after a complete version


def test_i4_a_writer_that_keeps_its_descriptor_has_its_last_version_imported(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer()
    with drop(root, "ana/cv.json", a_document("First")).open("r+b") as writer:
        importer.round()
        assert resume_names(store, ana.id) == []
        writer.write(a_document("Second"))
        writer.truncate()
        writer.flush()
        monotonic.advance(10)
        importer.round()
        assert resume_names(store, ana.id) == []
    monotonic.advance(10)
    importer.round()
    assert resume_names(store, ana.id) == ["Second"]
    assert [path.read_bytes() for path in filed(root, "_done")] == [a_document("Second")]


def test_i4_a_writer_that_keeps_the_file_mapped_has_its_last_version_imported(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer()
    with drop(root, "ana/cv.json", a_document("One")).open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    with mapped:
        importer.round()
        mapped[:] = a_document("Two")
        monotonic.advance(10)
        importer.round()
        assert resume_names(store, ana.id) == []
    monotonic.advance(10)
    importer.round()
    assert resume_names(store, ana.id) == ["Two"]


def test_i4_a_file_that_is_never_closed_is_imported_after_a_minute_of_quiet(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer(settle_s=1)
    with drop(root, "ana/cv.json", a_document("1")).open("r+b"):
        for _ in range(59):
            importer.round()
            monotonic.advance(1)
        assert resume_names(store, ana.id) == []
        monotonic.advance(2)
        importer.round()
        assert resume_names(store, ana.id) == ["1"]


def test_i4_where_nothing_says_whether_there_is_a_writer_a_second_of_quiet_does(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    def refuse_leases(descriptor: int, command: int, argument: int = 0) -> int:
        if command == fcntl.F_SETLEASE:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return ask(descriptor, command, argument)

    ask = fcntl.fcntl
    monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    account = an_account()
    importer = an_importer()
    drop(root, "ana/cv.json", a_document("1"))
    importer.round()
    monotonic.advance(0.9)
    importer.round()
    assert resume_names(store, account.id) == []
    monotonic.advance(0.2)
    importer.round()
    assert resume_names(store, account.id) == ["1"]


def test_i4_what_is_written_after_the_commit_is_a_file_of_its_own(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    os.link(drop(root, "ana/cv.json", a_document("First")), root.parent / "alias")

    def write_on() -> None:
        if "First" in (root.parent / "alias").read_text():
            (root.parent / "alias").write_bytes(a_document("Second"))

    importer = an_importer(observe=during(Moment.COMMITTED, write_on))
    importer.round()
    assert told.notices == [
        "ana/cv.json was changed during its import; its new content will be imported as a separate file"
    ]
    for _ in range(2):
        monotonic.advance(5)
        importer.round()
    assert resume_names(store, ana.id) == ["First", "Second"]
    assert [path.read_bytes() for path in filed(root, "_done")] == [a_document("Second")]
    assert [row.name for row in import_history.list_files(store)] == ["ana/cv.json"] * 2
    importer.close()
    assert is_tidy(root)


def test_i4_a_file_that_is_open_where_it_was_moved_to_keeps_no_other_waiting(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    os.link(drop(root, "ana/1.json", a_document("1")), root.parent / "alias")
    writers: list[BinaryIO] = []

    def open_once() -> None:
        if not writers:
            writers.append((root.parent / "alias").open("r+b"))

    importer = an_importer(observe=during(Moment.COMMITTED, open_once))
    importer.round()
    drop(root, "ana/2.json", a_document("2"))
    importer.round()
    assert resume_names(store, ana.id) == ["1", "2"]
    assert importer.wait_s() > 0
    writers[0].close()
    monotonic.advance(5)
    importer.round()
    assert counts(root, "done") == [2]
    importer.close()
    assert is_tidy(root)


def test_i4_another_version_goes_back_though_its_folder_is_gone(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/2026/cv.json", a_document("First"))
    die(an_importer(observe=killing_at(Moment.MOVED)))
    (moved,) = filed(root, "_done")
    moved.write_bytes(a_document("Second"))
    shutil.rmtree(root / "ana")
    importer = an_importer()
    for _ in range(3):
        monotonic.advance(5)
        importer.round()
    assert resume_names(store, ana.id) == ["First", "Second"]
    importer.close()
    assert is_tidy(root)


@pytest.mark.parametrize("taken", [1, 3])
def test_i4_another_version_goes_back_under_a_name_that_is_free(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
    taken: int,
) -> None:
    os.link(drop(root, "ana/cv.json", a_document("First")), root.parent / "alias")
    claim_ids: list[str] = []

    def write_on_and_take_names() -> None:
        if not claim_ids:
            (row,) = import_history.list_files(store)
            claim_ids.append(row.claim_id)
            (root.parent / "alias").write_bytes(a_document("Second"))
            names = ["cv", f"cv-{row.claim_id[-8:]}", row.claim_id]
            for name in names[:taken]:
                drop(root, f"ana/{name}.json", a_document(f"In {name}"))

    importer = an_importer(observe=during(Moment.MOVED, write_on_and_take_names))
    importer.round()
    for _ in range(4):
        monotonic.advance(5)
        importer.round()
    problem = f"cannot be moved back: Every name is taken in {root / 'ana'}. This will be retried"
    assert any(problem in notice for notice in told.notices) is (taken == 3)
    assert {"First", "Second"} < set(resume_names(store, ana.id))
    names = {row.name for row in import_history.list_files(store) if row.account == "ana"}
    assert f"ana/cv-{claim_ids[0][-8:]}.json" in names
    importer.close()
    assert is_tidy(root)


def test_i4_a_file_that_was_replaced_by_its_equal_is_done(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    path = drop(root, "ana/cv.json", a_document("1"))
    other = drop(root.parent, "other.json", a_document("1"))
    an_importer(
        observe=during(Moment.COMMITTED, lambda: other.exists() and other.rename(path))
    ).round()
    assert resume_names(store, ana.id) == ["1"]
    assert counts(root, "done", "duplicate") == [1, 0]


def test_i4_a_file_that_was_replaced_by_its_equal_and_is_written_to_is_another(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    path = drop(root, "ana/cv.json", a_document("First"))
    other = drop(root.parent, "other.json", a_document("First"))
    with other.open("r+b") as writer:
        replace = during(Moment.COMMITTED, lambda: other.exists() and other.rename(path))
        importer = an_importer(observe=replace)
        importer.round()
        writer.write(a_document("Second"))
        writer.truncate()
    for _ in range(3):
        monotonic.advance(5)
        importer.round()
    assert resume_names(store, ana.id) == ["First", "Second"]


# I5: nothing goes back, nothing is replaced


def test_i5_a_newer_file_of_the_same_name_survives_one_that_has_to_settle(
    store: Store, root: Path, monotonic: FakeMonotonic, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    path = drop(root, "ana/cv.json", a_document("First"))
    importer = an_importer(settle_s=5)
    with path.open("r+b") as writer:
        importer.round()
        drop(root, ".new/cv.json", a_document("Newer")).rename(path)
        importer.round()
        assert resume_names(store, ana.id) == ["Newer"]
        writer.write(a_document("First, finished"))
    monotonic.advance(5)
    importer.round()
    # The first is lost to its own writer where the newer took its place in the inbox.
    names = resume_names(store, ana.id)
    assert names in (["Newer"], ["Newer", "First, finished"])
    assert {path.read_bytes() for path in filed(root, "_done")} == set(map(a_document, names))


def test_i5_equal_names_never_overwrite_one_another(
    root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer()
    for number in range(3):
        drop(root, "ana/cv.json", a_document(str(number)))
        importer.round()
    contents = {path.read_bytes() for path in filed(root, "_done")}
    assert contents == {a_document(str(number)) for number in range(3)}


# I6: claims that were left


@pytest.mark.parametrize("moment", [Moment.NOTED, Moment.READ, Moment.COMMITTED, Moment.MOVED])
def test_i6_recovery_knows_the_account_and_the_name_of_a_file(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter, moment: Moment
) -> None:
    name = os.fsdecode(b"ana/deep/bad\xff\n.json")
    drop(root, name, a_document("Ada"))
    die(an_importer(observe=killing_at(moment)))
    importer = an_importer()
    importer.round()
    importer.close()
    assert resume_names(store, ana.id) == ["Ada"]
    assert [row.name for row in import_history.list_files(store)] == ["ana/deep/bad\\xff\\x0a.json"]
    assert counts(root, "done", "duplicate") == [1, 0]
    assert is_tidy(root)


def test_i6_two_importers_never_take_one_file_twice(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    for number in range(20):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    second = an_importer()
    overtaken: list[bool] = []

    def overtake() -> None:
        if not overtaken:
            overtaken.append(True)
            second.round()

    first = an_importer(observe=during(Moment.NOTED, overtake))
    first.round()
    first.round()
    assert sorted(resume_names(store, ana.id)) == sorted(str(n) for n in range(20))
    assert len(told.files) == 20
    assert counts(root, "done", "duplicate") == [20, 0]


# I7: held files keep their order


def test_i7_a_new_file_does_not_overtake_held_ones_through_a_place_freed_meanwhile(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    set_limit(store, "small", 1)
    account = an_account(plan="small")
    drop_aged(root, "0", "1")
    an_importer().round()
    drop(root, "ana/late.json", a_document("late"))
    drop(root, "ana/again.json", a_document("0"))

    def free_a_place() -> None:
        set_limit(store, "small", 2)

    importer = an_importer(observe=during(Moment.NOTED, free_a_place))
    importer.round()
    assert resume_names(store, account.id) == ["0"]
    assert len(filed(root, "_held")) == 2
    assert len(filed(root, "_duplicate")) == 1
    importer.round()
    assert resume_names(store, account.id) == ["0", "1"]


def test_i7_no_more_are_released_than_there_are_places_and_the_others_stay_as_they_are(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    set_limit(store, "small", 0)
    account = an_account(plan="small")
    drop_aged(root, *"0123")
    importer = an_importer()
    importer.round()
    later = {path.name: path.stat().st_ctime_ns for path in sorted(filed(root, "_held"))[1:]}
    told.files.clear()
    set_limit(store, "small", 1)
    for _ in range(3):
        importer.round()
    assert resume_names(store, account.id) == ["0"]
    assert [file.name for file in told.files] == ["ana/0.json"]
    assert {path.name: path.stat().st_ctime_ns for path in filed(root, "_held")} == later


def test_i7_the_order_outlives_the_importer_and_the_return_of_a_file(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    set_limit(store, "small", 0)
    account = an_account(plan="small")
    drop_aged(root, *"012")
    an_importer().round()

    def take_the_place_back() -> None:
        set_limit(store, "small", 0)

    set_limit(store, "small", 1)
    bounced = an_importer(observe=during(Moment.READ, take_the_place_back))
    bounced.round()
    assert resume_names(store, account.id) == []
    bounced.close()
    drop(root, "ana/late.json", a_document("late"))
    an_importer().round()
    set_limit(store, "small", None)
    an_importer().round()
    assert resume_names(store, account.id) == ["0", "1", "2", "late"]


def test_i7_a_file_of_several_is_not_overtaken_by_the_next(
    store: Store,
    root: Path,
    monotonic: FakeMonotonic,
    an_account: MakeAccount,
    an_importer: MakeImporter,
) -> None:
    set_limit(store, "small", 0)
    account = an_account(plan="small")
    importer = an_importer()
    drop(root, "ana/several.json", b"[%s]" % b",".join(map(a_document, "01")))
    importer.round()
    monotonic.advance(6)
    assert importer.round() == 1
    drop(root, "ana/one.json", a_document("late"))
    assert importer.round() == 1
    set_limit(store, "small", 2)
    for _ in range(3):
        importer.round()
    assert resume_names(store, account.id) == ["0", "1"]


def test_i7_what_a_dead_importer_had_claimed_does_not_overtake_what_it_held(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    set_limit(store, "small", 0)
    account = an_account(plan="small")
    drop_aged(root, *"01")
    die(an_importer(observe=killing_at(Moment.MOVED)))
    assert len(filed(root, "_held")) == 1
    set_limit(store, "small", 1)
    importer = an_importer()
    for _ in range(2):
        importer.round()
    assert resume_names(store, account.id) == ["0"]
    assert len(filed(root, "_held")) == 1


# I8: who lives, and who does not


def test_i8_locks_that_somebody_tidied_away_let_nobody_take_a_file_twice(
    store: Store,
    root: Path,
    told: Told,
    monotonic: FakeMonotonic,
    ana: AccountInfo,
    an_importer: MakeImporter,
) -> None:
    first, second = an_importer(), an_importer(settle_s=1, beside=True)
    with drop(root, "ana/1.json", a_document("1")).open("r+b"):
        first.round()
        locks = [path for path in root.glob(".*/**/*") if path.suffix == ".lock"]
        assert locks
        for path in locks:
            path.unlink()
            path.touch()
        second.round()
    drop(root, "ana/2.json", a_document("2"))
    first.round()
    monotonic.advance(10)
    second.round()
    first.round()
    assert sorted(resume_names(store, ana.id)) == ["1", "2"]
    assert sorted(file.name for file in told.files) == ["ana/1.json", "ana/2.json"]


# I9: a file system of its own


def can_mount() -> bool:
    command = ["unshare", "--mount", "true"]
    return shutil.which("unshare") is not None and subprocess.run(command).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="nothing can be mounted here")
def test_i9_from_a_mount_files_are_copied_away_and_the_others_go_on(tmp_path: Path) -> None:
    root = tmp_path / "inbox"
    drop(root, "bo/1.json", a_document("1"))
    (root / "ana").mkdir()
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}") as store:
        for name in ("ana", "bo"):
            accounts.create_account(store, name)
    script = (
        'mount -t tmpfs none "$1/inbox/ana" && cp "$1/inbox/bo/1.json" "$1/inbox/ana" && '
        '"$2" -m cli --home "$1" watch --once --settle 0 "$1/inbox" && ls "$1/inbox/ana"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert counts(root, "done") == [2]
    assert is_tidy(root)
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}") as store:
        ana, bo = (accounts.get_account(store, name).id for name in ("ana", "bo"))
        assert (resume_names(store, ana), resume_names(store, bo)) == (["1"], ["1"])


# I10: a file that ends the process


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store and an inbox in which a file is poison, among others."""
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}") as store:
        an_account_with_room_for(store, None)
    for number in range(3):
        drop(tmp_path / "inbox", f"ana/{number}.json", a_document(str(number)))
        drop(tmp_path / "inbox", f"ana/z{number}.json", a_document(f"z{number}"))
    return tmp_path


@pytest.mark.parametrize(
    ("victim", "name", "poison"),
    [
        (Victim.IMPORTER, "ana/poison.json", killed_importer.POISON),
        (Victim.IMPORTER, "poison.json", killed_importer.POISON),
        (Victim.IMPORTER, "ana/poison.ndjson", a_document("before") + b"\npoison\n"),
        (Victim.IMPORTER, "ana/poison.json.gz", gzipped(b'["poison"]')),
        pytest.param(
            Victim.WORKER, "ana/poison.json", killed_importer.POISON, marks=pytest.mark.slow
        ),
    ],
    ids=["a resume", "directly in ROOT", "a line", "an item", "in a worker"],
)
def test_i10_a_file_that_ends_the_process_is_put_aside_and_its_neighbours_are_imported(
    home: Path, drain: Drain, victim: Victim, name: str, poison: bytes
) -> None:
    root = home / "inbox"
    drop(root, name, poison)
    for number in range(100 if victim is Victim.WORKER else 0):
        drop(root, f"ana/more{number}.json", a_document("0"))
    task = Task(str(home), victim=victim, is_poisonable=True)
    starts = [drain(task)]
    while starts[-1] != 0 and len(starts) < 5:
        starts.append(drain(task))
    assert set(starts[:-1]) == {signal.SIGKILL}
    assert starts[-1] == 0
    assert 2 <= len(starts) <= 4
    (path,) = filed(root, "_failed/crashed")
    assert path.read_bytes() == poison
    assert the_report(root, "_failed")["file"] == name
    assert is_tidy(root)
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        account = accounts.get_account(store, "ana")
        names = set(resume_names(store, account.id)) - {"before"}
        assert names == {"0", "1", "2", "z0", "z1", "z2"}
        (row,) = import_history.list_files(store, outcome=FileOutcome.FAILED)
        assert (row.name, row.reason) == (name, "crashed")


# I11: no room to file away


def test_i11_what_cannot_be_filed_stays_claimed_is_retried_and_stops_new_claims(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer()
    (root / "_done").write_bytes(b"in the way")
    drop(root, "ana/1.json", a_document("1"))
    importer.round()
    drop(root, "ana/2.json", a_document("2"))
    importer.round()
    was_stuck = importer.is_stuck
    assert was_stuck
    assert resume_names(store, ana.id) == ["1"]
    assert (root / "ana/2.json").exists()
    assert told.notices == [
        "Cannot move ana/1.json: Not a directory. It was imported and stays where it is; the move "
        "will be retried, and no new files will be imported until then"
    ]
    (root / "_done").unlink()
    importer.round()
    assert not importer.is_stuck
    assert resume_names(store, ana.id) == ["1", "2"]
    assert len(filed(root, "_done")) == 2


def test_i11_a_report_for_which_there_is_no_room_is_written_when_there_is(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer(settle_s=0, slice_items=10_000)  # so that the store writes little
    # Its report is as long as reports get.
    line = b'{"header": {}, "sections": {"%s": 5}}\n' % (rb"\u0007" * 60)
    drop(root, "ana/many.ndjson", line * 1_000)
    with a_full_disk(1_000_000):
        rounds_until(importer, lambda: importer.is_stuck)
        assert "File too large" in told.notices[0]
        drop(root, "ana/1.json", a_document("1"))
        importer.round()
        assert (root / "ana/1.json").exists()
        assert names_below(root / "_failed") == []
    rounds_until(importer, lambda: resume_names(store, ana.id) == ["1"])
    assert the_report(root, "_failed")["itemCounts"]["failed"] == 1_000
    importer.close()
    assert is_tidy(root)


# I12: one account's backlog, another's fresh file


def test_i12_a_backlog_of_one_account_does_not_keep_a_fresh_file_of_another_waiting(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    for name in ("ana", "bo", "cy"):
        an_account(name)
        (root / name).mkdir()
    path = drop(root, "ana/cut.json", b'{"cut')
    for number in range(20_000):
        os.link(path, root / "ana" / f"{number}.json")
    importer = an_importer(scan_s=600)
    importer.turn()
    assert not importer.progress().is_complete  # it is still being looked at
    assert turns_until_imported(importer, told, drop(root, "bo/1.json")) <= 2
    while not importer.progress().is_complete:
        importer.turn()
    assert turns_until_imported(importer, told, drop(root, "bo/2.json")) <= 2
    importer.turn()
    assert importer.progress().waiting > 19_000


def test_i12_an_event_marks_its_folder_alone(
    root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    for name in ("ana", "bo"):
        an_account(name)
        (root / name).mkdir()
    importer = an_importer(scan_s=600)
    importer.turn()
    drop(root, "ana/1.json")
    assert turns_until_imported(importer, told, drop(root, "bo/1.json")) == 1
    importer.turn()
    assert told.outcomes() == {"bo/1.json": "done"}


def turns_until_imported(importer: Importer, told: Told, path: Path) -> int:
    """How many turns it takes after the event of a file that was dropped just now."""
    importer.changes.mark(path.parent.name)
    name = f"{path.parent.name}/{path.name}"
    turns = 0
    while name not in told.outcomes():
        importer.turn()
        turns += 1
        assert turns < 200
    return turns


# I13: our own reports


def test_i13_a_report_that_was_moved_back_with_its_file_is_no_resume(
    store: Store, root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer(settle_s=0)
    drop(root, "ana/cv.json", b"{}")
    importer.round()
    (failed,) = filed(root, "_failed")
    fixed = failed.rename(root / "ana" / failed.name)
    report_beside(failed).rename(root / "ana" / report_beside(failed).name)
    fixed.write_bytes(a_document("fixed"))
    for _ in range(2):
        importer.round()
    assert resume_names(store, ana.id) == ["fixed"]
    assert [file.outcome for file in told.files] == ["failed", "done"]
    assert (importer.summary().ignored, importer.summary().waiting) == (1, 0)


def test_i13_a_report_under_another_name_is_none_either(
    root: Path, told: Told, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    importer = an_importer(settle_s=0)
    drop(root, "ana/bad.json", b"{}")
    importer.round()
    (path,) = (root / "_failed").rglob("*.report.json")
    path.rename(root / "ana" / "renamed.json")
    importer.round()
    importer.round()
    assert len(told.files) == 1
    assert (importer.summary().ignored, importer.summary().waiting) == (1, 0)


def test_i13_a_report_is_not_read_again_before_it_changes(
    store: Store,
    root: Path,
    ana: AccountInfo,
    an_importer: MakeImporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[bytes] = []

    def parse(body: bytes, format: Format) -> analyzer.Resume:  # noqa: A002  (as in the analyzer)
        read.append(body)
        return really_parse(body, format)

    really_parse = analyzer.parse_imported
    importer = an_importer(settle_s=0)
    drop(root, "ana/bad.json", b"{}")
    importer.round()
    (report,) = (root / "_failed").rglob("*.report.json")
    moved = report.rename(root / "ana" / "renamed.json")
    monkeypatch.setattr(analyzer, "parse_imported", parse)
    for _ in range(3):
        importer.round()
    assert read == [moved.read_bytes()]
    assert importer.awaited == []
    moved.write_bytes(a_document("fixed"))
    importer.round()
    assert resume_names(store, ana.id) == ["fixed"]


# I14: our own moves


def test_i14_our_own_moves_are_not_heard(
    root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    for name in ("ana", "bo"):
        an_account(name)
        (root / name).mkdir()
    importer = an_importer(settle_s=0)
    for number in range(5):
        drop(root, f"ana/{number}.json", a_document(str(number)) if number % 2 else b"{}")
    changes = Changes()
    with Watcher(root, changes, Notices(lambda notice: None)) as watcher:
        watcher.follow(["ana", "bo"])
        wait_until(lambda: EVERYTHING in changes.take())  # it hears from now on
        importer.round()
        assert len(names_below(root)) > 5
        last = drop(root, "bo/last.json")
        heard: set[str] = set()

        def is_heard() -> bool:
            os.utime(last)
            heard.update(changes.take() - {EVERYTHING})
            return "bo" in heard

        wait_until(is_heard)
    assert heard == {"bo"}


# I15: more than one process can do


def test_i15_a_backlog_has_a_worker_and_every_file_is_imported_once(
    store: Store, root: Path, told: Told, ana: AccountInfo
) -> None:
    set_limit(store, "business", None)
    for number in range(300):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    notices = Notices(told.notices.append)
    options = Options(tuning=Tuning(helper_from=100))
    importer = Importer(store, root, options, on_file=told.files.append, notices=notices)
    others = set(children_of(os.getpid()))
    pids: set[int] = set()
    try:
        while importer.round() or importer.has_work:
            pids |= set(children_of(os.getpid()))
    finally:
        importer.close()
    assert len(pids - others) == 1
    assert len(told.files) == len({file.name for file in told.files}) == 300
    assert {file.outcome for file in told.files} == {"done"}
    assert accounts.get_account(store, "ana").resume_count == 300
    assert accounts.list_wrong(store) == []
    # A worker that takes long to end is killed, and what it had is the next importer's.
    following = Importer(store, root, Options(), on_file=told.files.append, notices=notices)
    following.round()
    following.close()
    assert len(told.files) == 300
    assert is_tidy(root)


# S14: accounts that are gone


def test_s14_files_of_a_deleted_account_do_not_enter_the_next_account_of_its_name(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    set_limit(store, "one", 1)
    an_account("ana", plan="one")
    for number in range(3):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    an_importer().round()
    assert len(filed(root, "_held")) == 2
    accounts.delete_account(store, "ana", with_resumes=True)
    drop(root, "ana/claimed.json")
    successor = an_account("ana")
    dying = an_importer(observe=killing_at(Moment.READ))
    for path in (root / "_held").rglob("*.report.json"):
        path.unlink()
    die(dying)
    importer = an_importer()
    importer.round()
    importer.round()
    assert resume_names(store, successor.id) == [f"Owner of {b'ana/claimed.json'!r}"]
    assert len(filed(root, "_failed/account_deleted")) == 2
    assert names_below(root / "_held") == []
    assert [row.outcome for row in import_history.list_files(store, account_id=successor.id)] == [
        "done"
    ]


def test_s14_a_file_that_was_read_when_its_account_was_deleted_fails(
    store: Store, root: Path, ana: AccountInfo, an_importer: MakeImporter
) -> None:
    drop(root, "ana/cv.json")
    delete = during(Moment.READ, lambda: accounts.delete_account(store, "ana"))
    an_importer(observe=delete).round()
    assert the_report(root, "_failed")["reason"] == "account_deleted"


def test_s14_what_was_imported_of_a_deleted_account_is_put_away_as_that(
    store: Store, root: Path, told: Told, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account("ana")
    drop(root, "ana/cv.json", a_document("Ada"))
    die(an_importer(observe=killing_at(Moment.COMMITTED)))
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda _: False)
    an_importer().round()
    assert told.outcomes() == {"ana/cv.json": "done"}
    assert counts(root, "done") == [1]
