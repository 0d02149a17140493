"""The one SQLite library of a process.

Two SQLite libraries in one process break each other's file locks: closing a store in one drops the
locks of the other, and a committed row is lost (pitfalls S1). So only this module chooses the library,
which an import contract enforces. Python's own library is mostly older than 3.51.3, the first
version without the WAL-reset bug (sqlite.org/changes.html).
"""

from pysqlite3 import dbapi2 as dbapi

# Otherwise the driver searches for an adapter in vain, which takes as long as running a statement.
dbapi.register_adapter(type(None), {None: None}.get)
dbapi.register_adapter(bytes, bytes)

__all__ = ["dbapi"]
