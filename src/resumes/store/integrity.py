"""The checks of `db check`, which find damage by bugs, disk errors or manual changes.

Each question is one statement for all accounts, so its answer is consistent even if others write
meanwhile. Documents and histories are read for one account at a time.
"""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple
from zlib import crc32

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    LargeBinary,
    Select,
    Table,
    and_,
    cast,
    delete,
    func,
    not_,
    select,
    text,
    tuple_,
)

from resumes.analyzer import check_stored
from resumes.errors import InvalidInput, StoreIncompatible
from resumes.store import schema
from resumes.store.accounts import IS_OPEN, WRONG_COUNTERS
from resumes.store.identifiers import position_of
from resumes.store.import_ledger import FileOutcome, parse_items
from resumes.store.schema import (
    BinaryText,
    account_usage,
    accounts,
    api_keys,
    documents,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    resumes,
    search_entries,
)
from resumes.store.sqlite.files import find_foreign_code
from resumes.store.statements import driver, iter_in_pages, looked_up
from resumes.store.store import Store

MAX_REPORT_LINES: Final = 20
"""The maximum number of lines in SQLite's report."""

ROWS_AT_ONCE: Final = 25
"""How many rows are read at once. Each row may contain megabytes."""


class Defect(StrEnum):
    """The kinds of flaws."""

    DAMAGED = "damaged"
    DAMAGED_TEXT = "damaged_text"
    FOREIGN_CODE = "foreign_code"
    FOREIGN_KEY = "foreign_key"
    ORPHANS = "orphans"
    NO_COUNTER = "no_counter"
    COUNTER = "counter"
    LAST_ID = "last_id"
    NO_DOCUMENT = "no_document"
    STRAY_DOCUMENT = "stray_document"
    STRAY_DIGEST = "stray_digest"
    STRAY_SEARCH_ENTRY = "stray_search_entry"
    STRAY_KEY_HASH = "stray_key_hash"
    NO_KEY_HASH = "no_key_hash"
    BAD_DOCUMENT = "bad_document"
    CHANGED_DOCUMENT = "changed_document"
    BAD_ITEMS = "bad_items"
    BAD_OUTCOME = "bad_outcome"


@dataclass(frozen=True, slots=True)
class Flaw:
    """A problem, the number of its occurrences, and a remedy.

    `account` is the name of the account, or its ID if the account does not exist, or None if the
    problem does not concern an account.
    """

    defect: Defect
    count: int
    what: str
    remedy: str
    account: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """An account whose contents were read, the number of its documents, and the flaws found."""

    account: str
    resumes: int
    flaws: Sequence[Flaw]


BACKUP: Final = "Restore a backup: `resumes db restore`"
STOPPED: Final = "Stop all programs that use the store, make a backup (`resumes db backup`), then run this SQL statement: "


def iter_damage(store: Store) -> Iterator[Flaw]:
    """Yield the flaws of the store, except those in documents and histories.

    On SQLite, the entire file is checked first; if it is damaged, nothing else is checked.
    """
    found = set()
    for flaw in () if store.path is None else _iter_sqlite(store):
        found.add(flaw.defect)
        yield flaw
    if Defect.DAMAGED in found:
        return
    for ask in (*(question.ask for question in _list_questions()), _iter_wrong_last_ids):
        try:
            yield from ask(store)
        except StoreIncompatible:  # an answer contains text that is not UTF-8
            if Defect.DAMAGED_TEXT not in found:
                raise


# SQLite's file


