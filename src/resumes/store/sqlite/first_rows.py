"""The first rows of a list, from the file alone: what a terminal UI shows until the store is open.

Importing SQLAlchemy and the tables takes longer than a reader wants to wait. The store is then opened
and checked as always, and its own answer takes the place of this one.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from resumes.store.entry import Entry
from resumes.store.sqlite.driver import dbapi

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

    None if there are none, or if they cannot be read at once for whatever reason.
    """
    try:
        if not path.is_file():
            return None  # a pipe would be waited for
        address = f"file:{quote(os.fsencode(path))}?mode=ro"
        with contextlib.closing(dbapi.connect(address, uri=True, timeout=0)) as connection:
            for account_id, name in connection.execute(_ACCOUNT, (account,)):
                found = connection.execute(_ROWS, (account_id, count)).fetchall()
                if found and all(isinstance(value or "", str) for row in found for value in row):
                    return FirstRows(str(name), [Entry._make(row) for row in found])
    except (OSError, dbapi.Error):
        return None
    return None
