"""Filling an empty store with the rows of another, in batches that are there whole or not at all.

Rows come in the order of their keys, so the last key of each table says where to go on: a filling
that was killed is continued by beginning it again.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, select, text

from resumes.errors import Conflict, OutcomeUnknown, StoreUnavailable
from resumes.store.engine import Store, each
from resumes.store.moving.marking import Move, read_marks, set_marks
from resumes.store.moving.tables import READERS, TABLES, WIDE, Key, Reader, Row, Told
from resumes.store.patience import keep_trying
from resumes.store.schema import accounts, deleted_accounts, importers, key_directory, plans
from resumes.store.statements import Prepared, driver, run_many
from resumes.store.transit import allowed_in_transit
from resumes.store.writes import proved_by

BATCH_ROWS: Final = 2_000
BATCH_CHARACTERS: Final = 2_000_000
"""What one transaction adds at most, but for a row that is larger than this by itself."""

DEADLINE_S: Final = 30.0
PATIENCE_S: Final = 20.0
"""A store that cannot be written to is tried again so long: what took an hour is not given up for a
moment."""

PAUSES_S: Final = (0.5,)

OCCUPYING: Final = (accounts, key_directory, importers)
"""A store that has rows here is somebody's."""


def begin(target: Store, move: Move) -> None:
    """The store is marked as being filled, and holds nothing but what this move has put there.

    What an earlier one from the same place has left is removed. Raises Conflict, and changes
    nothing, for a store that holds anything else or is filled from elsewhere.
    """
    target.write(_begin, move, deadline_s=DEADLINE_S)


@allowed_in_transit
@each
def _begin(connection: Connection, move: Move) -> None:
    marks = read_marks(connection)
    if marks.moving_to:
        raise Conflict(f"The target is itself being moved to {marks.moving_to}. Name another one")
    if not marks.filled_from:
        _refuse_content(connection)
        for table in (plans, deleted_accounts):
            connection.execute(delete(table))
    elif marks.filled_from != move.source:
        raise Conflict(
            f"The target is still being filled from {marks.filled_from}. Let that end, or name "
            "another one"
        )
    elif marks.move != move.name:
        _empty(connection)
    set_marks(connection, filled_from=move.source, move=move.name, store_id=move.store_id)


def _refuse_content(connection: Connection) -> None:
    for table in OCCUPYING:
        found = connection.execute(select(*table.columns).limit(1)).first()
        if found is not None:
            what = f'account "{found.name}"' if table is accounts else f"rows in {table.name}"
            raise Conflict(
                f"The target holds {what} already. Name an empty database, or a file that is not "
                "there yet"
            )


def _empty(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        names = ", ".join(table.name for table in TABLES)
        connection.execute(text(f"TRUNCATE {names} CASCADE"))
    else:
        for table in reversed(TABLES):
            connection.execute(delete(table))


def finish(target: Store) -> None:
    """The store is like any other."""
    target.write(_finish, None)


@allowed_in_transit
@each
def _finish(connection: Connection, _: None) -> None:
    set_marks(connection, filled_from="", move="")


def fill(source: Connection, target: Store, told: Told) -> None:
    """The store holds all rows that the connection reads; what it held of them is not read again.

    Raises what `Store.write` raises; called again, it goes on.
    """
    for table in TABLES:
        reader = READERS[table.name]
        with target.read() as connection:
            after = reader.find_last_key(connection)
            told(table.name, 0 if after is None else reader.count(connection))
        for rows in batches(table, reader.iter_rows(source, after=after)):
            _add_patiently(target, Batch(table.name, rows))
            told(table.name, len(rows))
        _analyze(target, table)


def _analyze(target: Store, table: Table) -> None:
    """PostgreSQL knows how the table is filled, without which it reads far too much. Where that
    cannot be done now, the server does it some time."""
    with contextlib.suppress(StoreUnavailable, OutcomeUnknown):
        target.write(_analyze_table, table.name, deadline_s=DEADLINE_S)


@allowed_in_transit
@each
def _analyze_table(connection: Connection, table: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"ANALYZE {table}"))


def batches(table: Table, rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows, some at a time, so that neither memory nor a transaction grows with the table."""
    batch: list[Row] = []
    characters = 0
    for row in rows:
        batch.append(row)
        if table in WIDE:
            characters += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if len(batch) == BATCH_ROWS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


class Batch(NamedTuple):
    """Rows that come next in a table."""

    table: str
    rows: list[Row]

    @property
    def reader(self) -> Reader:
        """How the table is read."""
        return READERS[self.table]

    @property
    def last_key(self) -> Key:
        """It is there when all of the batch is."""
        return self.reader.key_of(self.rows[-1])


def _add_patiently(target: Store, batch: Batch) -> None:
    try:
        keep_trying(
            lambda: target.write(add_rows, batch, deadline_s=DEADLINE_S),
            within_s=PATIENCE_S,
            pauses_s=PAUSES_S,
            is_passing=lambda error: isinstance(error, (StoreUnavailable, OutcomeUnknown)),
        )
    except (StoreUnavailable, OutcomeUnknown) as error:
        # Two stores are in use: which of them it was has to be said. Rows of which nobody knows
        # whether they are there are looked for when it goes on.
        why = (
            "Its disk or server fails: see to that, then do it again"
            if isinstance(error, OutcomeUnknown)
            else error.message
        )
        raise StoreUnavailable(f"{target.label} was not filled to the end. {why}") from error


def _were_added(connection: Connection, requests: Iterable[Batch], _: Any) -> bool:
    return all(_is_there(connection, batch) for batch in requests)


@proved_by(_were_added)
@allowed_in_transit
def add_rows(connection: Connection, requests: Iterable[Batch]) -> list[None]:
    """The rows are there, by this call or an earlier one that nobody knew the outcome of."""
    for batch in requests:
        if _is_there(connection, batch):
            continue
        if connection.dialect.name == "postgresql":
            _copy_in(connection, batch)
        else:
            run_many(connection, _insert_of(batch.reader.table), [list(row) for row in batch.rows])
    return [None for _ in requests]


def _is_there(connection: Connection, batch: Batch) -> bool:
    return _FINDERS[batch.table].run(
        connection,
        **dict(zip((key.name for key in batch.reader.table.primary_key), batch.last_key, strict=True)),
    ).fetchone() is not None  # fmt: skip


def _finder(table: Table) -> Prepared:
    keys = list(table.primary_key)
    return Prepared(select(*keys).where(*(key == bindparam(key.name) for key in keys)))


_FINDERS: Final = {table.name: _finder(table) for table in TABLES}


def _insert_of(table: Table) -> str:
    names = [column.name for column in table.columns]
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _copy_in(connection: Connection, batch: Batch) -> None:
    names = ", ".join(column.name for column in batch.reader.table.columns)
    with driver(connection).cursor().copy(f"COPY {batch.table} ({names}) FROM STDIN") as copy:
        for row in batch.rows:
            copy.write_row(row)
