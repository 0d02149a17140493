"""The resumes of an account: list them, and get, update or delete them.

A page of a list begins after an ID and is one range of the primary key, without an offset or a
count. Any ID that a client has seen is a valid cursor, even if its resume was deleted: it is only a
position, and reveals nothing (pitfalls R1). IDs increase in commit order, so a client that
continues after the last ID that it saw misses no resume and sees none twice.
"""

import heapq
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache, partial
from typing import Any, Final, NamedTuple
from zlib import crc32

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    bindparam,
    case,
    func,
    literal_column,
    select,
)
from sqlmodel import Session

from resumes.analyzer import Resume, list_title
from resumes.clock import timestamp_after
from resumes.errors import InvalidArgument, NotFound, PersonErased
from resumes.store import search_index
from resumes.store.entry import MAX_VERSIONS, Entry
from resumes.store.erasing import erase
from resumes.store.forgotten import is_forgotten
from resumes.store.identifiers import RESUME_ID
from resumes.store.schema import ResumeRow, documents, resumes
from resumes.store.statements import (
    Prepared,
    bound_of,
    in_order,
    limit_param,
    params_equal,
    pk_equals,
    rare,
    replace_on_conflict,
    rows_as_json,
    upsert,
)
from resumes.store.store import Row, Store
from resumes.store.versions import is_newest, replace_others, select_versions
from resumes.text import family_name_order, name_order

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


class Sort(StrEnum):
    """The order of a list."""

    OLDEST = "oldest"
    NEWEST = "newest"
    NAME = "name"
    """By the person's full name."""

    FAMILY_NAME = "family-name"
    """By family name (`text.family_name_order`)."""


DEFAULT_SORT: Final = Sort.OLDEST
"""The default order of lists in the API and in commands."""


class Page(NamedTuple):
    """Resumes in the requested order, and the cursor of the next page, or None on the last page.

    Each row has the fields of an `Entry`.
    """

    rows: Sequence[Sequence[Any]]
    cursor: str | None

    @property
    def entries(self) -> list[Entry]:
        """Return the resumes as entries."""
        return [Entry._make(row) for row in self.rows]

    def as_json(self, *, limit: int) -> dict[str, Any]:
        """Return the page as the API returns it (docs/api.md, List)."""
        listed = []
        # Faster than creating an `Entry` for each row, which matters for every list request.
        for resume_id, title, name, filename, created_at, updated_at, label, *_ in self.rows:
            entry = {
                "id": resume_id,
                "title": list_title(title, name),
                "filename": filename,
                "createdAt": created_at,
                "updatedAt": updated_at,
            }
            if label is not None:
                entry["label"] = label
            listed.append(entry)
        return {"resumes": listed, "pagination": {"cursor": self.cursor, "limit": limit}}


class StoredResume(NamedTuple):
    """A list entry, its document, and the number of January in its dates (0 or 1), if recorded."""

    entry: Entry
    document: str
    first_month: int | None = None


COLUMNS = tuple(resumes.c[name] for name in Entry._fields)


SCANNED_ROWS = 1_000
"""How many resumes a page with only each person's newest resume may read before it ends early."""


@cache
def page_of(*, is_newest_first: bool, has_label: bool, is_latest: bool = False) -> Prepared:
    """Return the statement for a page; with `has_label`, it lists only resumes with a label.

    With `is_latest`, it selects each person's newest resume, and has a second column: the position
    where the page ended early with fewer rows, or NULL if no resumes follow.
    """
    rows = select(*COLUMNS).where(params_equal(resumes.c.account_id))
    rows = in_order(rows, resumes.c.id, bindparam("after"), is_newest_first=is_newest_first)
    if has_label:
        rows = rows.where(rare(params_equal(resumes.c.label)))
    if not is_latest:
        return Prepared(select(rows_as_json(*rows.limit(limit_param("rows")).subquery().c)))
    scanned = rows.add_columns(resumes.c.account_id, resumes.c.person).limit(_number(SCANNED_ROWS))
    listed = scanned.subquery("listed")
    newest = select(*(listed.c[column.name] for column in COLUMNS)).where(
        is_newest(listed, bindparam("account_id"), select(scanned.subquery("scanned").c.person))
    )
    newest = newest.limit(limit_param("rows"))
    # The last resume that was read, and the resume after it.
    ends = rows.with_only_columns(resumes.c.id).limit(_number(2)).offset(_number(SCANNED_ROWS - 1))
    end = ends.subquery("ends").c.id
    last = func.max(end) if is_newest_first else func.min(end)
    ended_at = select(last).having(func.count() == _number(2)).scalar_subquery()
    is_short = func.count() < bindparam("rows", type_=Integer)
    return Prepared(select(rows_as_json(*newest.subquery().c), case((is_short, ended_at))))


