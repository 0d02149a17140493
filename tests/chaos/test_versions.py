"""Stores of other versions than the program's."""

from pathlib import Path

import pytest

from resumes.store import migrations
from tests.chaos.campaign import Figures
from tests.system import programs, versions

COMMANDS = [
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
    fault="the store was made by a newer version",
    promise="every program refuses it with exit code 3 and one line that names the version; nothing is changed",
)
def test_a_newer_store_is_refused_by_every_program(tmp_path: Path, figures: Figures) -> None:
    """The schema's number in the file is one that does not exist yet; ten commands try it."""
    database = versions.a_newer_store(tmp_path)
    before = database.read_bytes()
    for arguments in COMMANDS:
        done = programs.run(tmp_path, *arguments)
        assert done.returncode == 3, (arguments, done.stderr)
        assert "was made by a newer version (schema 0917" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert database.read_bytes() == before
    figures["commands"] = figures["refused"] = len(COMMANDS)


@pytest.mark.chaos(
    20,
    fault="the store was made by the oldest version",
    promise="it is left alone until it is upgraded, and all is there afterwards",
)
def test_an_older_store_is_upgraded_when_asked(tmp_path: Path, figures: Figures) -> None:
    """A store of the first schema, with rows in every table that upgrades touch."""
    versions.upgrade_an_older_store(tmp_path)
    figures["upgrades"] = len(migrations.revisions()) - 1
    figures["missing"] = 0
