"""The rows of an account's file on their way into the store, slice by slice.

They go into an account that is arriving (resumes.store.account_import): closed, and under a name that
nobody can choose.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, insert, select, update

from resumes.errors import Conflict, InvalidJson
from resumes.store.account_file import Kind, Row
from resumes.store.account_room import check_room_for_slice
from resumes.store.accounts import lock_account
from resumes.store.creating import ADD_DOCUMENT
from resumes.store.engine import Store, each
from resumes.store.schema import (
    account_usage,
    accounts,
    api_keys,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    resumes,
)
from resumes.store.statements import Prepared, blob

SLICE_ROWS: Final = 500
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


def add_rows(
    store: Store,
    account_id: str,
    since: str,
    rows: Iterable[Row],
    told: Callable[[int], None],
    *,
    slice_rows: int = SLICE_ROWS,
) -> None:
    """Add the rows to the account, which is arriving since then.

    `told` is called with their number so far. Raises Conflict if somebody has begun to delete the
    account or a key counts already, InvalidJson for a digest without its resume, and what
    `Store.write` raises; some of the rows are there then.
    """
    added = 0
    for some in iter_slices(rows, slice_rows):
        check_room_for_slice(store, sum(row.size_bytes for row in some))
        store.write(_add, _Slice(account_id, since, some))
        added += len(some)
        told(added)


def iter_slices(rows: Iterable[Row], slice_rows: int = SLICE_ROWS) -> Iterator[list[Row]]:
    """The rows, some at a time, each time of one kind."""
    some: list[Row] = []
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


@dataclass(frozen=True, slots=True)
class _Slice:
    account_id: str
    since: str
    rows: Sequence[Row]


@each
def _add(connection: Connection, some: _Slice) -> None:
    lock_arriving(connection, some.account_id, some.since)
    kind = some.rows[0].kind
    if kind is Kind.DIGEST:
        _refuse_strays(connection, some)
    ADD[kind].run_many(
        connection, [row.values | {"account_id": some.account_id} for row in some.rows]
    )
    if kind is Kind.RESUME:
        _add_documents(connection, some)
    elif kind is Kind.KEY:
        _add_to_directory(connection, some)


def _add_documents(connection: Connection, some: _Slice) -> None:
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
        .values(resume_count=account_usage.c.resume_count + len(some.rows))
    )


def _refuse_strays(connection: Connection, digests: _Slice) -> None:
    """Each content that counts as stored is: otherwise its files would be put aside as duplicates."""
    ids = {row.values["resume_id"] for row in digests.rows}
    mine = select(resumes.c.id).where(
        resumes.c.account_id == digests.account_id, resumes.c.id.in_(ids)
    )
    for stray in sorted(ids - set(connection.execute(mine).scalars())):
        raise InvalidJson(
            f"This is no whole export of an account: it has the digest of the resume {stray}, and "
            "not the resume"
        )


def _add_to_directory(connection: Connection, some: _Slice) -> None:
    refuse_known_keys(connection, some.rows)
    ADD_TO_DIRECTORY.run_many(
        connection,
        (
            row.values | {"account_id": some.account_id, "key_id": row.values["id"]}
            for row in some.rows
        ),
    )


def refuse_known_keys(connection: Connection, rows: Sequence[Row]) -> None:
    """None of the keys counts in this store, nor another one under the id of one of them.

    Raises Conflict.
    """
    for row in rows:
        if OWNER.run(connection, key_hash=row.values["key_hash"]).fetchone() is not None:
            raise _known(row.values["id"])
    # By its id a key is revoked, whoever's it is.
    ids = [row.values["id"] for row in rows]
    taken = select(key_directory.c.key_id).where(key_directory.c.key_id.in_(ids))
    for key_id in connection.execute(taken.limit(1)).scalars():
        raise _known(key_id)


def _known(key_id: str) -> Conflict:
    return Conflict(
        f"The key {key_id} counts in this store already. Revoke it here, or export the account "
        "without --with-keys"
    )


def lock_arriving(connection: Connection, account_id: str, since: str) -> None:
    """Lock the row of the account, which is arriving since then, for this transaction.

    Raises Conflict for one that is being deleted, or is gone: whoever deletes it, to begin anew, has
    closed it once more, and nothing may come in behind what they have removed.
    """
    lock_account(connection, account_id)
    is_arriving = (accounts.c.id == account_id, accounts.c.closed_at == since)
    if connection.execute(select(accounts.c.id).where(*is_arriving)).first() is None:
        raise Conflict(DELETED)
