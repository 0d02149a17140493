"""All rows of a store: read in the order of their keys, loaded into another, and compared.

All keys are compared by their bytes on every engine, so the order is the same everywhere. Tables that
begin with an account's id come account after account. What is made from other tables (the search
index) is left out, and so is what one store alone can say: its facts, and the importers that are
running on it.
"""

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, func, select, text

from resumes.errors import Conflict
from resumes.store.closed import read_facts, set_facts
from resumes.store.schema import (
    accounts,
    deleted_accounts,
    documents,
    imported_files,
    importers,
    key_directory,
    metadata,
    plans,
    search_entries,
    search_progress,
    store_facts,
)
from resumes.store.statements import Prepared, driver, first_page, next_page

Row = tuple[Any, ...]
"""A row as drivers have it: text, whole numbers, bytes and None; booleans may be 0 and 1."""

LEFT_OUT: Final = (store_facts, importers, search_progress, search_entries)

TABLES: Final = tuple(table for table in metadata.sorted_tables if table not in LEFT_OUT)
"""What is moved, in an order in which no row refers to one that is not there yet."""

OCCUPYING: Final = (accounts, key_directory, importers)
"""A store that has rows here is somebody's."""

WIDE: Final = (documents, imported_files)
"""Tables whose rows may hold megabytes."""

PAGE_ROWS: Final = 50_000
"""Rows that one statement reads, so that none runs for long. Not few: PostgreSQL may go through a
whole table for each, if it has no statistics of it yet."""

CHUNK_ROWS: Final = 100
WIDE_CHUNK_ROWS: Final = 8
"""Rows that PostgreSQL's library keeps at once."""

BATCH_ROWS: Final = 2_000
"""Rows that one statement inserts, so that a server answers in time."""

PROGRESS_ROWS: Final = 1_000
"""Rows between two reports of progress."""


class Stage(StrEnum):
    """What is being done."""

    COPYING = "copying"
    PROVING = "proving"
    BACKING_UP = "backing up"


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How far something is. Rows, or bytes for a backup of a file; `total` is about right."""

    stage: Stage
    what: str
    done: int
    total: int


OnProgress = Callable[[CopyProgress], None]

OnRows = Callable[[str, int], None]
"""Called with a table's name, and how many of its rows were handled since the last call."""


def ignore(progress: CopyProgress) -> None:
    """Report progress to nobody."""


def _count(on_progress: OnProgress, stage: Stage, total: int) -> OnRows:
    done = 0

    def count(table: str, rows: int) -> None:
        nonlocal done
        done += rows
        on_progress(CopyProgress(stage, table, done, total))

    return count


class Reader:
    """Reads one table. Connections may be of any engine."""

    def __init__(self, table: Table) -> None:
        self.table = table
        keys = list(table.primary_key)
        self._key_at = [list(table.columns).index(key) for key in keys]
        self._first = Prepared(first_page(select(table), *keys))
        self._next = Prepared(next_page(select(table), *keys))
        self._count = Prepared(select(func.count()).select_from(table))

    def count(self, connection: Connection) -> int:
        """Return how many rows there are."""
        (count,) = self._count.run(connection).fetchone()
        return int(count)

    def iter_rows(self, connection: Connection) -> Iterator[Row]:
        """Yield all rows in the order of their keys."""
        after: Row | None = None
        while True:
            read = 0
            last: Row = ()
            for last in self._iter_page(connection, after):
                read += 1
                yield last
            if read < PAGE_ROWS:
                return
            after = tuple(last[at] for at in self._key_at)

    def _iter_page(self, connection: Connection, after: Row | None) -> Iterator[Row]:
        names = [f"after_{key.name}" for key in self.table.primary_key]
        values = dict(zip(names, after or (), strict=False)) | {"rows": PAGE_ROWS}
        statement = self._first if after is None else self._next
        sql, given = statement.bound(connection.dialect, values)
        # Row by row: a page of documents does not fit into memory.
        if connection.dialect.name == "sqlite":
            rows: Iterator[Row] = driver(connection).execute(sql, given)
            return rows
        chunk_rows = WIDE_CHUNK_ROWS if self.table in WIDE else CHUNK_ROWS
        streamed: Iterator[Row] = driver(connection).cursor().stream(sql, given, size=chunk_rows)
        return streamed


READERS: Final = {table.name: Reader(table) for table in TABLES}