def _iter_sqlite(store: Store) -> Iterator[Flaw]:
    try:
        with store.read() as connection:
            # Without this, FTS5 checks the file against outdated data in this connection.
            connection.execute(text("SELECT rowid FROM search_tokens LIMIT 1")).all()
            check = text(f"PRAGMA integrity_check({MAX_REPORT_LINES})")
            report = connection.execute(check).scalars().all()
            foreign_code = find_foreign_code(connection)
            rows = connection.execute(text("PRAGMA foreign_key_check"))
            # Questions for every engine find the rows of missing accounts.
            broken = Counter(
                (table, parent) for table, _, parent, _ in rows if parent != "accounts"
            )
            damaged_texts = _count_damaged_texts(connection)
    except StoreIncompatible as error:
        yield Flaw(Defect.DAMAGED, 1, error.message, BACKUP)
        return
    for line in report:
        if line != "ok":
            yield Flaw(Defect.DAMAGED, 1, f"The file is damaged: {line}", BACKUP)
    for what, removal in foreign_code:
        remedy = f"Stop all programs that use the store, then run this SQL statement: {removal}"
        yield Flaw(Defect.FOREIGN_CODE, 1, f"The file has {what}", remedy)
    for table, count in damaged_texts.items():
        if count:
            what = f"Rows of {table} have text that is not UTF-8, or bytes in place of it, and cannot be read"
            yield Flaw(Defect.DAMAGED_TEXT, count, what, BACKUP)
    for (table, parent), count in broken.items():
        what = f"Rows of {table} refer to rows of {parent} that do not exist"
        yield Flaw(Defect.FOREIGN_KEY, count, what, BACKUP)


def _count_damaged_texts(connection: Connection) -> dict[str, int]:
    """Return, by table, how many rows have bytes, or text that is not UTF-8, instead of text.

    SQLite's own check does not find them.
    """
    is_utf8 = partial(_is_readable, bytes.decode)
    driver(connection).create_function("is_utf8", 1, is_utf8, deterministic=True)
    counts: dict[str, int] = {}
    for table in schema.metadata.sorted_tables:
        texts = [column for column in table.columns if isinstance(column.type, BinaryText)]
        is_whole = and_(
            *(func.typeof(column).in_(["text", "null"]) for column in texts),
            *(func.is_utf8(cast(func.coalesce(column, ""), LargeBinary)) for column in texts),
        )
        statement = select(func.count()).select_from(table).where(not_(is_whole))
        counts[table.name] = connection.execute(statement).scalar_one()
    return counts


# Questions about all accounts


class Question(NamedTuple):
    """A statement that counts a flaw by account, and the flaw's description and remedy.

    `what` and `remedy` are format strings whose fields are the columns of the statement, for
    example `account` (the name), `account_id`, `count`, and `first` (the first key of the rows
    found).
    """

    defect: Defect
    statement: Select[Any]
    what: str
    remedy: str

    def ask(self, store: Store) -> Iterator[Flaw]:
        """Yield the flaws, at most one per account."""
        for row in store.fetch(self.statement):
            yield _flaw(row._mapping, self.defect, self.what, self.remedy)


def _flaw(found: Mapping[str, Any], defect: Defect, what: str, remedy: str) -> Flaw:
    what, remedy = what.format_map(found), remedy.format_map(found)
    return Flaw(defect, found["count"], what, remedy, found["account"])


_ACCOUNT: Final = accounts.c.name.label("account"), accounts.c.id.label("account_id")


def _count(key: Column[str], *conditions: ColumnElement[bool]) -> Select[Any]:
    """Return the statement that counts the matching rows of the key's table by account."""
    rows: FromClause = key.table
    if rows is not accounts:
        rows = rows.join(accounts, accounts.c.id == key.table.c.account_id)
    return (
        select(*_ACCOUNT, func.count().label("count"), func.min(key).label("first"))
        .select_from(rows)
        .where(*conditions)
        .group_by(accounts.c.name, accounts.c.id)
        .order_by(accounts.c.name)
    )


def _removal(table: Any, *conditions: ColumnElement[bool]) -> str:
    """Return the remedy that deletes the matching rows of the account."""
    removal = delete(table).where(table.c.account_id == "{account_id}", *conditions)
    sql = str(removal.compile(compile_kwargs={"literal_binds": True}))
    return STOPPED + " ".join(sql.split())


