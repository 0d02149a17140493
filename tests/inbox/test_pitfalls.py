"""The importer's scenarios of docs/pitfalls.md, each test named after its row."""

import errno
import fcntl
import os
import shutil
import signal
from pathlib import Path

import pytest

from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options, Tuning
from importer.watcher import EVERYTHING, Changes, Watcher
from resumes import analyzer
from resumes.analyzer import Format
from resumes.store import accounts, stored_resumes
from tests.support.inbox import killed_importer, oracle
from tests.support.inbox.builders import (
    Inbox,
    Moment,
    a_full_disk,
    bound_by_permissions,
    closing_folder,
    die,
    during,
    killing_at,
    report_beside,
    rounds_until,
    wait_until,
)
from tests.support.inbox.homes import Drain, drain
from tests.support.inbox.killed_importer import Task, Victim
from tests.support.inbox.packing import gzipped
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document
from tests.support.waiting import children_of

__all__ = ["drain"]  # a fixture


# I1: contents and claims are two questions


def test_i1_a_deleted_resume_can_be_dropped_again_and_a_refused_file_is_no_duplicate(
    inbox: Inbox,
) -> None:
    importer = inbox.importer(settle_s=0)
    inbox.drop("ana/1.json", a_document("Ada"))
    inbox.drop("ana/bad1.json", b"{}")
    importer.round()
    (entry,) = stored_resumes.list_page(inbox.store, inbox.ana.id).entries
    stored_resumes.delete_resume(inbox.store, inbox.ana.id, entry.id)
    inbox.drop("ana/2.json", a_document("Ada"))
    inbox.drop("ana/bad2.json", b"{}")
    importer.round()
    assert inbox.outcomes() == {
        "ana/1.json": "done",
        "ana/2.json": "done",
        "ana/bad1.json": "failed",
        "ana/bad2.json": "failed",
    }


def test_i1_killed_after_the_commit_then_deleted_then_recovered_does_not_bring_it_back(
    inbox: Inbox,
) -> None:
    inbox.drop("ana/1.json", a_document("Ada"))
    die(inbox.importer(observe=killing_at(Moment.COMMITTED)))
    (entry,) = stored_resumes.list_page(inbox.store, inbox.ana.id).entries
    stored_resumes.delete_resume(inbox.store, inbox.ana.id, entry.id)
    inbox.importer().round()
    assert inbox.names() == []
    assert len(inbox.filed("_done")) == 1


# I2: the same content twice at once


def test_i2_of_equal_files_one_is_imported_also_compressed(inbox: Inbox) -> None:
    inbox.limit(1)
    for number in range(5):
        inbox.drop(f"ana/{number}.json", a_document("1") + b"\n" * number)
    inbox.drop("ana/0.json.gz", gzipped(a_document("1")))
    inbox.importer(settle_s=0).round()
    assert inbox.names() == ["1"]
    assert inbox.counts("done", "duplicate", "held") == [1, 5, 0]


# I3: beginnings that look like something else


def test_i3_lines_that_grow_under_a_json_name_are_not_taken_for_their_first(inbox: Inbox) -> None:
    importer = inbox.importer(settle_s=5)
    path = inbox.drop("ana/many.json", a_document("1") + b"\n" + a_document("2")[:50])
    importer.round()
    inbox.advance(4)
    path.write_bytes(a_document("1") + b"\n" + a_document("2") + b"\n")
    importer.round()
    assert inbox.names() == []
    inbox.advance(5)
    importer.round()
    assert inbox.names() == ["1", "2"]


# I4: a writer that goes on after a complete version


def test_i4_a_writer_that_keeps_its_descriptor_has_its_last_version_imported(inbox: Inbox) -> None:
    importer = inbox.importer()
    with inbox.drop("ana/cv.json", a_document("First")).open("r+b") as writer:
        importer.round()
        assert inbox.names() == []
        writer.write(a_document("Second"))
        writer.truncate()
        writer.flush()
        inbox.advance(10)
        importer.round()
        assert inbox.names() == []
    inbox.advance(10)
    importer.round()
    assert inbox.names() == ["Second"]
    assert [path.read_bytes() for path in inbox.filed("_done")] == [a_document("Second")]


