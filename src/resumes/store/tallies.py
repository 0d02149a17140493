"""How many files the ledger knows, by what became of them, over all accounts."""

from typing import NamedTuple

from sqlalchemy import func, select

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


def tally_files(store: Store) -> list[FileTally]:
    """The files in the ledger by outcome and reason; done files are told even if there are none.

    Takes time that grows with the ledger (docs/operations.md, Metrics).
    """
    with store.read() as connection:
        rows = connection.execute(FILES_NOT_DONE).all()
        all_count = connection.execute(ALL_FILES).scalar_one()
    tallies = [FileTally(FileOutcome(outcome), reason, files) for outcome, reason, files in rows]
    # Two statements: a file may have been recorded between them.
    done_count = max(0, all_count - sum(tally.files for tally in tallies))
    return [FileTally(FileOutcome.DONE, None, done_count), *tallies]