def _unwanted(defect: Defect, key: Column[str], what: str, is_so: ColumnElement[bool]) -> Question:
    """Return the question for rows of the key's table that must be deleted.

    It ignores closed accounts, whose deletion removes resumes before the rows that belong to them.
    """
    return Question(defect, _count(key, is_so, IS_OPEN), what, _removal(key.table, is_so))


def _strays(defect: Defect, column: Column[str], what: str) -> Question:
    """Return the question for rows whose column contains the ID of a missing resume."""
    lacks = looked_up(resumes.c.id, resumes, column.table.c.account_id, column).is_(None)
    return _unwanted(defect, column, what, lacks)


def _orphans(table: Table) -> Question:
    owner = table.c.account_id
    return Question(
        Defect.ORPHANS,
        select(owner.label("account"), owner.label("account_id"), func.count().label("count"))
        .where(owner.not_in(select(accounts.c.id)))
        .group_by(owner),
        f"Rows of {table.name} belong to an account that does not exist",
        _removal(table),
    )


def _outcomes(table: Table, known: Sequence[FileOutcome]) -> Question:
    what = f"Rows of {table.name} have an unknown outcome: lists that include them fail"
    is_unknown = table.c.outcome.not_in(known)
    return _unwanted(Defect.BAD_OUTCOME, table.c.claim_id, what, is_unknown)


def _list_questions() -> list[Question]:
    """Return all questions. This is a function because creating the remedies takes milliseconds."""
    is_active = api_keys.c.revoked_at.is_(None)
    key = tuple_(api_keys.c.account_id, api_keys.c.id)
    hashed = tuple_(key_directory.c.account_id, key_directory.c.key_id)
    return [
        *map(_orphans, schema.ACCOUNT_TABLES),
        Question(
            Defect.NO_COUNTER,
            _count(accounts.c.id, accounts.c.id.not_in(select(account_usage.c.account_id))),
            "The account has no counter: nothing can be stored in it",
            BACKUP,
        ),
        Question(
            Defect.COUNTER,
            WRONG_COUNTERS,
            "The counter says {resume_count:,}, but the number of resumes is {rows:,}; the quota depends on it",
            STOPPED
            + "UPDATE account_usage SET resume_count = {rows} WHERE account_id = '{account_id}'",
        ),
        _unwanted(
            Defect.STRAY_KEY_HASH,
            key_directory.c.key_id,
            "The key directory has keys that are revoked or do not exist; they do not work",
            hashed.not_in(select(*key).where(is_active)),
        ),
        Question(
            Defect.NO_KEY_HASH,
            _count(api_keys.c.id, is_active, IS_OPEN, key.not_in(select(*hashed))),
            "Some keys are listed as active, but are not in the key directory; they do not work",
            "Create new ones: `resumes keys create {account}`",
        ),
        Question(
            Defect.NO_DOCUMENT,
            _count(
                resumes.c.id,
                looked_up(documents.c.id, documents, resumes.c.account_id, resumes.c.id).is_(None),
            ),
            "Some resumes are listed, but have no document",
            BACKUP + ", or delete each: `resumes delete {first} --account {account}`",
        ),
        _strays(
            Defect.STRAY_DOCUMENT,
            documents.c.id,
            "Some documents are stored, but belong to no resume",
        ),
        _outcomes(imported_files, list(FileOutcome)),
        _outcomes(imported_items, [FileOutcome.DONE, FileOutcome.DUPLICATE]),
        _strays(
            Defect.STRAY_DIGEST,
            imported_digests.c.resume_id,
            "Content is recorded as stored, but its resume was deleted: files with that content become duplicates",
        ),
        _strays(
            Defect.STRAY_SEARCH_ENTRY,
            search_entries.c.id,
            "The search index has deleted resumes; they are not shown",
        ),
    ]


