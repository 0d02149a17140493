"""An importer killed at every step, and killed again while it recovers, loses and doubles nothing."""

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest

from importer import outcomes
from importer.claims import File
from importer.job import Job, Observer, Step
from resumes.analyzer import Format
from resumes.errors import InvalidArgument
from resumes.store import accounts, import_history, stored_resumes
from resumes.store.import_ledger import FileOutcome
from resumes.store.importers import ImporterState
from resumes.store.transfer.account_import import import_account
from tests.support.inbox import oracle
from tests.support.inbox.builders import (
    Inbox,
    Killed,
    Moment,
    bound_by_permissions,
    closing_folder,
    die,
    during,
    killing_at,
    lines,
    wait_until,
)
from tests.support.inbox.homes import Drain, Fresh, drain, fresh, kill_at_every_step
from tests.support.inbox.killed_importer import Task, Victim
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document
from tests.support.store.builders import exported
from tests.support.waiting import is_running

__all__ = ["drain", "fresh"]  # fixtures


@pytest.mark.parametrize(
    ("kills", "stride"),
    [
        (1, 20),
        (2, 60),
        pytest.param(1, 2, marks=pytest.mark.slow),
        pytest.param(2, 9, marks=pytest.mark.slow),
        *(pytest.param(kills, 1, marks=pytest.mark.campaign) for kills in (1, 2, 3)),
    ],
)
def test_killed_at_every_step_each_file_is_imported_exactly_once(
    drain: Drain, fresh: Fresh, kills: int, stride: int
) -> None:
    kill_at_every_step(drain, fresh, kills=kills, stride=stride)


