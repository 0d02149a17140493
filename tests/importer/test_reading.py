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


def test_a_file_at_the_limit_is_read_and_one_over_it_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 100)
    assert reading.load(path, 100).body == b"x" * 100
    os.truncate(path, 10 * 1024**3)
    content = reading.load(path, 100)
    assert content.is_over_limit
    assert len(content.body) <= SOURCE_BYTES


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


def test_outer_white_space_does_not_make_another_content() -> None:
    assert reading.digest(b'\n {"a" : 1}\r\n\t') == hashlib.sha256(b'{"a" : 1}').digest()
    assert reading.digest(b'{"a":1}') != reading.digest(b'{"a" : 1}')
