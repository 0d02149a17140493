"""The store's file as others see it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.health.store_files import find_refusal, find_strays
from resumes.store import open_store

ME = [os.getpid()]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A store that this process has open."""
    path = tmp_path / "resumes.db"
    with open_store(f"sqlite:///{path}"):
        yield path


def test_a_file_that_all_have_open_is_well(path: Path) -> None:
    assert find_strays(path, ME) is None
    assert find_strays(path) is None


def test_a_file_that_was_replaced_under_a_process_is_told(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)

    finding = find_strays(path, ME)

    assert finding is not None
    assert finding.text.startswith(f"{path} was replaced while process {ME[0]} had it open")
    assert finding.remedy is not None


def test_a_file_that_was_removed_or_renamed_under_a_process_is_told(path: Path) -> None:
    path.rename(path.with_name("gone.db"))
    renamed = find_strays(path, ME)
    path.with_name("gone.db").unlink()
    removed = find_strays(path, ME)

    assert renamed is not None
    assert removed is not None
    assert removed.text.startswith(f"{path} was removed while process {ME[0]} had it open")


@pytest.mark.parametrize("pattern", ["resumes.db", "resumes.db*"])
def test_who_has_a_removed_file_open_is_found(path: Path, pattern: str) -> None:
    for one in path.parent.glob(pattern):
        one.unlink()

    finding = find_strays(path)

    assert finding is not None
    assert f"process {ME[0]} had it open" in finding.text


def test_of_a_process_that_is_gone_or_of_another_user_nothing_is_said(path: Path) -> None:
    path.unlink()

    assert find_strays(path, [2**22 + 1]) is None


def test_a_process_that_uses_another_store_is_no_stray(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.touch()

    assert find_strays(other, ME) is None


def test_a_file_that_may_be_opened_is_not_refused(path: Path) -> None:
    assert find_refusal(path) is None
    assert find_refusal(path.with_name("none.db")) is None


def test_a_file_that_may_not_be_opened_is_named_with_its_owner(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.chmod(0o000)
    # Root, as whom tests may run, is refused nothing.
    monkeypatch.setattr(os, "access", lambda one, _: one != path)

    finding = find_refusal(path)

    assert finding is not None
    assert finding.text.startswith(f"{path} of ")
    assert finding.text.endswith(" may not be opened")
    assert finding.remedy == f"chmod u+rwX {path}"
