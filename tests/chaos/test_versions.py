"""Stores of other versions than the program's."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import MetaData, select

from resumes.store import migrations
from resumes.store.sqlite.store import sqlite_engine
from tests.chaos.campaign import Figures
from tests.support import programs, versions
from tests.support.store import older_stores

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

TOUCHED: Final = ("plans", "accounts", "resumes", "documents", "idempotency", "imported_files")
"""Tables of the first schema that have rows, without which there is nothing to lose."""

Rows = Counter[tuple[object, ...]]
"""What a table holds: each row, with how often it is there."""


@pytest.mark.chaos(
    20,
    fault="the store was made by a newer version",
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
        assert "was made by a newer version (schema 0917" in done.stderr
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


@pytest.mark.chaos(
    20,
    fault="the store was made by the oldest version",
    promise="it is left alone until it is upgraded, and each row is there afterwards as it was",
)
def test_an_older_store_is_upgraded_when_asked(tmp_path: Path, figures: Figures) -> None:
    """A store of the first schema, with rows in every table that upgrades touch."""
    home, path = tmp_path / "home", tmp_path / "home" / "resumes.db"
    home.mkdir()
    older_stores.a_store_of_0001(path, tmp_path)
    tables = tables_of(path)
    before = rows_of(path, tables)
    assert "Run `resumes db upgrade`" in programs.run(home, "imports", "list").stderr
    assert rows_of(path, tables) == before
    programs.succeed(home, "db", "upgrade")
    after = rows_of(path, tables)
    shutil.rmtree(home)
    missing = sum((rows - after[name]).total() for name, rows in before.items())
    more = sum((after[name] - rows).total() for name, rows in before.items())
    figures["upgrades"] = len(migrations.revisions()) - 1
    figures["rows"] = sum(rows.total() for rows in before.values())
    figures["missing_or_changed"] = missing
    assert missing == more == 0
    assert all(before[name] for name in TOUCHED)


def tables_of(path: Path) -> MetaData:
    """The store's tables, with the columns that they have now; without that of the version."""
    engine = sqlite_engine(path, transactions=True)
    tables = MetaData()
    tables.reflect(engine, only=lambda name, _: name != "alembic_version")
    engine.dispose()
    return tables


def rows_of(path: Path, tables: MetaData) -> dict[str, Rows]:
    """What the store holds in these tables' columns."""
    engine = sqlite_engine(path, transactions=True)
    with engine.connect() as connection:
        found = {
            table.name: Rows(map(tuple, connection.execute(select(table))))
            for table in tables.sorted_tables
        }
    engine.dispose()
    return found
