"""The first rows of a list, from the file alone: what a terminal UI shows until the store is open.

Importing SQLAlchemy and the tables takes longer than a reader wants to wait. The store is then opened
and checked as always, and its own answer takes the place of this one.
"""

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from resumes.errors import ResumesError
from resumes.store.entry import Entry
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.place import APPLICATION_ID, check_place, refuse_second_name

TIMEOUT_S: Final = 0.2
"""How long reading may take: a file that somebody else made may be one without end."""

STEPS: Final = 1_000
"""SQLite's own steps between two looks at the clock."""

_ACCOUNT: Final = """
    SELECT id, name FROM accounts JOIN account_usage ON account_id = id
    WHERE closed_at IS NULL AND name = coalesce(?, name)
    ORDER BY resume_count = 0, name LIMIT 1
"""
_ROWS: Final = """
    SELECT id, title, name, filename, created_at, updated_at FROM resumes
    WHERE account_id = ? ORDER BY id LIMIT ?
"""


class FirstRows(NamedTuple):
    """The name of an account, and its oldest resumes."""

    account: str
    rows: Sequence[Entry]


def read_first_rows(path: Path, account: str | None, count: int) -> FirstRows | None:
    """Return at most `count` rows of this account, or of the first one that holds resumes.

    None if there are none, or if they cannot be read at once for whatever reason: whoever opens the
    store says why.
    """
    try:
        check_place(path)
        refuse_second_name(path)
        address = f"file:{quote(os.fsencode(path))}?mode=ro"
        with contextlib.closing(dbapi.connect(address, uri=True, timeout=0)) as connection:
            return _read(connection, account, count)
    except (ResumesError, OSError, ValueError, dbapi.Error):
        return None


def _read(connection: Any, account: str | None, count: int) -> FirstRows | None:
    ends_at = time.monotonic() + TIMEOUT_S
    connection.set_progress_handler(lambda: time.monotonic() > ends_at, STEPS)
    # Of a file that somebody else made, nothing in the schema is run.
    connection.execute("PRAGMA trusted_schema=OFF")
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        return None
    for account_id, name in connection.execute(_ACCOUNT, (account,)).fetchall():
        entries = [Entry._make(row) for row in connection.execute(_ROWS, (account_id, count))]
        if entries and isinstance(name, str) and all(map(_is_text, entries)):
            return FirstRows(name, entries)
    return None


def _is_text(entry: Entry) -> bool:
    """Whether all is text that has to be, which SQLite does not promise of a damaged file."""
    texts = (entry.id, entry.filename, entry.created_at, entry.updated_at)
    return all(isinstance(text, str) for text in texts) and all(
        isinstance(text, str | None) for text in (entry.title, entry.name)
    )