def test_i4_where_nothing_says_whether_there_is_a_writer_a_second_of_quiet_does(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_leases(descriptor: int, command: int, argument: int = 0) -> int:
        if command == fcntl.F_SETLEASE:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return ask(descriptor, command, argument)

    ask = fcntl.fcntl
    monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    importer = inbox.importer()
    inbox.drop("ana/cv.json", a_document("1"))
    importer.round()
    inbox.advance(0.9)
    importer.round()
    assert inbox.names() == []
    inbox.advance(0.2)
    importer.round()
    assert inbox.names() == ["1"]


def test_i4_what_is_written_after_the_commit_is_a_file_of_its_own(inbox: Inbox) -> None:
    os.link(inbox.drop("ana/cv.json", a_document("First")), inbox.root.parent / "alias")

    def write_on() -> None:
        if "First" in (inbox.root.parent / "alias").read_text():
            (inbox.root.parent / "alias").write_bytes(a_document("Second"))

    importer = inbox.importer(observe=during(Moment.COMMITTED, write_on))
    importer.round()
    assert inbox.notices == [
        "ana/cv.json was changed during its import; its new content will be imported as a separate file"
    ]
    inbox.advance(5)
    inbox.rounds(importer, 2, 5)
    assert inbox.names() == ["First", "Second"]
    assert [path.read_bytes() for path in inbox.filed("_done")] == [a_document("Second")]
    assert [row.name for row in inbox.rows()] == ["ana/cv.json"] * 2
    assert inbox.is_tidy()


def test_i4_another_version_goes_back_though_its_folder_is_gone(inbox: Inbox) -> None:
    inbox.drop("ana/2026/cv.json", a_document("First"))
    die(inbox.importer(observe=killing_at(Moment.MOVED)))
    (moved,) = inbox.filed("_done")
    moved.write_bytes(a_document("Second"))
    shutil.rmtree(inbox.root / "ana")
    inbox.rounds(inbox.importer(), 4, 5)
    assert inbox.names() == ["First", "Second"]
    assert inbox.is_tidy()


@pytest.mark.parametrize("taken", [1, 3])
def test_i4_another_version_goes_back_under_a_name_that_is_free(inbox: Inbox, taken: int) -> None:
    os.link(inbox.drop("ana/cv.json", a_document("First")), inbox.root.parent / "alias")
    claim_ids: list[str] = []

    def write_on_and_take_names() -> None:
        if not claim_ids:
            (row,) = inbox.rows()
            claim_ids.append(row.claim_id)
            (inbox.root.parent / "alias").write_bytes(a_document("Second"))
            names = ["cv", f"cv-{row.claim_id[-8:]}", row.claim_id]
            for name in names[:taken]:
                inbox.drop(f"ana/{name}.json", a_document(f"In {name}"))

    inbox.rounds(inbox.importer(observe=during(Moment.MOVED, write_on_and_take_names)), 5, 5)
    problem = (
        f"cannot be moved back: Every name is taken in {inbox.root / 'ana'}. This will be retried"
    )
    assert any(problem in notice for notice in inbox.notices) is (taken == 3)
    assert {"First", "Second"} < set(inbox.names())
    names = {row.name for row in inbox.rows() if row.account == "ana"}
    assert f"ana/cv-{claim_ids[0][-8:]}.json" in names
    assert inbox.is_tidy()


# I5: nothing goes back, nothing is replaced


def test_i5_a_newer_file_of_the_same_name_survives_one_that_has_to_settle(inbox: Inbox) -> None:
    path = inbox.drop("ana/cv.json", a_document("First"))
    importer = inbox.importer(settle_s=5)
    with path.open("r+b") as writer:
        importer.round()
        inbox.drop(".new/cv.json", a_document("Newer")).rename(path)
        importer.round()
        assert inbox.names() == ["Newer"]
        writer.write(a_document("First, finished"))
    inbox.advance(5)
    importer.round()
    # The first is lost to its own writer where the newer took its place in the inbox.
    names = inbox.names()
    assert names in (["Newer"], ["Newer", "First, finished"])
    assert {path.read_bytes() for path in inbox.filed("_done")} == set(map(a_document, names))


# I7: held files keep their order


def test_i7_a_new_file_does_not_overtake_held_ones_through_a_place_freed_meanwhile(
    inbox: Inbox,
) -> None:
    inbox.limit(1)
    inbox.drop_aged("0", "1")
    inbox.importer().round()
    inbox.drop("ana/late.json", a_document("late"))
    inbox.drop("ana/again.json", a_document("0"))

    importer = inbox.importer(observe=during(Moment.NOTED, lambda: inbox.limit(2)))
    importer.round()
    assert inbox.names() == ["0"]
    assert inbox.counts("held", "duplicate") == [2, 1]
    importer.round()
    assert inbox.names() == ["0", "1"]


def test_i7_no_more_are_released_than_there_are_places_and_the_others_stay_as_they_are(
    inbox: Inbox,
) -> None:
    inbox.limit(0)
    inbox.drop_aged(*"0123")
    importer = inbox.importer()
    importer.round()
    later = {path.name: path.stat().st_ctime_ns for path in sorted(inbox.filed("_held"))[1:]}
    inbox.files.clear()
    inbox.limit(1)
    inbox.rounds(importer, 3)
    assert inbox.names() == ["0"]
    assert [file.name for file in inbox.files] == ["ana/0.json"]
    assert {path.name: path.stat().st_ctime_ns for path in inbox.filed("_held")} == later


def test_i7_a_held_file_that_cannot_be_moved_yet_is_not_overtaken(inbox: Inbox) -> None:
    inbox.limit(0)
    inbox.drop_aged("0")
    folder = inbox.root / "ana"
    closes = closing_folder(folder, Moment.COMMITTED, mode=0o555)
    importer = inbox.importer(settle_s=0, observe=closes)
    with bound_by_permissions():
        importer.round()
    assert inbox.filed("_held") == []
    folder.chmod(0o755)
    inbox.limit(1)
    inbox.drop_aged("1")
    inbox.rounds(importer, 20, 1)  # which end: the later file is not released again and again
    assert inbox.names() == ["0"]


def test_i7_the_order_outlives_the_importer_and_the_return_of_a_file(inbox: Inbox) -> None:
    inbox.limit(0)
    inbox.drop_aged(*"012")
    inbox.importer().round()

    inbox.limit(1)
    take_the_place_back = during(Moment.READ, lambda: inbox.limit(0))
    inbox.importer(observe=take_the_place_back).round()
    assert inbox.names() == []
    inbox.drop("ana/late.json", a_document("late"))
    inbox.importer().round()
    inbox.limit(None)
    inbox.importer().round()
    assert inbox.names() == ["0", "1", "2", "late"]


def test_i7_what_a_dead_importer_had_claimed_does_not_overtake_what_it_held(inbox: Inbox) -> None:
    inbox.limit(0)
    inbox.drop_aged(*"01")
    die(inbox.importer(observe=killing_at(Moment.MOVED)))
    assert len(inbox.filed("_held")) == 1
    inbox.limit(1)
    inbox.rounds(inbox.importer(), 2)
    assert inbox.names() == ["0"]
    assert len(inbox.filed("_held")) == 1


# I8: who lives, and who does not


def test_i8_locks_that_somebody_tidied_away_let_nobody_take_a_file_twice(inbox: Inbox) -> None:
    first, second = inbox.importer(), inbox.importer(settle_s=1, beside=True)
    with inbox.drop("ana/1.json", a_document("1")).open("r+b"):
        first.round()
        locks = [path for path in inbox.root.glob(".*/**/*") if path.suffix == ".lock"]
        assert locks
        for path in locks:
            path.unlink()
            path.touch()
        second.round()
    inbox.drop("ana/2.json", a_document("2"))
    first.round()
    inbox.advance(10)
    second.round()
    first.round()
    assert sorted(inbox.names()) == ["1", "2"]
    assert sorted(file.name for file in inbox.files) == ["ana/1.json", "ana/2.json"]


# I10: a file that ends the process


@pytest.fixture
def home(tmp_path: Path) -> Scene:
    """A store and an inbox in which a file is poison, among others."""
    scene = Scene(tmp_path)
    scene.account("ana")
    for number in range(3):
        for name in (f"{number}", f"z{number}"):
            scene.drop(f"ana/{name}.json", a_document(name))
    return scene


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
    home: Scene, drain: Drain, victim: Victim, name: str, poison: bytes
) -> None:
    home.drop(name, poison)
    more = 100 if victim is Victim.WORKER else 0
    for number in range(more):
        home.drop(f"ana/more{number}.json", a_document("0"))
    task = Task(str(home.home), victim=victim, is_poisonable=True)
    starts = [drain(task)]
    while starts[-1] != 0 and len(starts) < 5:
        starts.append(drain(task))
    assert set(starts[:-1]) == {signal.SIGKILL}
    assert starts[-1] == 0
    assert 2 <= len(starts) <= 4
    before = ["before"] if b"before" in poison else []
    names = ["0", "1", "2", "z0", "z1", "z2", *before]
    found = home.check(files=7 + more, resumes={"ana": names})
    assert (found.done, found.duplicate) == (6, more)
    assert oracle.reports_of(home.root, "failed")[name]["reason"] == "crashed"
    (path,) = oracle.files_of(home.root, "failed")
    assert path.read_bytes() == poison


