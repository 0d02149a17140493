"""Stores that are not of the program's own version."""

from pathlib import Path

from sqlalchemy import text

from resumes.store import migrations, open_store
from resumes.store.import_ledger import list_files
from resumes.store.sqlite.store import sqlite_engine
from tests.support import programs
from tests.support.store import older_stores


def an_empty_store(home: Path) -> Path:
    """A database file that has nothing in it yet."""
    path = home / "resumes.db"
    path.touch(mode=0o600)
    (home / "inbox").mkdir()
    return path


def a_newer_store(home: Path) -> Path:
    """A database file of a version that does not exist yet."""
    path = an_empty_store(home)
    with open_store(f"sqlite:///{path}"):
        pass
    with sqlite_engine(path, transactions=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0917'"))
    return path


def upgrade_an_older_store(home: Path) -> None:
    """An older store is left alone until it is upgraded, and all is there afterwards."""
    older_stores.a_store_of_0001(home / "resumes.db", home)
    assert "Run `resumes db upgrade`" in programs.run(home, "imports", "list").stderr
    programs.succeed(home, "db", "upgrade")
    with open_store(f"sqlite:///{home / 'resumes.db'}", upgrade=False) as store:
        assert [file.outcome for file in list_files(store)] == ["held", "failed", "done"]
    assert (home / f"resumes.db.before-{migrations.revisions()[-1]}").is_file()
