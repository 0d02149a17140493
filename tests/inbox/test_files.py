"""Reading a file as it is, finding who writes to it, and moving it without replacing."""

import errno
import fcntl
import hashlib
import mmap
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from importer import files
from importer.files import find_writer
from resumes.errors import InvalidArgument, TooLarge
from resumes.store.import_ledger import SOURCE_BYTES
from tests.support.inbox.builders import a_full_disk, names_below

# Reading


def test_a_signature_stays_when_a_file_is_renamed_and_changes_when_it_is_replaced(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"{}")
    before = files.find_signature(path)
    path.rename(tmp_path / "b.json")
    assert files.find_signature(tmp_path / "b.json") == before
    path.write_bytes(b"{}")
    os.utime(path, ns=(0, before.mtime_ns if before else 0))
    assert files.find_signature(path) != before
    assert files.find_signature(tmp_path / "c.json") is None


def test_a_file_at_the_limit_is_read_and_one_over_it_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 100)
    assert files.load(path, 100).body == b"x" * 100
    os.truncate(path, 10 * 1024**3)
    content = files.load(path, 100)
    assert content.is_over_limit
    assert len(content.body) <= SOURCE_BYTES


@pytest.mark.parametrize("size_bytes", [0, 2, 3, 200])
def test_a_file_that_is_written_to_while_it_is_read_is_not_steady(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"xx")
    read = os.read

    def read_slowly(descriptor: int, at_most: int) -> bytes:
        body = read(descriptor, at_most)
        if body == b"xx":
            path.write_bytes(b"y" * size_bytes)
            os.utime(path, ns=(0, 1))  # clocks of file systems may tick slower than we write
            return body
        return b""

    monkeypatch.setattr(os, "read", read_slowly)
    content = files.load(path, 100)
    assert (content.body, content.is_steady) == (b"xx", False)


def test_a_file_that_grows_over_the_limit_while_it_is_read_is_over_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 10)
    read = os.read

    def read_late(descriptor: int, at_most: int) -> bytes:
        path.write_bytes(b"x" * 20)
        return read(descriptor, at_most)

    monkeypatch.setattr(os, "read", read_late)
    content = files.load(path, 10)
    assert (content.is_over_limit, content.is_steady) == (True, False)
    assert len(content.body) == 11


def test_links_pipes_sockets_and_folders_are_never_opened(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"{}")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        for name in ("link", "dangling", "pipe", "folder", "socket"):
            with pytest.raises(files.NotAFile):
                files.load(tmp_path / name, 10)


def test_commands_are_told_in_words_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file"):
        files.read(tmp_path / "missing.json", 10)
    with pytest.raises(InvalidArgument, match="Not a regular file"):
        files.read(tmp_path, 10)
    (tmp_path / "large.json").write_bytes(b"x" * 11)
    with pytest.raises(TooLarge):
        files.read(tmp_path / "large.json", 10)
    (tmp_path / "good.json").write_bytes(b"x")
    assert files.read(tmp_path / "good.json", 10) == b"x"


def test_outer_white_space_does_not_make_another_content() -> None:
    assert files.digest(b'\n {"a" : 1}\r\n\t') == hashlib.sha256(b'{"a" : 1}').digest()
    assert files.digest(b'{"a":1}') != files.digest(b'{"a" : 1}')


# Writers


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cv.json"
    path.write_bytes(b"{}")
    return path


@pytest.fixture
def descriptor(path: Path) -> Iterator[int]:
    """The file, open for reading where the system gives reading."""
    descriptor = os.open(path, os.O_RDONLY)
    if find_writer(descriptor) is None:
        os.close(descriptor)
        pytest.skip("this file system gives no leases")
    yield descriptor
    os.close(descriptor)


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
from importer import files
signal.signal(signal.SIGIO, signal.SIG_DFL)  # who started us may ignore it
if sys.argv[2] == "ignore":
    files.ignore_breaks()
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


# Moving


Move = Callable[[str | Path, str | Path], None]


@pytest.fixture(params=["renameat2", "link and unlink", "not supported"])
def move(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Move:
    """Either way to move a file."""
    if request.param == "link and unlink":
        monkeypatch.setattr(files, "_renameat2", None)
    if request.param == "not supported":
        monkeypatch.setattr(files, "_RENAME_NOREPLACE", 1 << 31)
    return files.move


def test_a_file_is_moved(tmp_path: Path, move: Move) -> None:
    (tmp_path / "a").write_bytes(b"a")
    move(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_nothing_is_replaced(tmp_path: Path, move: Move) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with pytest.raises(FileExistsError):
        move(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"b"


def test_two_links_of_one_file_are_not_taken_for_moved(tmp_path: Path, move: Move) -> None:
    (tmp_path / "a").write_bytes(b"a")
    os.link(tmp_path / "a", tmp_path / "b")
    with pytest.raises(FileExistsError):
        move(tmp_path / "a", tmp_path / "b")


def test_a_link_is_moved_as_it_is(tmp_path: Path, move: Move) -> None:
    (tmp_path / "a").symlink_to("nothing")
    move(tmp_path / "a", tmp_path / "b")
    assert str((tmp_path / "b").readlink()) == "nothing"
    with pytest.raises(FileExistsError):
        move(tmp_path / "b", tmp_path / "b")


# Writing


def test_writing_over_replaces_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"1", b"3"):
        files.write_over(path, content, temporary=tmp_path / "t")
        assert path.read_bytes() == content
        assert not (tmp_path / "t").exists()


def test_what_the_disk_has_no_room_for_leaves_nothing_new_and_everything_old(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a"
    with a_full_disk(50):
        for size_bytes in (100, 100_000):
            with pytest.raises(OSError, match="too large"):
                files.write_over(path, b"x" * size_bytes, temporary=tmp_path / "t")
            assert names_below(tmp_path) == []
        files.write_over(path, b"1", temporary=tmp_path / "t")
        with pytest.raises(OSError, match="too large"):
            files.write_over(path, b"x" * 100, temporary=tmp_path / "t")
    assert names_below(tmp_path) == ["a"]
    assert path.read_bytes() == b"1"
