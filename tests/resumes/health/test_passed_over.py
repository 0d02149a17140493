"""Files that no importer takes."""

import os
from pathlib import Path

import pytest

from resumes.health import passed_over
from resumes.health.passed_over import UNDER_WAY_S, PassedOver, find_passed_over

NOW_S = 1_800_000_000.0


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "inbox" / "ana").mkdir(parents=True)
    return tmp_path / "inbox"


def found(inbox: Path) -> list[PassedOver]:
    return find_passed_over(inbox, now_s=lambda: NOW_S)


def reasons(inbox: Path) -> list[tuple[str, str]]:
    [one] = found(inbox)
    assert one.folder == "ana"
    return one.examples


def test_what_is_taken_is_not_named(inbox: Path) -> None:
    (inbox / "ana" / "deep").mkdir()
    for name in ("a.json", "b.NDJSON", "deep/c.json.gz"):
        (inbox / "ana" / name).touch()

    assert found(inbox) == []


def test_what_hides_or_is_the_importer_s_own_is_not_named(inbox: Path) -> None:
    for folder in ("_failed", ".work", "@eaDir"):
        (inbox / folder).mkdir()
        (inbox / folder / "a.txt").touch()
    (inbox / "ana" / ".hidden").touch()

    assert found(inbox) == []


def test_each_is_named_with_its_reason(inbox: Path) -> None:
    ana = inbox / "ana"
    (ana / "a.pdf").touch()
    (ana / "l.json").symlink_to("/etc/hosts")
    os.mkfifo(ana / "f.json")

    assert reasons(inbox) == [("a.pdf", "its ending"), ("f.json", "no file"), ("l.json", "a link")]


def test_a_folder_that_is_called_like_a_file_is_named_and_not_entered(inbox: Path) -> None:
    (inbox / "ana" / "x.json").mkdir()
    (inbox / "ana" / "x.json" / "y.txt").touch()

    assert reasons(inbox) == [("x.json", "no file")]


def test_a_temporary_name_is_named_when_nobody_can_be_writing_it_any_more(inbox: Path) -> None:
    path = inbox / "ana" / "a.json.part"
    path.touch()
    os.utime(path, (NOW_S, NOW_S - UNDER_WAY_S))
    assert found(inbox) == []

    os.utime(path, (NOW_S, NOW_S - UNDER_WAY_S - 1))

    assert reasons(inbox) == [("a.json.part", "a temporary name")]


def test_files_of_no_account_are_named(inbox: Path) -> None:
    (inbox / "a.json").touch()

    assert found(inbox) == [PassedOver("", 1, [("a.json", "in no account's folder")])]


def test_folders_are_counted_apart_with_what_lies_below(inbox: Path) -> None:
    (inbox / "zoe" / "old").mkdir(parents=True)
    for name in ("ana/1.txt", "zoe/2.txt", "zoe/old/1.txt", "zoe/old/2.txt", "zoe/old/3.txt"):
        (inbox / name).touch()

    ana, zoe = found(inbox)

    assert (ana.folder, ana.files) == ("ana", 1)
    assert (zoe.folder, zoe.files) == ("zoe", 4)
    assert [name for name, _ in zoe.examples] == ["2.txt", "old/1.txt", "old/2.txt"]


def test_a_look_has_an_end(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (inbox / "ana" / f"{number}.txt").touch()
    monkeypatch.setattr(passed_over, "MOST_NAMES", 2)

    assert [one.files for one in found(inbox)] == [2]


def test_no_link_is_followed(inbox: Path, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "a.txt").touch()
    (inbox / "ana" / "away").symlink_to(tmp_path / "away")

    assert reasons(inbox) == [("away", "a link")]
