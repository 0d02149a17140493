"""Whether all that an account holds fits together.

Each question is one statement, so that its answer holds while others write. An account that is being
deleted or imported is not whole, and less is asked of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Executable, Integer, Table, and_, bindparam, func, select

from resumes.store.checking import BACKUP, STOPPED, Defect, Finding, Question
from resumes.store.engine import Store
from resumes.store.identifiers import POSITION_DIGITS
from resumes.store.schema import (
    account_usage,
    accounts,
    documents,
    imported_digests,
    resumes,
    search_entries,
)


@dataclass(frozen=True, slots=True)
class Checked:
    """An account that was looked at, how many resumes it holds, and what is wrong with it."""

    account: str
    resumes: int
    findings: Sequence[Finding]


def _strays(table: Table, column: ColumnElement[str], other: Table) -> Executable:
    """How many rows of an account name a resume that the other table lacks, and the first of these."""
    return (
        select(func.count(), func.min(column))
        .select_from(
            table.outerjoin(
                other, and_(other.c.account_id == table.c.account_id, other.c.id == column)
            )
        )
        .where(table.c.account_id == bindparam("account_id"), other.c.id.is_(None))
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

ACCOUNTS_AFTER: Final = (
    select(accounts.c.id, accounts.c.name, accounts.c.closed_at)
    .where(accounts.c.name > bindparam("after"))
    .order_by(accounts.c.name)
    .limit(bindparam("rows", type_=Integer))
)
ACCOUNTS_AT_ONCE: Final = 200

_OF_ACCOUNT = resumes.c.account_id == bindparam("account_id")
COUNTS: Final = select(
    account_usage.c.resume_count,
    account_usage.c.last_id_us,
    select(func.count()).select_from(resumes).where(_OF_ACCOUNT).scalar_subquery(),
    select(func.max(resumes.c.id)).where(_OF_ACCOUNT).scalar_subquery(),
).where(account_usage.c.account_id == bindparam("account_id"))


def iter_accounts(store: Store) -> Iterator[Checked]:
    """Each account by name, looked at when it is asked for; one that goes meanwhile is left out."""
    after = ""
    while True:
        with store.read() as connection:
            some = connection.execute(
                ACCOUNTS_AFTER, {"after": after, "rows": ACCOUNTS_AT_ONCE}
            ).all()
        for account_id, name, closed_at in some:
            checked = _check(store, account_id, name, is_open=closed_at is None)
            if checked is not None:
                yield checked
            after = name
        if len(some) < ACCOUNTS_AT_ONCE:
            return


def _check(store: Store, account_id: str, name: str, *, is_open: bool) -> Checked | None:
    this: dict[str, Any] = {"account_id": account_id}
    with store.read() as connection:
        row = connection.execute(COUNTS, this).first()
        if row is None:
            return None
        counter, last_id_us, rows, newest = row
        findings = [*_of_counter(account_id, name, counter, rows)]
        findings += _of_last_id(account_id, name, last_id_us, newest)
        for question in (*WHOLE_QUESTIONS, *(OPEN_QUESTIONS if is_open else ())):
            count, first = connection.execute(question.statement, this).one()
            if count:
                findings.append(question.finding(name, account_id, count, first))
    return Checked(name, rows, findings)


def _of_counter(account_id: str, name: str, counter: int, rows: int) -> Iterator[Finding]:
    if counter != rows:
        yield Finding(
            Defect.COUNTER,
            abs(counter - rows),
            f"The counter says {counter:,} resumes and there are {rows:,}; the quota goes by it",
            f"{STOPPED}UPDATE account_usage SET resume_count = {rows} "
            f"WHERE account_id = '{account_id}'",
            name,
        )


def _of_last_id(
    account_id: str, name: str, last_id_us: int, newest: str | None
) -> Iterator[Finding]:
    try:
        newest_us = 0 if newest is None else int(newest[:POSITION_DIGITS], 16)
    except ValueError:
        newest_us = -1
    if newest_us < 0:
        yield Finding(Defect.LAST_ID, 1, f"{newest!r} is no id of a resume", BACKUP, name)
    elif newest_us > last_id_us:
        yield Finding(
            Defect.LAST_ID,
            1,
            f"The last id is before that of {newest}: new resumes may come before it in lists",
            f"{STOPPED}UPDATE account_usage SET last_id_us = {newest_us} "
            f"WHERE account_id = '{account_id}'",
            name,
        )
