"""Export of an account to an archive, and import of one, all or nothing.

Nothing is locked during an export, and what is added in the meantime is left out: it ends with the
newest resume of its beginning. Resumes are read first, and a deleted resume takes its digest along; so
each digest that is read later is that of a resume in the file.

An import reads the file to its end and checks it before anything is stored. Then its rows go, slice by
slice, into an account that is closed and has a name that nobody can choose; the last transaction opens
it under its own name. An import that was cut off is removed by the next one.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Final
from zlib import crc32

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    bindparam,
    insert,
    select,
    update,
)

from resumes.clock import timestamp
from resumes.errors import (
    Conflict,
    InvalidJson,
    NotFound,
    OutcomeUnknown,
    ResumesError,
    StoreIncompatible,
    StoreUnavailable,
)
from resumes.filesystems import free_bytes
from resumes.store import identifiers
from resumes.store.account_archive.file_format import (
    COLUMNS,
    FORMAT,
    KEYS,
    TABLES,
    VERSION,
    ArchiveReader,
    ArchiveRow,
    Header,
    RowKind,
    encode_archive,
)
from resumes.store.accounts import (
    ARRIVING,
    AccountInfo,
    add_account,
    check_name,
    check_plan,
    delete_account,
    find_account,
    get_account,
)
from resumes.store.api_keys import IS_SAME_KEY
from resumes.store.creation import ADD_DOCUMENT
from resumes.store.row_bounds import YEAR_US
from resumes.store.schema import (
    BinaryText,
    accounts,
    documents,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    resumes,
)
from resumes.store.statements import Prepared, blob, looked_up, matching
from resumes.store.store import Store, change_count, lock_account

# Export

LARGE_ROWS: Final = 25
"""Rows that are in memory at once of tables whose rows may have megabytes."""

SMALL_ROWS: Final = 1_000
"""Rows that are in memory at once of the other tables."""

_LAST: BindParameter[Any] = bindparam("last")
_DOCUMENT: Final = looked_up(documents.c.document, documents, resumes.c.account_id, resumes.c.id)


def _rows(
    kind: RowKind, *conditions: ColumnElement[bool], others: tuple[ColumnElement[Any], ...] = ()
) -> Select[Any]:
    """Select the columns of the kind's table that are in the archive, then `others`."""
    table = TABLES[kind]
    columns = (table.c[column] for column in COLUMNS[kind] if column in table.c)
    return select(*columns, *others).where(matching(table.c.account_id), *conditions)


_ROWS: Final = {
    RowKind.RESUME: _rows(
        RowKind.RESUME,
        resumes.c.id <= _LAST,
        # A store that lost a document may still have its resume (`db check` says so).
        _DOCUMENT.is_not(None),
        others=(_DOCUMENT.label("document"),),
    ),
    RowKind.FILE: _rows(
        RowKind.FILE,
        imported_files.c.resume_id.is_(None) | (imported_files.c.resume_id <= _LAST),
    ),
    RowKind.ITEM: _rows(RowKind.ITEM, imported_items.c.resume_id <= _LAST),
    RowKind.DIGEST: _rows(
        RowKind.DIGEST,
        imported_digests.c.resume_id <= _LAST,
        # Or the digest of one that is lost.
        *(
            looked_up(
                table.c.id, table, imported_digests.c.account_id, imported_digests.c.resume_id
            ).is_not(None)
            for table in (resumes, documents)
        ),
    ),
    RowKind.KEY: _rows(
        RowKind.KEY,
        IS_SAME_KEY,
        others=(key_directory.c.key_hash,),
    ),
}


