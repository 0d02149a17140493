import errno
import fcntl
import mmap
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from importer import leases
from importer.leases import find_writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cv.json"
    path.write_bytes(b"{}")
    return path


@pytest.fixture
def descriptor(path: Path) -> Iterator[int]:
    """The file, open for reading where the system gives leases."""
    descriptor = os.open(path, os.O_RDONLY)
    if find_writer(descriptor) is None:
        os.close(descriptor)
        pytest.skip("this file system gives no leases")
    yield descriptor
    os.close(descriptor)


def test_those_who_read_are_no_writers(path: Path, descriptor: int) -> None:
    with path.open("rb"):
        assert find_writer(descriptor) is False


def test_whoever_has_it_open_for_writing_is_a_writer_until_it_is_closed(
    path: Path, descriptor: int
) -> None:
    with path.open("ab"):
        assert find_writer(descriptor) is True
    assert find_writer(descriptor) is False


def test_a_writer_in_another_process_is_one_too(path: Path, descriptor: int) -> None:
    with path.open("ab") as file:
        writer = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=file)
    assert find_writer(descriptor) is True
    writer.communicate()
    assert find_writer(descriptor) is False


def test_whoever_has_it_mapped_for_writing_is_a_writer(path: Path, descriptor: int) -> None:
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    assert find_writer(descriptor) is True
    mapped.close()
    assert find_writer(descriptor) is False


def test_nobody_is_kept_waiting_for_the_lease(path: Path, descriptor: int) -> None:
    assert find_writer(descriptor) is False
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def test_the_system_cannot_say_it_of_what_is_no_file(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert find_writer(descriptor) is None
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EACCES, errno.ENOLCK])
def test_where_leases_are_refused_nothing_is_known(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(descriptor: int, command: int, argument: int) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with path.open("rb") as file:
        assert find_writer(file.fileno()) is None


def test_where_there_are_no_leases_nothing_is_known(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(fcntl, "F_SETLEASE")
    with path.open("rb") as file:
        assert find_writer(file.fileno()) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_of_files_of_another_user_nothing_is_known(descriptor: int) -> None:
    try:
        os.seteuid(65_534)
    except OSError:
        pytest.skip("this root cannot")
    try:
        assert find_writer(descriptor) is None
    finally:
        os.seteuid(0)


BROKEN_LEASE = """
import fcntl, os, signal, sys
from importer import leases
signal.signal(signal.SIGIO, signal.SIG_DFL)  # who started us may ignore it
if sys.argv[2] == "ignore":
    leases.ignore_breaks()
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
try:
    os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
except BlockingIOError:
    print("alive")
"""


@pytest.mark.usefixtures("descriptor")
@pytest.mark.parametrize(
    ("how", "status", "output"), [("ignore", 0, b"alive\n"), ("expose", -signal.SIGIO, b"")]
)
def test_a_lease_that_is_broken_ends_only_who_does_not_expect_it(
    path: Path, how: str, status: int, output: bytes
) -> None:
    command = [sys.executable, "-c", BROKEN_LEASE, str(path), how]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (status, output)


def test_beside_the_main_thread_nothing_is_done_about_breaks() -> None:
    before = signal.getsignal(signal.SIGIO)
    thread = threading.Thread(target=leases.ignore_breaks)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGIO) is before
