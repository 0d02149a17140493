"""The engines that keep a store, for the tests that hold on each of them."""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import sqlalchemy
from sqlalchemy import NullPool, Row, Table, delete, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError

from resumes.store import open_store
from resumes.store.schema import metadata
from tests import postgres

SQLITE: Final = "sqlite"
NAMES: Final = (SQLITE, *(f"postgresql-{version}" for version in postgres.VERSIONS))


class Engine(Protocol):
    """What gives a test the place of a store."""

    def a_place(self, folder: Path) -> contextlib.AbstractContextManager[str]:
        """A block with the address of a place where no store was made yet."""

    def a_store(self, folder: Path) -> contextlib.AbstractContextManager[str]:
        """A block with the address of a store that is empty, and of no one else."""


class SqliteEngine:
    """Files, copied from one that was made once: that is faster than making them."""

    def __init__(self, folder: Path) -> None:
        self._empty = folder / "resumes.db"

    @contextlib.contextmanager
    def a_place(self, folder: Path) -> Iterator[str]:
        """The file resumes.db in this folder."""
        yield f"sqlite:///{folder / 'resumes.db'}"

    @contextlib.contextmanager
    def a_store(self, folder: Path) -> Iterator[str]:
        """The file resumes.db in this folder."""
        if not self._empty.exists():
            open_store(f"sqlite:///{self._empty}").close()
        shutil.copy(self._empty, folder / "resumes.db")
        with self.a_place(folder) as url:
            yield url


class PostgresEngine:
    """Databases of a server, copied from one that was made once.

    A store is emptied after use and given to the next test, for that takes a hundredth of what a
    copy does; one that cannot be emptied, or has other tables than before, is dropped.
    """

    def __init__(self, server: postgres.Server) -> None:
        self._server = server
        self._empty: str | None = None
        self._first_rows: dict[Table, Sequence[Row[Any]]] = {}
        self._tables: set[str] = set()
        self._idle: list[str] = []

    @contextlib.contextmanager
    def a_place(self, folder: Path) -> Iterator[str]:
        """A database without a table."""
        name = self._server.make_database()
        yield self._server.url(name)
        self._server.drop_database(name)

    @contextlib.contextmanager
    def a_store(self, folder: Path) -> Iterator[str]:
        """A database of its own."""
        if self._empty is None:
            self._empty = self._make_empty()
        name = self._idle.pop() if self._idle else self._server.make_database(self._empty)
        yield self._server.url(name)
        if self._is_emptied(name):
            self._idle.append(name)
        else:
            self._server.drop_database(name)

    def _make_empty(self) -> str:
        name = self._server.make_database()
        open_store(self._server.url(name)).close()
        with self._engine(name).connect() as connection:
            self._tables = set(inspect(connection).get_table_names())
            for table in metadata.sorted_tables:
                self._first_rows[table] = connection.execute(select(table)).all()
        return name

    def _is_emptied(self, name: str) -> bool:
        """Whether the store is as it was when it was made."""
        try:
            with self._engine(name).begin() as connection:
                connection.execute(text("SET LOCAL lock_timeout = '1s'"))
                if set(inspect(connection).get_table_names()) != self._tables:
                    return False
                connection.execute(text("DELETE FROM search_pieces"))
                for table in reversed(metadata.sorted_tables):
                    connection.execute(delete(table))
                for table, rows in self._first_rows.items():
                    if rows:
                        connection.execute(insert(table), [dict(row._mapping) for row in rows])
        except DBAPIError:
            return False
        return True

    def _engine(self, name: str) -> sqlalchemy.Engine:
        url = self._server.url(name).replace("postgresql://", "postgresql+psycopg://")
        return sqlalchemy.create_engine(url, poolclass=NullPool)


class Engines:
    """All engines of a test run, each started when a test first asks for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: dict[str, Engine] = {}
        self._servers = contextlib.ExitStack()

    def get(self, name: str) -> Engine:
        """The engine of this name."""
        if name not in self._started:
            self._started[name] = self._start(name)
        return self._started[name]

    def _start(self, name: str) -> Engine:
        if name == SQLITE:
            return SqliteEngine(self._folder)
        version = name.removeprefix("postgresql-")
        return PostgresEngine(self._servers.enter_context(postgres.running(version)))

    def close(self) -> None:
        """The servers have ended."""
        self._servers.close()
