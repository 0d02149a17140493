"""Stores, disks and folders that cannot be used for a while."""

import errno
import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from importer.loop import Importer
from importer.notices import Notices
from importer.options import Tuning
from importer.service import Runner, find_pause_s
from resumes import watched_folder
from resumes.errors import OutcomeUnknown, StoreUnavailable
from resumes.store import Store
from resumes.store.importers import ImporterState, list_importers
from resumes.store.store import close_store, reopen_store
from tests.support.inbox.builders import (
    FakeMonotonic,
    Inbox,
    Moment,
    a_full_disk,
    bound_by_permissions,
    closing_folder,
    during,
    lines,
    wait_until,
)
from tests.support.resumes import a_document
from tests.support.store.builders import Busy, damage

NOTHING_NEW = "No new files will be imported until this is resolved"


# The store


def test_while_the_store_is_out_of_reach_nothing_new_is_taken(inbox: Inbox, busy: Busy) -> None:
    importer = inbox.importer(write_timeout_s=0.5)
    inbox.drop("ana/1.json", a_document("1"))
    inbox.drop("ana/2.ndjson", lines("2a", "2b"))
    with busy.held():
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                importer.round()
            inbox.drop("ana/3.json", a_document("3"))
        assert (inbox.root / "ana/3.json").exists()
        assert inbox.files == []
    importer.round()
    assert inbox.names() == ["1", "3"]
    assert importer.summary().waiting == 1


def test_s13_while_the_store_is_being_moved_files_wait(inbox: Inbox) -> None:
    importer = inbox.importer()
    inbox.drop("ana/1.json", a_document("1"))
    close_store(inbox.store, "sqlite:////there.db", "0123")
    with pytest.raises(StoreUnavailable, match="being moved"):
        importer.round()
    assert (inbox.root / "ana/1.json").exists()

    reopen_store(inbox.store)
    importer.round()

    assert inbox.names() == ["1"]
    assert inbox.counts("done", "failed") == [1, 0]


