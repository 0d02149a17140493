"""What `resumes watch` runs."""

import os
import socket
import statistics
import tarfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import func, select

from importer.options import Options
from importer.service import Maintenance, Progress, Summary, watch
from importer.watcher import Watcher
from resumes import watched_folder
from resumes.errors import InvalidArgument, StoreUnavailable
from resumes.health.findings import installation_of
from resumes.settings import Settings, load_settings
from resumes.store import Store, import_history, import_requests, importers
from resumes.store.accounts import AccountInfo
from resumes.store.import_requests import RequestKind
from resumes.store.importers import ImporterState
from resumes.store.schema import resumes
from tests.inbox.conftest import Drain, Watched
from tests.store.conftest import SteppingClock
from tests.support.inbox.builders import (
    MakeAccount,
    MakeImporter,
    Told,
    an_account_with_room_for,
    drop,
    filed,
    is_tidy,
    resume_names,
    set_limit,
    wait_until,
)
from tests.support.resumes import a_document
from tests.support.store.builders import Busy, end_thread


def test_the_defaults_are_those_of_the_settings() -> None:
    settings, options = load_settings(), Options()
    for name in (
        *("settle_s", "scan_s", "poll", "done_keep_days", "on_import", "format"),
        "max_file_bytes",
    ):
        assert getattr(options, name) == getattr(settings, name)


def test_an_importer_ends_when_a_thread_ended_that_it_cannot_do_without(
    store: Store, root: Path, told: Told
) -> None:
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(
            watch,
            store,
            root,
            Options(),
            stop=threading.Event(),
            on_file=told.files.append,
            on_notice=told.notices.append,
        )
        end_thread(store, store.threads[0])
        with pytest.raises(StoreUnavailable, match="Start this program again"):
            ended.result(60)


def test_once_drains_also_what_has_to_settle(
    store: Store, root: Path, told: Told, ana: AccountInfo, drain: Drain, watched: Watched
) -> None:
    drop(root, "ana/1.json")
    drop(root, "ana/2.json", b"{}")
    assert drain(settle_s=0.05) == Summary(done=1, failed=1)
    assert is_tidy(root)


def test_an_empty_folder_is_drained_at_once(drain: Drain) -> None:
    assert drain(settle_s=60) == Summary()


@pytest.mark.parametrize(
    "make",
    [lambda path: None, lambda path: path.touch(), lambda path: path.symlink_to(path)],
    ids=["missing", "a file", "a loop of links"],
)
def test_a_root_that_cannot_be_used_is_refused(
    tmp_path: Path, drain: Drain, make: Callable[[Path], None]
) -> None:
    root = tmp_path / "elsewhere"
    make(root)
    with pytest.raises(InvalidArgument, match="elsewhere"):
        drain(root)


def test_a_root_without_room_for_work_is_refused(root: Path, drain: Drain) -> None:
    (root / ".importer" / "0.lock").mkdir(parents=True)
    with pytest.raises(InvalidArgument, match="Cannot write to"):
        drain(settle_s=0.05)


def test_files_are_imported_as_they_come_until_it_is_stopped(
    store: Store, root: Path, told: Told, ana: AccountInfo, drain: Drain, watched: Watched
) -> None:
    with watched() as summaries:
        drop(root, "ana/1.json", a_document("1"))
        wait_until(lambda: resume_names(store, ana.id) == ["1"])
        drop(root, "ana/new/folder/2.json", a_document("2"))
        drop(root, "ana/bad.json", b"{")
        wait_until(lambda: len(told.files) == 3)
    assert summaries == [Summary(done=2, failed=1)]
    assert is_tidy(root)


@pytest.mark.parametrize("poll", [False, True], ids=["by events", "by scans"])
def test_a_file_is_found_by_its_event_or_by_the_next_scan(
    store: Store,
    root: Path,
    told: Told,
    ana: AccountInfo,
    drain: Drain,
    watched: Watched,
    poll: bool,
) -> None:
    (root / "ana").mkdir()
    with watched(scan_s=0.2 if poll else 600, poll=poll):
        drop(root, "ana/1.json", a_document("1"))
        wait_until(lambda: resume_names(store, ana.id) == ["1"])
        drop(root, "ana/deep/2.json", a_document("2"))
        wait_until(lambda: resume_names(store, ana.id) == ["1", "2"])
    assert any("polling was requested" in notice for notice in told.notices) is poll


