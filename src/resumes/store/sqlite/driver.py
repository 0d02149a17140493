"""The one SQLite library of a process.

Two SQLite libraries in one process undo each other's file locks: closing a store in one drops
the locks of the other, and a committed row is gone (pitfalls S1). So this module alone chooses,
everything else takes the choice from here, and an import contract holds that.
"""

import importlib
import logging
from types import ModuleType

logger = logging.getLogger("resumes.store")

WAL_RESET_FIXED = (3, 51, 3)
"""The first SQLite without the WAL-reset corruption bug (sqlite.org/changes.html)."""


def _choose() -> ModuleType:
    try:
        return importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        module = importlib.import_module("sqlite3.dbapi2")
    if module.sqlite_version_info < WAL_RESET_FIXED:
        logger.warning(
            "pysqlite3 is not installed; using the system's SQLite %s, which has the WAL-reset "
            "bug. Install pysqlite3 0.6.1 or newer.",
            module.sqlite_version,
        )
    return module


dbapi = _choose()
"""The DB-API module. Its `sqlite_version` says which SQLite is used."""