def _number(value: int) -> ColumnElement[int]:
    """Return the number as a literal in the SQL instead of a parameter."""
    return literal_column(str(value), Integer)


# Prepared for speed, because most API requests read a page or one resume, on SQLite in the event
# loop. `_stored` expects this order of columns.
ONE = Prepared(
    select(*COLUMNS, resumes.c.first_month, documents.c.document)
    .join(
        documents,
        (documents.c.account_id == resumes.c.account_id) & (documents.c.id == resumes.c.id),
    )
    .where(pk_equals(resumes))
)


def check_cursor(cursor: str) -> str:
    """Return the cursor if it looks like an ID, or is empty (the beginning of the list).

    Raises InvalidArgument for all other values.
    """
    if cursor and not RESUME_ID.fullmatch(cursor):
        raise InvalidArgument("Invalid cursor")
    return cursor


def list_page(
    store: Store,
    account_id: str,
    *,
    cursor: str = "",
    limit: int = DEFAULT_LIMIT,
    is_newest_first: bool = False,
    label: str | None = None,
    is_latest: bool = False,
) -> Page:
    """Return at most `limit` resumes after the cursor, oldest first.

    With a `label`, return only its resumes. With `is_newest_first`, return the resumes before the
    cursor, in reverse order. With `is_latest`, return only each person's newest resume; such a page
    ends early after reading a thousand resumes. A `limit` outside the range 1 to 100 becomes 1 or
    100. Raises InvalidArgument for a malformed cursor.
    """
    statement, values = _asked(account_id, cursor, limit, is_newest_first, label, is_latest)
    return _page(store.fetch(statement, **values), values["rows"] - 1)


async def list_page_async(
    store: Store,
    account_id: str,
    *,
    cursor: str = "",
    limit: int = DEFAULT_LIMIT,
    is_newest_first: bool = False,
    label: str | None = None,
    is_latest: bool = False,
) -> Page:
    """List resumes like `list_page`, but without blocking the event loop."""
    statement, values = _asked(account_id, cursor, limit, is_newest_first, label, is_latest)
    return _page(await store.fetch_async(statement, **values), values["rows"] - 1)


def _asked(
    account_id: str,
    cursor: str,
    limit: int,
    is_newest_first: bool,
    label: str | None,
    is_latest: bool,
) -> tuple[Prepared, dict[str, Any]]:
    """Return the statement for a page, and its parameters; it reads one extra row."""
    has_label = label is not None
    statement = page_of(is_newest_first=is_newest_first, has_label=has_label, is_latest=is_latest)
    after = bound_of(check_cursor(cursor), is_newest_first=is_newest_first)
    rows = max(1, min(limit, MAX_LIMIT)) + 1
    return statement, {"account_id": account_id, "after": after, "rows": rows, "label": label}


def _page(found: Sequence[Row], limit: int) -> Page:
    text, *ended_at = found[0]
    rows: list[list[Any]] = orjson.loads(text)
    if len(rows) > limit:
        return Page(rows[:limit], rows[limit - 1][0])
    return Page(rows, ended_at[0] if ended_at else None)