def test_held_files_are_released_without_a_restart(
    store: Store,
    root: Path,
    told: Told,
    an_account: MakeAccount,
    drain: Drain,
    watched: Watched,
) -> None:
    account = an_account_with_room_for(store, 0)
    drop(root, "ana/1.json", a_document("1"))
    with watched(scan_s=600):
        wait_until(lambda: len(filed(root, "_held")) == 1)
        set_limit(store, "ana", 1)
        wait_until(lambda: resume_names(store, account.id) == ["1"])


def test_what_somebody_asks_for_is_done_without_a_restart(
    store: Store, root: Path, told: Told, ana: AccountInfo, drain: Drain, watched: Watched
) -> None:
    drop(root, "ana/1.json", b"{}")
    with watched(scan_s=600):
        wait_until(lambda: len(told.files) == 1)
        (path,) = filed(root, "_failed")
        path.write_bytes(a_document("1"))
        import_requests.request_files(store, import_history.list_files(store), RequestKind.RETRY)
        wait_until(lambda: resume_names(store, ana.id) == ["1"])


@pytest.mark.timing
@pytest.mark.sqlite("nothing of it is the store's")
def test_a_dropped_file_is_moved_within_hundredths_of_a_second(
    root: Path, told: Told, ana: AccountInfo, watched: Watched
) -> None:
    took_s = []
    with watched(scan_s=600):
        for number in range(30):
            began = time.monotonic()
            drop(root, f"ana/{number}.json", a_document(str(number)))
            wait_until(lambda: len(told.files) == number + 1)  # noqa: B023  (asked for at once)
            took_s.append(time.monotonic() - began)
    assert statistics.median(took_s) < 0.1


@pytest.mark.timing
@pytest.mark.sqlite("nothing of it is the store's")
def test_a_file_that_somebody_asks_for_is_taken_up_within_a_second(
    store: Store, root: Path, told: Told, ana: AccountInfo, watched: Watched
) -> None:
    took_s = []
    drop(root, "ana/1.json", b"{}")
    with watched(scan_s=600):
        wait_until(lambda: len(told.files) == 1)
        for _ in range(8):
            rows = import_history.list_files(store)
            import_requests.request_files(store, rows, RequestKind.RETRY)
            began = time.monotonic()
            wait_until(lambda: import_requests.list_requests(store) == [])
            took_s.append(time.monotonic() - began)
    assert len(told.files) == 9
    assert max(took_s) < 1


@pytest.mark.timing
def test_a_failed_file_that_is_gone_is_off_the_list_within_seconds(
    store: Store, clock: SteppingClock, root: Path, told: Told, ana: AccountInfo, watched: Watched
) -> None:
    drop(root, "ana/1.json", b"{}")
    with watched(scan_s=600):
        wait_until(lambda: told.files)  # not only its report, which comes first
        os.utime(root / ".importer" / "store", (1, 1))  # it has been watched for long
        clock.advance(11)
        filed(root, "_failed")[0].unlink()
        began = time.monotonic()
        wait_until(lambda: import_history.list_files(store) == [])
        took_s = time.monotonic() - began
    assert took_s < 10


@pytest.mark.timing
def test_an_importer_notices_within_about_a_second_that_another_store_has_its_folder(
    store: Store, root: Path, told: Told, watched: Watched
) -> None:
    with watched(scan_s=600):
        wait_until(lambda: importers.list_importers(store))
        began = time.monotonic()
        watched_folder.set_owner(root, watched_folder.Owner("other", "other.db"), adopts=True)
        wait_until(lambda: any("belongs to another store" in one for one in told.notices))
        took_s = time.monotonic() - began
    assert took_s < 1.5


def test_an_importer_is_announced_while_it_runs(
    store: Store, root: Path, ana: AccountInfo, watched: Watched
) -> None:
    drop(root, "ana/cut.json", b"{")
    with watched(settle_s=60):
        wait_until(lambda: len(importers.list_importers(store)) == 1)
        row = importers.list_importers(store)[0].importer
        assert (row.root, row.host, row.pid) == (str(root), socket.gethostname(), os.getpid())
        assert (row.state, row.findings) == (ImporterState.OK, ())
    assert importers.list_importers(store) == []


@pytest.mark.parametrize("name", ["home", "ho\\me", "ho\x1bm\ne", "home\udcff"])
def test_doctor_and_requests_know_the_importer_of_the_inbox_whatever_its_path(
    store: Store, tmp_path: Path, ana: AccountInfo, told: Told, watched: Watched, name: str
) -> None:
    settings = Settings(home=tmp_path / name)
    settings.inbox.mkdir(parents=True)
    installation = installation_of(store, settings, "resumes")
    drop(settings.inbox, "ana/1.json", b"{}")
    with watched(settings.inbox):
        wait_until(lambda: len(told.files) == 1)
        row = importers.list_importers(store)[0].importer
        assert installation.watches(row.root)
    importers.announce(store, row)
    import_requests.request_files(store, import_history.list_files(store), RequestKind.RETRY)
    assert import_requests.list_unwatched_roots(store) == []


