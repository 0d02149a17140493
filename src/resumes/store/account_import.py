"""An account on its way in, from the lines of a file (resumes.store.portable).

The file is read whole and checked before anything is stored. Then its rows go, slice by slice, into
an account that is closed and has a name that nobody can choose; the last transaction opens it under
its own. So it is there whole or not at all, and whoever was cut off begins anew.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from sqlalchemy import Connection, bindparam, insert, select, update

from resumes.clock import timestamp
from resumes.errors import Conflict, InvalidJson, NotFound, OutcomeUnknown, ResumesError
from resumes.store import identifiers
from resumes.store.accounts import (
    ARRIVING,
    AccountInfo,
    check_name,
    delete_account,
    find_account,
    get_account,
    lock_account,
)
from resumes.store.creating import ADD_DOCUMENT
from resumes.store.engine import Store, each
from resumes.store.identifiers import POSITION_DIGITS, RESUME_ID
from resumes.store.portable import Header, Kind, Row
from resumes.store.portable_reader import Reader
from resumes.store.schema import (
    account_usage,
    accounts,
    api_keys,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    plans,
    resumes,
)
from resumes.store.statements import Prepared, blob

SLICE: Final = 500
"""Rows that go in one transaction, so that others get their turn,"""

SLICE_BYTES: Final = 4 * 1024 * 1024
"""unless so many bytes are reached first."""

DELETED: Final = "The account was deleted while it was imported, or its import begun anew"

ADD: Final = {
    Kind.RESUME: Prepared(insert(resumes)),
    Kind.FILE: Prepared(insert(imported_files)),
    Kind.ITEM: Prepared(insert(imported_items)),
    Kind.DIGEST: Prepared(insert(imported_digests)),
    Kind.KEY: Prepared(insert(api_keys)),
}
ADD_TO_DIRECTORY: Final = Prepared(insert(key_directory))
OWNER: Final = Prepared(
    select(key_directory.c.key_id).where(key_directory.c.key_hash == bindparam("key_hash"))
)


@dataclass(frozen=True, slots=True)
class Arrived:
    """What has come in, by kind of row."""

    account: AccountInfo
    counts: dict[Kind, int]

    @property
    def keys(self) -> int:
        """How many keys count here from now on."""
        return self.counts[Kind.KEY]


def import_account(
    store: Store,
    file: BinaryIO,
    *,
    name: str | None = None,
    plan: str | None = None,
    told: Callable[[str, int], None] = lambda step, rows: None,
) -> Arrived:
    """The account of the export is in the store, with its ids and times, under its name or `name`.

    `file` is read twice, from where it stands. What it holds is kept even where its plan allows
    less. `told` is called with "checked" and "stored" and the rows so far. Raises InvalidJson for a
    file that is not whole, Conflict for a name or a key that is taken, NotFound for a plan that is
    not there, and what `Store.write` raises; nothing is there then but what the next call removes,
    or after OutcomeUnknown perhaps the account.
    """
    began = file.tell()
    reader = Reader(file)
    header = reader.header
    chosen = check_name(header.account if name is None else name)
    _refuse_taken(store, chosen)
    if find_account(store, chosen + ARRIVING, closed_too=True) is not None:
        delete_account(store, chosen + ARRIVING, with_resumes=True)
    sha256 = _check(store, reader, told)
    new = _NewAccount(
        identifiers.account_id(), chosen, plan or header.plan, header, timestamp(store.clock())
    )
    store.write(_begin, new)
    try:
        file.seek(began)
        counts = _store_rows(store, new.account_id, Reader(file), sha256, told)
        store.write(_open, new)
    except OutcomeUnknown:
        raise  # it may have arrived
    except (ResumesError, OSError):
        # The next call would; where the store is away, only that one can.
        with contextlib.suppress(ResumesError):
            delete_account(store, chosen + ARRIVING, with_resumes=True)
        raise
    return Arrived(get_account(store, chosen), counts)


def _check(store: Store, reader: Reader, told: Callable[[str, int], None]) -> str:
    """The digest of a file that can be imported as a whole."""
    for rows, row in enumerate(reader, 1):
        if row.kind is Kind.RESUME:
            _check_resume(row, reader.header)
        elif row.kind is Kind.KEY:
            with store.read() as connection:
                _refuse_known_key(connection, row)
        told("checked", rows)
    return reader.sha256


def _check_resume(row: Row, header: Header) -> None:
    resume_id = row.values["id"]
    if not RESUME_ID.fullmatch(resume_id):
        raise InvalidJson(f'The file has a resume with the id "{resume_id[:80]}", which is none')
    if int(resume_id[:POSITION_DIGITS], 16) > header.last_id_us:
        raise InvalidJson(
            f'The file has the resume {resume_id}, which is newer than its "lastIdUs"'
        )


def _refuse_known_key(connection: Connection, row: Row) -> None:
    if OWNER.run(connection, key_hash=row.values["key_hash"]).fetchone() is not None:
        raise Conflict(
            f"The key {row.values['id'][:80]} counts in this store already. Revoke it here, or "
            "export the account without --with-keys"
        )


def _refuse_taken(store: Store, name: str) -> None:
    if find_account(store, name, closed_too=True) is not None:
        raise _taken(name)


def _taken(name: str) -> Conflict:
    return Conflict(f'Account "{name}" exists already: choose another name with --name')


@dataclass(frozen=True, slots=True)
class _NewAccount:
    account_id: str
    name: str
    plan: str
    header: Header
    now: str


@each
def _begin(connection: Connection, new: _NewAccount) -> None:
    known = connection.execute(select(plans.c.name).order_by(plans.c.name)).scalars().all()
    if new.plan not in known:
        raise NotFound(
            f'Plan not found: "{new.plan[:80]}". Choose one with --plan: {", ".join(known)}'
        )
    taken = select(accounts.c.id).where(accounts.c.name == new.name + ARRIVING)
    if connection.execute(taken).first() is not None:
        raise Conflict(f'Somebody else imports the account "{new.name}" at this moment')
    connection.execute(
        insert(accounts).values(
            id=new.account_id,
            name=new.name + ARRIVING,
            plan=new.plan,
            created_at=new.header.created_at,
            closed_at=new.now,
        )
    )
    connection.execute(
        insert(account_usage).values(
            account_id=new.account_id, resume_count=0, last_id_us=new.header.last_id_us
        )
    )


def _store_rows(
    store: Store, account_id: str, reader: Reader, sha256: str, told: Callable[[str, int], None]
) -> dict[Kind, int]:
    stored = 0
    for rows in _iter_slices(reader):
        store.write(_add, _Slice(account_id, rows))
        stored += len(rows)
        told("stored", stored)
    if reader.sha256 != sha256:
        raise InvalidJson("The file was changed while it was imported; import it again")
    return reader.counts


def _iter_slices(rows: Iterator[Row] | Reader) -> Iterator[list[Row]]:
    """The rows, some at a time, each time of one kind."""
    some: list[Row] = []
    size_bytes = 0
    for row in rows:
        if some and (
            row.kind is not some[0].kind or len(some) >= SLICE or size_bytes >= SLICE_BYTES
        ):
            yield some
            some, size_bytes = [], 0
        some.append(row)
        size_bytes += row.size_bytes
    if some:
        yield some


@dataclass(frozen=True, slots=True)
class _Slice:
    account_id: str
    rows: Sequence[Row]


@each
def _add(connection: Connection, some: _Slice) -> None:
    _lock(connection, some.account_id)
    kind = some.rows[0].kind
    rows = [row.values | {"account_id": some.account_id} for row in some.rows]
    ADD[kind].run_many(connection, rows)
    if kind is Kind.RESUME:
        ADD_DOCUMENT.run_many(
            connection,
            (
                {
                    "account_id": some.account_id,
                    "id": row.values["id"],
                    "document": blob(row.document),
                }
                for row in some.rows
            ),
        )
        connection.execute(
            update(account_usage)
            .where(account_usage.c.account_id == some.account_id)
            .values(resume_count=account_usage.c.resume_count + len(rows))
        )
    elif kind is Kind.KEY:
        for row in some.rows:
            _refuse_known_key(connection, row)
        ADD_TO_DIRECTORY.run_many(connection, ({**row, "key_id": row["id"]} for row in rows))


@each
def _open(connection: Connection, new: _NewAccount) -> None:
    _lock(connection, new.account_id)
    taken = connection.execute(select(accounts.c.id).where(accounts.c.name == new.name)).first()
    if taken is not None:
        raise _taken(new.name)
    opened = connection.execute(
        update(accounts)
        .where(
            accounts.c.id == new.account_id,
            accounts.c.name == new.name + ARRIVING,
            # Who deletes it, to begin anew, has closed it once more.
            accounts.c.closed_at == new.now,
        )
        .values(name=new.name, closed_at=None)
    )
    if opened.rowcount == 0:
        raise Conflict(DELETED)


def _lock(connection: Connection, account_id: str) -> None:
    if lock_account(connection, account_id) is None:
        raise Conflict(DELETED)
