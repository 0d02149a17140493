"""Whether all that a store holds fits together: what a defect, a bad disk or a hand may have broken.

Each question is one statement, so that its answer holds while others write. Here are those about the
store as a whole; those about an account are in resumes.store.account_checking.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy import (
    Connection,
    Executable,
    LargeBinary,
    Table,
    and_,
    cast,
    func,
    not_,
    select,
    text,
)

from resumes.errors import StoreIncompatible
from resumes.store import schema
from resumes.store.columns import Text
from resumes.store.engine import Store
from resumes.store.schema import (
    account_usage,
    accounts,
    api_keys,
    key_directory,
)
from resumes.store.sqlite.files import find_foreign_code
from resumes.store.statements import driver

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
