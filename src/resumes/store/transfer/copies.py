"""Copying a store to another, of whatever engines, and proving that both hold the same.

The source takes no writes from the beginning on, and after a copy that ended well never again, so
that nobody writes to the wrong one (pitfalls S13). A copy that was killed leaves both marked, and
goes on when it is called again. One that failed gives the source back.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, select, text

from resumes.errors import Conflict, InvalidArgument, OutcomeUnknown, ResumesError, StoreUnavailable
from resumes.store.addresses import SqliteAddress, parse_address
from resumes.store.locks import retry
from resumes.store.schema import accounts, deleted_accounts, importers, key_directory, plans
from resumes.store.sqlite.files import check_room
from resumes.store.sqlite.store import TRUNCATE_BYTES
from resumes.store.statements import Prepared, driver, run_many
from resumes.store.store import Store
from resumes.store.transfer import marks
from resumes.store.transfer.marks import Move, read_marks, set_marks
from resumes.store.transfer.rows import (
    READERS,
    TABLES,
    WIDE,
    Key,
    Reader,
    Row,
    TableDigest,
    Told,
    check_same,
    digest_tables,
)


class Stage(StrEnum):
    """What is being done."""

    COPYING = "copying"
    PROVING = "proving"
    BACKING_UP = "backing up"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is. Rows, or bytes for a backup of a file; `total` is about right."""

    stage: Stage
    what: str
    done: int
    total: int


Watcher = Callable[[Progress], None]


def nobody(progress: Progress) -> None:
    """Watches nothing."""


class Count:
    """Counts what is handled in a stage, and tells the watcher."""

    def __init__(self, watcher: Watcher, stage: Stage, total: int) -> None:
        self._watcher = watcher
        self._stage = stage
        self._total = total
        self._done = 0

    def __call__(self, table: str, rows: int) -> None:
        """So many more rows of a table were handled."""
        self._done += rows
        self._watcher(Progress(self._stage, table, self._done, self._total))


def transfer(source: Connection, target: Store, watcher: Watcher) -> list[TableDigest]:
    """All that the connection reads is in the target, and proved to be; nobody writes to either.

    Raises Conflict when they differ.
    """
    total = sum(reader.count(source) for reader in READERS.values())
    fill(source, target, Count(watcher, Stage.COPYING, total))
    proof = Count(watcher, Stage.PROVING, 2 * total)
    ours = digest_tables(source, proof)
    with target.read() as connection:
        theirs = digest_tables(connection, proof)
    check_same(ours, theirs, target.label)
    return theirs


BATCH_ROWS: Final = 2_000
BATCH_CHARACTERS: Final = 2_000_000
"""What one transaction adds at most, but for a row that is larger than this by itself."""

DEADLINE_S: Final = 30.0
RETRY_TIMEOUT_S: Final = 20.0
"""A store that cannot be written to is tried again so long: what took an hour is not given up for a
moment."""

RETRY_DELAYS_S: Final = (0.5,)

OCCUPYING: Final = (accounts, key_directory, importers)
"""A store that has rows here is somebody's."""


def begin(target: Store, move: Move) -> None:
    """The store is marked as being filled, and holds nothing but what this move has put there.

    What an earlier one from the same place has left is removed. Raises Conflict, and changes
    nothing, for a store that holds anything else or is filled from elsewhere.
    """
    target.write(
        lambda connection: _begin(connection, move), deadline_s=DEADLINE_S, ignores_closed=True
    )


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
    target.write(
        lambda connection: set_marks(connection, filled_from="", move=""), ignores_closed=True
    )


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
            _add_with_retries(target, Batch(table.name, rows))
            told(table.name, len(rows))
        _analyze(target, table)


def _analyze(target: Store, table: Table) -> None:
    """PostgreSQL knows how the table is filled, without which it reads far too much. Where that
    cannot be done now, the server does it some time."""
    with contextlib.suppress(StoreUnavailable, OutcomeUnknown):
        target.write(
            lambda connection: _analyze_table(connection, table.name),
            deadline_s=DEADLINE_S,
            ignores_closed=True,
        )


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


def _add_with_retries(target: Store, batch: Batch) -> None:
    try:
        retry(
            lambda: add_rows(target, batch),
            timeout_s=RETRY_TIMEOUT_S,
            delays_s=RETRY_DELAYS_S,
            is_retryable=lambda error: isinstance(error, (StoreUnavailable, OutcomeUnknown)),
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


def add_rows(target: Store, batch: Batch) -> None:
    """Add the rows, unless an earlier call of unknown outcome has. Raises what `Store.write` raises."""
    target.write(
        lambda connection: _add_rows(connection, batch),
        deadline_s=DEADLINE_S,
        ignores_closed=True,
        proof=lambda connection, *_: _is_there(connection, batch),
    )


def _add_rows(connection: Connection, batch: Batch) -> None:
    if _is_there(connection, batch):
        return
    if connection.dialect.name == "postgresql":
        _copy_in(connection, batch)
    else:
        run_many(connection, _insert_of(batch.reader.table), [list(row) for row in batch.rows])


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


def check_target(source: Store, url: str) -> None:
    """There is room at the address for what the store holds, as far as that can be known.

    Known is how large a file becomes that is copied to a file: PostgreSQL keeps the same rows in
    another space, and its machine's disk is not ours to look at. Raises StoreUnavailable.
    """
    address = parse_address(url)
    if source.path is None or not isinstance(address, SqliteAddress):
        return
    if not address.path.parent.is_dir():
        return  # opening it says so
    size = source.measure()
    there_bytes = address.path.stat().st_size if address.path.exists() else 0
    missing_bytes = max(0, size.data_bytes + (size.log_bytes or 0) - there_bytes)
    # What is written passes through the new store's log, which is cut when it is so long.
    check_room(address.path.parent, missing_bytes + min(missing_bytes, TRUNCATE_BYTES))


def copy(source: Store, target: Store, *, watcher: Watcher = nobody) -> list[TableDigest]:
    """The target holds what the source holds, which is proved; what each table holds.

    Raises InvalidArgument for a store and itself; Conflict for a target that holds something else,
    for a source that is being moved elsewhere, and when both turn out to differ; and what reading
    and writing raise. After an error the source takes writes again, unless it cannot be reached.
    """
    if source.label == target.label:
        raise InvalidArgument(f"{source.label} cannot be copied to itself: name another target")
    move = marks.plan_move(source, target.label)
    begin(target, move)
    is_ending = False
    try:
        marks.depart(source, move)
        with source.read() as connection:
            digests = transfer(connection, target, watcher)
        marks.check_departed(source, move)
        is_ending = True
        finish(target)
    except OutcomeUnknown:
        # The target may turn out to be usable: the source stays closed until somebody has looked.
        if not is_ending:
            _give_back(source, move)
        raise
    except BaseException:
        if not _has_ended(target, if_unknown=is_ending):
            _give_back(source, move)
        raise
    return digests


def _give_back(source: Store, move: Move) -> None:
    with contextlib.suppress(ResumesError):
        marks.give_back(source, move.name)


def _has_ended(target: Store, *, if_unknown: bool) -> bool:
    """Whether the target can be used, by whatever copy: never may both be written to."""
    try:
        with target.read() as connection:
            return not marks.read_marks(connection).filled_from
    except ResumesError:
        return if_unknown
