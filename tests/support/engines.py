"""The engines that keep a store, for the tests that hold on each of them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

import psycopg
from psycopg import sql

from resumes.store import open_store
from resumes.store.schema import metadata
from tests.support import postgres
from tests.support.stores import make_store_file

SQLITE: Final = "sqlite"
NAMES: Final = (SQLITE, *(f"postgresql-{version}" for version in postgres.VERSIONS))
CONTRACT: Final = (SQLITE, NAMES[-1])
"""What the contract of a store is held against in each run; between them the other one finds little."""


class Engine(Protocol):
    """What gives a test the place of a store."""

    def a_place(self, folder: Path) -> contextlib.AbstractContextManager[str]:
        """A block with the address of a place where no store was made yet."""

    def a_store(self, folder: Path) -> contextlib.AbstractContextManager[str]:
        """A block with the address of a store that is empty, and of no one else."""


class SqliteEngine:
    """Files, copied from one that was made once."""

    @contextlib.contextmanager
    def a_place(self, folder: Path) -> Iterator[str]:
        """The file resumes.db in this folder."""
        yield f"sqlite:///{folder / 'resumes.db'}"

    @contextlib.contextmanager
    def a_store(self, folder: Path) -> Iterator[str]:
        """The file resumes.db in this folder."""
        yield make_store_file(folder / "resumes.db")


class PostgresEngine:
    """Databases of a server, copied from one that was made once.

    A store is emptied after use and given to the next test, for that takes a hundredth of what a
    copy does; one that cannot be emptied, or has other tables than before, is dropped.
    """

    def __init__(self, server: postgres.Server) -> None:
        self.server = server
        self._empty: str | None = None
        self._tables: set[str] = set()
        self._reset = sql.Composed([])
        self._idle: list[tuple[str, psycopg.Connection]] = []

    @contextlib.contextmanager
    def a_place(self, folder: Path) -> Iterator[str]:
        """A database without a table."""
        name = self.server.make_database()
        yield self.server.url(name)
        self.server.drop_database(name)

    @contextlib.contextmanager
    def a_store(self, folder: Path) -> Iterator[str]:
        """A database of its own."""
        if self._empty is None:
            self._empty = self._make_empty()
        if self._idle:
            name, connection = self._idle.pop()
        else:
            name = self.server.make_database(self._empty)
            connection = psycopg.connect(self.server.url(name), autocommit=True)
        yield self.server.url(name)
        if self._is_emptied(connection):
            self._idle.append((name, connection))
        else:
            connection.close()
            self.server.drop_database(name)

    def close(self) -> None:
        """Close the connections to databases that no test uses."""
        for _, connection in self._idle:
            connection.close()

    def _make_empty(self) -> str:
        name = self.server.make_database()
        open_store(self.server.url(name)).close()
        names = [table.name for table in metadata.sorted_tables]
        parts: list[sql.Composable] = [sql.SQL("BEGIN; SET LOCAL lock_timeout = '1s'")]
        for table in ["search_words", *reversed(names)]:
            parts.append(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        with psycopg.connect(self.server.url(name)) as connection:
            self._tables = _tables(connection)
            for table in names:
                for row in connection.execute(_SELECT.format(sql.Identifier(table))):
                    values = sql.SQL(", ").join(map(sql.Literal, row))
                    parts.append(_INSERT.format(sql.Identifier(table), values))
        self._reset = sql.SQL("; ").join([*parts, sql.SQL("COMMIT")])
        return name

    def _is_emptied(self, connection: psycopg.Connection) -> bool:
        """Whether the store is as it was when it was made."""
        try:
            if _tables(connection) != self._tables:
                return False
            connection.execute(self._reset)
        except psycopg.Error:
            return False
        return True


_SELECT: Final = sql.SQL("SELECT * FROM {}")
_INSERT: Final = sql.SQL("INSERT INTO {} VALUES ({})")


def _tables(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {str(name) for (name,) in rows}


class Engines:
    """All engines of a test run, each started when a test first asks for it."""

    def __init__(self) -> None:
        self._started: dict[str, Engine] = {}
        self._servers = contextlib.ExitStack()

    def get(self, name: str) -> Engine:
        """The engine of this name."""
        if name not in self._started:
            self._started[name] = self._start(name)
        return self._started[name]

    def _start(self, name: str) -> Engine:
        if name == SQLITE:
            return SqliteEngine()
        version = name.removeprefix("postgresql-")
        server = self._servers.enter_context(postgres.running(version))
        return self._servers.enter_context(contextlib.closing(PostgresEngine(server)))

    def close(self) -> None:
        """The servers have ended."""
        self._servers.close()
