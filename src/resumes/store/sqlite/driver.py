"""The only SQLite library in the process.

Two SQLite libraries in one process break each other's file locks: when one of them closes a store,
it drops the locks of the other, and committed rows are lost (pitfalls S1). So only this module
imports a SQLite library, which an import contract enforces. Python's own library is usually older
than 3.51.3, the first version without the WAL-reset bug (sqlite.org/changes.html).
"""

from pysqlite3 import dbapi2 as dbapi

# Without these, the driver searches for an adapter, which takes as long as running a statement.
dbapi.register_adapter(type(None), {None: None}.get)
dbapi.register_adapter(bytes, bytes)

__all__ = ["dbapi"]