def iter_lines(
    store: Store,
    account: AccountInfo,
    *,
    with_keys: bool = False,
    on_progress: Callable[[int], None] = lambda resumes: None,
) -> Iterator[bytes]:
    """Yield the lines of the account's archive.

    `on_progress` is called with the number of resumes so far. With `with_keys` its keys follow, as
    their SHA-256: they are valid wherever the archive is imported. Raises Conflict, before the last
    line, for an account that was deleted in the meantime, and StoreIncompatible for a damaged row.
    """
    header = Header(
        format=FORMAT,
        version=VERSION,
        account=account.name,
        plan=account.plan,
        created_at=account.created_at,
        exported_at=timestamp(store.clock()),
        last_id_us=account.last_id_us,
        resumes=account.resume_count,
    )
    last = identifiers.resume_id(account.last_id_us, "f" * 8)

    def iter_rows() -> Iterator[ArchiveRow]:
        for kind in RowKind:
            if kind is RowKind.KEY and not with_keys:
                continue
            for count, row in enumerate(_iter_rows(store, account.id, kind, last), 1):
                yield row
                if kind is RowKind.RESUME:
                    on_progress(count)
        # An account that is being deleted has fewer and fewer rows, and would look whole.
        found = find_account(store, account.name)
        if found is None or found.id != account.id:
            raise Conflict(f'The account "{account.name}" was deleted while it was being exported')

    yield from encode_archive(header, iter_rows())


def _iter_rows(store: Store, account_id: str, kind: RowKind, last: str) -> Iterator[ArchiveRow]:
    size = LARGE_ROWS if kind in (RowKind.RESUME, RowKind.FILE) else SMALL_ROWS
    keys = [TABLES[kind].c[key] for key in KEYS[kind]]
    columns = _ROWS[kind].selected_columns
    texts = [at for at, column in enumerate(columns) if isinstance(column.type, BinaryText)]
    pages = store.iter_pages(_ROWS[kind], *keys, rows=size, account_id=account_id, last=last)
    for row in (row for page in pages for row in page):
        if any(isinstance(row[at], bytes) for at in texts):  # as SQLite gives a damaged one
            raise StoreIncompatible(
                f"A row of {TABLES[kind].name} is damaged. `resumes db check` says what to do about it"
            )
        values = dict(zip(COLUMNS[kind], row, strict=False))
        yield ArchiveRow(kind, values, row[-1].encode() if kind is RowKind.RESUME else b"")


# Import

MAX_LOG_BYTES: Final = 64 * 1024 * 1024
"""What the log next to a store may grow to while much is written."""

MIN_ROOM_BYTES: Final = 256 * 1024
"""What a store needs for its tables and indexes, however little is imported."""

SLICE_ROWS: Final = 500
"""Rows of one transaction, so that others get their turn."""

SLICE_BYTES: Final = 4 * 1024 * 1024
"""A slice with this many bytes ends before it has all its rows."""

OnProgress = Callable[[str, int], None]
"""Is called with "checked" or "stored", and the number of rows so far."""


def import_account(
    store: Store,
    file: BinaryIO,
    *,
    name: str | None = None,
    plan: str | None = None,
    on_progress: OnProgress = lambda step, rows: None,
    slice_rows: int = SLICE_ROWS,
) -> tuple[AccountInfo, dict[RowKind, int]]:
    """Import the account of the archive, with its ids and times, under its name or `name`.

    Return the account, and how many rows it has of each kind.

    `file` is read twice, from where it stands; `slice_rows` go in one transaction. All its resumes
    are imported even where its plan allows fewer. Raises InvalidJson for a file that is not whole,
    Conflict for a name or a key that is taken, NotFound for a plan that is not there, and what
    `Store.write` raises; nothing is there then but what the next call removes, or after
    OutcomeUnknown perhaps the account.
    """
    began = file.tell()
    reader = ArchiveReader(file)
    header = reader.header
    if header.last_id_us > store.clock() + YEAR_US:
        raise InvalidJson(
            f'"lastIdUs" is {header.last_id_us:,}, more than a year after this machine\'s clock. Check '
            "the clock, or create the file again with `resumes accounts export`"
        )
    chosen = check_name(header.account if name is None else name)
    if find_account(store, chosen, closed_too=True) is not None:
        raise _taken(chosen)
    if find_account(store, chosen + ARRIVING, closed_too=True) is not None:
        delete_account(store, chosen + ARRIVING, with_resumes=True)
    _check(store, reader, on_progress, slice_rows)
    check_room(store, file.seek(0, os.SEEK_END) - began)
    new = _NewAccount(
        identifiers.account_id(), chosen, plan or header.plan, header, timestamp(store.clock())
    )
    file.seek(began)
    store.write(partial(_begin, new))
    try:
        again = ArchiveReader(file, are_documents_known=True)
        stored = 0
        for some in iter_slices(again, slice_rows):
            # It is written to the log, copied into the store, and perhaps deleted again.
            _require_room(store, 3 * sum(row.size_bytes for row in some))
            store.write(partial(_add, new, some), account_id=new.account_id)
            stored += len(some)
            on_progress("stored", stored)
        if again.sha256 != reader.sha256:
            raise InvalidJson("The file changed during the import. Import it again")
        store.write(partial(_open, new), account_id=new.account_id)
    except OutcomeUnknown:
        raise  # it may have been opened
    except (ResumesError, OSError) as error:
        _remove(store, new, error)
        raise
    return get_account(store, chosen), again.counts


