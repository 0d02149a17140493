import hashlib
import os
import socket
from pathlib import Path

import pytest

from importer import reading
from resumes.errors import InvalidArgument, TooLarge
from resumes.store.ledger import SOURCE_BYTES


def test_a_file_is_read_with_its_signature(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"{}")
    content = reading.load(path, 10)
    assert (content.body, content.is_steady, content.is_over_limit) == (b"{}", True, False)
    assert content.signature == reading.find_signature(path)


def test_a_signature_stays_when_a_file_is_renamed_and_changes_when_it_is_replaced(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"{}")
    before = reading.find_signature(path)
    path.rename(tmp_path / "b.json")
    assert reading.find_signature(tmp_path / "b.json") == before
    path.write_bytes(b"{}")
    os.utime(path, ns=(0, before.mtime_ns if before else 0))
    assert reading.find_signature(path) != before
    assert reading.find_signature(tmp_path / "c.json") is None


def test_a_link_has_a_signature_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nothing")
    found = reading.find_signature(tmp_path / "link")
    assert found is not None
    assert found.size_bytes == len("nothing")


def test_a_file_at_the_limit_is_read_and_one_over_it_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 100)
    assert reading.load(path, 100).body == b"x" * 100
    os.truncate(path, 10 * 1024**3)
    content = reading.load(path, 100)
    assert content.is_over_limit
    assert len(content.body) <= SOURCE_BYTES


@pytest.mark.parametrize("size_bytes", [0, 2, 3, 200])
def test_a_file_that_is_written_to_while_it_is_read_is_not_steady(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"xx")
    read = reading._read

    def read_slowly(descriptor: int, at_most: int) -> bytes:
        body = read(descriptor, at_most)
        path.write_bytes(b"y" * size_bytes)
        os.utime(path, ns=(0, 1))  # clocks of file systems may tick slower than we write
        return body

    monkeypatch.setattr(reading, "_read", read_slowly)
    content = reading.load(path, 100)
    assert (content.body, content.is_steady) == (b"xx", False)


def test_a_file_that_grows_over_the_limit_while_it_is_read_is_over_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 10)
    read = reading._read

    def read_late(descriptor: int, at_most: int) -> bytes:
        path.write_bytes(b"x" * 20)
        return read(descriptor, at_most)

    monkeypatch.setattr(reading, "_read", read_late)
    content = reading.load(path, 10)
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
            with pytest.raises(reading.NotAFile):
                reading.load(tmp_path / name, 10)


def test_what_cannot_be_read_has_neither_body_nor_head_nor_digest(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for path in (tmp_path, tmp_path / "link", tmp_path / "nothing"):
        assert reading.find_body(path, 10) is None
        assert reading.find_head(path) == b""
        assert reading.find_sha256(path) is None


def test_of_a_large_file_the_head_is_found_and_the_digest_of_all(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * SOURCE_BYTES + b"y")
    assert reading.find_body(path, SOURCE_BYTES) is None
    assert reading.find_body(path, SOURCE_BYTES + 1) == path.read_bytes()
    assert reading.find_head(path) == b"x" * SOURCE_BYTES
    assert reading.find_sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_commands_are_told_in_words_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file"):
        reading.read(tmp_path / "missing.json", 10)
    with pytest.raises(InvalidArgument, match="Not a regular file"):
        reading.read(tmp_path, 10)
    (tmp_path / "large.json").write_bytes(b"x" * 11)
    with pytest.raises(TooLarge):
        reading.read(tmp_path / "large.json", 10)
    (tmp_path / "good.json").write_bytes(b"x")
    assert reading.read(tmp_path / "good.json", 10) == b"x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_file_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch(mode=0)
    with pytest.raises(PermissionError):
        reading.load(path, 10)
    with pytest.raises(InvalidArgument, match="Permission denied"):
        reading.read(path, 10)


def test_outer_white_space_does_not_make_another_content() -> None:
    assert reading.digest(b'\n {"a" : 1}\r\n\t') == hashlib.sha256(b'{"a" : 1}').digest()
    assert reading.digest(b'{"a":1}') != reading.digest(b'{"a" : 1}')
