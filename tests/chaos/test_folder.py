"""The watched folder: more comes into it than can be announced."""

import contextlib
import ctypes
import fcntl
import os
import signal
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document

UNANNOUNCED = 20_000
"""Files that come while nobody takes the events, of which the system keeps 16,384 at most."""
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
EVENT_BYTES = 16
"""The least that an event takes."""

C = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD = 438
"""The number of a system call that Python has no function for; it is the same on every machine."""


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