# I11: no room to file away


@pytest.mark.parametrize("problem", ["Not a directory", "Permission denied"])
def test_i11_what_cannot_be_filed_stays_claimed_is_retried_and_stops_new_claims(
    inbox: Inbox, problem: str
) -> None:
    importer = inbox.importer()
    if problem == "Permission denied":
        (inbox.root / "_done/2027-01-15").mkdir(parents=True)
        (inbox.root / "_done/2027-01-15/ana").mkdir(0o555)
    else:
        inbox.drop("_done", b"in the way")
    with bound_by_permissions():
        inbox.drop("ana/1.json", a_document("1"))
        importer.round()
        inbox.drop("ana/2.json", a_document("2"))
        importer.round()
    assert [one.sentence for one in importer.job.notices.findings()] == inbox.notices
    assert inbox.names() == ["1"]
    assert (inbox.root / "ana/2.json").exists()
    assert inbox.notices == [
        f"Cannot move ana/1.json: {problem}. It was imported and stays where it is; the move "
        "will be retried, and no new files will be imported until then"
    ]
    (inbox.root / "_done").rename(inbox.root / "away")
    importer.round()
    assert not importer.schedule.is_stuck
    assert inbox.names() == ["1", "2"]
    assert len(inbox.filed("_done")) == 2


