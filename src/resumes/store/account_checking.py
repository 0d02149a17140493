"""Whether all that an account holds fits together.

Each question is one statement, so that its answer holds while others write. An account that is being
deleted or imported is not whole, and less is asked of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Executable, Table, bindparam, func, select

from resumes.store import content_checking
from resumes.store.checking import BACKUP, STOPPED, Defect, Flaw, Question
from resumes.store.counters import ResumeCounter, find_counter
from resumes.store.engine import Store
from resumes.store.identifiers import POSITION_DIGITS
from resumes.store.ledger import FileOutcome
from resumes.store.paging import next_page
from resumes.store.schema import (
    account_usage,
    accounts,
    documents,
    imported_digests,
    imported_files,
    imported_items,
    resumes,
    search_entries,
)
from resumes.store.statements import looked_up


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
    flaws += content_checking.iter_flaws(store, account_id, name)
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