def check_room(store: Store, size_bytes: int) -> None:
    """Raise StoreUnavailable without room for an account whose file has this many bytes.

    Of a server's disk nothing is known.
    """
    _require_room(store, size_bytes + min(size_bytes, MAX_LOG_BYTES))


def _require_room(store: Store, needed_bytes: int) -> None:
    if store.path is None:
        return
    needed_bytes += MIN_ROOM_BYTES
    free = free_bytes(store.path.parent)
    if free < needed_bytes:
        raise StoreUnavailable(
            f"{store.path.parent} has {free / 1e6:,.1f} MB of free space, but about "
            f"{needed_bytes / 1e6:,.1f} MB is needed. Free up space, then import the file again"
        )


# The first reading


def _check(store: Store, reader: ArchiveReader, on_progress: OnProgress, slice_rows: int) -> None:
    """Read the file to its end. Raise InvalidJson or Conflict for what could not be stored."""
    hashes: set[bytes] = set()
    checked = 0
    for rows in iter_slices(reader, slice_rows):
        if rows[0].kind is RowKind.KEY:
            with store.read() as connection:
                _refuse_known_keys(connection, rows)
            for row in rows:
                if row.values["key_hash"] in hashes:
                    raise InvalidJson(
                        f"The file also has the key {row.values['id']} under another ID"
                    )
                hashes.add(row.values["key_hash"])
        checked += len(rows)
        on_progress("checked", checked)


def iter_slices(
    rows: Iterable[ArchiveRow], slice_rows: int = SLICE_ROWS
) -> Iterator[list[ArchiveRow]]:
    """Yield the rows in slices, each of one kind."""
    some: list[ArchiveRow] = []
    size_bytes = 0
    for row in rows:
        is_full = len(some) >= slice_rows or size_bytes >= SLICE_BYTES
        if some and (is_full or row.kind is not some[0].kind):
            yield some
            some, size_bytes = [], 0
        some.append(row)
        size_bytes += row.size_bytes
    if some:
        yield some


def _refuse_known_keys(connection: Connection, rows: Sequence[ArchiveRow]) -> None:
    """Raise Conflict for a key that is valid in this store, or whose id another key here has."""
    ids, hashes = [[row.values[name] for row in rows] for name in ("id", "key_hash")]
    # By its id a key is revoked, whoever's it is.
    known = key_directory.c.key_id.in_(ids) | key_directory.c.key_hash.in_(hashes)
    owner = accounts.c.id == key_directory.c.account_id
    found = select(key_directory.c.key_id, accounts.c.name).outerjoin(accounts, owner).where(known)
    for key_id, name in connection.execute(found):
        if name is not None and name.endswith(ARRIVING):
            raise Conflict(
                f"The key {key_id} is already in use by an account that is being imported. If that was "
                f"interrupted, delete it: `resumes accounts delete {name} --with-resumes --yes`"
            )
        raise Conflict(
            f"The key {key_id} is already in use in this store. Revoke it here, or export the account "
            "without --with-keys"
        )