def test_i11_a_report_for_which_there_is_no_room_is_written_when_there_is(inbox: Inbox) -> None:
    importer = inbox.importer(settle_s=0, slice_items=10_000)  # so that the store writes little
    # Its report is as long as reports get.
    line = b'{"header": {}, "sections": {"%s": 5}}\n' % (rb"\u0007" * 60)
    inbox.drop("ana/many.ndjson", line * 1_000)
    with a_full_disk(1_000_000):
        rounds_until(importer, lambda: importer.schedule.is_stuck)
        assert "File too large" in inbox.notices[0]
        inbox.drop("ana/1.json", a_document("1"))
        importer.round()
        assert (inbox.root / "ana/1.json").exists()
        assert inbox.names_below("_failed") == []
    rounds_until(importer, lambda: inbox.names() == ["1"])
    assert inbox.report("_failed")["itemCounts"]["failed"] == 1_000
    assert inbox.is_tidy()


# I12: one account's backlog, another's fresh file


def test_i12_a_backlog_of_one_account_does_not_keep_a_fresh_file_of_another_waiting(
    inbox: Inbox,
) -> None:
    for name in ("bo", "cy"):
        inbox.account(name)
        (inbox.root / name).mkdir()
    path = inbox.drop("ana/cut.json", b'{"cut')
    for number in range(20_000):
        os.link(path, inbox.root / "ana" / f"{number}.json")
    importer = inbox.importer(scan_s=600)
    importer.turn()
    assert not importer.progress().is_complete  # it is still being looked at
    assert turns_until_imported(inbox, importer, inbox.drop("bo/1.json")) <= 2
    while not importer.progress().is_complete:
        importer.turn()
    assert turns_until_imported(inbox, importer, inbox.drop("bo/2.json")) <= 2
    importer.turn()
    assert importer.progress().waiting > 19_000


