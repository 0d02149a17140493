"""What `resumes watch` runs."""

import os
import socket
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from importer.helper import SILENT_S, SLOT
from importer.notices import FileReport
from importer.options import Options
from importer.service import Maintenance, Progress, Summary, watch
from importer.slots import Slot
from importer.watcher import Watcher
from resumes import watched_folder
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.health.findings import installation_of
from resumes.settings import Settings
from resumes.store import import_requests, importers, plans
from resumes.store.import_requests import RequestKind
from resumes.store.importers import ImporterState
from tests.support.inbox.builders import Inbox, drop, wait_until
from tests.support.resumes import a_document
from tests.support.store.builders import Busy, end_thread


def test_an_importer_ends_when_a_thread_ended_that_it_cannot_do_without(inbox: Inbox) -> None:
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(
            watch,
            inbox.store,
            inbox.root,
            Options(),
            stop=threading.Event(),
            on_file=inbox.files.append,
            on_notice=inbox.notices.append,
        )
        end_thread(inbox.store, inbox.store.threads[0])
        with pytest.raises(StoreUnavailable, match="Start this program again"):
            ended.result(60)


def test_once_drains_also_what_has_to_settle(inbox: Inbox) -> None:
    assert inbox.drain(settle_s=60) == Summary()
    inbox.drop("ana/1.json")
    seen: list[Progress] = []
    assert inbox.drain(on_progress=seen.append) == Summary(done=1)
    assert (seen[-1].done, seen[-1].waiting) == (1, 0)
    inbox.drop("ana/2.json", b"{}")
    assert inbox.drain(settle_s=0.05) == Summary(failed=1)
    assert inbox.is_tidy()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        lambda path: path.touch(),
        lambda path: path.symlink_to(path),
        lambda path: (path / ".importer" / "0.lock").mkdir(parents=True),
    ],
    ids=["missing", "a file", "a loop of links", "no room for a lock"],
)
def test_a_root_that_cannot_be_used_is_refused(
    inbox: Inbox, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    root = tmp_path / "elsewhere"
    make(root)
    with pytest.raises(InvalidArgument, match="elsewhere"):
        inbox.drain(root)


@pytest.mark.parametrize("poll", [False, True], ids=["by events", "by scans"])
def test_an_importer_finds_files_by_event_or_by_scan_and_is_announced_while_it_runs(
    inbox: Inbox, poll: bool
) -> None:
    (inbox.root / "ana").mkdir()
    with inbox.watched(scan_s=0.2 if poll else 600, poll=poll):
        inbox.drop("ana/1.json", a_document("1"))
        wait_until(lambda: inbox.names() == ["1"])
        inbox.drop("ana/deep/2.json", a_document("2"))
        wait_until(lambda: inbox.names() == ["1", "2"])
        row = importers.list_importers(inbox.store)[0]
        assert (row.root, row.host, row.pid) == (str(inbox.root), socket.gethostname(), os.getpid())
        assert row.state is (ImporterState.POLLING if poll else ImporterState.OK)
        assert ["polling was requested" in one.sentence for one in row.findings] == [True] * poll
    assert importers.list_importers(inbox.store) == []
    assert any("polling was requested" in notice for notice in inbox.notices) is poll


@pytest.mark.timing
@pytest.mark.sqlite("nothing of it is the store's")
def test_a_dropped_file_is_moved_within_hundredths_of_a_second(inbox: Inbox) -> None:
    took_s = []
    with inbox.watched(scan_s=600):
        for number in range(30):
            began = time.monotonic()
            inbox.drop(f"ana/{number}.json", a_document(str(number)))
            wait_until(lambda: len(inbox.files) == number + 1)  # noqa: B023  (asked for at once)
            took_s.append(time.monotonic() - began)
    assert statistics.median(took_s) < 0.1


@pytest.mark.timing
@pytest.mark.sqlite("nothing of it is the store's")
def test_a_file_that_somebody_asks_for_is_taken_up_within_a_second(inbox: Inbox) -> None:
    took_s = []
    inbox.drop("ana/1.json", b"{}")
    with inbox.watched(scan_s=600):
        wait_until(lambda: len(inbox.files) == 1)
        for _ in range(8):
            inbox.ask(RequestKind.RETRY)
            began = time.monotonic()
            wait_until(lambda: import_requests.list_requests(inbox.store) == [])
            took_s.append(time.monotonic() - began)
    assert len(inbox.files) == 9
    assert max(took_s) < 1


@pytest.mark.parametrize("name", ["home", "ho\\me", "ho\x1bm\ne", "home\udcff"])
def test_doctor_and_requests_know_the_importer_of_the_inbox_whatever_its_path(
    inbox: Inbox, tmp_path: Path, name: str
) -> None:
    settings = Settings(home=tmp_path / name)
    settings.inbox.mkdir(parents=True)
    installation = installation_of(inbox.store, settings, "resumes")
    drop(settings.inbox, "ana/1.json", b"{}")
    with inbox.watched(settings.inbox):
        wait_until(lambda: len(inbox.files) == 1)
        row = importers.list_importers(inbox.store)[0]
        assert installation.watches(row.root)
    importers.register(inbox.store, row)
    import_requests.request_files(inbox.store, inbox.rows(), RequestKind.RETRY)
    assert import_requests.list_unwatched_roots(inbox.store) == []


def test_an_importer_that_cannot_be_announced_imports_all_the_same(
    inbox: Inbox, busy: Busy
) -> None:
    busy.acquire()
    with inbox.watched():
        wait_until(lambda: bool(inbox.notices) or not (inbox.root / "ana").exists())
        busy.release()
        inbox.drop("ana/1.json")
        wait_until(lambda: inbox.outcomes() == {"ana/1.json": "done"})


@pytest.mark.parametrize("once", [True, False])
def test_done_files_are_pruned_if_that_was_chosen(inbox: Inbox, once: bool) -> None:
    inbox.drop("ana/1.json", a_document("1"))
    old = inbox.drop("_done/2020-01-01/cv-0123abcd.json")
    if once:
        inbox.drain(done_keep_days=1)
    else:
        with inbox.watched(done_keep_days=1):
            wait_until(lambda: len(inbox.files) == 1 and not old.exists())
    assert not old.exists()
    assert inbox.names() == ["1"]
    assert len(inbox.filed("_done")) == 1


def test_done_files_go_when_the_plan_of_their_account_says(inbox: Inbox) -> None:
    plans.set_plan_limits(inbox.store, plans.PlanChange("ana", None, keep_days=30))
    old = inbox.drop("_done/2020-01-01/ana/cv-0123abcd.json")
    other = inbox.drop("_done/2020-01-01/nobody/cv-0123abcd.json")
    inbox.drop("ana/1.json", a_document("1"))
    inbox.drain()
    assert (old.exists(), other.exists(), len(inbox.filed("_done"))) == (False, True, 2)


def test_nothing_is_pruned_in_a_folder_that_another_store_took_over(inbox: Inbox) -> None:
    importer = inbox.importer(done_keep_days=1)
    watched_folder.set_owner(inbox.root, watched_folder.Owner("other", "other.db"), adopts=True)
    with pytest.raises(StoreUnavailable, match="belongs to another store"):
        importer.round()
    old = inbox.drop("_done/2020-01-01/cv-0123abcd.json")
    watcher = Watcher(inbox.root, importer.changes, importer.job.notices, poll=True)
    Maintenance(importer, watcher)()
    assert old.exists()


def test_the_command_hears_of_a_held_file_again_when_it_is_released(
    inbox: Inbox, tmp_path: Path
) -> None:
    inbox.limit(0)
    inbox.drop("ana/1.json")
    command = f'echo "$RESUMES_IMPORT_HELD $RESUMES_IMPORT_DONE" >> {tmp_path}/out'
    inbox.drain(on_import=command)
    inbox.limit(1)
    inbox.drain(on_import=command)
    assert (tmp_path / "out").read_text() == "1 0\n0 1\n"


# Several importers on a folder: one works, the others stand by


def test_an_importer_stands_by_while_another_works_and_says_so_once(inbox: Inbox) -> None:
    first = inbox.importer()
    second = inbox.importer(beside=True)
    inbox.drop("ana/1.json", a_document("1"))
    inbox.rounds(second, 2)
    assert second.lead.stands_by
    assert inbox.names() == []
    (notice,) = inbox.notices
    assert notice.startswith(f"Another importer is running in {inbox.root}. This one is on standby")
    first.close()
    second.round()
    assert inbox.names() == ["1"]
    assert not second.lead.stands_by


def test_no_new_file_is_taken_while_a_helper_of_an_importer_that_is_gone_lives(
    inbox: Inbox,
) -> None:
    helper = Slot(inbox.root, 1)
    assert helper.take()
    inbox.drop("ana/1.json", a_document("1"))
    importer = inbox.importer()
    importer.round()
    assert inbox.names() == []
    helper.leave()
    importer.round()
    assert inbox.names() == ["1"]


def test_files_that_a_helper_had_not_noted_when_it_died_are_imported(inbox: Inbox) -> None:
    (inbox.root / "ana").mkdir()
    importer = inbox.importer()
    importer.round()
    inbox.drop("ana/1.json", a_document("1"))
    importer.intake.force()
    importer.intake.look()
    assert len(importer.intake.next_batch(SLOT)) == 1
    importer.round()
    assert inbox.names() == ["1"]


def test_a_helper_may_start_slowly_says_at_once_what_it_did_and_keeps_no_process_from_ending(
    inbox: Inbox,
) -> None:
    (inbox.root / "ana").mkdir()
    importer = inbox.importer(helper_from=1)
    importer.round()
    for number in range(3):
        inbox.drop(f"ana/{number}.json", a_document(str(number)))
    importer.intake.force()
    importer.intake.look()
    before, helper = set(threading.enumerate()), importer.helper
    helper.supervise(backlog=3, is_working=False)
    assert all(thread.daemon for thread in set(threading.enumerate()) - before)
    inbox.advance(2 * SILENT_S)
    helper.watch_over()
    wait_until(lambda: any(True for _ in helper.iter_answers()))
    batch = importer.intake.next_batch(SLOT)
    assert len(batch) == 3
    helper.give(batch)
    told: list[FileReport] = []

    def is_told() -> bool:
        for answer in helper.iter_answers():
            told.extend(answer.reports)
        return len(told) == 3

    wait_until(is_told)


def test_once_waits_for_an_importer_that_is_running(inbox: Inbox) -> None:
    running = Slot(inbox.root, 0)
    assert running.take()
    inbox.drop("ana/1.json", a_document("1"))
    with ThreadPoolExecutor(1) as threads:
        draining = threads.submit(inbox.drain)
        wait_until(lambda: bool(inbox.notices) or draining.done())
        assert inbox.names() == []
        running.leave()
        assert draining.result() == Summary(done=1)
    assert "This one is on standby" in inbox.notices[0]
    assert inbox.names() == ["1"]
