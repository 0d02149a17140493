"""What a store holds, table by table, read in the order of its keys.

All keys are compared by their bytes on every engine, so the order is the same everywhere: the last
key that a store holds says how far it was filled. Tables that begin with an account's id come account
after account. What is made from other tables (the search index) is left out, and so is what one store
alone can say: its facts, and the importers that are running on it.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Table, desc, func, select

from resumes.errors import Conflict
from resumes.store.schema import (
    documents,
    imported_files,
    importers,
    metadata,
    search_entries,
    search_progress,
    store_facts,
)
from resumes.store.statements import Prepared, driver, first_page, next_page

Row = tuple[Any, ...]
"""A row as drivers have it: text, whole numbers, bytes and None; booleans may be 0 and 1."""

Key = tuple[Any, ...]

Told = Callable[[str, int], None]
"""Is told a table's name, and how many of its rows were handled since the last time."""

LEFT_OUT: Final = (store_facts, importers, search_progress, search_entries)

TABLES: Final = tuple(table for table in metadata.sorted_tables if table not in LEFT_OUT)
"""What is moved, in an order in which no row refers to one that is not there yet."""

WIDE: Final = (documents, imported_files)
"""Tables whose rows may hold megabytes."""

PAGE_ROWS: Final = 50_000
"""Rows that one statement reads, so that none runs for long. Not few: PostgreSQL may go through a
whole table for each, if it has no statistics of it yet."""

CHUNK_ROWS: Final = 100
WIDE_CHUNK_ROWS: Final = 8
"""Rows that PostgreSQL's library keeps at once."""


class Reader:
    """Reads one table. Connections may be of any engine."""

    def __init__(self, table: Table) -> None:
        self.table = table
        keys = list(table.primary_key)
        self._key_at = [list(table.columns).index(key) for key in keys]
        self._first = first_page(select(table), *keys)
        self._next = next_page(select(table), *keys)
        self._last_key = Prepared(select(*keys).order_by(*map(desc, keys)).limit(1))
        self._count = Prepared(select(func.count()).select_from(table))

    def key_of(self, row: Row) -> Key:
        """The row's primary key."""
        return tuple(row[at] for at in self._key_at)

    def find_last_key(self, connection: Connection) -> Key | None:
        """The key of the last row; None for an empty table."""
        row = self._last_key.run(connection).fetchone()
        return None if row is None else tuple(row)

    def count(self, connection: Connection) -> int:
        """How many rows there are."""
        (count,) = self._count.run(connection).fetchone()
        return int(count)

    def iter_rows(self, connection: Connection, *, after: Key | None = None) -> Iterator[Row]:
        """The rows after the key, all of them without one, in the order of keys."""
        while True:
            read = 0
            last: Row = ()
            for last in self._iter_page(connection, after):
                read += 1
                yield last
            if read < PAGE_ROWS:
                return
            after = self.key_of(last)

    def _iter_page(self, connection: Connection, after: Key | None) -> Iterator[Row]:
        statement = self._first if after is None else self._next
        compiled: Any = statement.compile(dialect=connection.dialect)
        values: dict[str, Any] = dict(compiled.params) | {"rows": PAGE_ROWS}
        if after is not None:
            names = (f"after_{key.name}" for key in self.table.primary_key)
            values |= dict(zip(names, after, strict=True))
        given = [values[name] for name in compiled.positiontup]
        return self._run(connection, str(compiled), given)

    def _run(self, connection: Connection, sql: str, values: list[Any]) -> Iterator[Row]:
        """The rows as they come: a page of documents does not fit into memory."""
        if connection.dialect.name == "sqlite":
            rows: Iterator[Row] = driver(connection).execute(sql, values)
            return rows
        from psycopg import capabilities

        chunk_rows = WIDE_CHUNK_ROWS if self.table in WIDE else CHUNK_ROWS
        if not capabilities.has_stream_chunked():
            chunk_rows = 1
        streamed: Iterator[Row] = driver(connection).cursor().stream(sql, values, size=chunk_rows)
        return streamed


READERS: Final = {table.name: Reader(table) for table in TABLES}
"""How each table is read, by its name."""


TELL_ROWS: Final = 1_000
"""After so many rows it is said how many there were."""


@dataclass(frozen=True, slots=True)
class TableDigest:
    """What a table holds. `sha256` is hexadecimal, over all rows in the order of their keys."""

    name: str
    rows: int
    sha256: str


def digest_tables(connection: Connection, told: Told) -> list[TableDigest]:
    """What each table holds, documents included; two stores that hold the same give the same."""
    return [_digest(connection, READERS[table.name], told) for table in TABLES]


def _digest(connection: Connection, reader: Reader, told: Told) -> TableDigest:
    digest = hashlib.sha256()
    count = untold = 0
    for row in reader.iter_rows(connection):
        digest.update(encode(row))
        count += 1
        untold += 1
        if untold == TELL_ROWS:
            told(reader.table.name, untold)
            untold = 0
    told(reader.table.name, untold)
    return TableDigest(reader.table.name, count, digest.hexdigest())


def encode(row: Row) -> bytes:
    """The row as bytes that no other row has: its values with their kinds, ended by NUL, which
    stands in none of them."""
    return "\0".join(map(_encode, row)).encode("utf-8", "surrogatepass") + b"\0\n"


def _encode(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return "=" + value
    if isinstance(value, int):
        return f"#{value:d}"  # a boolean is 0 or 1 where an engine has none
    return "x" + bytes(value).hex()


def check_same(ours: Sequence[TableDigest], theirs: Sequence[TableDigest], label: str) -> None:
    """Both hold the same. Raises Conflict, which names the first table that differs."""
    for one, other in zip(ours, theirs, strict=True):
        if one != other:
            raise Conflict(
                f'The copy differs in table "{one.name}": {one.rows:,} rows with digest '
                f"{one.sha256[:12]}, and {other.rows:,} with {other.sha256[:12]} in {label}. "
                "It must not be used; copy again"
            )
