"""An account on its way out: all its rows as the lines of a file (resumes.store.account_archive.file_format).

Nothing is held up meanwhile, and what comes in meanwhile is left out: the export ends with the newest
resume of its beginning. Resumes are read first, and a resume takes its digest along when it goes; so
each digest that is read later is that of a resume in the file.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, select

from resumes.clock import timestamp
from resumes.errors import Conflict
from resumes.store.account_archive.file_format import COLUMNS, KEYS, Header, Kind, Row, Writer
from resumes.store.accounts import AccountInfo, find_account
from resumes.store.identifiers import resume_id
from resumes.store.schema import (
    api_keys,
    documents,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    resumes,
)
from resumes.store.statements import Prepared, looked_up, next_page
from resumes.store.store import Store

LARGE_ROWS: Final = 25
"""Rows that are in memory at once of what may have megabytes,"""

SMALL_ROWS: Final = 1_000
"""and of what has not."""

_LAST: BindParameter[Any] = bindparam("last")


def _page(kind: Kind, statement: Select[Any], *conditions: ColumnElement[bool]) -> Prepared:
    """The next rows of a kind, in the order of their keys."""
    columns = {column.name: column for column in statement.selected_columns}
    return Prepared(
        next_page(statement.where(*conditions), *(columns[name] for name in KEYS[kind]))
    )


_ACCOUNT: BindParameter[Any] = bindparam("account_id")
_DOCUMENT: Final = looked_up(documents.c.document, documents, resumes.c.account_id, resumes.c.id)
PAGES: Final = {
    Kind.RESUME: _page(
        Kind.RESUME,
        select(
            *(resumes.c[one.column] for one in COLUMNS[Kind.RESUME]), _DOCUMENT.label("document")
        ),
        resumes.c.account_id == _ACCOUNT,
        resumes.c.id <= _LAST,
        # A store that lost a document may still have its resume (`db check` says so).
        _DOCUMENT.is_not(None),
    ),
    Kind.FILE: _page(
        Kind.FILE,
        select(*(imported_files.c[one.column] for one in COLUMNS[Kind.FILE])),
        imported_files.c.account_id == _ACCOUNT,
    ),
    Kind.ITEM: _page(
        Kind.ITEM,
        select(*(imported_items.c[one.column] for one in COLUMNS[Kind.ITEM])),
        imported_items.c.account_id == _ACCOUNT,
        imported_items.c.resume_id <= _LAST,
    ),
    Kind.DIGEST: _page(
        Kind.DIGEST,
        select(*(imported_digests.c[one.column] for one in COLUMNS[Kind.DIGEST])),
        imported_digests.c.account_id == _ACCOUNT,
        imported_digests.c.resume_id <= _LAST,
        # Or the digest of one that is lost.
        *(
            looked_up(
                table.c.id, table, imported_digests.c.account_id, imported_digests.c.resume_id
            ).is_not(None)
            for table in (resumes, documents)
        ),
    ),
    Kind.KEY: _page(
        Kind.KEY,
        select(
            *(api_keys.c[one.column] for one in COLUMNS[Kind.KEY][:-1]), key_directory.c.key_hash
        ).join(
            key_directory,
            (key_directory.c.account_id == api_keys.c.account_id)
            & (key_directory.c.key_id == api_keys.c.id),
        ),
        api_keys.c.account_id == _ACCOUNT,
    ),
}
_FIRST: Final[dict[type, Any]] = {str: "", int: 0, bytes: b""}
"""Before every key; a number is never the first part of one."""


def iter_lines(
    store: Store,
    account: AccountInfo,
    *,
    with_keys: bool = False,
    told: Callable[[int], None] = lambda resumes: None,
) -> Iterator[bytes]:
    """The lines of the account's export. `told` is called with the resumes that are out so far.

    With its keys, which are known by their SHA-256 alone and count wherever they are imported.
    """
    writer = Writer()
    yield writer.header(_header(store, account))
    last = resume_id(account.last_id_us, "f" * 8)
    for kind in Kind:
        if kind is Kind.KEY and not with_keys:
            continue
        for row in _iter_rows(store, account.id, kind, last):
            yield writer.row(row)
            if kind is Kind.RESUME:
                told(writer.counts[kind])
    # An account that is being deleted runs dry, and would look whole.
    found = find_account(store, account.name)
    if found is None or found.id != account.id:
        raise Conflict(f'The account "{account.name}" was deleted while it was exported')
    yield writer.end()


def _header(store: Store, account: AccountInfo) -> Header:
    return Header(
        account=account.name,
        plan=account.plan,
        created_at=account.created_at,
        exported_at=timestamp(store.clock()),
        last_id_us=account.last_id_us,
        resumes=account.resume_count,
    )


def _iter_rows(store: Store, account_id: str, kind: Kind, last: str) -> Iterator[Row]:
    columns = {one.column: one.type for one in COLUMNS[kind]}
    after = {f"after_{key}": _FIRST[columns[key]] for key in KEYS[kind]}
    size = LARGE_ROWS if kind in (Kind.RESUME, Kind.FILE) else SMALL_ROWS
    while True:
        with store.read() as connection:
            page = (
                PAGES[kind]
                .run(connection, account_id=account_id, last=last, rows=size, **after)
                .fetchall()
            )
        for row in page:
            values = dict(zip(columns, row, strict=False))
            document = row[-1].encode() if kind is Kind.RESUME else b""
            yield Row(kind, values, document)
        if len(page) < size:
            return
        after = {f"after_{key}": values[key] for key in KEYS[kind]}