def turns_until_imported(inbox: Inbox, importer: Importer, path: Path) -> int:
    """How many turns it takes after the event of a file that was dropped just now."""
    importer.changes.mark(path.parent.name)
    name = f"{path.parent.name}/{path.name}"
    turns = 0
    while name not in inbox.outcomes():
        importer.turn()
        turns += 1
        assert turns < 200
    return turns


# I13: our own reports


def test_i13_a_report_that_was_moved_back_under_whatever_name_is_no_resume(inbox: Inbox) -> None:
    importer = inbox.importer(settle_s=0)
    for name in ("cv", "other"):
        inbox.drop(f"ana/{name}.json", b"{}")
    importer.round()
    failed, other = sorted(inbox.filed("_failed"))
    foreign = inbox.drop("_failed/invalid_resume/foreign.report.json", b"somebody's own")
    fixed = failed.rename(inbox.root / "ana" / failed.name)
    report_beside(failed).rename(inbox.root / "ana" / report_beside(failed).name)
    report_beside(other).rename(inbox.root / "ana" / "renamed.json")
    fixed.write_bytes(a_document("fixed"))
    inbox.rounds(importer, 2)
    assert inbox.names() == ["fixed"]
    assert [file.outcome for file in inbox.files] == ["failed", "failed", "done"]
    assert (importer.summary().ignored, importer.summary().waiting) == (2, 0)
    assert foreign.exists()