def test_a_store_that_fails_right_after_a_commit_loses_sight_of_no_file(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = inbox.account("bo")

    def lose_account() -> None:  # as when a server's database is restored
        usage = "DELETE FROM account_usage WHERE account_id = :id"
        damage(inbox.store, usage, "DELETE FROM accounts WHERE id = :id", id=account.id)

    def unavailable(*_: object) -> None:
        raise StoreUnavailable("gone")

    paths = [inbox.drop(f"{name}/1.json") for name in ("ana", "bo")]
    importer = inbox.importer(observe=during(Moment.READ, lose_account))
    with monkeypatch.context() as patch:
        patch.setattr("importer.ledger.accounts.find_deleted", unavailable)
        with pytest.raises(StoreUnavailable):
            importer.round()
    importer.round()
    assert inbox.outcomes() == {"ana/1.json": "done"}
    assert [path.exists() for path in paths] == [False, True]
    assert inbox.is_tidy()


def test_after_an_unknown_outcome_the_ledger_decides(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resumes.store import creation

    create_files = creation.create_files

    def unknown(store: Store, creations: Sequence[Any], **rest: Any) -> None:
        create_files(inbox.store, creations, **rest)
        raise OutcomeUnknown

    importer = inbox.importer()
    inbox.drop("ana/1.json", a_document("1"))
    with monkeypatch.context() as patch:
        patch.setattr("importer.ledger.create_files", unknown)
        with pytest.raises(OutcomeUnknown):
            importer.round()
    importer.round()
    assert inbox.names() == ["1"]
    assert inbox.counts("done", "duplicate") == [1, 0]


def test_a_store_out_of_reach_is_told_once_and_again_when_it_is_over(
    inbox: Inbox, busy: Busy
) -> None:
    inbox.drop("ana/1.json")
    beats: list[int] = []
    busy.acquire()  # before the first turn, which would import the file
    importer = inbox.importer(write_timeout_s=0.5)
    with run(importer, lambda: beats.append(len(inbox.notices))):
        wait_until(lambda: beats.count(1) > 1)
        assert importer.job.notices.findings()[0].sentence.endswith(NOTHING_NEW)
        busy.release()
        wait_until(lambda: len(inbox.notices) == 2)
        assert importer.job.notices.findings() == ()
    assert inbox.notices == [
        f"The store is busy, so nothing was done; try again. {NOTHING_NEW}",
        "Importing resumed",
    ]
    assert inbox.outcomes() == {"ana/1.json": "done"}


@contextmanager
def run(importer: Importer, maintain: Callable[[], None] = lambda: None) -> Iterator[None]:
    """The importer runs during the block, and has ended after it."""
    runner = Runner(importer)
    stop = threading.Event()
    thread = threading.Thread(target=runner.run, args=(stop, maintain))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def test_failures_back_off_longer_each_time_up_to_a_limit() -> None:
    tuning = Tuning()
    pauses_s = [find_pause_s(failures, tuning, lambda: 1.0) for failures in range(1, 11)]
    assert pauses_s[:4] == [0.5, 1, 2, 4]
    assert pauses_s[-1] == 30
    assert find_pause_s(2_000, tuning, lambda: 1.0) == 30  # a night without the store
    assert find_pause_s(1, tuning, lambda: 0.0) == 0.25  # importers do not come back all at once


# Disks


def test_a_full_disk_stops_the_round_is_named_and_changes_nothing(inbox: Inbox) -> None:
    inbox.drop("ana/1.json")
    importer = inbox.importer()
    with a_full_disk():
        assert not Runner(importer).run(threading.Event(), until_idle=True)
    assert inbox.files == []
    assert inbox.notices == [f"{inbox.root}/.importer/0.files: File too large. {NOTHING_NEW}"]
    importer.round()
    assert inbox.counts("done", "duplicate") == [1, 0]


# What may not be read, taken, looked into or put away


def test_a_file_that_may_not_be_read_fails_after_twelve_settling_times(inbox: Inbox) -> None:
    inbox.limit(0)
    inbox.drop("ana/0.json")  # is held, which what cannot be read is not
    for number in (1, 2):
        inbox.drop(f"ana/{number}.json").chmod(0)
    importer = inbox.importer(settle_s=5)
    with bound_by_permissions():
        inbox.rounds(importer, 11, 5)
        assert inbox.outcomes() == {"ana/0.json": "held"}
        (inbox.root / "ana/2.json").chmod(0o600)
        inbox.advance(5)
        importer.round()
    failed, _ = sorted(inbox.files[1:], key=lambda file: file.name)
    assert (failed.reason, failed.message) == ("unreadable", "Cannot read it: Permission denied")
    assert f"resumes imports retry {failed.claim_id}" in inbox.report("_failed")["hint"]
    assert inbox.outcomes()["ana/2.json"] == "held"


@pytest.mark.parametrize("what", ["a folder", "an account"])
def test_what_was_found_in_a_folder_that_is_replaced_is_found_no_more(
    inbox: Inbox, what: str
) -> None:
    importer = inbox.importer(settle_s=0)
    importer.round()
    if what == "a folder":
        sub = inbox.root / "ana" / "sub"
        sub.mkdir(parents=True)
        sub.chmod(0)
    else:
        held = inbox.root / "_held" / "ghost"
        held.mkdir(parents=True)
        (held / f"{1:024}-{'f' * 16}-x.json").write_bytes(a_document("x"))
    with bound_by_permissions():
        inbox.rounds(importer, 3, 100)
        assert len(importer.job.notices.findings()) == 1
    shutil.rmtree(inbox.root)
    (inbox.root / "ana").mkdir(parents=True)
    inbox.rounds(importer, 3, 100)
    assert importer.job.notices.findings() == ()


@pytest.mark.parametrize("goes", ["nothing", "the file", "its folder"])
def test_a_file_that_cannot_be_taken_is_told_of_once_until_it_can_or_is_gone(
    inbox: Inbox, goes: str
) -> None:
    inbox.account("bo")
    path = inbox.drop("ana/1.json")
    path.parent.chmod(0o555)
    importer = inbox.importer()
    with bound_by_permissions():
        inbox.rounds(importer, 2, 10)
        inbox.drop("bo/1.json")
        importer.round()
    assert [one.sentence for one in importer.job.notices.findings()] == inbox.notices
    assert [notice.split(".")[0] for notice in inbox.notices] == ["Cannot pick up ana/1"]
    assert "Permission denied" in inbox.notices[0]
    assert inbox.outcomes() == {"bo/1.json": "done"}
    assert importer.summary().stuck == 1
    path.parent.chmod(0o755)
    if goes != "nothing":
        path.unlink()
    if goes == "its folder":
        path.parent.rmdir()
    inbox.advance(10)
    inbox.rounds(importer, 2, 10)
    assert inbox.outcomes().get("ana/1.json") == ("done" if goes == "nothing" else None)
    assert importer.job.notices.findings() == ()


@pytest.mark.parametrize("moment", [Moment.NOTED, Moment.READ])
@pytest.mark.parametrize("name", ["1.json", "1.ndjson"])
def test_i17_a_folder_that_is_closed_while_its_file_is_taken_keeps_no_file_for_good(
    inbox: Inbox, moment: Moment, name: str
) -> None:
    inbox.account("bo")
    path, _ = inbox.drop(f"ana/{name}", lines("1", "2")), inbox.drop("bo/1.json")
    importer = inbox.importer(settle_s=0, observe=closing_folder(path.parent, moment))
    with bound_by_permissions():
        inbox.rounds(importer, 2, 5)
        assert inbox.outcomes() == {"bo/1.json": "done"}
    path.parent.chmod(0o755)
    inbox.rounds(importer, 2, 5)
    assert inbox.outcomes() == {"bo/1.json": "done", f"ana/{name}": "done"}
    assert importer.summary().stuck == 0
    assert {one.under_way for one in importer.intake.inboxes.values()} == {0}


def test_a_folder_that_cannot_be_listed_is_a_finding_until_it_can_and_told_each_time(
    inbox: Inbox,
) -> None:
    inner, unowned = inbox.root / "ana/inner", inbox.root / "nobody"
    inbox.drop("ana/inner/1.json")
    unowned.mkdir()
    importer = inbox.importer()
    for again in (1, 2):
        with bound_by_permissions():
            for folder in (inner, unowned):
                folder.chmod(0)
            inbox.rounds(importer, 2)
            assert [one.sentence for one in importer.job.notices.findings()] == [
                "Cannot read ana/inner: Permission denied. Its files are waiting"
            ]
            assert importer.job.notices.state is ImporterState.DEGRADED
            assert len(inbox.notices) == again
        inner.chmod(0o755)
        importer.round()
        assert importer.job.notices.findings() == ()
    shutil.rmtree(inbox.root / "ana")
    inner.mkdir(parents=True, mode=0)
    with bound_by_permissions():
        importer.round()
        assert len(importer.job.notices.findings()) == 1
        inner.rmdir()
        inner.parent.rmdir()
        importer.round()
    assert importer.job.notices.findings() == ()


def test_i17_a_folder_that_a_link_leads_to_after_the_commit_keeps_no_other_waiting(
    inbox: Inbox,
) -> None:
    inbox.account("bo")
    folder, elsewhere = inbox.root / "ana", inbox.root.with_name("elsewhere")

    def move_away() -> None:
        if not folder.is_symlink():
            folder.rename(elsewhere)
            folder.symlink_to(elsewhere)
            folder.chmod(0o555)  # nor can it be moved by who has the folder open

    inbox.drop("ana/1.json")
    with bound_by_permissions():
        for moment in (Moment.COMMITTED, Moment.READ):  # the second time it is moved already
            importer = inbox.importer(observe=during(moment, move_away))
            inbox.drop("bo/1.json", a_document(moment.value))
            inbox.rounds(importer, 2, 5)
            assert importer.schedule.next_due is None  # nobody waits for it
    assert [(one.name, one.outcome) for one in inbox.files] == [("bo/1.json", "done")] * 2
    assert any("Its path contains a symbolic link" in notice for notice in inbox.notices)


def test_a_file_that_cannot_be_moved_stays_is_told_and_keeps_no_other_waiting(inbox: Inbox) -> None:
    for name in ("bo", "cy", "dy"):
        inbox.account(name)
    paths = [inbox.drop(f"{name}/1.json") for name in ("ana", "cy", "dy")]

    def close_folders() -> None:
        for path, mode in zip(paths, (0o555, 0, 0o555), strict=True):
            path.parent.chmod(mode)

    importer = inbox.importer(observe=during(Moment.COMMITTED, close_folders))
    with bound_by_permissions():
        for number in range(3):
            inbox.drop(f"bo/{number}.json")
            importer.round()
            inbox.advance(5)
    assert inbox.outcomes() == {f"bo/{number}.json": "done" for number in range(3)}
    assert sorted(notice for notice in inbox.notices if "cannot be moved" in notice) == [
        f"{name}/1.json was imported, but cannot be moved: Permission denied. It stays where it is; "
        "the move will be retried"
        for name in ("ana", "cy", "dy")
    ]
    assert importer.schedule.awaited == []
    assert {one.sentence for one in importer.job.notices.findings()} == {*inbox.notices}
    for path in paths:
        path.parent.chmod(0o755)
    shutil.rmtree(paths[2].parent)
    importer.round()
    assert inbox.outcomes()["ana/1.json"] == inbox.outcomes()["cy/1.json"] == "done"
    importer.round()
    assert importer.job.notices.findings() == ()
    assert len(inbox.notices) == 4  # one of them of the folder that cannot be listed
    assert inbox.is_tidy()


def test_a_file_that_cannot_be_moved_is_tried_again_after_ever_longer_times_up_to_a_minute(
    inbox: Inbox,
) -> None:
    path = inbox.drop("ana/1.json", b"nonsense")
    tried_s: list[float] = []

    def close_folder() -> None:
        tried_s.append(inbox.monotonic())
        path.parent.chmod(0o555)

    importer = inbox.importer(settle_s=0, observe=during(Moment.REPORTED, close_folder))
    with bound_by_permissions():
        inbox.rounds(importer, 60, 5)
    pauses_s = [later - earlier for earlier, later in itertools.pairwise(tried_s)]
    assert pauses_s == [5, 10, 20, 40, 60, 60, 60]
    assert len(inbox.notices) == 1


def test_a_file_on_a_bad_sector_stays_is_told_and_keeps_no_other_waiting(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = inbox.drop("ana/1.json")
    inode, really_read = bad.stat().st_ino, os.read

    def read(descriptor: int, size_bytes: int) -> bytes:
        if os.fstat(descriptor).st_ino == inode:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return really_read(descriptor, size_bytes)

    inbox.drop("ana/2.json")
    importer = inbox.importer(settle_s=1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "read", read)
        inbox.rounds(importer, 2)
        assert bad.exists()
        assert inbox.outcomes() == {"ana/2.json": "done"}
        assert [one.split(".")[0] for one in inbox.notices] == ["Cannot pick up ana/1"]
        assert "Input/output error" in inbox.notices[0]
        assert (importer.summary().stuck, importer.schedule.awaited) == (1, [])
    for _ in range(5):
        importer.round()
        assert "ana/1.json" not in inbox.outcomes()
        inbox.advance(1)
    importer.round()
    assert inbox.outcomes()["ana/1.json"] == "done"


@pytest.mark.parametrize("moment", [Moment.NOTED, Moment.READ, Moment.COMMITTED])
def test_a_file_that_goes_meanwhile_is_in_nobody_s_way(
    inbox: Inbox, caplog: pytest.LogCaptureFixture, moment: Moment
) -> None:
    gone = inbox.drop("ana/1.json", a_document("1"))
    importer = inbox.importer(observe=during(moment, lambda: gone.unlink(missing_ok=True)))
    importer.round()
    inbox.drop("ana/2.json", a_document("2"))
    importer.round()
    assert inbox.names() == (["2"] if moment is Moment.NOTED else ["1", "2"])
    assert inbox.outcomes() == {"ana/2.json": "done"}
    assert inbox.notices == []
    assert caplog.records == []
    assert inbox.is_tidy()


def test_a_folder_of_its_own_that_somebody_tidies_away_is_made_anew(inbox: Inbox) -> None:
    importer = inbox.importer()
    for number in range(2):
        inbox.drop(f"ana/{number}.json", a_document(str(number)))
        importer.round()
        shutil.rmtree(inbox.root / ".importer")
    inbox.drop("ana/2.json", a_document("2"))
    importer.round()
    assert inbox.names() == ["0", "1", "2"]
    assert watched_folder.find_owner(inbox.root) == watched_folder.owner_of(inbox.store)


def test_a_drain_does_not_wait_for_what_cannot_be_taken_or_looked_into(inbox: Inbox) -> None:
    inbox.account("bo")
    paths = [inbox.drop(f"{name}/1.json") for name in ("ana", "bo", "nobody")]
    for path, mode in zip(paths, (0o555, 0, 0), strict=True):
        path.parent.chmod(mode)
    with bound_by_permissions():
        summary = inbox.drain()
    for path in paths:
        path.parent.chmod(0o755)
    assert all(path.exists() for path in paths)
    assert (summary.done, summary.stuck) == (0, 2)
    assert any("Cannot read bo: Permission denied" in notice for notice in inbox.notices)


def test_a_drain_waits_for_what_settles_and_not_when_it_is_stopped(inbox: Inbox) -> None:
    inbox.drop("ana/cut.json", b"{")
    stopped = threading.Event()
    stopped.set()
    inbox.drain(stop=stopped)
    assert inbox.files == []
    inbox.drain(settle_s=0.05)
    assert inbox.outcomes() == {"ana/cut.json": "failed"}
    assert inbox.notices == []


# The watched folder itself


def test_a_drain_that_waits_for_long_says_for_what(inbox: Inbox) -> None:
    inbox.drop("ana/\x1b.json", b"{")
    stop = threading.Event()

    def tell(notice: str) -> None:
        inbox.notices.append(notice)
        stop.set()

    importer = inbox.importer(settle_s=3_600)
    importer.job.notices.tell = tell
    Runner(importer, monotonic=FakeMonotonic()).run(stop, until_idle=True)
    assert inbox.notices == [
        "Waiting for ana/\\x1b.json: incomplete, not readable, or still open for writing"
    ]


def test_a_folder_that_is_closed_ends_no_importer_and_lets_it_end(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importer.service.PRUNE_INTERVAL_S", 0.0)
    with bound_by_permissions():
        with inbox.watched(done_keep_days=1) as summaries:
            wait_until(lambda: list_importers(inbox.store))
            inbox.root.chmod(0)
            wait_until(lambda: any(NOTHING_NEW in notice for notice in inbox.notices))
            inbox.root.chmod(0o755)
            inbox.drop("ana/1.json")
            wait_until(lambda: inbox.outcomes() == {"ana/1.json": "done"})
            wait_until(lambda: "Importing resumed" in inbox.notices)
            inbox.root.chmod(0)
        inbox.root.chmod(0o755)
    assert [one.done for one in summaries] == [1]


def test_of_many_findings_the_worst_ten_are_shown() -> None:
    notices = Notices(lambda sentence: None)
    notices.find("watching", "Folders are polled", ImporterState.POLLING)
    for number in range(12):
        notices(f"unread ana/{number}", f"Cannot read ana/{number}")
    assert [one.sentence for one in notices.findings()] == [
        f"Cannot read ana/{number}" for number in range(10)
    ]
    notices.resolve_all("unread")
    assert [one.sentence for one in notices.findings()] == ["Folders are polled"]
