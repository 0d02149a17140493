"""The one SQLite library of a process.

Two SQLite libraries in one process undo each other's file locks: closing a store in one drops
the locks of the other, and a committed row is gone (pitfalls S1). So this module alone chooses,
everything else takes the choice from here, and an import contract holds that. Python's own library is
mostly older than 3.51.3, the first one without the WAL-reset bug (sqlite.org/changes.html).
"""

from pysqlite3 import dbapi2 as dbapi

__all__ = ["dbapi"]
