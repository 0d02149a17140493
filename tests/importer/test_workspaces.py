import os
from pathlib import Path

import pytest

from importer import journals, workspaces
from importer.workspaces import LEASE, Workspace
from tests.importer.builders import AN_ID, a_work_claim, drop, names_below


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = workspaces.make(tmp_path, "a")
    assert workspace is not None
    return workspace


def test_a_workspace_in_use_is_not_taken_over(workspace: Workspace) -> None:
    assert workspace.is_held
    assert workspaces.take_over(workspace.path) is None
    assert workspaces.make(workspace.path.parent, "a") is None
    workspace.leave()


def test_an_empty_workspace_goes_with_its_importer(tmp_path: Path, workspace: Workspace) -> None:
    Path(workspace.account_folder(AN_ID)).mkdir()
    workspace.leave()
    assert list(tmp_path.iterdir()) == []
    assert not workspace.is_held
    workspace.leave()


def test_claims_that_are_left_are_for_the_next_importer(
    tmp_path: Path, workspace: Workspace
) -> None:
    drop(tmp_path, f"a/{AN_ID}/claim")
    workspace.leave()
    (taken,) = workspaces.iter_abandoned(tmp_path)
    assert taken.path == tmp_path / "a"
    assert list(taken.iter_claim_ids()) == [(workspace.account_folder(AN_ID), "claim")]
    assert list(workspaces.iter_abandoned(tmp_path)) == []
    taken.leave()


def test_a_journal_that_is_left_is_for_the_next_importer(
    tmp_path: Path, workspace: Workspace
) -> None:
    journal = journals.write(workspace.path, [a_work_claim(tmp_path / "a" / AN_ID)])
    workspace.leave()
    (taken,) = workspaces.iter_abandoned(tmp_path)
    assert set(names_below(taken.path)) == {LEASE, Path(journal.path).name}
    taken.leave()


def test_folders_of_accounts_alone_hold_claims(tmp_path: Path, workspace: Workspace) -> None:
    drop(tmp_path, "elsewhere/claim")
    (workspace.path / "link").symlink_to(tmp_path / "elsewhere")
    drop(workspace.path, "x.journal")
    first, second = workspace.account_folder("a" * 16), workspace.account_folder("b" * 16)
    drop(Path(first), "1")
    drop(Path(second), "2")
    assert sorted(workspace.iter_claim_ids()) == [(first, "1"), (second, "2")]
    workspace.leave()


def test_a_workspace_that_is_gone_holds_no_claims(tmp_path: Path, workspace: Workspace) -> None:
    workspace.path.rename(tmp_path / "elsewhere")
    assert list(workspace.iter_claim_ids()) == []
    assert not workspace.is_held
    workspace.leave()
    assert names_below(tmp_path) == [f"elsewhere/{LEASE}"]


def test_a_lease_that_was_tidied_away_does_not_count(workspace: Workspace) -> None:
    (workspace.path / LEASE).unlink()
    assert not workspace.is_held
    other = workspaces.take_over(workspace.path)
    assert other is not None
    workspace.leave()
    assert other.is_held
    other.leave()


def test_those_who_went_first_are_taken_over_first(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        drop(tmp_path, f"{name}/{AN_ID}/claim")
    taken = list(workspaces.iter_abandoned(tmp_path))
    assert [workspace.path.name for workspace in taken] == ["a", "b", "c"]
    for workspace in taken:
        workspace.leave()


def test_nothing_is_abandoned_where_nobody_was(tmp_path: Path) -> None:
    assert list(workspaces.iter_abandoned(tmp_path / "none")) == []
    (tmp_path / "stray").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    assert list(workspaces.iter_abandoned(tmp_path)) == []
    assert sorted(os.listdir(tmp_path)) == ["link", "stray"]  # noqa: PTH208  (one call)


def test_a_workspace_that_its_importer_tidies_away_meanwhile_is_passed_over(
    tmp_path: Path,
) -> None:
    for name in ("a", "b", "c"):
        drop(tmp_path, f"{name}/{AN_ID}/claim")
    abandoned = workspaces.iter_abandoned(tmp_path)
    taken = [next(abandoned)]
    (tmp_path / "b" / AN_ID / "claim").unlink()
    other = workspaces.take_over(tmp_path / "b")
    assert other is not None
    other.leave()
    taken += abandoned
    assert [workspace.path.name for workspace in taken] == ["a", "c"]
    for workspace in taken:
        workspace.leave()
