"""A store of a newer version than the program's."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.campaign import Figures
from tests.support import programs, versions

COMMANDS: Final = [
    ["serve", "--port", "0"],
    ["watch", "--once"],
    ["list"],
    ["db", "upgrade"],
    ["db", "check"],
    ["db", "backup", "elsewhere.db"],
    ["accounts", "create", "ana"],
    ["keys", "list"],
    ["imports", "list"],
    ["export", "ana"],
]


@pytest.mark.chaos(
    20,
    fault="the store was created by a newer version",
    promise="server, importer and commands refuse it with exit code 3 and one line that names the version; no file of the home is changed",
)
def test_a_newer_store_is_refused_by_every_program(tmp_path: Path, figures: Figures) -> None:
    """The schema's number in the file is one that does not exist yet; ten commands try it."""
    home = tmp_path / "home"
    home.mkdir()
    versions.a_newer_store(home)
    before = contents(home)
    refused = 0
    for arguments in COMMANDS:
        done = programs.run(home, *arguments)
        assert done.returncode == 3, (arguments, done.stderr)
        assert "was created by a newer version (schema 0917" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        refused += 1
    changed = {*before.items()} ^ {*contents(home).items()}
    shutil.rmtree(home)
    figures["commands"], figures["refused"] = len(COMMANDS), refused
    figures["files_changed"] = len(changed)
    assert not changed


def contents(folder: Path) -> dict[Path, bytes]:
    """All files below the folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