def test_a_finding_is_announced_at_once_and_goes_when_it_is_over(
    store: Store, root: Path, watched: Watched
) -> None:
    with watched(poll=True):
        wait_until(lambda: any(one.importer.findings for one in importers.list_importers(store)))
        row = importers.list_importers(store)[0].importer
        assert row.state is ImporterState.POLLING
        assert "polling was requested" in row.findings[0].sentence


def test_an_importer_that_cannot_be_announced_imports_all_the_same(
    store: Store, root: Path, told: Told, busy: Busy, ana: AccountInfo, watched: Watched
) -> None:
    busy.acquire()
    with watched():
        wait_until(lambda: bool(told.notices) or not (root / "ana").exists())
        busy.release()
        drop(root, "ana/1.json")
        wait_until(lambda: told.outcomes() == {"ana/1.json": "done"})


@pytest.mark.parametrize("once", [True, False])
def test_done_files_are_pruned_if_that_was_chosen(
    store: Store,
    root: Path,
    told: Told,
    ana: AccountInfo,
    drain: Drain,
    watched: Watched,
    once: bool,
) -> None:
    drop(root, "ana/1.json", a_document("1"))
    old = drop(root, "_done/2020-01-01/cv-0123abcd.json")
    if once:
        drain(done_keep_days=1)
    else:
        with watched(done_keep_days=1):
            wait_until(lambda: len(told.files) == 1 and not old.exists())
    assert not old.exists()
    assert resume_names(store, ana.id) == ["1"]
    assert len(filed(root, "_done")) == 1


def test_nothing_is_pruned_in_a_folder_that_another_store_took_over(
    root: Path, an_importer: MakeImporter
) -> None:
    importer = an_importer(done_keep_days=1)
    watched_folder.set_owner(root, watched_folder.Owner("other", "other.db"), adopts=True)
    with pytest.raises(StoreUnavailable, match="belongs to another store"):
        importer.round()
    old = drop(root, "_done/2020-01-01/cv-0123abcd.json")
    watcher = Watcher(root, importer.changes, importer.notices, poll=True)
    Maintenance(importer, watcher)()
    assert old.exists()


def test_the_command_runs_after_a_batch(
    root: Path, tmp_path: Path, ana: AccountInfo, drain: Drain
) -> None:
    drop(root, "ana/1.json")
    drop(root, "ana/2.json", b"{}")
    out = tmp_path / "out"
    command = f'echo "$RESUMES_IMPORT_DONE $RESUMES_IMPORT_FAILED" >> {out}'
    drain(on_import=command)
    assert out.read_text() == "1 1\n"


def test_the_command_hears_of_a_held_file_again_when_it_is_released(
    store: Store, root: Path, tmp_path: Path, drain: Drain
) -> None:
    an_account_with_room_for(store, 0)
    drop(root, "ana/1.json")
    command = f'echo "$RESUMES_IMPORT_HELD $RESUMES_IMPORT_DONE" >> {tmp_path}/out'
    drain(on_import=command)
    set_limit(store, "ana", 1)
    drain(on_import=command)
    assert (tmp_path / "out").read_text() == "1 0\n0 1\n"


def test_the_progress_is_told(
    store: Store, root: Path, told: Told, ana: AccountInfo, drain: Drain, watched: Watched
) -> None:
    drop(root, "ana/1.json")
    seen: list[Progress] = []
    drain(on_progress=seen.append)
    assert (seen[-1].done, seen[-1].waiting) == (1, 0)


def test_the_corpus_is_imported_through_the_inbox(
    store: Store,
    root: Path,
    told: Told,
    an_account: MakeAccount,
    drain: Drain,
    watched: Watched,
    repository: Path,
) -> None:
    corpus = repository.parent / "shared" / "corpus" / "analyzer-fake.tar.gz"
    if not corpus.exists():
        pytest.skip("the corpus beside the repository is not there")
    account = an_account_with_room_for(store, None)
    with tarfile.open(corpus) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            content = archive.extractfile(member)
            assert content is not None
            drop(root, f"ana/{Path(member.name).name}", content.read())
    summary = drain(settle_s=0.05)
    assert (summary.done + summary.duplicate, summary.failed) == (337, 0)
    with store.read() as connection:
        count = connection.execute(select(func.count()).where(resumes.c.account_id == account.id))
        assert count.scalar_one() == summary.done
