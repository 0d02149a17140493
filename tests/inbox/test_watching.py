"""Watching a folder by the system's events, and where that cannot be, by scans."""

import errno
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from importer.notices import Notices
from importer.watcher import (
    EVERYTHING,
    MIN_LIFETIME_S,
    PROVEN_S,
    Changes,
    Events,
    Watcher,
    polling_reason,
)
from resumes.store.importers import ImporterState
from resumes.watched_names import is_outcome
from tests.support.inbox.builders import FakeMonotonic, bound_by_permissions, drop, wait_until
from tests.support.resumes import a_mount, mountinfo


class Bench:
    """A watched ROOT, and the importer's loop in so far as it takes part in watching."""

    def __init__(self, root: Path, monotonic: FakeMonotonic) -> None:
        self.root = root
        self.monotonic = monotonic
        self.changes = Changes()
        self.told: list[str] = []
        self.notices = Notices(self.told.append)
        self.heard: set[str] = set()
        self.marked_all = 0

    def scan(self, watcher: Watcher) -> None:
        """What the loop does for each look: take, list ROOT, follow."""
        marked = self.changes.take()
        self.heard |= marked - {EVERYTHING}
        self.marked_all += EVERYTHING in marked
        try:
            names = [entry.name for entry in os.scandir(self.root) if entry.is_dir()]
        except OSError:
            names = []
        watcher.follow(name for name in names if not is_outcome(name))

    def scan_until(
        self, watcher: Watcher, is_true: Callable[[], bool], *, step_s: float = MIN_LIFETIME_S
    ) -> None:
        def look() -> bool:
            self.monotonic.advance(step_s)
            self.scan(watcher)
            return is_true()

        wait_until(look)

    def watch(self, **options: Any) -> Watcher:
        return Watcher(self.root, self.changes, self.notices, monotonic=self.monotonic, **options)

    def hear(self, watcher: Watcher, *names: str) -> None:
        """These were marked, as well as what was before."""
        self.scan_until(watcher, lambda: self.heard >= set(names))
        self.heard.clear()

    def tune(self, watcher: Watcher, *names: str) -> None:
        """Both watchers hear: a file that is touched on and on in each folder is heard of."""
        files = [drop(self.root, f"{name}/tuning.json".lstrip("/")) for name in names]

        def is_heard() -> bool:
            for file in files:
                os.utime(file)
            return self.heard >= {name.partition("/")[0] for name in names}

        self.scan_until(watcher, is_heard)
        while self.changes.wait(0.15):
            self.changes.take()
        self.heard.clear()

    @property
    def is_polling(self) -> bool:
        """Whether it is told that some part of the inbox is left to scans."""
        return any(finding.state is ImporterState.POLLING for finding in self.notices.findings())

    @property
    def is_over(self) -> bool:
        """Whether one thing was told, and then that it is over."""
        return self.told[1:] == [f"Resolved: {self.told[0]}"]


@pytest.fixture
def bench(root: Path, monotonic: FakeMonotonic) -> Bench:
    return Bench(root, monotonic)


@pytest.fixture
def watcher(bench: Bench) -> Iterator[Watcher]:
    """Watches with the system's own events; `ana` is there."""
    (bench.root / "ana").mkdir()
    with bench.watch() as watcher:
        bench.tune(watcher, "ana", "")
        yield watcher


