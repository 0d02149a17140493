import os
from pathlib import Path

import pytest

from importer import moves
from tests.importer.builders import a_full_disk, names_below


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


@pytest.mark.usefixtures("_either_way")
def test_a_link_is_moved_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("nothing")
    moves.move(tmp_path / "a", tmp_path / "b")
    assert str((tmp_path / "b").readlink()) == "nothing"
    with pytest.raises(FileExistsError):
        moves.move(tmp_path / "b", tmp_path / "b")


def test_any_bytes_but_nul_and_slash_can_be_moved(tmp_path: Path) -> None:
    source = os.fsencode(tmp_path) + b"/-\xff\n" + b"x" * 250
    Path(os.fsdecode(source)).write_bytes(b"a")
    moves.move(os.fsdecode(source), tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"a"


# To another file system


def test_a_file_goes_to_another_disk_with_its_content_and_its_time(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    os.utime(tmp_path / "a", ns=(0, 5_000_000_000))
    moves.move_across(tmp_path / "a", tmp_path / "b", temporary=tmp_path / "t")
    assert names_below(tmp_path) == ["b"]
    assert (tmp_path / "b").read_bytes() == b"a"
    assert (tmp_path / "b").stat().st_mtime_ns == 5_000_000_000


def test_nothing_on_the_other_disk_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with pytest.raises(FileExistsError):
        moves.move_across(tmp_path / "a", tmp_path / "b", temporary=tmp_path / "t")
    assert [path.read_bytes() for path in (tmp_path / "a", tmp_path / "b")] == [b"a", b"b"]
    assert names_below(tmp_path) == ["a", "b"]


def test_a_move_to_another_disk_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a" * 100)
    (tmp_path / "t").write_bytes(b"a" * 10)
    with a_full_disk(50), pytest.raises(OSError, match="too large"):
        moves.move_across(tmp_path / "a", tmp_path / "b", temporary=tmp_path / "t")
    assert (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    moves.move_across(tmp_path / "a", tmp_path / "b", temporary=tmp_path / "t")
    assert names_below(tmp_path) == ["b"]
    (tmp_path / "a").write_bytes(b"a" * 100)
    moves.move_across(tmp_path / "a", tmp_path / "b", temporary=tmp_path / "t")
    assert names_below(tmp_path) == ["b"]


# Writing


def test_writing_anew_replaces_nothing_and_writing_over_does(tmp_path: Path) -> None:
    path = tmp_path / "a"
    moves.write_new(path, b"1")
    with pytest.raises(FileExistsError):
        moves.write_new(path, b"2")
    assert path.read_bytes() == b"1"
    moves.write_over(path, b"3", temporary=tmp_path / "t")
    assert path.read_bytes() == b"3"
    assert not (tmp_path / "t").exists()


def test_what_the_disk_has_no_room_for_leaves_nothing_new_and_everything_old(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a"
    with a_full_disk(50):
        with pytest.raises(OSError, match="too large"):
            moves.write_new(path, b"x" * 100)
        assert names_below(tmp_path) == []
        moves.write_new(path, b"1")
        with pytest.raises(OSError, match="too large"):
            moves.write_over(path, b"x" * 100, temporary=tmp_path / "t")
    assert names_below(tmp_path) == ["a"]
    assert path.read_bytes() == b"1"


def test_what_was_left_of_an_earlier_try_is_not_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"half")
    moves.write_over(tmp_path / "a", b"1", temporary=tmp_path / "t")
    assert (tmp_path / "a").read_bytes() == b"1"
