"""Disks that are full or read-only, and calls that fail, each in turn."""

import contextlib
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.chaos import checker, strace
from tests.chaos.campaign import Figures
from tests.chaos.creators import creators
from tests.chaos.strace import Injection
from tests.support import programs
from tests.support.api import full_disks, load
from tests.support.api.scenes import Scene, Server
from tests.support.api.serving import wait_until
from tests.support.inbox.mounts import a_disk, an_ext4
from tests.support.inbox.scenes import Scene as Folder

MIB: Final = 1024 * 1024
DISK_BYTES: Final = 64 * MIB
EXT4_BYTES: Final = 256 * MIB
SETTLE_S: Final = 10.0
READ_ONLY: Final = "Read-only file system"
SOON_S: Final = 10.0
"""A program that will not start says so by then; to load it takes a part of a second on an idle
machine, and seconds on a busy one."""


@pytest.mark.parametrize(
    "leave_bytes", [0, full_disks.BELOW_FLOOR_BYTES], ids=["to the last byte", "to the floor"]
)
@pytest.mark.chaos(
    4,
    fault="the disk is full",
    promise="create requests fail with 503, no data is damaged, and reads still work; create requests succeed again once there is free space",
)
def test_a_full_disk_loses_nothing(tmp_path: Path, figures: Figures, leave_bytes: int) -> None:
    """While four clients create resumes, another program fills the store's 256 MiB tmpfs, either
    completely or until less than 64 MiB is free. Then the space is freed."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    writers, listed, recovery_s = full_disks.live_through_a_full_disk(scene, tmp_path, leave_bytes)
    full_disks.check(scene, load.attempts_of(writers), listed)
    checker.note_recovery(figures, scene.home / "resumes.db", writers, recovery_s)


@pytest.mark.chaos(
    7,
    fault="the file system is read-only",
    promise="startup fails within 10 s with exit code 3 and a one-line message that states the problem and the path",
)
def test_a_read_only_file_system_is_refused_in_one_line(tmp_path: Path, figures: Figures) -> None:
    """Before `resumes serve` starts, `mount -o remount,ro` makes the store's tmpfs read-only."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with a_disk(tmp_path / "disk", DISK_BYTES) as disk:
        home = tmp_path / "disk" / "home"
        shutil.copytree(scene.home, disk.seen(home))
        remount = ["mount", "-o", "remount,ro", str(tmp_path / "disk")]
        subprocess.run([*disk.enter, *remount], check=True)
        began_s = time.monotonic()
        done = subprocess.run(
            [*disk.enter, *programs.command(home, "serve", "--port", "0")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        figures["refused_after_s"] = time.monotonic() - began_s
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert str(home) in line
    assert READ_ONLY in line
    assert figures["refused_after_s"] < SOON_S


@pytest.mark.chaos(
    7,
    fault="the file system becomes read-only while the server writes",
    promise="a write in progress may have an unknown outcome; every other write fails with 503 and stores nothing; reads still work; create requests succeed again once the file system is writable",
)
def test_a_file_system_that_becomes_read_only_loses_nothing(
    tmp_path: Path, figures: Figures
) -> None:
    """While four clients create resumes, strace injects EROFS into system calls that write or sync
    the store's log, or open the store's lock file. Then these calls succeed again."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    store = [scene.home / "resumes.db-wal", scene.home / "resumes.db.writer"]

    def be_read_only(server: Server) -> contextlib.AbstractContextManager[None]:
        calls = "pwrite64,fsync,fdatasync,ftruncate,openat"
        return strace.traced(
            server.process.pid, calls, tmp_path / "calls", effect="error=EROFS", paths=store
        )

    with scene.served() as server:
        writers = full_disks.make_writers(scene, server.url)
        recovery_s = full_disks.live_through(server, writers, scene.key, be_read_only)
        listed = scene.walk(server.url)
    full_disks.check(scene, load.attempts_of(writers), listed)
    checker.note_recovery(figures, scene.home / "resumes.db", writers, recovery_s)
    # What each was at, and once more: strace comes to the server's threads one by one.
    assert figures["unknown_outcomes"] <= 2 * full_disks.WRITERS


@pytest.mark.chaos(
    7,
    fault="an error makes the file system read-only until it is repaired",
    promise="a write in progress may have an unknown outcome; every other write fails with 503 and stores nothing; reads still work; files wait in the watched folder; `doctor` reports the cause; no data is lost",
)
def test_a_file_system_that_hits_an_error_loses_nothing(tmp_path: Path, figures: Figures) -> None:
    """While four clients create resumes and files arrive in the watched folder, `trigger_fs_error`
    causes an error in an ext4 file system that is mounted with errors=remount-ro. The server and
    the importer are then stopped, and the file system is checked and mounted again."""
    with an_ext4(tmp_path, EXT4_BYTES) as ext4:
        server_scene = Scene(tmp_path / "home", tmp_path / "logs")
        home = ext4.path / "home"
        shutil.copytree(server_scene.home, ext4.seen(home))
        # Its log lies elsewhere: one on that disk would end, too.
        folder = Folder(tmp_path / "importer", root=ext4.seen(home / "inbox"))
        shutil.rmtree(server_scene.home)
        server_scene.home = home
        (folder.root / "ada").mkdir()
        with (
            server_scene.served(within=tuple(ext4.enter)) as server,
            folder.watched(
                before=ext4.enter, home=home, root=home / "inbox", settle_s=SETTLE_S
            ) as importer,
        ):
            folder.drop("ada/before.json")
            folder.wait_for(ended=1)
            folder.drop("ada/meanwhile.ndjson")  # which is taken when it was quiet for so long
            os.sync()  # a file that was dropped is its writer's to sync
            writers = full_disks.make_writers(server_scene, server.url)
            with load.running(writers):
                wait_until(lambda: load.acknowledged(writers) >= 50, within_s=30)
                ext4.fail()
                wait_until(lambda: len(full_disks.refusals(writers)) >= 50, within_s=30)
                reads = load.call(server.url, load.a_request(server_scene.key)).status
            wait_until(lambda: READ_ONLY in importer.log, within_s=30)
            doctor = subprocess.run(
                [*ext4.enter, *programs.command(home, "doctor")],
                capture_output=True,
                text=True,
                check=False,
            )
            assert full_disks.status_of(server, "/readyz") == 503
        ext4.repair()
        folder.drop("ada/after.json")
        again = subprocess.run(
            [*ext4.enter, *programs.command(home, "watch", "--once", "--settle", "0")],
            capture_output=True,
            check=False,
        )
        server_scene.home = tmp_path / "after"
        shutil.copytree(ext4.seen(home), server_scene.home)
    assert reads == 200
    assert f"Cannot write to {home}: {READ_ONLY}" in doctor.stdout
    assert again.returncode == 0
    assert importer.log.count(READ_ONLY) == 1
    attempts = load.attempts_of(writers)
    with server_scene.store() as store:
        listed = list(checker.iter_stored(store))
    files = [name for _, name in listed if name.endswith("json")]
    figures["resumes_acknowledged"] = load.acknowledged(writers)
    figures["responses_with_status_503"] = len(full_disks.refusals(writers))
    figures["unknown_outcomes"] = sum(map(checker.is_unknown, attempts))
    figures["files"], figures["imported"] = 3, len(files)
    told = checker.told_of(attempts)
    figures["lost"] = len(told.items() - {*listed})
    assert sorted(files) == ["after.json", "before.json", "meanwhile.ndjson"]
    assert figures["unknown_outcomes"] <= full_disks.WRITERS
    assert figures["lost"] == 0


CALLS = "write,pwrite64,fsync,fdatasync"
MOST = 200
"""So many calls of each kind are made to fail, one after the other, each in a process of its own."""
IN_A_ROW = 20
"""Calls that fail one after the other, where more than one does."""
STRIDE = 8
AT_ONCE = 2
ENOUGH_WRITES = 24
"""Creates that write more than MOST times; each syncs once."""


def fail_each(
    template: Path, scratch: Path, error: str, nths: Iterable[int], times: int
) -> Counter[str]:
    """Of each number one process has lived through the fault, and its store was checked."""
    counts: Counter[str] = Counter()
    with creators() as children:
        for nth in nths:
            folder = scratch / f"{nth}"
            folder.mkdir(parents=True)
            database = Path(shutil.copy(template, folder))
            files = [database, folder / "resumes.db-wal", folder / "resumes.db-journal"]
            fault = Injection(CALLS, f"error={error}", nth, times, files)
            pid = children.start(folder, max(ENOUGH_WRITES, nth + 1))
            with strace.injected(pid, fault, folder / "calls"):
                told = children.finish(folder)
            found = checker.check(database, told.stored, told.unknown)
            counts += Counter(
                processes=1,
                failed_calls=strace.count_failures(folder / "calls"),
                resumes_acknowledged=len(told.stored),
                resumes_refused=len(told.refused),
                unknown_outcomes=len(told.unknown),
                stores_that_failed_to_open=told.unopened,
                lost=found.lost,
                refused_but_stored=found.uninvited,
            )
            shutil.rmtree(folder)
    return counts


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize(
    ("stride", "times"), [(1, 1), (STRIDE, IN_A_ROW)], ids=["once", "20 in a row"]
)
@pytest.mark.chaos(
    5,
    fault="a write or a sync fails",
    promise="acknowledged resumes are stored, refused resumes are not, and each uncertain outcome is reported as unknown",
)
def test_every_response_is_true_when_any_call_fails(
    tmp_path: Path, figures: Figures, stride: int, times: int, error: str
) -> None:
    """The test uses strace to inject EIO or ENOSPC into a process's k-th write to the store's files
    and into its k-th sync of these files. For each k from 1 to 200, a new process does the
    following twice: it opens the store, creates resumes and closes the store. In a second variant, which runs only for
    every eighth k, 20 consecutive calls fail."""
    template = tmp_path / "resumes.db"
    checker.make_account(f"sqlite:///{template}")
    shares = [range(1 + share * stride, MOST + 1, AT_ONCE * stride) for share in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [
            pool.submit(fail_each, template, tmp_path / f"{number}", error, share, times)
            for number, share in enumerate(shares)
        ]
        counts = sum((run.result() for run in runs), Counter[str]())
    assert counts["processes"] == MOST // stride
    assert counts["failed_calls"] > counts["processes"]
    for name in (
        "processes",
        "failed_calls",
        "resumes_acknowledged",
        "resumes_refused",
        "unknown_outcomes",
        "stores_that_failed_to_open",
    ):
        figures[name] = counts[name]
    figures["lost"], figures["refused_but_stored"] = counts["lost"], counts["refused_but_stored"]
    # A call that fails is the matter of one create, and of none that comes later.
    assert counts["resumes_refused"] + counts["unknown_outcomes"] <= counts["failed_calls"]
    assert counts["stores_that_failed_to_open"] == 0
    assert counts["lost"] == counts["refused_but_stored"] == 0