class FakeSource:
    """Fails with each of the errors in turn, then hears nothing."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.made: list[tuple[list[str], bool]] = []

    def __call__(self, paths: Collection[str], is_recursive: bool, stop: threading.Event) -> Events:
        self.made.append(([Path(path).name for path in paths], is_recursive))
        if self.errors:
            raise self.errors.pop(0)
        yield ()
        stop.wait()


def watcher_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "watcher"]


def test_a_dropped_file_marks_its_folder_alone(bench: Bench, watcher: Watcher) -> None:
    (bench.root / "bob").mkdir()
    bench.tune(watcher, "bob")
    drop(bench.root, "ana/1.json")
    assert bench.changes.wait(60)
    assert bench.changes.take() == {"ana"}
    drop(bench.root, "1.json")
    assert bench.changes.wait(60)
    assert bench.changes.take() == {""}


def test_folders_moved_in_or_made_together_with_files_are_heard_of(
    bench: Bench, watcher: Watcher, tmp_path: Path
) -> None:
    drop(tmp_path, "elsewhere/1.json")
    (tmp_path / "elsewhere").rename(bench.root / "ana" / "batch")
    bench.hear(watcher, "ana")
    drop(bench.root, "ana/batch/2.json")
    bench.hear(watcher, "ana")
    for name in ("ana", "bob"):
        drop(bench.root, f"{name}/a/b/1.json")
        bench.hear(watcher, name)
    bench.tune(watcher, "bob/a/b")


def test_a_name_that_is_not_utf8_is_got_over(bench: Bench, watcher: Watcher) -> None:
    drop(bench.root, "ana/" + os.fsdecode(b"\xff.json"))
    bench.scan_until(watcher, lambda: bool(bench.told))
    assert bench.marked_all
    assert bench.notices.state is ImporterState.DEGRADED
    assert "not UTF-8" in bench.told[0]
    bench.tune(watcher, "ana")
    bench.monotonic.advance(PROVEN_S)
    bench.scan_until(watcher, lambda: bench.notices.state is ImporterState.OK)
    assert bench.is_over


@pytest.mark.slow
@pytest.mark.parametrize("goes", ["removed", "removed for a moment", "moved away"])
def test_an_inbox_that_went_and_is_made_again_is_watched_again(
    bench: Bench, watcher: Watcher, tmp_path: Path, goes: str
) -> None:
    if goes == "moved away":
        bench.root.rename(tmp_path / "old")
    else:
        shutil.rmtree(bench.root)
    if goes == "removed":
        bench.scan_until(watcher, lambda: bool(bench.told))
        assert bench.notices.state is ImporterState.DEGRADED
        assert f'The watched folder "{bench.root}" is not available' in bench.told[0]
        assert "until it is back" in bench.told[0]
        bench.marked_all = 0
        bench.root.mkdir()
        bench.scan_until(watcher, lambda: bench.marked_all > 0)
    (bench.root / "bob").mkdir(parents=True)
    bench.tune(watcher, "bob", "")
    assert bench.is_over if goes == "removed" else bench.told == []
    if goes == "moved away":
        drop(tmp_path, "old/ana/late.json")
        drop(bench.root, "bob/1.json")
        bench.scan_until(watcher, lambda: "bob" in bench.heard)
        assert bench.heard == {"bob"}


def test_a_replaced_account_folder_is_watched_again(
    bench: Bench, watcher: Watcher, tmp_path: Path
) -> None:
    (bench.root / "ana").rename(tmp_path / "old")
    (bench.root / "ana").mkdir()
    bench.tune(watcher, "ana")
    shutil.rmtree(bench.root / "ana")
    (bench.root / "ana").mkdir()
    bench.tune(watcher, "ana")
    assert bench.told == []


@pytest.mark.parametrize(
    ("obstacle", "why"),
    [
        ("link", "it contains symbolic links"),
        ("closed", "it contains a folder that cannot be listed"),
    ],
)
def test_a_folder_with_links_or_what_cannot_be_listed_is_left_to_scans(
    bench: Bench, watcher: Watcher, tmp_path: Path, obstacle: str, why: str
) -> None:
    drop(bench.root, "bob/1.json")
    if obstacle == "link":
        (bench.root / "bob" / "all").symlink_to(tmp_path)
    else:
        (bench.root / "bob" / "all").mkdir(mode=0)
    with bound_by_permissions():
        bench.tune(watcher, "ana")
    assert bench.is_polling
    assert bench.notices.state is ImporterState.POLLING
    (finding,) = bench.notices.findings()
    assert f'"{bench.root}/bob" ({why})' in finding.sentence
    drop(bench.root, "bob/2.json")
    drop(bench.root, "ana/2.json")
    with bound_by_permissions():
        bench.scan_until(watcher, lambda: "ana" in bench.heard)
    assert bench.heard == {"ana"}


@pytest.mark.parametrize(
    ("number", "limit"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")]
)
def test_at_a_limit_of_the_system_it_polls_until_the_limit_is_raised(
    bench: Bench, caplog: pytest.LogCaptureFixture, number: int, limit: str
) -> None:
    caplog.set_level(logging.INFO)
    (bench.root / "ana").mkdir()
    source = FakeSource(OSError(number, "a limit"), OSError(number, "a limit"))
    with bench.watch(source=source) as watcher:
        bench.scan_until(watcher, lambda: bool(bench.told))
        assert bench.is_polling
        assert f"fs.inotify.{limit}" in bench.told[0]
        bench.scan_until(watcher, lambda: not bench.is_polling, step_s=PROVEN_S)
    assert bench.is_over
    assert [one for one in caplog.records if one.exc_info] == []


@pytest.mark.parametrize(
    ("errors", "after_s"), [([OSError(errno.ENOSPC, "a limit")], 300), ([], 600)]
)
def test_it_listens_anew_after_5_minutes_at_a_limit_and_after_10_otherwise(
    bench: Bench, errors: list[Exception], after_s: float
) -> None:
    source = FakeSource(*errors)
    with bench.watch(source=source) as watcher:
        assert bench.changes.wait(60)  # it failed, or listens
        bench.scan(watcher)
        threads = watcher_threads()
        bench.monotonic.advance(after_s - 1)
        bench.scan(watcher)
        assert watcher_threads() == threads
        bench.monotonic.advance(1)
        bench.scan(watcher)
        assert watcher_threads() != threads


@pytest.mark.timing
def test_a_source_that_does_not_end_delays_the_stop_by_a_second_at_most(bench: Bench) -> None:
    (bench.root / "ana").mkdir()
    may_end = threading.Event()

    def stuck(paths: Collection[str], is_recursive: bool, stop: threading.Event) -> Events:
        may_end.wait(60)
        yield ()

    with Watcher(bench.root, bench.changes, bench.notices, source=stuck) as watcher:
        bench.scan(watcher)
        threads = watcher_threads()
        assert len(threads) == 2
        began = time.monotonic()
    assert time.monotonic() - began < 2.0
    may_end.set()
    for thread in threads:
        thread.join(60)


# Where events cannot be relied on


SHARED = (
    "nfs nfs4 cifs smb3 smbfs 9p virtiofs vboxsf vmhgfs drvfs fakeowner ceph glusterfs lustre afs "
    "fuse.sshfs fuse.grpcfuse"
)
LOCAL = "ext4 xfs btrfs zfs tmpfs overlay fuseblk ecryptfs fuse.fuse-overlayfs fuse.ntfs-3g"


@pytest.mark.parametrize(
    ("kinds", "why"),
    [(SHARED, "not reported"), ("fuse fuse.somebodys fuse.\x1b[31m", "user-space"), (LOCAL, None)],
)
def test_a_file_system_that_is_shared_or_unknown_is_polled(kinds: str, why: str | None) -> None:
    for kind in kinds.split():
        found = polling_reason(Path("/srv/in/box"), mountinfo(a_mount("/srv/in", kind)))
        assert (found is None) == (why is None), kind
        assert why is None or why in str(found)
        assert "\x1b" not in str(found)


@pytest.mark.parametrize("why", ["it is on nfs4 at inbox", "its name is not UTF-8", None])
def test_a_root_that_cannot_be_watched_is_left_to_scans_and_told(
    bench: Bench, why: str | None
) -> None:
    source = FakeSource()
    if why is None:
        bench.root.rmdir()
        bench.root.touch()
    elif "UTF-8" in why:
        bench.root = bench.root.rename(bench.root.with_name(os.fsdecode(b"\xff")))
    reason = why if why and "nfs4" in why else None
    with bench.watch(source=source, why_polled=lambda path: reason) as watcher:
        if why is not None:
            (bench.root / "ana").mkdir()
            bench.scan(watcher)
            assert bench.is_polling
            assert source.made == []
    assert (why or "(Not a directory)") in bench.told[0]
    assert "\udcff" not in bench.told[0]
    assert watcher_threads() == []
