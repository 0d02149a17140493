"""Whether all that a store holds fits together: what a defect, a bad disk or a hand may have broken.

Each question is one statement, so that its answer holds while others write. Here are those about the
store as a whole; those about an account are in resumes.store.integrity.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    LargeBinary,
    Select,
    Table,
    and_,
    bindparam,
    cast,
    func,
    not_,
    select,
    text,
)

from resumes.analyzer import check_stored
from resumes.errors import InvalidInput, StoreIncompatible
from resumes.store import schema
from resumes.store.accounts import ResumeCounter, find_counter
from resumes.store.identifiers import POSITION_DIGITS
from resumes.store.import_items import parse_items
from resumes.store.import_ledger import FileOutcome
from resumes.store.schema import (
    Text,
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
from resumes.store.statements import driver, looked_up, next_page
from resumes.store.store import Store

TOLD: Final = 20
"""Lines of SQLite's own report that are passed on at most."""


class Defect(StrEnum):
    """What can be wrong."""

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
    BAD_ITEMS = "bad_items"
    BAD_OUTCOME = "bad_outcome"


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong, how many of it there are, and what to do.

    `account` is the account's name, or its id where it has none; None: it is not an account's.
    """

    defect: Defect
    count: int
    what: str
    remedy: str
    account: str | None = None


BACKUP: Final = "Restore a backup: `resumes db restore`"
STOPPED: Final = "Stop all programs, make a backup (`resumes db backup`), then in SQL: "


def iter_damage(store: Store) -> Iterator[Flaw]:
    """What is wrong with the store as a whole. On SQLite the file is read from end to end, and
    nothing more is asked of one that is damaged."""
    with store.read() as connection:
        is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite:
        is_damaged = False
        for flaw in _iter_sqlite(store):
            is_damaged = is_damaged or flaw.defect is Defect.DAMAGED
            yield flaw
        if is_damaged:
            return
    for table in TABLES_OF_ACCOUNTS:
        yield from _iter_orphans(store, table)
    with store.read() as connection:
        without = connection.execute(WITHOUT_COUNTER).scalars().all()
    for name in without:
        yield Flaw(
            Defect.NO_COUNTER, 1, "The account has no counter: nothing can be stored in it", BACKUP,
            name,
        )  # fmt: skip
    for question in KEY_QUESTIONS:
        with store.read() as connection:
            rows = connection.execute(question.statement).all()
        for name, account_id, count in rows:
            yield question.flaw(name or account_id, account_id, count)


def _iter_sqlite(store: Store) -> Iterator[Flaw]:
    try:
        with store.read() as connection:
            report = connection.execute(text(f"PRAGMA integrity_check({TOLD})")).scalars().all()
            foreign_code = find_foreign_code(connection)
            broken = _foreign_keys(connection)
            damaged_texts = _count_damaged_texts(connection)
    except StoreIncompatible as error:
        yield Flaw(Defect.DAMAGED, 1, error.message, BACKUP)
        return
    for line in report:
        if line != "ok":
            yield Flaw(Defect.DAMAGED, 1, f"The file is damaged: {line}", BACKUP)
    for found in foreign_code:
        remedy = f"Stop all programs, then in SQL: {found.removal}"
        yield Flaw(Defect.FOREIGN_CODE, 1, f"The file has {found.what}", remedy)
    for table, count in damaged_texts.items():
        if count:
            what = f"Rows of {table} hold text that is no UTF-8, and cannot be read"
            yield Flaw(Defect.DAMAGED_TEXT, count, what, BACKUP)
    for (table, parent), count in broken.items():
        yield Flaw(
            Defect.FOREIGN_KEY, count, f"Rows of {table} name rows of {parent} that are not there",
            BACKUP,
        )  # fmt: skip


def _count_damaged_texts(connection: Connection) -> dict[str, int]:
    """By table, how many rows have text that is no UTF-8: the file's own check sees bytes alone."""
    driver(connection).create_function("is_utf8", 1, _is_utf8, deterministic=True)
    counts: dict[str, int] = {}
    for table in schema.metadata.sorted_tables:
        is_whole = and_(
            *(
                func.is_utf8(cast(column, LargeBinary))
                for column in table.columns
                if isinstance(column.type, Text)
            )
        )
        counts[table.name] = connection.execute(
            select(func.count()).select_from(table).where(not_(is_whole))
        ).scalar_one()
    return counts