# The second reading


@dataclass(frozen=True, slots=True)
class _NewAccount:
    """The account while it is imported; `now` is when it was begun, which tells it from another."""

    account_id: str
    name: str
    plan: str
    header: Header
    now: str


def _taken(name: str) -> Conflict:
    return Conflict(f'Account "{name}" already exists: choose another name with --name')


def _begin(new: _NewAccount, connection: Connection) -> None:
    check_plan(connection, new.plan, hint="Choose one with --plan")
    taken = select(accounts.c.id).where(accounts.c.name == new.name + ARRIVING)
    if connection.execute(taken).first() is not None:
        raise Conflict(f'Another process is already importing the account "{new.name}"')
    add_account(
        connection,
        new.account_id,
        name=new.name + ARRIVING,
        plan=new.plan,
        created_at=new.header.created_at,
        closed_at=new.now,
        last_id_us=new.header.last_id_us,
    )


_ADD: Final = {kind: Prepared(insert(table)) for kind, table in TABLES.items()}
_ADD_TO_DIRECTORY: Final = Prepared(insert(key_directory))


def _add(new: _NewAccount, some: Sequence[ArchiveRow], connection: Connection) -> None:
    _lock(connection, new)
    kind, account_id = some[0].kind, new.account_id
    rows = [{**row.values, "account_id": account_id} for row in some]
    if kind is RowKind.DIGEST:
        # Files of a content without its resume would become duplicates, and nothing would be stored.
        ids = {row["resume_id"] for row in rows}
        known = select(resumes.c.id).where(
            resumes.c.account_id == account_id, resumes.c.id.in_(ids)
        )
        for stray in sorted(ids.difference(connection.execute(known).scalars())):
            raise InvalidJson(
                f"Not a complete account export: it has the digest of the resume {stray}, but not the "
                "resume"
            )
    elif kind is RowKind.KEY:
        _refuse_known_keys(connection, some)
    _ADD[kind].run_many(connection, rows)
    if kind is RowKind.KEY:
        _ADD_TO_DIRECTORY.run_many(connection, ({**row, "key_id": row["id"]} for row in rows))
    elif kind is RowKind.RESUME:
        for row, line in zip(rows, some, strict=True):
            row |= {"crc32": crc32(line.document), "document": blob(line.document)}
        ADD_DOCUMENT.run_many(connection, rows)
        change_count(connection, account_id, len(rows))


def _lock(connection: Connection, new: _NewAccount) -> None:
    """Lock the row of the account for this transaction.

    Raises Conflict for one that is being deleted, or is gone: whoever deletes it, to begin again, has
    closed it again, and nothing may be added after what they have removed.
    """
    lock_account(connection, new.account_id)
    is_arriving = (accounts.c.id == new.account_id, accounts.c.closed_at == new.now)
    if connection.execute(select(accounts.c.id).where(*is_arriving)).first() is None:
        raise Conflict("The account was deleted during the import, or its import was restarted")


def _open(new: _NewAccount, connection: Connection) -> None:
    _lock(connection, new)
    taken = connection.execute(select(accounts.c.id).where(accounts.c.name == new.name)).first()
    if taken is not None:
        raise _taken(new.name)
    connection.execute(
        update(accounts)
        .where(accounts.c.id == new.account_id)
        .values(name=new.name, closed_at=None)
    )


def _remove(store: Store, new: _NewAccount, why: ResumesError | OSError) -> None:
    """Delete what there is of the account. Raises StoreUnavailable where something stays."""
    arriving = new.name + ARRIVING
    try:
        delete_account(store, arriving, account_id=new.account_id, with_resumes=True)
    except NotFound:
        pass  # somebody else did, and may have begun to import it again
    except ResumesError as error:
        raise StoreUnavailable(
            f"{str(why).rstrip('.')}. Part of the account remains in the store, but is not visible. Once "
            "the cause is fixed, import the account again, or delete that part with "
            f"`resumes accounts delete {arriving} --with-resumes --yes`"
        ) from error
