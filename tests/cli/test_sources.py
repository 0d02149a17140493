"""Files, folders, standard input."""

import os
from pathlib import Path

import pytest

from cli.sources import Source, iter_sources
from resumes.errors import InvalidArgument, TooLarge


def test_folders_give_their_json_files_in_order(tmp_path: Path) -> None:
    for name in ("b.json", "a.JSON", "notes.txt", ".hidden.json", "sub/c.json", "_done/d.json"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}", encoding="ascii")
    (tmp_path / "link.json").symlink_to(tmp_path / "b.json")
    os.mkfifo(tmp_path / "pipe.json")

    found = [source.path for source in iter_sources([str(tmp_path), "-", "x.txt"])]

    names = [os.path.relpath(path, tmp_path) for path in found[:3]]
    assert names == ["a.JSON", "b.json", "sub/c.json"]
    assert found[3:] == ["-", "x.txt"]


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"12345")

    assert Source(str(file)).read(max_bytes=5) == b"12345"
    with pytest.raises(TooLarge):
        Source(str(file)).read(max_bytes=4)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")

    with pytest.raises(InvalidArgument, match="Not a regular file"):
        Source(str(tmp_path / "pipe.json")).read(max_bytes=5)


def test_standard_input_has_a_name() -> None:
    assert Source("-").name == "standard input"
    assert Source("x.json").name == "x.json"
