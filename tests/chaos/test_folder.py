"""The watched folder: what comes into it in every way there is, and more than can be announced."""

import contextlib
import ctypes
import fcntl
import os
import random
import signal
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.support.inbox import sizes, strangers
from tests.support.inbox.permissions import bounded
from tests.support.inbox.scenes import Scene
from tests.support.inbox.slow_writers import Pace, write_slowly
from tests.support.resumes import a_document

__all__ = ["bounded"]  # a fixture

BURST = 400
DUPLICATES = 20
SLOW = 8
HALVES = 8
SETTLE_S = 1.5
PACE = Pace(settle_s=SETTLE_S, gap_s=0.03, pause_s=0.6)
UNANNOUNCED = 20_000
"""Files that come while nobody takes the events, of which the system keeps 16,384 at most."""
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
EVENT_BYTES = 16
"""The least that an event takes."""

C = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438
"""The number of a system call that Python has no function for; it is the same on every machine."""


def drop_what_fails(scene: Scene) -> int:
    """Too large, bombs, empty, half for ever and unreadable; how many."""
    for name, (content, _) in sizes.refused().items():
        scene.drop(f"ana/{name}", content)
    for name, size_bytes in sizes.SPARSE.items():
        with (scene.root / "ana" / name).open("wb") as file:
            file.truncate(size_bytes)
    for number in range(HALVES):
        scene.drop(f"ana/half {number}.json", a_document(f"half {number}")[: 20 + number])
    scene.drop("ana/unreadable.json", a_document("unreadable")).chmod(0)
    refused = len(sizes.refused()) + len(sizes.SPARSE)
    return refused + HALVES + 1


def drop_what_is_imported(scene: Scene, chance: random.Random) -> list[str]:
    """Names of every kind, a burst in folders and by rename, slow writers; the resumes' names."""
    names = []
    for number, name in enumerate(strangers.NAMES):
        scene.drop(b"ana/" + name, a_document(f"owner {number}"))
        names.append(f"owner {number}")
    writers = []
    for number in range(SLOW):
        body = a_document(f"slow {number}", filler="x" * 2_000)
        path = scene.drop(f"ana/slow {number}.json", b"")
        arguments = (path, body, PACE)
        writers.append(threading.Thread(target=write_slowly, args=arguments))
        writers[-1].start()
        names.append(f"slow {number}")
    for number in range(BURST):
        folder = chance.choice(["ana", "ana/deep", "ana/deep/deeper"])
        path = scene.drop(f"{folder}/.writing", a_document(f"burst {number}"))
        path.rename(path.with_name(f"{number}.json"))
        names.append(f"burst {number}")
    for writer in writers:
        writer.join()
    return names


@pytest.mark.chaos(
    30,
    fault="files of every kind and size arrive in every possible way",
    promise="no file is partially imported; each rejected file is moved and gets a report that states the reason; the importer continues with the other files",
)
def test_every_dropped_file_gets_an_outcome(
    tmp_path: Path, figures: Figures, seed: random.Random, bounded: list[str]
) -> None:
    """While `resumes watch` runs, files of every kind arrive in its folder. Some files are
    written slowly, or under a temporary name. Other files are unreadable or incomplete, are
    duplicates, or have names that are not valid text. Links, FIFOs, sockets, a 1 GiB file,
    decompression bombs and a burst of 400 files arrive as well."""
    scene = Scene(tmp_path / "home")
    scene.account("ana")
    left = strangers.drop_strangers(scene.root / "ana", tmp_path)
    with scene.watched(settle_s=SETTLE_S, before=bounded) as importer:
        failed = drop_what_fails(scene)
        names = drop_what_is_imported(scene, seed)
        for number in range(DUPLICATES):
            scene.drop(f"ana/again {number}.json", a_document("burst 7"))
        files = failed + len(names) + DUPLICATES
        scene.wait_for(ended=files, limit_s=90)
        assert importer.is_running
    found = scene.check(files=files + len(left), left=left, resumes={"ana": names})
    assert (found.done, found.failed, found.duplicate) == (len(names), failed, DUPLICATES)
    figures["files"] = found.files
    figures["imported"], figures["rejected"] = found.done, found.failed
    figures["duplicates"], figures["ignored"] = found.duplicate, len(found.left)
    missing, more = checker.count_differences(names, scene.names("ana"))
    figures["partially_imported"], figures["lost"] = more, missing
    assert missing == more == 0


@pytest.mark.chaos(
    31,
    fault="more files arrive than the operating system reports",
    promise="the next scan finds all unreported files",
)
def test_files_without_events_are_found(tmp_path: Path, figures: Figures) -> None:
    """While SIGSTOP pauses the importer, 20,000 files arrive in its watched folder, and its event
    queue overflows. Then the importer continues."""
    most = int(QUEUE.read_text())
    if most >= UNANNOUNCED:
        pytest.skip(f"{QUEUE} is so large that {UNANNOUNCED} files do not overflow it")
    scene = Scene(tmp_path / "home")
    scene.account("ana")
    with scene.watched(settle_s=0.5) as importer:
        scene.drop("ana/first.json", a_document("first"))
        scene.wait_for(ended=1)
        # Its folder is new: until it is listened to, nothing is announced of it.
        scene.wait_until(lambda: is_listening(importer.pid, scene.root / "ana"))
        os.kill(importer.pid, signal.SIGSTOP)
        try:
            for number in range(UNANNOUNCED):
                scene.drop(f"ana/{number}.json", a_document(f"number {number}"))
            queued = queued_bytes(importer.pid)
        finally:
            os.kill(importer.pid, signal.SIGCONT)
        scene.wait_for_all(UNANNOUNCED + 1, limit_s=120)
    names = ["first", *(f"number {number}" for number in range(UNANNOUNCED))]
    found = scene.check(files=UNANNOUNCED + 1, resumes={"ana": names})
    figures["files"] = found.files
    figures["bytes_in_the_event_queue"] = queued
    figures["lost"], more = checker.count_differences(names, scene.names("ana"))
    assert queued >= most * EVENT_BYTES
    assert figures["lost"] == more == 0


def find_queues(pid: int) -> list[str]:
    """The descriptors by which a process hears what the system announces (inotify(7))."""
    links = Path(f"/proc/{pid}/fd").iterdir()
    return [link.name for link in links if str(link.readlink()) == "anon_inode:inotify"]


def is_listening(pid: int, folder: Path) -> bool:
    """Whether what happens in the folder is announced to the process (proc(5))."""
    watch = f" ino:{folder.stat().st_ino:x} "
    try:
        infos = [Path(f"/proc/{pid}/fdinfo/{queue}").read_text() for queue in find_queues(pid)]
    except FileNotFoundError:  # it closed one of them meanwhile
        return False
    return any(watch in info for info in infos)


def queued_bytes(pid: int) -> int:
    """How much a process has not read yet of what the system announced to it."""
    queued = 0
    with open_process(pid) as process:
        for queue in find_queues(pid):
            copy = C.syscall(PIDFD_GETFD, process, int(queue), 0)
            assert copy >= 0, os.strerror(ctypes.get_errno())
            length = fcntl.ioctl(copy, termios.FIONREAD, bytes(4))
            os.close(copy)
            queued += int.from_bytes(length, sys.byteorder)
    return queued


@contextlib.contextmanager
def open_process(pid: int) -> Iterator[int]:
    """A descriptor of the process."""
    process = os.pidfd_open(pid)
    try:
        yield process
    finally:
        os.close(process)
