"""Stores that are not of the program's own version."""

from pathlib import Path

from sqlalchemy import text

from resumes.store import open_store
from resumes.store.sqlite.store import sqlite_engine


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