def test_a_bundle_that_is_replaced_between_two_kills_is_a_new_file(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second kill comes when it was read under its old claim, and has not left yet."""
    bundle = inbox.drop("ana/b.jsonl", lines(*"1234"))
    die(inbox.importer(settle_s=0, slice_items=2, observe=killing_at(Moment.COMMITTED)))

    def kill(job: Job, files: Iterable[File]) -> None:
        if [*files]:
            raise Killed

    change = during(Step.RECOVERED, lambda: bundle.write_bytes(lines(*"abcde")))
    with monkeypatch.context() as faults:
        faults.setattr(Job, "depart", kill)
        die(inbox.importer(settle_s=5, slice_items=2, observe=change))
    importer = inbox.importer(settle_s=0, slice_items=2)
    inbox.rounds(importer, 3, 6)
    assert inbox.names() == [*"12abcde"]


def test_no_report_lies_alone_when_an_importer_is_killed_as_it_removes_several(
    inbox: Inbox,
) -> None:
    inbox.limit(0)
    inbox.drop_aged(*"12")

    def killing_at_step(wanted: Step, time: int) -> Observer:
        left = itertools.count(time - 1, -1)

        def observe(step: Step) -> None:
            if step is wanted and not next(left):
                raise Killed

        return observe

    die(inbox.importer(observe=killing_at_step(Step.REPORT_WRITTEN, 2)))
    # As after a restore: the store knows nothing of what it said.
    accounts.delete_account(inbox.store, "ana")
    accounts.create_account(inbox.store, "ana", plan="ana")
    die(inbox.importer(observe=killing_at_step(Step.REPORTS_TIDIED, 1)))
    inbox.importer().round()
    oracle.check_reports(inbox.root)


@pytest.mark.parametrize("name", ["ana/1.json", "ana/deep/1.json", "1.json", "ana/1.ndjson"])
def test_i10_only_deaths_by_reading_a_file_count(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def judge(body: bytes, accepted: Format) -> None:
        raise Killed

    importer = partial(inbox.importer, account="ana", settle_s=0)
    inbox.drop(name, a_document("Ada"))
    with monkeypatch.context() as patch:
        patch.setattr(outcomes, "judge", judge)
        # One of a resume among others does not count.
        for _ in range(1 if "ndjson" in name else 2):
            die(importer())
    for _ in range(3):
        die(importer(observe=killing_at(Step.RECOVERED)))
    importer().round()
    assert inbox.names() == ["Ada"]
    inbox.drop(name, a_document("Bo"))
    with monkeypatch.context() as patch:
        patch.setattr(outcomes, "judge", judge)
        for again in range(4):
            dying = importer(settle_s=9 * again)  # it does not settle again
            with contextlib.suppress(Killed):
                dying.round()
            dying.close()
    assert inbox.report("_failed")["reason"] == "crashed"
    (row,) = inbox.rows(outcome=FileOutcome.FAILED)
    assert import_history.find_source(inbox.store, row) == a_document("Bo")


def test_i10_orderly_ends_while_a_file_is_unpacked_do_not_count(inbox: Inbox) -> None:
    inbox.drop("ana/cv.ndjson", b"nonsense\n" * 5 + a_document("Ada"))
    for _ in range(4):
        importer = inbox.importer(settle_s=0, slice_items=1)
        for _ in range(3):
            importer.turn()
        assert importer.schedule.has_work
    inbox.importer(settle_s=0, slice_items=1).round()
    assert inbox.names() == ["Ada"]


@pytest.mark.parametrize(("moment", "mode"), [(None, 0o555), (Moment.NOTED, 0), (Moment.READ, 0)])
def test_i17_a_file_of_several_of_a_dead_importer_goes_on_when_it_can_be_read_again(
    inbox: Inbox, moment: Moment | None, mode: int
) -> None:
    path = inbox.drop("ana/1.ndjson", lines("1", "2", "3"))
    die(inbox.importer(settle_s=0, slice_items=1, observe=killing_at(Moment.COMMITTED)))
    if moment is None:
        path.parent.chmod(mode)
    importer = inbox.importer(
        observe=closing_folder(path.parent, moment or Moment.MOVED, mode=mode)
    )
    with bound_by_permissions():
        for _ in range(5):
            importer.round()
            importer.turn()
            inbox.advance(5)
    assert sum("Cannot pick up ana/1.ndjson" in notice for notice in inbox.notices) == 1
    assert importer.summary().stuck > 0
    path.parent.chmod(0o755)
    importer.round()
    (row,) = inbox.rows()
    assert row.outcome is FileOutcome.DONE
    assert inbox.names() == ["1", "2", "3"]
    assert importer.summary().stuck == 0
    importer.round()
    assert importer.job.notices.findings() == ()


@pytest.mark.parametrize(("most", "end"), [(None, "done"), (0, "held")])
def test_a_committed_file_that_cannot_be_opened_any_more_is_filed_or_waits_if_it_was_held(
    inbox: Inbox, most: int | None, end: str
) -> None:
    inbox.limit(most)
    path = inbox.drop("ana/1.json", a_document("Ada"))
    die(inbox.importer(settle_s=0, observe=killing_at(Moment.COMMITTED)))
    path.chmod(0)
    importer = inbox.importer()
    with bound_by_permissions():
        inbox.rounds(importer, 2)
    assert inbox.counts("done", "held") == [end == "done", 0]
    if path.exists():
        path.chmod(0o644)
    inbox.advance(5)
    importer.round()
    assert inbox.outcomes() == {"ana/1.json": end}


@pytest.mark.parametrize("restarts", [False, True])
def test_i17_a_file_of_a_dead_importer_that_cannot_be_reached_keeps_no_other_waiting(
    inbox: Inbox, restarts: bool
) -> None:
    for name in ("bo", "cy"):
        inbox.account(name)
    inbox.drop("ana/1.json", a_document("Ada"))
    inbox.drop("cy/1.json", a_document("Cy"))
    die(inbox.importer(settle_s=0, observe=killing_at(Moment.COMMITTED)))
    (inbox.root / "cy/1.json").unlink()
    inbox.drop("cy/1.json", a_document("Cy anew"))
    for name in ("ana", "cy"):
        (inbox.root / name).chmod(0)
    importer = inbox.importer(settle_s=0)
    with bound_by_permissions():
        inbox.drop("bo/1.json", a_document("Bo"))
        inbox.rounds(importer, 2, 5)
        assert inbox.outcomes() == {"bo/1.json": "done"}
        assert importer.summary().stuck == 4  # the files, and the folders
        assert "Cannot pick up ana/1.json: Permission denied" in inbox.notices[0]
        assert importer.job.notices.state is ImporterState.DEGRADED
        if restarts:
            importer = inbox.importer(settle_s=0)
            importer.round()
    for name in ("ana", "cy"):
        (inbox.root / name).chmod(0o755)
    inbox.rounds(importer, 2)
    names = {name: inbox.names(name) for name in ("ana", "bo", "cy")}
    assert names == {"ana": ["Ada"], "bo": ["Bo"], "cy": ["Cy", "Cy anew"]}
    assert inbox.counts("done", "duplicate") == [3, 0]
    assert importer.summary().stuck == 0
    assert importer.job.notices.findings() == ()
    assert inbox.is_tidy()


@pytest.mark.parametrize("moment", [Moment.COMMITTED, Moment.MOVED])
def test_a_file_is_known_by_its_content_after_a_kill(inbox: Inbox, moment: Moment) -> None:
    path = inbox.drop("ana/cv.json", a_document("First"))
    # Where it was dropped it is known whatever its age, in `_done` if it changed just now.
    os.utime(path, (0, 0 if moment is Moment.COMMITTED else time.time() + 30))
    status = path.stat()
    die(inbox.importer(observe=killing_at(moment)))
    (path,) = [path] if path.exists() else inbox.filed("_done")
    path.write_bytes(a_document("Other"))  # as long, and as old
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    inbox.importer().round()
    assert inbox.names() == ["First", "Other"]
    assert inbox.counts("done", "duplicate") == [1, 0]


def test_a_file_is_looked_up_in_its_own_account_after_a_kill(inbox: Inbox, tmp_path: Path) -> None:
    inbox.drop("ana/cv.json", a_document("Ada"))
    die(inbox.importer(observe=killing_at(Moment.COMMITTED)))
    import_account(
        inbox.store, exported(inbox.store, tmp_path / "ana.db"), name="bo"
    )  # and so its history
    inbox.importer().round()
    assert inbox.counts("done", "duplicate") == [1, 0]


# Processes that help


BACKLOG = 100


@pytest.fixture
def backlog(tmp_path: Path) -> Scene:
    """A backlog that an importer gets help with."""
    scene = Scene(tmp_path)
    scene.account("ana")
    for number in range(BACKLOG):
        fields = {"nickname": "w"} if number % 3 else {}
        scene.drop(f"ana/{number}.json", a_document(str(number), **fields))
    return scene


def check_backlog(scene: Scene) -> None:
    assert scene.check(files=BACKLOG, resumes={"ana": [*map(str, range(BACKLOG))]}).done == BACKLOG


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", range(3, 11))
def test_i8_of_a_worker_that_is_killed_its_importer_goes_on_with_everything(
    drain: Drain, backlog: Scene, kill_at: int
) -> None:
    assert drain(Task(str(backlog.home), kill_at, Victim.WORKER)) == 0
    assert (backlog.home / "killed").exists()
    check_backlog(backlog)


@pytest.mark.slow
def test_i8_a_worker_ends_with_its_importer_and_nothing_is_doubled(
    drain: Drain, backlog: Scene
) -> None:
    home = str(backlog.home)
    assert drain(Task(home, 5, Victim.WORKERS_IMPORTER)) == signal.SIGKILL
    killed = backlog.home / "killed"
    worker = int(killed.read_text())
    wait_until(lambda: not is_running(worker))  # though it waits, in the middle of a batch
    killed.unlink()
    assert drain(Task(home)) == 0
    check_backlog(backlog)


# What lies there of one that was killed


@pytest.mark.parametrize(
    "moment", [one for one in Moment if one not in (Moment.SET_ASIDE, Moment.COPIED)]
)
@pytest.mark.parametrize(
    ("content", "end"),
    [(a_document("Ada"), "done"), (a_document("Ada", nickname="w"), "done"), (b"{}", "failed")],
    ids=["done", "warned", "failed"],
)
def test_i6_a_file_cut_off_anywhere_comes_to_the_same_end(
    inbox: Inbox, moment: Moment, content: bytes, end: str
) -> None:
    inbox.drop(os.fsdecode(b"ana/deep/bad\xff\n.json"), content)
    dying = inbox.importer(settle_s=0, observe=killing_at(moment))
    if moment is Moment.REPORTED and content == a_document("Ada"):
        dying.round()  # of which there is no report
        dying.close()
    else:
        die(dying)
    inbox.importer(settle_s=0).close()  # which has not looked yet
    inbox.importer(settle_s=0).round()
    assert inbox.counts("done", "failed", "duplicate") == [end == "done", end == "failed", 0]
    reports = [name for name in inbox.names_below() if name.endswith(".report.json")]
    assert len(reports) == (content != a_document("Ada"))
    assert inbox.names() == (["Ada"] if end == "done" else [])
    (row,), (path,) = inbox.rows(), inbox.filed(f"_{end}")
    assert row.name == "ana/deep/bad\\xff\\x0a.json"
    assert path.name == f"bad_xff_x0a-{row.claim_id[16:]}.json"
    assert inbox.is_tidy()


def test_what_was_committed_is_filed_as_it_was_whatever_is_thought_of_it_now(inbox: Inbox) -> None:
    for name in "12":
        inbox.drop(f"ana/{name}.json", a_document("Ada"))
    die(inbox.importer(observe=killing_at(Moment.COMMITTED)))
    inbox.importer(settle_s=0, format=Format(max_bytes=5)).round()
    (entry,) = stored_resumes.list_page(inbox.store, inbox.ana.id).entries
    ends = sorted((file.name, file.outcome.value, file.resume_id) for file in inbox.files)
    assert ends == [("ana/1.json", "done", entry.id), ("ana/2.json", "duplicate", entry.id)]


def test_what_a_dead_importer_had_is_gone_on_with_by_one_that_runs(inbox: Inbox) -> None:
    inbox.drop("ana/1.json", a_document("1"))
    dying = inbox.importer(observe=killing_at(Moment.READ))
    survivor = inbox.importer(scan_s=600, beside=True)
    die(dying)
    inbox.rounds(survivor, 3)
    assert inbox.names() == ["1"]
    assert inbox.outcomes() == {"ana/1.json": "done"}
    survivor.close()
    assert inbox.is_tidy()


def write_on(root: Path, content: bytes) -> None:
    """A writer that has kept the file open, by another name here, writes it anew, once."""
    alias = root.parent / "alias"
    if alias.stat().st_size != len(content):
        alias.write_bytes(content)


def test_what_is_written_on_and_cannot_be_put_back_for_now_is_put_back_later(inbox: Inbox) -> None:
    os.link(inbox.drop("ana/cv.json", a_document("First")), inbox.root.parent / "alias")

    def write_on_and_hinder() -> None:
        write_on(inbox.root, a_document("Second"))
        (inbox.root / "ana").chmod(0o555)

    importer = inbox.importer(observe=during(Moment.MOVED, write_on_and_hinder))
    with bound_by_permissions():
        importer.round()
        (path,) = inbox.filed("_done")
        assert inbox.notices == [
            "ana/cv.json was changed during its import; its new content is in "
            f"{path.relative_to(inbox.root)} and cannot be moved back: Permission denied. "
            "This will be retried"
        ]
        assert inbox.names_below("ana") == []
        (inbox.root / "ana").chmod(0o755)
        for _ in range(3):
            inbox.advance(5)
            importer.round()
            (inbox.root / "ana").chmod(0o755)
    assert inbox.names() == ["First", "Second"]
    assert inbox.is_tidy()


@pytest.mark.parametrize("moment", [Moment.NOTED, Moment.READ])
def test_i17_a_file_of_a_dead_importer_that_a_link_leads_to_by_now_is_gone(
    inbox: Inbox, moment: Moment
) -> None:
    folder, elsewhere = inbox.root / "ana", inbox.root.with_name("elsewhere")
    inbox.drop("ana/1.json")
    die(inbox.importer(settle_s=0, observe=killing_at(moment)))
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    importer = inbox.importer(settle_s=0)
    inbox.rounds(importer, 2, 5)
    assert (importer.summary().waiting, importer.summary().stuck, inbox.names()) == (0, 0, [])
    assert importer.job.notices.findings() == ()


def test_without_the_note_of_what_was_under_way_nothing_is_begun(inbox: Inbox) -> None:
    inbox.drop("ana/1.json")
    die(inbox.importer(settle_s=0, observe=killing_at(Moment.READ)))
    (note,) = inbox.root.glob(".importer/*.files")
    noted = note.read_text()
    note.chmod(0)
    with bound_by_permissions(), pytest.raises(InvalidArgument, match="Permission denied"):
        inbox.importer(settle_s=0)
    note.chmod(0o600)
    inbox.importer(settle_s=0).round()
    assert inbox.outcomes() == {"ana/1.json": "done"}
    (row,) = inbox.rows()
    assert row.claim_id not in noted  # a new file, for only one that was being read is read alone
    assert inbox.is_tidy()