def list_sorted(
    store: Store,
    account_id: str,
    sort: Sort,
    *,
    cursor: str = "",
    limit: int = DEFAULT_LIMIT,
    label: str | None = None,
    is_latest: bool = False,
) -> Page:
    """Return at most `limit` resumes after the cursor's resume in this order, like `list_page`.

    In the orders by name, resumes without a name come first, and case and accents do not matter.
    These orders read all names of the account. Raises InvalidArgument for a malformed cursor, and
    in the orders by name also if the cursor's resume does not exist.
    """
    if sort in (Sort.OLDEST, Sort.NEWEST):
        is_newest_first = sort is Sort.NEWEST
        return list_page(
            store,
            account_id,
            cursor=cursor,
            limit=limit,
            is_newest_first=is_newest_first,
            label=label,
            is_latest=is_latest,
        )
    limit = max(1, min(limit, MAX_LIMIT))
    after = check_cursor(cursor)
    listed: list[ColumnElement[Any]] = [resumes.c.account_id == account_id]
    listed += [] if label is None else [rare(resumes.c.label == label)]
    listed += [is_newest(resumes, account_id)] if is_latest else []
    with store.read() as connection:
        ids = _ids_by_name(connection, listed, sort, after=after, limit=limit + 1)
        page = select(*COLUMNS).where(*listed, resumes.c.id.in_(ids))
        found = {row.id: row for row in connection.execute(page)}
    # A resume may have been deleted since the IDs were read.
    rows = [found[resume_id] for resume_id in ids[:limit] if resume_id in found]
    return Page(rows, ids[limit - 1] if len(ids) > limit else None)


def _ids_by_name(
    connection: Connection,
    listed: Sequence[ColumnElement[Any]],
    sort: Sort,
    *,
    after: str,
    limit: int,
) -> list[str]:
    """Return the IDs of at most `limit` listed resumes, sorted by name, after the resume `after`.

    Python sorts them, because the engines have no common collation that ignores accents.
    """
    order_of: Callable[[str], Any] = family_name_order if sort is Sort.FAMILY_NAME else name_order
    names = select(resumes.c.id, resumes.c.name).where(*listed)
    keys = [(order_of(row.name or ""), row.id) for row in connection.execute(names)]
    if after:
        start = next((key for key in keys if key[1] == after), None)
        if start is None:
            raise InvalidArgument(f"Invalid cursor: no resume of this account has the ID {after}")
        keys = [key for key in keys if key > start]
    return [resume_id for _, resume_id in heapq.nsmallest(limit, keys)]


def list_versions(store: Store, account_id: str, resume_id: str) -> list[Entry]:
    """Return at most 100 resumes of the same person, including this one, newest first.

    Return an empty list if the person has no other resume.
    """
    person = select(resumes.c.person).where(pk_equals(resumes, account_id, resume_id))
    found = [whose for (whose,) in store.fetch(person) if whose is not None]
    if not found:
        return []
    rows = store.fetch(select_versions(COLUMNS, account_id, found[0]))
    newest_first = sorted(map(Entry._make, rows), reverse=True)
    return newest_first[:MAX_VERSIONS] if len(rows) > 1 else []


def get_entry(store: Store, account_id: str, resume_id: str) -> Entry:
    """Return the resume's list entry, even if its document is missing. Raises NotFound."""
    _check_id(resume_id)
    rows = store.fetch(select(*COLUMNS).where(pk_equals(resumes, account_id, resume_id)))
    if not rows:
        raise NotFound("Resume not found")
    return Entry._make(rows[0])


def get_resume(store: Store, account_id: str, resume_id: str) -> StoredResume:
    """Return the stored resume. Raises NotFound, also for the ID of another account's resume."""
    _check_id(resume_id)
    return _stored(store.fetch(ONE, account_id=account_id, id=resume_id))


async def get_resume_async(store: Store, account_id: str, resume_id: str) -> StoredResume:
    """Get a resume like `get_resume`, but without blocking the event loop."""
    _check_id(resume_id)
    return _stored(await store.fetch_async(ONE, account_id=account_id, id=resume_id))


def _stored(rows: Sequence[Row]) -> StoredResume:
    if not rows:
        raise NotFound("Resume not found")
    *entry, first_month, document = rows[0]
    return StoredResume(Entry._make(entry), document, first_month)


def _check_id(resume_id: str) -> None:
    """Raise NotFound for a malformed resume ID, which the engines would treat differently."""
    if not RESUME_ID.fullmatch(resume_id):
        raise NotFound("Resume not found")


