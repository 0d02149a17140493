"""Copying a store to a store of any engine. A copy exists only if it is complete and verified.

The source rejects writes from the beginning of the copy, and permanently after a successful copy,
so that no client writes to the wrong store (pitfalls S13). If the copy fails, it reopens the
source. If it is killed, the source stays closed, and the copy must be started again.

Rows are read in the order of their keys. Every engine compares keys byte by byte, so the order is
the same everywhere. The search index, which is derived from other tables, is not copied. Neither
are the store's facts and its list of importers, which describe only one store.
"""

import contextlib
import hashlib
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Select, Table, delete, func, insert, select, text

from resumes.errors import Conflict, InvalidArgument, ResumesError
from resumes.output_files import place
from resumes.store import open_store
from resumes.store.addresses import PostgresAddress, parse_address
from resumes.store.row_bounds import iter_checked
from resumes.store.schema import (
    accounts,
    deleted_accounts,
    documents,
    imported_files,
    importers,
    metadata,
    plans,
    search_entries,
    search_progress,
    store_facts,
)
from resumes.store.sqlite.files import (
    check_room,
    examine,
    exchange,
    exclude_others,
    refuse_stray_logs,
    scratch_in,
    transaction_in,
)
from resumes.store.sqlite.place import check_place
from resumes.store.statements import Prepared, driver, iter_in_pages
from resumes.store.store import (
    Row,
    Store,
    check_closed,
    close_store,
    read_fact,
    reopen_store,
    session_on,
    set_facts,
)

LEFT_OUT: Final = (store_facts, importers, search_progress, search_entries)

TABLES: Final = tuple(table for table in metadata.sorted_tables if table not in LEFT_OUT)
"""The tables to copy, in an order in which rows refer only to rows that already exist."""

Selection = Mapping[Table, Select[Any]]
"""A query by table, with all columns in order, for the rows of all accounts or of one account."""

WHOLE: Final[Selection] = {table: select(table) for table in TABLES}

WIDE: Final = (documents, imported_files)
"""Tables whose rows may contain megabytes."""

PAGE_ROWS: Final = 50_000
"""How many rows one statement reads, so that no statement runs for long. Smaller pages would be
slow, because PostgreSQL may scan the entire table for each statement if it lacks statistics."""

CHUNK_ROWS: Final = 100
WIDE_CHUNK_ROWS: Final = 8
"""How many rows the PostgreSQL library keeps in memory."""

BATCH_ROWS: Final = 2_000
"""How many rows one statement inserts, so that a server finishes it within its time limit."""

PROGRESS_ROWS: Final = 1_000
"""The number of rows between two reports of progress."""


class Stage(StrEnum):
    """The current stage of an operation."""

    COPYING = "copying"
    PROVING = "proving"
    BACKING_UP = "backing up"
    CHECKING = "checking"


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """The progress of a stage in rows, or in bytes for a file's backup; `total` is approximate."""

    stage: Stage
    what: str
    done: int
    total: int


OnProgress = Callable[[CopyProgress], None]

OnRows = Callable[[str, int], None]
"""Called with a table's name and the number of rows that were processed since the last call."""


def ignore(progress: CopyProgress) -> None:
    """Ignore the progress."""


def count_progress(on_progress: OnProgress, stage: Stage, total: int) -> OnRows:
    """Return a function that reports the progress of a stage with `total` rows."""
    done = 0

    def count(table: str, rows: int) -> None:
        nonlocal done
        done += rows
        on_progress(CopyProgress(stage, table, done, total))

    return count


def count_rows(connection: Connection, table: Table, selection: Selection = WHOLE) -> int:
    """Return the number of selected rows of the table."""
    count = selection[table].with_only_columns(func.count(), maintain_column_froms=True)
    return int(connection.execute(count).scalar_one())


