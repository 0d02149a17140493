"""Files that a command writes."""

from pathlib import Path

import pytest

from resumes.errors import Conflict
from resumes.output_files import OutputFile, check_free, place


def write_while_somebody_does(output: OutputFile, path: Path) -> None:
    with output.open() as file:
        file.write(b"ours")
        path.write_text("theirs")


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    new, taken = tmp_path / "new", tmp_path / "taken"
    new.write_text("new")
    taken.write_text("taken")
    with pytest.raises(Conflict, match="exists already"):
        place(new, taken)
    assert taken.read_text() == "taken"
    place(new, tmp_path / "free")
    assert (tmp_path / "free").read_text() == "new"
    assert (tmp_path / "free").stat().st_nlink == 1  # a store with two names is not opened


def test_a_name_that_somebody_takes_meanwhile_is_theirs(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(Conflict, match="exists already"):
        write_while_somebody_does(OutputFile(path, remedy=""), path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "theirs")]


def test_what_somebody_changes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("earlier")
    output = OutputFile(path, remedy="", may_replace=lambda file: file.read() == b"earlier")
    with pytest.raises(Conflict, match="exists already"):
        write_while_somebody_does(output, path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "theirs")]


def test_what_somebody_removes_meanwhile_is_written_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("earlier")
    with OutputFile(path, remedy="", may_replace=lambda _: True).open() as file:
        file.write(b"ours")
        path.unlink()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "ours")]


@pytest.mark.parametrize("name", ["-wal", ".lock", "other-wal", "base.wal", "base-wal.json", "bas"])
def test_only_a_name_made_of_that_of_a_file_belongs_to_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "base").touch()
    (tmp_path / "other").mkdir()
    check_free(tmp_path / name)
    with pytest.raises(Conflict, match="a part of the database base: name another"):
        check_free(tmp_path / "base-wal")