Check = Callable[[StoredResume], None]
"""A function that raises an error if the resume, as it is stored now, must not be changed."""


class Updated(NamedTuple):
    """The time of an update, and the IDs of the person's other resumes that it replaced."""

    updated_at: str
    replaced: Sequence[str]


def update_resume(
    store: Store, account_id: str, resume_id: str, new: Resume, *, check: Check | None = None
) -> Updated:
    """Replace the content of the resume.

    Other data about the resume is kept, so that a file with its original content is still a
    duplicate (docs/api.md, Update). An update does not count against the quota. `check` is called
    in the transaction. Raises PersonErased, the errors of `check`, and NotFound, also for the ID of
    another account's resume.
    """
    _check_id(resume_id)
    change = partial(_update, account_id, resume_id, new, store.clock(), check)
    return store.write(change, account_id=account_id)


async def update_resume_async(
    store: Store, account_id: str, resume_id: str, new: Resume, *, check: Check | None = None
) -> Updated:
    """Update a resume like `update_resume`, but without blocking the event loop."""
    _check_id(resume_id)
    change = partial(_update, account_id, resume_id, new, store.clock(), check)
    return await store.write_async(change, account_id=account_id)


def _update(
    account_id: str, resume_id: str, new: Resume, now_us: int, check: Check | None, session: Session
) -> Updated:
    connection = session.connection()
    _check_stored(connection, account_id, resume_id, check)
    row = session.get(ResumeRow, (account_id, resume_id))
    if row is None:
        raise NotFound("Resume not found")
    document = new.document.decode()
    if is_forgotten(connection, account_id, document, new.name):
        raise PersonErased
    row.title, row.name, row.filename, row.person = new.title, new.name, new.filename, new.person
    row.updated_at = timestamp_after(row.updated_at, now_us)
    values = (account_id, resume_id, crc32(new.document), document)
    # A lost or damaged document is replaced, too.
    written = upsert(documents, connection.dialect).values(values)
    connection.execute(replace_on_conflict(written, documents))
    replaced = replace_others(session, account_id, resume_id, new.person)
    search_index.replace(session, account_id, row, document)
    return Updated(row.updated_at, replaced)


def delete_resume(store: Store, account_id: str, resume_id: str) -> None:
    """Delete the resume. It no longer counts against the quota, and can be imported again.

    Raises NotFound, also for the ID of another account's resume.
    """
    _check_id(resume_id)
    store.write(partial(_delete, account_id, resume_id, None), account_id=account_id)


async def delete_resume_async(
    store: Store, account_id: str, resume_id: str, *, check: Check | None = None
) -> None:
    """Delete a resume like `delete_resume`, but without blocking the event loop.

    `check` is called in the transaction; its errors are raised here.
    """
    _check_id(resume_id)
    await store.write_async(partial(_delete, account_id, resume_id, check), account_id=account_id)


def _delete(account_id: str, resume_id: str, check: Check | None, session: Session) -> None:
    _check_stored(session.connection(), account_id, resume_id, check)
    if not erase(session, account_id, [resume_id]):
        raise NotFound("Resume not found")


def _check_stored(
    connection: Connection, account_id: str, resume_id: str, check: Check | None
) -> None:
    if check is not None:
        check(_stored(ONE.run(connection, account_id=account_id, id=resume_id).fetchall()))


MAX_DELETED = 500
"""How many resumes one transaction deletes at most, so that others can write."""


def delete_resumes(
    store: Store,
    account_id: str,
    resume_ids: Sequence[str],
    *,
    on_count: Callable[[int], None] = lambda deleted: None,
) -> int:
    """Delete these resumes as far as they exist, at most 500 per transaction; return their number.

    After each transaction, `on_count` is called with the number of resumes deleted so far.
    """
    deleted = 0
    for start in range(0, len(resume_ids), MAX_DELETED):
        ids = resume_ids[start : start + MAX_DELETED]
        change = partial(erase, account_id=account_id, resume_ids=ids)
        deleted += store.write(change, account_id=account_id)
        on_count(deleted)
    return deleted
