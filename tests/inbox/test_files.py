"""Reading a file as it is, finding who writes to it, moving it without replacing, and its names."""

import errno
import fcntl
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
from importer.files import MAX_NAME_CHARS, escaped, escaped_before, find_writer
from resumes.store.import_ledger import SOURCE_BYTES
from resumes.text import is_harmless
from tests.support.inbox.builders import a_full_disk, names_below

# Reading


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


def test_whoever_has_it_open_or_mapped_for_writing_is_a_writer_until_it_is_closed(
    path: Path, descriptor: int, tmp_path: Path
) -> None:
    with path.open("ab") as file:
        assert find_writer(descriptor) is True
        other = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=file)
    assert find_writer(descriptor) is True
    other.communicate()
    assert find_writer(descriptor) is False
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    assert find_writer(descriptor) is True
    mapped.close()
    assert find_writer(descriptor) is False
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert find_writer(folder) is None  # the system cannot say it of what is no file
    finally:
        os.close(folder)


def test_nobody_is_kept_waiting_for_the_lease(path: Path, descriptor: int) -> None:
    assert find_writer(descriptor) is False
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EACCES, errno.ENOLCK, None])
def test_where_leases_are_refused_or_missing_nothing_is_known(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None
) -> None:
    def refuse(descriptor: int, command: int, argument: int) -> int:
        raise OSError(code, os.strerror(code or 0))

    if code is None:
        monkeypatch.delattr(fcntl, "F_SETLEASE")
    else:
        monkeypatch.setattr(fcntl, "fcntl", refuse)
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


def test_a_file_is_moved_as_it_is_and_nothing_is_replaced(tmp_path: Path, move: Move) -> None:
    source, link, target = (tmp_path / name for name in ("a", "link", "b"))
    source.write_bytes(b"a")
    target.write_bytes(b"b")
    with pytest.raises(FileExistsError):
        move(source, target)
    assert target.read_bytes() == b"b"
    target.unlink()
    os.link(source, target)
    with pytest.raises(FileExistsError):  # two links of one file are not taken for moved
        move(source, target)
    target.unlink()
    move(source, target)
    link.symlink_to("nothing")
    move(link, tmp_path / "moved")
    assert str((tmp_path / "moved").readlink()) == "nothing"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "moved"]


# Writing


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


# Names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"ana/cv.json", "ana/cv.json"),
        ("zoë-履歴書.json".encode(), "zoë-履歴書.json"),
        (b"a\nb.json", "a\\x0ab.json"),
        (b"bad\xff.json", "bad\\xff.json"),
        (b"a\\b.json", "a\\\\b.json"),
        (b"a\\b\n.json", "a\\\\b\\x0a.json"),
        ("می\u200cروم\u00a01.json".encode(), "می\u200cروم\u00a01.json"),
        ("\u202egpj.json".encode(), "\\u202egpj.json"),
        (b"\x1b[31mred.json", "\\x1b[31mred.json"),
    ],
)
def test_escaped_names_print_and_keep_every_byte(name: bytes, expected: str) -> None:
    shown = escaped(os.fsdecode(name))
    assert shown == expected
    assert is_harmless(shown)
    shown.encode()


def test_a_name_that_somebody_wrote_is_harmless_and_no_longer_than_paths_are() -> None:
    assert escaped_before("a\x1b\ud800\udcff\U000e0001") == "a\\x1b\\ud800\\xff\\U000e0001"
    assert len(escaped_before("\n" * 10_000)) == 4 * MAX_NAME_CHARS
    longest = escaped(os.fsdecode(b"\xff" * 4_080 + b"/cv.ndjson"))
    assert escaped_before(longest) == longest
    assert escaped_before("a" * 20_000 + "/cv.ndjson").endswith("a/cv.ndjson")