def iter_rows(
    connection: Connection,
    table: Table,
    selection: Selection = WHOLE,
    *,
    foreign: str | None = None,
) -> Iterator[Row]:
    """Iterate over the selected rows of the table, with the driver's values, in the order of keys.

    If the store may be foreign, `foreign` is its address for messages; raises StoreIncompatible for
    a row that this service could not have written.
    """
    is_whole = selection is WHOLE  # one account's rows all have the same first key column
    keys = [key for key in table.primary_key if is_whole or key.name != "account_id"]
    chunk_rows = WIDE_CHUNK_ROWS if table in WIDE else CHUNK_ROWS

    def run(page: Select[Any], **values: Any) -> Iterable[Row]:
        bound = Prepared(page).bound(connection.dialect, values)
        # Fetch row by row, because a page of documents would not fit into memory.
        if connection.dialect.name == "sqlite":
            rows = driver(connection).execute(*bound)
        else:
            rows = driver(connection).cursor().stream(*bound, size=chunk_rows)
        return iter_checked(table, rows, foreign) if foreign else rows

    return iter_in_pages(run, selection[table], keys, page_rows=PAGE_ROWS)


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The digest of a table: `sha256` is hexadecimal, and covers all rows in the order of keys."""

    name: str
    rows: int
    sha256: str


def digest_tables(
    connection: Connection,
    on_rows: OnRows = lambda table, rows: None,
    selection: Selection = WHOLE,
    *,
    foreign: str | None = None,
) -> list[TableDigest]:
    """Return the digest of each table. Two stores with the same rows have the same digests.

    `foreign` has the same meaning as in `iter_rows`.
    """
    digests = []
    for table in selection:
        digest, count = hashlib.sha256(), 0
        for row in iter_rows(connection, table, selection, foreign=foreign):
            digest.update(encode(row))
            count += 1
            if count % PROGRESS_ROWS == 0:
                on_rows(table.name, PROGRESS_ROWS)
        on_rows(table.name, count % PROGRESS_ROWS)
        digests.append(TableDigest(table.name, count, digest.hexdigest()))
    return digests


def encode(row: Row) -> bytes:
    """Return the row as unambiguous bytes: its values with their types, each followed by NUL.

    No value contains NUL.
    """
    return "\0".join(map(_encode, row)).encode("utf-8", "surrogatepass") + b"\0\n"


def _encode(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return "=" + value
    if isinstance(value, int):
        return f"#{value:d}"  # booleans as 0 or 1, since SQLite has only integers
    return "x" + bytes(value).hex()


Read = Callable[[], AbstractContextManager[Connection]]
"""Returns a context manager for reading a store, in which driver errors become ResumesErrors."""


class Occupied(Conflict):
    """The target is not empty."""


def refuse_content(target: Connection) -> None:
    """Raise Occupied if the store has more than plans; the message names what it has."""
    for table in (accounts, importers):
        found = target.execute(select(*table.columns).limit(1)).first()
        if found is not None:
            what = f'account "{found.name}"' if table is accounts else f"rows in {table.name}"
            raise Occupied(
                f"The target already has {what}. Choose an empty database, or a file that does not "
                "exist yet"
            )


def load(
    read: Read,
    target: Connection,
    label: str,
    on_progress: OnProgress,
    *,
    foreign: str | None = None,
    selection: Selection = WHOLE,
) -> list[TableDigest]:
    """Fill an empty store with rows of another store, compare both, and return the digests.

    `target` must be in a transaction, which the caller rolls back after any error; `label` is its
    address for messages. `foreign` has the same meaning as in `iter_rows`. No process may write to
    the source meanwhile. Raises Conflict if the stores differ.
    """
    with read() as source:
        total = sum(count_rows(source, table, selection) for table in TABLES)
        # An account file is imported into other stores, which have forget keys of their own.
        kept = ("store_id", "forget_key") if selection is WHOLE else ("store_id",)
        facts = {name: read_fact(session_on(source), name) for name in kept}
        set_facts(session_on(target), **{name: value for name, value in facts.items() if value})
    for table in (plans, deleted_accounts):
        target.execute(delete(table))
    on_rows = count_progress(on_progress, Stage.COPYING, total)
    for table in TABLES:
        # Close it even after an error: a suspended generator would keep its connection locked.
        with closing(_iter_source(read, table, selection, foreign)) as rows:
            while count := _insert(target, table, islice(rows, BATCH_ROWS)):
                on_rows(table.name, count)
        if target.dialect.name == "postgresql":
            # Without statistics, PostgreSQL reads far too many rows, also to check foreign keys.
            target.execute(text(f"ANALYZE {table.name}"))
    on_rows = count_progress(on_progress, Stage.PROVING, 2 * total)
    with read() as source:
        ours = digest_tables(source, on_rows, selection)
    theirs = digest_tables(target, on_rows)
    for mine, other in zip(ours, theirs, strict=True):
        if mine != other:
            raise Conflict(
                f'The copy differs in table "{mine.name}": {mine.rows:,} rows with digest '
                f"{mine.sha256[:12]}, and {other.rows:,} with {other.sha256[:12]} in {label}. "
                "It was not kept; copy again"
            )
    return theirs


def _iter_source(
    read: Read, table: Table, selection: Selection, foreign: str | None
) -> Generator[Row, None, None]:
    with read() as source:
        yield from iter_rows(source, table, selection, foreign=foreign)


def _insert(target: Connection, table: Table, rows: Iterable[Row]) -> int:
    """Insert the rows; return their number."""
    if target.dialect.name == "sqlite":
        sql = str(insert(table).compile(dialect=target.dialect))
        return int(driver(target).executemany(sql, rows).rowcount)
    names = ", ".join(table.columns.keys())
    count = 0
    with driver(target).cursor().copy(f"COPY {table.name} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
            count += 1
    return count


# Copying


def copy(source: Store, url: str, *, on_progress: OnProgress = ignore) -> list[TableDigest]:
    """Copy all rows of the source to a store at this address; return the digest of each table.

    The target must be a file that does not exist, or a store with only plans, which are replaced.
    The copy also succeeds if the target already has the same content and the source is closed for
    this target, because an earlier copy was killed after its last step.

    Raises InvalidArgument if both are the same store; Conflict if the target has other content, the
    source is being moved elsewhere, or the stores differ after the copy; OutcomeUnknown; and the
    errors of reading and writing. After an error, the source accepts writes again, unless it cannot
    be reached or the copy may exist despite the error.
    """
    address = parse_address(url)
    label = address.label
    if source.label == label:
        raise InvalidArgument(f"{label} cannot be copied to itself: choose another target")
    copy_id = secrets.token_hex(8)
    may_be_there: Callable[[], bool] | None = None  # None until `confirm` is called

    def confirm(is_there: Callable[[], bool] = lambda: True) -> None:
        nonlocal may_be_there
        check_closed(source, copy_id)
        may_be_there = is_there

    try:
        with (
            empty_database(address, confirm)
            if isinstance(address, PostgresAddress)
            else _empty_file(address.path, source, confirm)
        ) as target:
            close_store(source, label, copy_id)
            digests = load(source.read, target, label, on_progress, foreign=source.label)
    except Occupied:
        found = _find_finished_copy(source, url, label)
        if found is None:
            raise
        return found
    except BaseException:
        if may_be_there is None or not may_be_there():
            with contextlib.suppress(ResumesError):
                reopen_store(source, copy_id)
        raise
    return digests


def _find_finished_copy(source: Store, url: str, label: str) -> list[TableDigest] | None:
    with source.read() as connection:
        if read_fact(session_on(connection), "closed_for") != label:
            return None
        ours = digest_tables(connection)
    with open_store(url) as target, target.read() as connection:
        if read_fact(session_on(connection), "closed_for"):
            return None  # the target itself was copied elsewhere, and rejects writes
        theirs = digest_tables(connection)
    return theirs if ours == theirs else None


@contextlib.contextmanager
def empty_database(
    address: PostgresAddress, confirm: Callable[[], None] = lambda: None
) -> Iterator[Connection]:
    """Yield a connection to a store with only plans, in one transaction.

    After the block, `confirm` is called, and the transaction is committed unless it raises.
    Meanwhile, other processes can read the store but not write to it. Raises Occupied,
    StoreUnavailable if nothing was done, and OutcomeUnknown.
    """
    from resumes.store.postgresql.store import transaction_on

    open_store(address.url).close()
    with transaction_on(address) as connection:
        names = ", ".join(table.name for table in metadata.sorted_tables)
        connection.execute(text(f"LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE"))
        refuse_content(connection)
        yield connection
        confirm()


@contextlib.contextmanager
def _empty_file(
    path: Path, source: Store, confirm: Callable[[Callable[[], bool]], None]
) -> Iterator[Connection]:
    """Yield a connection to an empty new store, which replaces the file after the block.

    Before it does, `confirm` is called with a function that returns whether the new store is at the
    path; if `confirm` raises, the file is not replaced. Raises Occupied, and Conflict if another
    file has been created at the path.
    """
    check_place(path)
    if source.path is not None:  # PostgreSQL's size says little about the file's size
        size = source.measure()
        check_room(path.parent, size.data_bytes + (size.log_bytes or 0))

    with contextlib.ExitStack() as locks, scratch_in(path.parent) as folder:
        new = folder / "resumes.db"
        if path.exists():
            open_store(f"sqlite:///{path}").close()  # raises unless it is a store
        else:
            refuse_stray_logs(path)
        locks.enter_context(exclude_others(path, "copy"))
        replaced = _find_file(path)
        if replaced is not None:
            with transaction_in(path) as connection:
                refuse_content(connection)
        open_store(f"sqlite:///{new}").close()
        with transaction_in(new, draft_of=path) as connection:
            yield connection
        examine(new, path)
        made = _find_file(new)
        confirm(lambda: _find_file(path) == made)
        if replaced is not None and _find_file(path) == replaced:
            exchange(new, path, folder / "replaced.db")
        else:  # raises Conflict if another process has created a file there
            place(new, path)


def _find_file(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of the file, or None if it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
