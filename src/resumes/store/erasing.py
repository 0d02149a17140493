"""Erasing resumes. Every deletion of a resume uses these functions.

They keep the data that recovery and repeated requests need: the IDs of the resumes that claims'
items and Idempotency-Keys created.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, select
from sqlmodel import Session

from resumes.store import search_index
from resumes.store.schema import documents, imported_digests, resumes
from resumes.store.statements import params_equal, pk_equals
from resumes.store.store import change_count

_ERASE_ROWS: Final = tuple(delete(table).where(pk_equals(table)) for table in (resumes, documents))
_ERASE_DIGESTS: Final = delete(imported_digests).where(
    params_equal(imported_digests.c.account_id), imported_digests.c.resume_id == bindparam("id")
)


def erase_rows(connection: Connection, account_id: str, resume_ids: Sequence[str]) -> None:
    """Erase the resumes, their documents and their index entries, but not their digests.

    The caller changes the account's counter.
    """
    # Each by its full key: for a list of keys, PostgreSQL may scan the account (pitfalls S24).
    rows = [{"account_id": account_id, "id": resume_id} for resume_id in resume_ids]
    for statement in _ERASE_ROWS:
        connection.execute(statement, rows)
    search_index.remove(connection, account_id, resume_ids)


def erase(session: Session, account_id: str, resume_ids: Sequence[str]) -> int:
    """Erase those of the resumes that exist, and return their number. The account must be locked.

    The claims and Idempotency-Keys that created them are kept.
    """
    these = resumes.c.account_id == account_id, resumes.c.id.in_(resume_ids)
    connection = session.connection()
    found = connection.execute(select(resumes.c.id).where(*these)).scalars().all()
    if found:
        erase_rows(connection, account_id, found)
        rows = [{"account_id": account_id, "id": each} for each in found]
        connection.execute(_ERASE_DIGESTS, rows)
        change_count(session, account_id, -len(found))
    return len(found)