def _is_utf8(content: bytes | None) -> bool:
    try:
        (content or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _foreign_keys(connection: Connection) -> dict[tuple[str, str], int]:
    """By table and the table that it names, how many rows name one that is not there."""
    broken: dict[tuple[str, str], int] = {}
    for table, _, parent, _ in connection.execute(text("PRAGMA foreign_key_check")):
        # Rows of accounts that do not exist are found on every engine.
        if parent != accounts.name:
            broken[table, parent] = broken.get((table, parent), 0) + 1
    return broken


TABLES_OF_ACCOUNTS: Final = tuple(
    table for table in schema.metadata.sorted_tables if "account_id" in table.columns
)


def _iter_orphans(store: Store, table: Table) -> Iterator[Flaw]:
    statement = (
        select(table.c.account_id, func.count())
        .select_from(table.outerjoin(accounts, accounts.c.id == table.c.account_id))
        .where(accounts.c.id.is_(None))
        .group_by(table.c.account_id)
    )
    with store.read() as connection:
        rows = connection.execute(statement).all()
    for account_id, count in rows:
        yield Flaw(
            Defect.ORPHANS, count, f"Rows of {table.name} are of an account that does not exist",
            f"{STOPPED}DELETE FROM {table.name} WHERE account_id = '{account_id}'",
            account_id,
        )  # fmt: skip


WITHOUT_COUNTER: Final = (
    select(accounts.c.name)
    .outerjoin(account_usage, account_usage.c.account_id == accounts.c.id)
    .where(account_usage.c.account_id.is_(None))
    .order_by(accounts.c.name)
)


class Question(NamedTuple):
    """A statement that counts what is wrong, and what is said of it.

    The remedy has places for the account's name and id, and for the first one that is wrong.
    """

    defect: Defect
    statement: Executable
    what: str
    remedy: str

    def flaw(self, account: str, account_id: str, count: int, first: str = "") -> Flaw:
        """What is said of so many in this account."""
        remedy = self.remedy.format(account=account, account_id=account_id, first=first)
        return Flaw(self.defect, count, self.what, remedy, account)


def _keys_question(defect: Defect, of: Table, other: Table, what: str, remedy: str) -> Question:
    """Counts the rows of one of the two tables of keys that the other lacks, by account."""
    is_same = and_(
        key_directory.c.account_id == api_keys.c.account_id, key_directory.c.key_id == api_keys.c.id
    )
    counts = api_keys.c.revoked_at.is_(None)
    lacks = (
        other.c.account_id.is_(None) & counts & accounts.c.closed_at.is_(None)
        if of is api_keys
        else other.c.account_id.is_(None) | ~counts
    )
    statement = (
        select(accounts.c.name, of.c.account_id, func.count())
        .select_from(of.outerjoin(other, is_same))
        .join(accounts, accounts.c.id == of.c.account_id)
        .where(lacks)
        .group_by(accounts.c.name, of.c.account_id)
        .order_by(accounts.c.name)
    )
    return Question(defect, statement, what, remedy)


KEY_QUESTIONS: Final = (
    _keys_question(
        Defect.STRAY_KEY_HASH,
        key_directory,
        api_keys,
        "The key directory has keys that are revoked or not there; they do not count",
        STOPPED + "DELETE FROM key_directory WHERE account_id = '{account_id}' AND key_id NOT IN "
        "(SELECT id FROM api_keys WHERE account_id = '{account_id}' AND revoked_at IS NULL)",
    ),
    _keys_question(
        Defect.NO_KEY_HASH,
        api_keys,
        key_directory,
        "Keys are listed as active and are not in the key directory; they do not count",
        "Make new ones: `resumes keys create {account}`",
    ),
)


@dataclass(frozen=True, slots=True)
class Checked:
    """An account that was looked at, how many resumes it holds, and what is wrong with it."""

    account: str
    resumes: int
    flaws: Sequence[Flaw]


def _strays(table: Table, column: ColumnElement[str], other: Table) -> Executable:
    """How many rows of an account name a resume that the other table lacks, and the first of these."""
    return select(func.count(), func.min(column)).where(
        table.c.account_id == bindparam("account_id"),
        looked_up(other.c.id, other, table.c.account_id, column).is_(None),
    )


def _outcomes(table: Table, known: Sequence[FileOutcome]) -> Question:
    """How many rows of the ledger have an outcome that there is not."""
    words = ", ".join(f"'{outcome}'" for outcome in known)
    return Question(
        Defect.BAD_OUTCOME,
        select(func.count(), func.min(table.c.claim_id)).where(
            table.c.account_id == bindparam("account_id"), table.c.outcome.not_in(known)
        ),
        f"Rows of {table.name} have an outcome that there is not: lists that they are in fail",
        STOPPED + f"DELETE FROM {table.name} WHERE account_id = '{{account_id}}' "
        f"AND outcome NOT IN ({words})",
    )


WHOLE_QUESTIONS: Final = (
    Question(
        Defect.NO_DOCUMENT,
        _strays(resumes, resumes.c.id, documents),
        "Resumes are listed and have no document",
        BACKUP + ", or let go of each: `resumes delete {first} --account {account}`",
    ),
    Question(
        Defect.STRAY_DOCUMENT,
        _strays(documents, documents.c.id, resumes),
        "Documents are stored and are no resume's",
        STOPPED + "DELETE FROM documents WHERE account_id = '{account_id}' AND id NOT IN "
        "(SELECT id FROM resumes WHERE account_id = '{account_id}')",
    ),
    _outcomes(imported_files, list(FileOutcome)),
    _outcomes(imported_items, [FileOutcome.DONE, FileOutcome.DUPLICATE]),
)
OPEN_QUESTIONS: Final = (
    Question(
        Defect.STRAY_DIGEST,
        _strays(imported_digests, imported_digests.c.resume_id, resumes),
        "Contents count as stored, and their resumes are gone: such files are taken for duplicates",
        STOPPED + "DELETE FROM imported_digests WHERE account_id = '{account_id}' AND resume_id "
        "NOT IN (SELECT id FROM resumes WHERE account_id = '{account_id}')",
    ),
    Question(
        Defect.STRAY_SEARCH_ENTRY,
        _strays(search_entries, search_entries.c.id, resumes),
        "The search index has resumes that are gone; nobody is shown them",
        STOPPED + "DELETE FROM search_entries WHERE account_id = '{account_id}' AND id NOT IN "
        "(SELECT id FROM resumes WHERE account_id = '{account_id}')",
    ),
)
"""Asked of open accounts only: while one is deleted, these go after its resumes."""

ROWS_AT_ONCE: Final = 25
"""Each may have megabytes."""


def _is_resume(document: str) -> bool:
    try:
        check_stored(document.encode())
    except InvalidInput:
        return False
    return True


def _is_items(text: str) -> bool:
    try:
        parse_items(text)
    except ValueError:
        return False
    return True


class Contents(NamedTuple):
    """Texts that are read as something, of which there is one for each key; and what is said of
    those that cannot be. The question's statement gives a page of keys and texts."""

    question: Question
    after: str
    is_readable: Callable[[str], bool]


def _page(key: ColumnElement[str], content: ColumnElement[Any]) -> Select[Any]:
    owner = key.table.c.account_id
    return next_page(
        select(key, content).where(owner == bindparam("account_id"), content.is_not(None)), key
    )


CONTENTS: Final = (
    Contents(
        Question(
            Defect.BAD_DOCUMENT,
            _page(documents.c.id, documents.c.document),
            "Documents are no resumes: who asks for one gets an error",
            BACKUP + ", or let go of each: `resumes delete {first} --account {account}`",
        ),
        "after_id",
        _is_resume,
    ),
    Contents(
        Question(
            Defect.BAD_ITEMS,
            _page(imported_files.c.claim_id, imported_files.c["items"]),
            "Files have a history that cannot be read: lists that they are in fail",
            STOPPED + "UPDATE imported_files SET items = NULL "
            "WHERE account_id = '{account_id}' AND claim_id = '{first}'",
        ),
        "after_claim_id",
        _is_items,
    ),
)


def iter_flaws(store: Store, account_id: str, name: str) -> Iterator[Flaw]:
    """What of the account's contents cannot be read back."""
    for contents in CONTENTS:
        bad: list[str] = []
        # Text that is no UTF-8 ends it: iter_damage tells of that.
        with contextlib.suppress(StoreIncompatible):
            bad.extend(_iter_bad(store, account_id, contents))
        if bad:
            yield contents.question.flaw(name, account_id, len(bad), bad[0])


def _iter_bad(store: Store, account_id: str, contents: Contents) -> Iterator[str]:
    """The keys of what cannot be read, in order."""
    after = ""
    while True:
        with store.read() as connection:
            page = connection.execute(
                contents.question.statement,
                {"account_id": account_id, contents.after: after, "rows": ROWS_AT_ONCE},
            ).all()
        for key, content in page:
            if not contents.is_readable(content):
                yield key
        if len(page) < ROWS_AT_ONCE:
            return
        after = page[-1][0]


ACCOUNTS: Final = next_page(
    select(accounts.c.id, accounts.c.name, accounts.c.closed_at), accounts.c.name
)
ACCOUNTS_AT_ONCE: Final = 200

LAST_IDS: Final = select(
    account_usage.c.last_id_us,
    select(func.max(resumes.c.id))
    .where(resumes.c.account_id == bindparam("account_id"))
    .scalar_subquery(),
).where(account_usage.c.account_id == bindparam("account_id"))
"""The time of the newest id that the account gave, and the newest one that is there."""


def iter_accounts(store: Store, *, at_once: int = ACCOUNTS_AT_ONCE) -> Iterator[Checked]:
    """Each account by name, looked at when it is asked for; one that goes meanwhile is left out."""
    after = ""
    while True:
        with store.read() as connection:
            some = connection.execute(ACCOUNTS, {"after_name": after, "rows": at_once}).all()
        for account_id, name, closed_at in some:
            checked = _check(store, account_id, name, is_open=closed_at is None)
            if checked is not None:
                yield checked
            after = name
        if len(some) < at_once:
            return


def _check(store: Store, account_id: str, name: str, *, is_open: bool) -> Checked | None:
    this: dict[str, Any] = {"account_id": account_id}
    with store.read() as connection:
        counter = find_counter(connection, account_id)
        last_ids = connection.execute(LAST_IDS, this).first()
        if counter is None or last_ids is None:
            return None
        flaws = [*_of_counter(account_id, counter), *_of_last_id(account_id, name, *last_ids)]
        for question in (*WHOLE_QUESTIONS, *(OPEN_QUESTIONS if is_open else ())):
            count, first = connection.execute(question.statement, this).one()
            if count:
                flaws.append(question.flaw(name, account_id, count, first))
    flaws += iter_flaws(store, account_id, name)
    return Checked(name, counter.rows, flaws)


def _of_counter(account_id: str, counter: ResumeCounter) -> Iterator[Flaw]:
    if not counter.is_right:
        yield Flaw(
            Defect.COUNTER,
            abs(counter.resume_count - counter.rows),
            f"The counter says {counter.resume_count:,} resumes and there are {counter.rows:,}; "
            "the quota goes by it",
            f"{STOPPED}UPDATE account_usage SET resume_count = {counter.rows} "
            f"WHERE account_id = '{account_id}'",
            counter.account,
        )


def _of_last_id(account_id: str, name: str, last_id_us: int, newest: str | None) -> Iterator[Flaw]:
    try:
        newest_us = 0 if newest is None else int(newest[:POSITION_DIGITS], 16)
    except ValueError:
        newest_us = -1
    if newest_us < 0:
        yield Flaw(Defect.LAST_ID, 1, f"{newest!r} is no id of a resume", BACKUP, name)
    elif newest_us > last_id_us:
        yield Flaw(
            Defect.LAST_ID,
            1,
            f"The last id is before that of {newest}: new resumes may come before it in lists",
            f"{STOPPED}UPDATE account_usage SET last_id_us = {newest_us} "
            f"WHERE account_id = '{account_id}'",
            name,
        )
