"""Export of an account: all its rows as the lines of an archive.

Nothing is locked during the export, and what is added in the meantime is left out: the export ends with the newest
resume of its beginning. Resumes are read first, and a deleted resume takes its digest along; so each
digest that is read later is that of a resume in the file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import BindParameter, ColumnElement, bindparam, select

from resumes.clock import timestamp
from resumes.errors import Conflict
from resumes.store.account_archive.file_format import (
    COLUMNS,
    FORMAT,
    KEYS,
    TABLES,
    VERSION,
    ArchiveRow,
    ArchiveWriter,
    Header,
    RowKind,
)
from resumes.store.accounts import AccountInfo, find_account
from resumes.store.identifiers import resume_id
from resumes.store.schema import (
    api_keys,
    documents,
    imported_digests,
    imported_items,
    key_directory,
    resumes,
)
from resumes.store.statements import Prepared, iter_pages, looked_up, next_page
from resumes.store.store import Store

LARGE_ROWS: Final = 25
"""Rows that are in memory at once of tables whose rows may have megabytes."""

SMALL_ROWS: Final = 1_000
"""Rows that are in memory at once of the other tables."""

_ACCOUNT: BindParameter[Any] = bindparam("account_id")
_LAST: BindParameter[Any] = bindparam("last")
_DOCUMENT: Final = looked_up(documents.c.document, documents, resumes.c.account_id, resumes.c.id)


def _page(
    kind: RowKind, *conditions: ColumnElement[bool], others: tuple[ColumnElement[Any], ...] = ()
) -> Prepared:
    """Return the statement for the next rows of a kind, in the order of their keys.

    It selects the table's columns that are in the archive, then `others`.
    """
    table = TABLES[kind]
    columns = (table.c[column] for column in COLUMNS[kind] if column in table.c)
    statement = select(*columns, *others).where(table.c.account_id == _ACCOUNT, *conditions)
    return Prepared(next_page(statement, *(table.c[key] for key in KEYS[kind])))


_PAGES: Final = {
    RowKind.RESUME: _page(
        RowKind.RESUME,
        resumes.c.id <= _LAST,
        # A store that lost a document may still have its resume (`db check` says so).
        _DOCUMENT.is_not(None),
        others=(_DOCUMENT.label("document"),),
    ),
    RowKind.FILE: _page(RowKind.FILE),
    RowKind.ITEM: _page(RowKind.ITEM, imported_items.c.resume_id <= _LAST),
    RowKind.DIGEST: _page(
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
    RowKind.KEY: _page(
        RowKind.KEY,
        key_directory.c.account_id == api_keys.c.account_id,
        key_directory.c.key_id == api_keys.c.id,
        others=(key_directory.c.key_hash,),
    ),
}
_FIRST: Final = {"id": "", "claim_id": "", "item": 0, "digest": b""}
"""A key before every other; a number is never the first part of one."""


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
    line, for an account that was deleted in the meantime.
    """
    writer = ArchiveWriter()
    yield writer.header(
        Header(
            format=FORMAT,
            version=VERSION,
            account=account.name,
            plan=account.plan,
            created_at=account.created_at,
            exported_at=timestamp(store.clock()),
            last_id_us=account.last_id_us,
            resumes=account.resume_count,
        )
    )
    last = resume_id(account.last_id_us, "f" * 8)
    for kind in RowKind:
        if kind is RowKind.KEY and not with_keys:
            continue
        for row in _iter_rows(store, account.id, kind, last):
            yield writer.row(row)
            if kind is RowKind.RESUME:
                on_progress(writer.counts[kind])
    # An account that is being deleted has fewer and fewer rows, and would look whole.
    found = find_account(store, account.name)
    if found is None or found.id != account.id:
        raise Conflict(f'The account "{account.name}" was deleted while it was exported')
    yield writer.end()


def _iter_rows(store: Store, account_id: str, kind: RowKind, last: str) -> Iterator[ArchiveRow]:
    size = LARGE_ROWS if kind in (RowKind.RESUME, RowKind.FILE) else SMALL_ROWS

    def read_page(after: Mapping[str, Any]) -> list[ArchiveRow]:
        key = {f"after_{name}": after[name] for name in KEYS[kind]}
        rows = store.fetch(_PAGES[kind], account_id=account_id, last=last, rows=size, **key)
        return [_row(kind, row) for row in rows]

    for page in iter_pages(read_page, size, after=_FIRST, key=attrgetter("values")):
        yield from page


def _row(kind: RowKind, row: Sequence[Any]) -> ArchiveRow:
    values = dict(zip(COLUMNS[kind], row, strict=False))
    return ArchiveRow(kind, values, row[-1].encode() if kind is RowKind.RESUME else b"")