def test_i13_a_report_is_not_read_again_before_it_changes(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def parse(body: bytes, format: Format) -> analyzer.Resume:  # noqa: A002  (as in the analyzer)
        read.append(body)
        return really_parse(body, format)

    really_parse = analyzer.parse_imported
    importer = inbox.importer(settle_s=0)
    inbox.drop("ana/bad.json", b"{}")
    importer.round()
    (report,) = (inbox.root / "_failed").rglob("*.report.json")
    moved = report.rename(inbox.root / "ana" / "renamed.json")
    monkeypatch.setattr(analyzer, "parse_imported", parse)
    inbox.rounds(importer, 3)
    assert read == [moved.read_bytes()]
    assert importer.schedule.awaited == []
    moved.write_bytes(a_document("fixed"))
    importer.round()
    assert inbox.names() == ["fixed"]


# I14: our own moves


def test_i14_our_own_moves_are_not_heard(inbox: Inbox) -> None:
    inbox.account("bo")
    for name in ("ana", "bo"):
        (inbox.root / name).mkdir()
    importer = inbox.importer(settle_s=0)
    for number in range(5):
        inbox.drop(f"ana/{number}.json", a_document(str(number)) if number % 2 else b"{}")
    changes = Changes()
    with Watcher(inbox.root, changes, Notices(lambda notice: None)) as watcher:
        watcher.follow(["ana", "bo"])
        wait_until(lambda: EVERYTHING in changes.take())  # it hears from now on
        importer.round()
        assert len(inbox.names_below()) > 5
        last = inbox.drop("bo/last.json")
        heard: set[str] = set()

        def is_heard() -> bool:
            os.utime(last)
            heard.update(changes.take() - {EVERYTHING})
            return "bo" in heard

        wait_until(is_heard)
    assert heard == {"bo"}


# I15: more than one process can do


def test_i15_a_backlog_has_a_worker_and_every_file_is_imported_once(inbox: Inbox) -> None:
    inbox.limit(None)
    for number in range(300):
        inbox.drop(f"ana/{number}.json", a_document(str(number)))
    notices = Notices(inbox.notices.append)
    options = Options(tuning=Tuning(helper_from=100))
    importer = Importer(
        inbox.store, inbox.root, options, on_file=inbox.files.append, notices=notices
    )
    others = set(children_of(os.getpid()))
    pids: set[int] = set()
    try:
        while importer.round() or importer.schedule.has_work:
            pids |= set(children_of(os.getpid()))
    finally:
        importer.close()
    assert len(pids - others) == 1
    assert len(inbox.files) == len({file.name for file in inbox.files}) == 300
    assert {file.outcome for file in inbox.files} == {"done"}
    assert accounts.get_account(inbox.store, "ana").resume_count == 300
    assert accounts.list_wrong(inbox.store) == []
    # A worker that takes long to end is killed, and what it had is the next importer's.
    following = Importer(
        inbox.store, inbox.root, Options(), on_file=inbox.files.append, notices=notices
    )
    following.round()
    following.close()
    assert len(inbox.files) == 300
    assert inbox.is_tidy()


# S14: accounts that are gone


@pytest.mark.parametrize("moment", [Moment.NOTED, Moment.READ])
def test_s14_files_of_a_deleted_account_do_not_enter_the_next_account_of_its_name(
    inbox: Inbox, moment: Moment
) -> None:
    inbox.limit(1)
    for number in range(3):
        inbox.drop(f"ana/{number}.json", a_document(str(number)))
    inbox.importer().round()
    assert len(inbox.filed("_held")) == 2
    inbox.drop("ana/claimed.json")
    die(inbox.importer(observe=killing_at(moment)))
    accounts.delete_account(inbox.store, "ana", with_resumes=True)
    successor = inbox.account("ana")
    for path in (inbox.root / "_held").rglob("*.report.json"):
        path.unlink()
    inbox.rounds(inbox.importer(), 2)
    assert inbox.names() == [f"Owner of {b'ana/claimed.json'!r}"]
    assert len(inbox.filed("_failed/account_deleted")) == 2
    assert inbox.names_below("_held") == []
    assert [row.outcome for row in inbox.rows(account_id=successor.id)] == ["done"]


def test_s14_a_file_that_was_read_when_its_account_was_deleted_fails(inbox: Inbox) -> None:
    inbox.drop("ana/cv.json")
    delete = during(Moment.READ, lambda: accounts.delete_account(inbox.store, "ana"))
    inbox.importer(observe=delete).round()
    assert inbox.report("_failed")["reason"] == "account_deleted"


def test_s14_what_was_imported_of_a_deleted_account_is_put_away_as_that(inbox: Inbox) -> None:
    inbox.drop("ana/cv.json", a_document("Ada"))
    die(inbox.importer(observe=killing_at(Moment.COMMITTED)))
    accounts.delete_account(inbox.store, "ana", with_resumes=True, should_continue=lambda _: False)
    inbox.importer().round()
    assert inbox.outcomes() == {"ana/cv.json": "done"}
    assert inbox.counts("done") == [1]
