"""What an account has besides its resumes: keys, and files that the importer remembers."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Result, bindparam, func, select

from resumes.clock import timestamp
from resumes.store.engine import Store
from resumes.store.ledger import NOT_DONE, FileOutcome
from resumes.store.schema import api_keys, imported_files

FILES_NOT_DONE = (
    select(imported_files.c.outcome, func.count())
    .where(imported_files.c.account_id == bindparam("account_id"), NOT_DONE)
    .group_by(imported_files.c.outcome)
)
"""From the index of what is not done alone."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """An account's keys, and its files that are not done.

    `keys` counts those that no longer count, too; `last_used_at` None: no key was ever used.
    """

    keys: int
    active_keys: int
    last_used_at: str | None
    files_held: int
    files_failed: int


def get_holdings(store: Store, account_id: str) -> Holdings:
    """What the account of this id has; nothing, where there is no such account."""
    of_keys = select(
        func.count(),
        func.count().filter(_is_active(store)),
        func.max(api_keys.c.last_used_at),
    ).where(api_keys.c.account_id == account_id)
    with store.read() as connection:
        keys, active_keys, last_used_at = connection.execute(of_keys).one()
        files = _pairs(connection.execute(FILES_NOT_DONE, {"account_id": account_id}))
    held, failed = files.get(FileOutcome.HELD, 0), files.get(FileOutcome.FAILED, 0)
    return Holdings(keys, active_keys, last_used_at, held, failed)


def count_active_keys(store: Store) -> dict[str, int]:
    """How many keys count, by account id; accounts without such a key are left out."""
    statement = (
        select(api_keys.c.account_id, func.count())
        .where(_is_active(store))
        .group_by(api_keys.c.account_id)
    )
    with store.read() as connection:
        return _pairs(connection.execute(statement))


def count_files(store: Store, account_id: str) -> int:
    """How many files of the account the ledger knows. Takes time that grows with them."""
    statement = (
        select(func.count())
        .select_from(imported_files)
        .where(imported_files.c.account_id == account_id)
    )
    with store.read() as connection:
        return connection.execute(statement).scalar_one()


def _pairs(result: Result[str, int]) -> dict[str, int]:
    return {name: count for name, count in result}  # noqa: C416 - rows are no tuples to mypy


def _is_active(store: Store) -> ColumnElement[bool]:
    is_unexpired = api_keys.c.expires_at > timestamp(store.clock())
    return api_keys.c.revoked_at.is_(None) & (api_keys.c.expires_at.is_(None) | is_unexpired)
