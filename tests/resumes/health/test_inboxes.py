"""Folders that the importer cannot empty."""

import os
from pathlib import Path

import pytest

from resumes.health.findings import Finding
from resumes.health.inboxes import iter_inbox_findings
from resumes.health.installation import Installation


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return inbox


def found(installation: Installation, inbox: Path) -> list[Finding]:
    return list(iter_inbox_findings(installation, inbox, {"acme"}))


def test_an_inbox_may_be_missing(installation: Installation, tmp_path: Path) -> None:
    [finding] = found(installation, tmp_path / "none")

    assert finding.text.endswith("not there yet; `resumes up` makes it")
    assert finding.remedy is None


def test_folders_of_accounts_and_of_the_importer_are_well(
    installation: Installation, inbox: Path
) -> None:
    for name in ("acme", "_failed", ".work"):
        (inbox / name).mkdir()

    assert [one.remedy for one in found(installation, inbox)] == [None]


def test_folders_without_an_account_are_named(installation: Installation, inbox: Path) -> None:
    (inbox / "acmee").mkdir()

    [finding] = found(installation, inbox)

    assert finding.text == 'the folder "acmee" names no account, so its files wait'
    assert finding.command == "resumes accounts create acmee"


def test_a_name_that_no_account_can_have_has_no_command(
    installation: Installation, inbox: Path
) -> None:
    (inbox / "$(reboot)").mkdir()

    [finding] = found(installation, inbox)

    assert finding.command is None


def test_folders_that_cannot_be_written_are_named(
    installation: Installation, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path != inbox)

    [finding] = found(installation, inbox)

    assert finding.text == f"{inbox} cannot be written"


def test_an_inbox_that_cannot_be_read_is_named(
    installation: Installation, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)

    [finding] = found(installation, inbox)

    assert finding.text == f"{inbox} cannot be read: Permission denied"
    assert finding.remedy == f"chown it to user {os.getuid()}"