@dataclass(frozen=True, slots=True)
class TableDigest:
    """What a table holds. `sha256` is hexadecimal, over all rows in the order of their keys."""

    name: str
    rows: int
    sha256: str


def digest_tables(connection: Connection, on_rows: OnRows) -> list[TableDigest]:
    """Return what each table holds, documents included: the same for two stores that hold the same."""
    return [_digest(connection, READERS[table.name], on_rows) for table in TABLES]


def _digest(connection: Connection, reader: Reader, on_rows: OnRows) -> TableDigest:
    digest = hashlib.sha256()
    count = 0
    for row in reader.iter_rows(connection):
        digest.update(encode(row))
        count += 1
        if count % PROGRESS_ROWS == 0:
            on_rows(reader.table.name, PROGRESS_ROWS)
    on_rows(reader.table.name, count % PROGRESS_ROWS)
    return TableDigest(reader.table.name, count, digest.hexdigest())


def encode(row: Row) -> bytes:
    """Return the row as bytes that no other row has: its values with their types, each ended by NUL,
    which is in none of them."""
    return "\0".join(map(_encode, row)).encode("utf-8", "surrogatepass") + b"\0\n"


def _encode(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return "=" + value
    if isinstance(value, int):
        return f"#{value:d}"  # a boolean is 0 or 1 where an engine has none
    return "x" + bytes(value).hex()


Read = Callable[[], AbstractContextManager[Connection]]
"""Opens a block to read a store by, from which errors of its driver come as a ResumesError."""


class Occupied(Conflict):
    """The target holds something already."""


def refuse_content(target: Connection) -> None:
    """Raise Occupied, naming what is there, unless the store is empty except for plans."""
    for table in OCCUPYING:
        found = target.execute(select(*table.columns).limit(1)).first()
        if found is not None:
            what = f'account "{found.name}"' if table is accounts else f"rows in {table.name}"
            raise Occupied(
                f"The target already has {what}. Choose an empty database, or a file that does not "
                "exist yet"
            )


def load(read: Read, target: Connection, label: str, on_progress: OnProgress) -> list[TableDigest]:
    """Fill an empty store with all rows of another, read both again, and return their digests.

    `target` is in a transaction, which the caller undoes after any error. `label` is its address for
    people. Nobody may write to the other store during this. Raises Conflict if both differ.
    """
    with read() as source:
        total = sum(reader.count(source) for reader in READERS.values())
        set_facts(target, store_id=read_facts(source).store_id)
    for table in (plans, deleted_accounts):
        target.execute(delete(table))
    on_rows = _count(on_progress, Stage.COPYING, total)
    for reader in READERS.values():
        # Closed immediately, also after an error: a suspended one would keep its connection locked.
        with closing(_iter_rows(read, reader)) as rows:
            while count := _insert(target, reader.table, islice(rows, BATCH_ROWS)):
                on_rows(reader.table.name, count)
        if target.dialect.name == "postgresql":
            # Without statistics it reads far too much, for foreign keys too.
            target.execute(text(f"ANALYZE {reader.table.name}"))
    on_rows = _count(on_progress, Stage.PROVING, 2 * total)
    with read() as source:
        ours = digest_tables(source, on_rows)
    theirs = digest_tables(target, on_rows)
    _check_same(ours, theirs, label)
    return theirs


def _iter_rows(read: Read, reader: Reader) -> Generator[Row, None, None]:
    with read() as source:
        yield from reader.iter_rows(source)


def _insert(target: Connection, table: Table, rows: Iterable[Row]) -> int:
    """Return how many rows there were."""
    names = ", ".join(column.name for column in table.columns)
    if target.dialect.name == "sqlite":
        marks = ", ".join("?" * len(table.columns))
        sql = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"
        return int(driver(target).executemany(sql, rows).rowcount)
    count = 0
    with driver(target).cursor().copy(f"COPY {table.name} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
            count += 1
    return count


def _check_same(ours: Sequence[TableDigest], theirs: Sequence[TableDigest], label: str) -> None:
    for one, other in zip(ours, theirs, strict=True):
        if one != other:
            raise Conflict(
                f'The copy differs in table "{one.name}": {one.rows:,} rows with digest '
                f"{one.sha256[:12]}, and {other.rows:,} with {other.sha256[:12]} in {label}. "
                "It was not kept; copy again"
            )
