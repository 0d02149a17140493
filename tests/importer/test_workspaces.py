import os
from pathlib import Path

from importer import workspaces
from importer.workspaces import LEASE


def test_a_workspace_in_use_is_not_taken_over(tmp_path: Path) -> None:
    workspace = workspaces.make(tmp_path, "a")
    assert workspace is not None
    assert workspace.is_held
    assert workspaces.take_over(workspace.path) is None
    workspace.leave()


def test_an_empty_workspace_goes_with_its_importer(tmp_path: Path) -> None:
    workspace = workspaces.make(tmp_path, "a")
    assert workspace is not None
    workspace.account_folder("f" * 16)
    workspace.leave()
    assert list(tmp_path.iterdir()) == []


def test_claims_that_are_left_are_for_the_next_importer(tmp_path: Path) -> None:
    workspace = workspaces.make(tmp_path, "a")
    assert workspace is not None
    (workspace.account_folder("f" * 16) / "claim").touch()
    workspace.leave()
    (taken,) = workspaces.iter_abandoned(tmp_path)
    assert taken.path == tmp_path / "a"
    assert [folder.name for folder in taken.account_folders()] == ["f" * 16]
    assert list(workspaces.iter_abandoned(tmp_path)) == []
    taken.leave()


def test_a_lease_that_was_tidied_away_does_not_count(tmp_path: Path) -> None:
    workspace = workspaces.make(tmp_path, "a")
    assert workspace is not None
    (workspace.path / LEASE).unlink()
    assert not workspace.is_held
    other = workspaces.take_over(workspace.path)
    assert other is not None
    workspace.leave()
    assert other.is_held
    other.leave()


def test_nothing_is_abandoned_where_nobody_was(tmp_path: Path) -> None:
    assert list(workspaces.iter_abandoned(tmp_path / "none")) == []
    (tmp_path / "stray").touch()
    assert list(workspaces.iter_abandoned(tmp_path)) == []
    assert os.listdir(tmp_path) == ["stray"]  # noqa: PTH208  (one call)
