"""How many files the ledger knows, by what became of them, of one account or over all."""

from typing import NamedTuple

from sqlalchemy import Connection, func, select

from resumes.store.engine import Store
from resumes.store.ledger import NOT_DONE, FileOutcome
from resumes.store.schema import imported_files


class FileTally(NamedTuple):
    """How many files have this outcome for this reason; done files have none."""

    outcome: FileOutcome
    reason: str | None
    files: int


# Without a condition the engine counts the table's pages, without looking into rows.
ALL_FILES = select(func.count()).select_from(imported_files)
FILES_NOT_DONE = (
    select(imported_files.c.outcome, imported_files.c.reason, func.count())
    .where(NOT_DONE)
    .group_by(imported_files.c.outcome, imported_files.c.reason)
)
"""From the index of what is not done alone."""


def tally_files(store: Store, *, account_id: str | None = None) -> list[FileTally]:
    """The files in the ledger by outcome and reason; done files are told even if there are none.

    Takes time that grows with the ledger (docs/operations.md, Metrics).
    """
    with store.read() as connection:
        tallies = _not_done(connection, account_id)
        count = ALL_FILES
        if account_id is not None:
            count = count.where(imported_files.c.account_id == account_id)
        all_count = connection.execute(count).scalar_one()
    # Two statements: a file may have been recorded between them.
    done_count = max(0, all_count - sum(tally.files for tally in tallies))
    return [FileTally(FileOutcome.DONE, None, done_count), *tallies]


def tally_not_done(store: Store, *, account_id: str | None = None) -> list[FileTally]:
    """The same without the done files: takes time that grows with the others alone."""
    with store.read() as connection:
        return _not_done(connection, account_id)


def _not_done(connection: Connection, account_id: str | None) -> list[FileTally]:
    statement = FILES_NOT_DONE
    if account_id is not None:
        statement = statement.where(imported_files.c.account_id == account_id)
    return [
        FileTally(FileOutcome(outcome), reason, files)
        for outcome, reason, files in connection.execute(statement).all()
    ]
