"""The first rows of a list, read directly from the file; the terminal UI shows them at first.

Importing SQLAlchemy and the tables takes longer than users want to wait. Meanwhile, the store is
opened and checked as usual; then its rows replace these.
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
"""How long reading may take. In a file of another program, a query might run forever."""

STEPS: Final = 1_000
"""The number of SQLite instructions between two checks of the clock."""

_ACCOUNT: Final = """
    SELECT id, name FROM accounts JOIN account_usage ON account_id = id
    WHERE closed_at IS NULL AND name = coalesce(?, name)
    ORDER BY resume_count = 0, name LIMIT 1
"""
_ROWS: Final = f"""
    SELECT {", ".join(Entry._fields)} FROM resumes
    WHERE account_id = ? ORDER BY id LIMIT ?
"""


class FirstRows(NamedTuple):
    """The name of an account and its oldest resumes."""

    account: str
    rows: Sequence[Entry]


def read_first_rows(path: Path, account: str | None, count: int) -> FirstRows | None:
    """Return at most `count` rows of this account, or of the first account with resumes.

    Return None if there are no rows or they cannot be read immediately; opening the store will
    raise the error.
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
    # The file may belong to another program, so no code in its schema may run.
    connection.execute("PRAGMA trusted_schema=OFF")
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        return None
    for account_id, name in connection.execute(_ACCOUNT, (account,)).fetchall():
        entries = [Entry._make(row) for row in connection.execute(_ROWS, (account_id, count))]
        if entries and isinstance(name, str) and all(map(_is_text, entries)):
            return FirstRows(name, entries)
    return None


def _is_text(entry: Entry) -> bool:
    """Return whether all text fields contain text; in a damaged file, they may not."""
    required = (entry.id, entry.filename, entry.created_at, entry.updated_at)
    return None not in required and all(isinstance(value, str | None) for value in entry)
