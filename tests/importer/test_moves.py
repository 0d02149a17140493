import os
from pathlib import Path

import pytest

from importer import moves


@pytest.fixture(params=["renameat2", "link and unlink"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "link and unlink":
        monkeypatch.setattr(moves, "_renameat2", None)


@pytest.mark.usefixtures("_either_way")
def test_a_file_is_moved(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    moves.move(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.usefixtures("_either_way")
def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with pytest.raises(FileExistsError):
        moves.move(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"b"


@pytest.mark.usefixtures("_either_way")
def test_two_links_of_one_file_are_not_taken_for_moved(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    os.link(tmp_path / "a", tmp_path / "b")
    with pytest.raises(FileExistsError):
        moves.move(tmp_path / "a", tmp_path / "b")


@pytest.mark.usefixtures("_either_way")
def test_of_two_who_move_a_file_one_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    moves.move(tmp_path / "a", tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        moves.move(tmp_path / "a", tmp_path / "c")


def test_any_bytes_but_nul_and_slash_can_be_moved(tmp_path: Path) -> None:
    source = os.fsencode(tmp_path) + b"/-\xff\n" + b"x" * 250
    Path(os.fsdecode(source)).write_bytes(b"a")
    moves.move(os.fsdecode(source), tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"a"


def test_writing_anew_replaces_nothing_and_writing_over_does(tmp_path: Path) -> None:
    path = tmp_path / "a"
    moves.write_new(path, b"1")
    with pytest.raises(FileExistsError):
        moves.write_new(path, b"2")
    assert path.read_bytes() == b"1"
    moves.write_over(path, b"3", temporary=tmp_path / "t")
    assert path.read_bytes() == b"3"
    assert not (tmp_path / "t").exists()