_LAST_IDS: Final = (
    select(
        *_ACCOUNT,
        account_usage.c.last_id_us,
        select(func.max(resumes.c.id))
        .where(resumes.c.account_id == account_usage.c.account_id)
        .scalar_subquery()
        .label("newest"),
    )
    .join(account_usage)
    .order_by(accounts.c.name)
)
"""The position of the last ID that each account assigned, and the ID of its newest resume."""


def _iter_wrong_last_ids(store: Store) -> Iterator[Flaw]:
    for row in store.fetch(_LAST_IDS):
        what, remedy = f"{row.newest!r} is not a resume ID", BACKUP
        with contextlib.suppress(ValueError):
            newest_us = position_of(row.newest) if row.newest else 0
            if newest_us <= row.last_id_us:
                continue
            what = f"The last ID is before {row.newest}: new resumes may be listed before it"
            remedy = (
                f"{STOPPED}UPDATE account_usage SET last_id_us = {newest_us} "
                f"WHERE account_id = '{row.account_id}'"
            )
        yield Flaw(Defect.LAST_ID, 1, what, remedy, row.account)


# Contents

CONTENTS: Final = {
    Defect.BAD_DOCUMENT: (
        "Some documents are not resumes: reading one of them fails",
        BACKUP + ", or delete each: `resumes delete {first} --account {account}`",
    ),
    Defect.CHANGED_DOCUMENT: ("Some documents have changed since they were stored", BACKUP),
    Defect.BAD_ITEMS: (
        "Some files have an unreadable history: listing them fails",
        STOPPED + "UPDATE imported_files SET items = NULL "
        "WHERE account_id = '{account_id}' AND claim_id = '{first}'",
    ),
}
"""Descriptions and remedies for flaws in contents, with the same fields as in a Question."""


def iter_accounts(store: Store) -> Iterator[Checked]:
    """Yield the accounts in order of their names; an account is read only when it is requested."""
    for row in store.fetch(select(*_ACCOUNT).order_by(accounts.c.name)):
        yield _check_contents(store, row.account_id, row.account)


def _check_contents(store: Store, account_id: str, name: str) -> Checked:
    bad: defaultdict[Defect, list[str]] = defaultdict(list)
    documents_read = 0
    # Text that is not UTF-8 stops this check; `iter_damage` reports it.
    with contextlib.suppress(StoreIncompatible):
        stored = select(documents).where(documents.c.account_id == account_id)
        for row in iter_in_pages(store.fetch, stored, [documents.c.id], page_rows=ROWS_AT_ONCE):
            documents_read += 1
            # SQLite returns bytes if a damaged row contains bytes.
            content = row.document.encode() if isinstance(row.document, str) else b""
            if not _is_readable(check_stored, content):
                bad[Defect.BAD_DOCUMENT].append(row.id)
            elif crc32(content) != row.crc32:
                bad[Defect.CHANGED_DOCUMENT].append(row.id)
    with contextlib.suppress(StoreIncompatible):
        claim_id, items = imported_files.c["claim_id", "items"]
        with_items = imported_files.c.account_id == account_id, items.is_not(None)
        listed = select(claim_id, items).where(*with_items)
        for row in iter_in_pages(store.fetch, listed, [claim_id], page_rows=ROWS_AT_ONCE):
            if not _is_readable(parse_items, row.items):
                bad[Defect.BAD_ITEMS].append(row.claim_id)
    found = {"account": name, "account_id": account_id}
    flaws = [
        _flaw({**found, "count": len(keys), "first": keys[0]}, defect, *texts)
        for defect, texts in CONTENTS.items()
        if (keys := bad[defect])
    ]
    return Checked(name, documents_read, flaws)


def _is_readable(parse: Callable[[Any], object], content: Any) -> bool:
    try:
        parse(content)
    except (InvalidInput, ValueError):
        return False
    return True
