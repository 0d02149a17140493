"""Folders that the importer cannot empty."""

import os
from pathlib import Path

import pytest

from resumes.health.findings import Finding, State
from resumes.health.inboxes import iter_inbox_findings
from resumes.health.installation import Installation, installation_of
from resumes.health.permissions import remedy_for
from resumes.settings import Settings
from resumes.store import Store


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


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("$(reboot)", "Rename the folder: accounts have names of a-z"),
        ("Zoe", "Rename the folder: accounts have names of a-z"),
        ("Acme", 'Rename the folder to "acme", or move its files there'),
    ],
)
def test_a_name_that_no_account_can_have_is_to_be_changed(
    installation: Installation, inbox: Path, name: str, remedy: str
) -> None:
    (inbox / name).mkdir()

    [finding] = found(installation, inbox)

    assert finding.command is None
    assert (finding.remedy or "").startswith(remedy)


def test_the_command_for_a_folder_leads_to_the_installation(
    settings: Settings, store: Store, inbox: Path
) -> None:
    (inbox / "bob").mkdir()

    [finding] = found(installation_of(store, settings, "resumes --home moved"), inbox)

    assert finding.remedy == "resumes --home moved accounts create bob, or rename the folder"


def test_files_that_nobody_takes_are_named_for_each_folder(
    installation: Installation, inbox: Path
) -> None:
    (inbox / "acme").mkdir()
    (inbox / "acme" / "cv.json").touch()
    for name in ("a.pdf", "b.txt", "c", "d"):
        (inbox / "acme" / name).touch()
    (inbox / "x\x1b.txt").touch()

    well, *notices = found(installation, inbox)

    assert well.state is State.WELL
    assert [(one.state, one.text) for one in notices] == [
        (State.NOTICE, f'no importer takes 1 file in {inbox}: "x\\x1b.txt" (its ending)'),
        (
            State.NOTICE,
            f'no importer takes 4 files in {inbox}/acme: "a.pdf" (its ending), '
            '"b.txt" (its ending), "c" (its ending), and 1 more',
        ),
    ]
    assert notices[0].about != notices[1].about


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
    assert finding.remedy == remedy_for(inbox)
