"""Accounts: tenants with a plan. Their ids are random and never reused; names can be."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Result,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)

from resumes.clock import timestamp
from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.store import identifiers, search_index
from resumes.store.import_ledger import NOT_DONE, FileOutcome
from resumes.store.schema import (
    account_usage,
    accounts,
    api_keys,
    deleted_accounts,
    documents,
    idempotency,
    import_requests,
    imported_digests,
    imported_files,
    imported_items,
    key_directory,
    plans,
    resumes,
    search_entries,
    search_progress,
)
from resumes.store.statements import Prepared
from resumes.store.store import Store, each

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
FIRST_PLAN = "free"
ARRIVING = "~import"
"""Ends the name of an account that is being imported, which nobody can choose. It is closed."""

SLICE_RESUMES = 500
"""Resumes that go in one transaction when an account is deleted, so that others get their turn."""

SLICE_LEDGER_ROWS = 5_000
"""Rows of the ledger that do."""


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """An account, its plan and what it holds. `max_resumes` None is unlimited.

    `last_id_us` is the time in the id of its newest resume, gone since or not; 0: none ever. A
    closed account is being deleted: nothing enters it, and its resumes go. Or it is arriving.
    """

    id: str
    name: str
    plan: str
    created_at: str
    resume_count: int
    max_resumes: int | None
    api_listing: bool
    last_id_us: int = 0
    is_closed: bool = False

    @property
    def free_places(self) -> int | None:
        """How many more resumes fit; None without a limit."""
        return None if self.max_resumes is None else max(0, self.max_resumes - self.resume_count)

    @property
    def last_resume_at(self) -> str | None:
        """When its newest resume came in, gone since or not; None: never."""
        return timestamp(self.last_id_us) if self.last_id_us else None

    @property
    def is_arriving(self) -> bool:
        """Whether it is being imported, or was until that was cut off."""
        return self.name.endswith(ARRIVING)

    @property
    def is_over(self) -> bool:
        """Whether it holds more than its plan allows."""
        return self.max_resumes is not None and self.resume_count > self.max_resumes


SELECT_ACCOUNT = (
    select(
        accounts.c.id,
        accounts.c.name,
        accounts.c.plan,
        accounts.c.created_at,
        account_usage.c.resume_count,
        plans.c.max_resumes,
        plans.c.api_listing,
        account_usage.c.last_id_us,
        accounts.c.closed_at.is_not(None),
    )
    .join(account_usage, account_usage.c.account_id == accounts.c.id)
    .join(plans, plans.c.name == accounts.c.plan)
)
IS_OPEN = accounts.c.closed_at.is_(None)


def check_name(name: str, kind: str = "account") -> str:
    """The name. Raises InvalidArgument unless it is `[a-z0-9][a-z0-9-]{0,62}`."""
    if not NAME.fullmatch(name):
        raise InvalidArgument(
            f"Invalid {kind} name {name[:80]!r}: use 1 to 63 of a-z, 0-9 and -, not - first"
        )
    return name


def list_accounts(store: Store, *, closed_too: bool = False) -> list[AccountInfo]:
    """All accounts by name; those that are being deleted only if asked for."""
    statement = SELECT_ACCOUNT if closed_too else SELECT_ACCOUNT.where(IS_OPEN)
    with store.read() as connection:
        rows = connection.execute(statement.order_by(accounts.c.name)).all()
    return [AccountInfo(*row) for row in rows]


def find_account(store: Store, name: str, *, closed_too: bool = False) -> AccountInfo | None:
    """The account of this name, if any; one that is being deleted only if asked for."""
    statement = SELECT_ACCOUNT if closed_too else SELECT_ACCOUNT.where(IS_OPEN)
    with store.read() as connection:
        row = connection.execute(statement.where(accounts.c.name == name)).first()
    return None if row is None else AccountInfo(*row)


_OPEN = Prepared(select(accounts.c.id).where(accounts.c.id == bindparam("account_id"), IS_OPEN))
_DELETED = Prepared(
    select(deleted_accounts.c.id).where(deleted_accounts.c.id == bindparam("account_id"))
)


def find_open(store: Store, account_ids: Collection[str]) -> set[str]:
    """Return those of the ids whose accounts are there and not being deleted."""
    return _find_each(store, _OPEN, account_ids)


def _find_each(store: Store, one: Prepared, account_ids: Collection[str]) -> set[str]:
    with store.read() as connection:
        found = one.run_each(connection, ({"account_id": each} for each in account_ids))
        return {row[0] for rows in found for row in rows.fetchall()}


def unknown_account(name: str) -> NotFound:
    """The error for a name that no account has."""
    return NotFound(f'Account not found: "{name}". `resumes accounts list` shows all')


def get_account(store: Store, name: str, *, closed_too: bool = False) -> AccountInfo:
    """The account of this name. Raises NotFound, for one that is being deleted unless asked for."""
    account = find_account(store, name, closed_too=closed_too)
    if account is None:
        raise unknown_account(name)
    return account


@dataclass(frozen=True, slots=True)
class _NewAccount:
    id: str
    name: str
    plan: str
    now: str


def create_account(store: Store, name: str, *, plan: str = FIRST_PLAN) -> AccountInfo:
    """The account exists, with no resumes. Raises InvalidArgument, NotFound for the plan, Conflict."""
    check_name(name)
    new = _NewAccount(identifiers.account_id(), name, plan, timestamp(store.clock()))
    store.write(_create_account, new)
    return get_account(store, name)


@each
def _create_account(connection: Connection, new: _NewAccount) -> None:
    _check_plan(connection, new.plan)
    known = connection.execute(
        select(accounts.c.closed_at).where(accounts.c.name == new.name)
    ).first()
    if known is not None:
        state = "exists already" if known.closed_at is None else "is still being deleted"
        raise Conflict(f'Account "{new.name}" {state}')
    connection.execute(
        insert(accounts).values(id=new.id, name=new.name, plan=new.plan, created_at=new.now)
    )
    connection.execute(
        insert(account_usage).values(account_id=new.id, resume_count=0, last_id_us=0)
    )


def _check_plan(connection: Connection, name: str) -> None:
    known = connection.execute(select(plans.c.name).order_by(plans.c.name)).scalars().all()
    if name not in known:
        raise NotFound(f'Plan not found: "{name}". Plans: {", ".join(known)}')


@dataclass(frozen=True, slots=True)
class _PlanChoice:
    name: str
    plan: str


def set_plan(store: Store, name: str, plan: str) -> None:
    """The account is on the plan, at once. Raises NotFound for either."""
    store.write(_set_plan, _PlanChoice(name, plan))


@each
def _set_plan(connection: Connection, choice: _PlanChoice) -> None:
    _check_plan(connection, choice.plan)
    account_id = lock_open_account(connection, choice.name)
    connection.execute(update(accounts).where(accounts.c.id == account_id).values(plan=choice.plan))


@dataclass(frozen=True, slots=True)
class _Closing:
    account_id: str
    name: str
    with_resumes: bool
    now: str


def delete_account(
    store: Store,
    name: str,
    *,
    with_resumes: bool = False,
    goes_on: Callable[[int], bool] = lambda _: True,
) -> int:
    """The account is gone, with its keys, resumes and ledger; the number of resumes that went.

    Raises NotFound, and Conflict when it holds resumes and `with_resumes` was not said. It is
    closed first, so nothing enters while its resumes go, slice by slice. After each slice
    `goes_on` is told how many went so far, and says whether to go on; a deletion that was cut
    off, here or by the end of the process, is finished by calling it again.
    """
    with store.read() as connection:
        row = connection.execute(select(accounts.c.id).where(accounts.c.name == name)).first()
    if row is None:
        raise unknown_account(name)
    return delete_by_id(store, row.id, name, with_resumes=with_resumes, goes_on=goes_on)


def delete_by_id(
    store: Store,
    account_id: str,
    name: str,
    *,
    with_resumes: bool = False,
    goes_on: Callable[[int], bool] = lambda _: True,
) -> int:
    """Delete as `delete_account` does, the account of this id, if it still has the name."""
    store.write(_close, _Closing(account_id, name, with_resumes, timestamp(store.clock())))
    gone = 0
    while slice_gone := store.write(_delete_slice, account_id):
        gone += slice_gone
        if not goes_on(gone):
            return gone
    for table in LEDGER:
        while store.write(_delete_rows, _Rows(account_id, table)):
            pass
    store.write(_delete_rest, account_id)
    return gone


def find_deleted(store: Store, account_ids: Collection[str]) -> set[str]:
    """Return those of the ids whose accounts this store has deleted, or has begun to.

    An account that is neither here nor there may be of another store, or newer than a backup that
    was restored.
    """
    return _find_each(store, _DELETED, account_ids)


def lock_account(connection: Connection, account_id: str) -> int | None:
    """The account's row is this transaction's, first as in every write; its resumes, if it exists."""
    return connection.execute(
        select(account_usage.c.resume_count)
        .where(account_usage.c.account_id == account_id)
        .with_for_update()
    ).scalar_one_or_none()


def lock_open_account(connection: Connection, name: str) -> str:
    """Lock the account's row for this transaction; return its id. Raises NotFound."""
    is_this = (accounts.c.name == name, accounts.c.closed_at.is_(None))
    account_id: str | None = connection.execute(select(accounts.c.id).where(*is_this)).scalar()
    if account_id is None:
        raise unknown_account(name)
    lock_account(connection, account_id)
    # Once more: it may have been closed while its row was waited for.
    if connection.execute(select(accounts.c.id).where(*is_this)).scalar() != account_id:
        raise unknown_account(name)
    return account_id


NOTE_DELETED = Prepared(
    lambda insert: (
        insert(deleted_accounts).values(id=bindparam("account_id")).on_conflict_do_nothing()
    )
)


@each
def _close(connection: Connection, closing: _Closing) -> None:
    count = lock_account(connection, closing.account_id)
    # An account that is being imported has another name when it is whole.
    this = (accounts.c.id == closing.account_id, accounts.c.name == closing.name)
    if count is None or connection.execute(select(accounts.c.id).where(*this)).first() is None:
        raise unknown_account(closing.name)
    if count and not closing.with_resumes:
        raise Conflict(f"The account holds {count} resumes: add --with-resumes to delete them too")
    connection.execute(
        update(accounts).where(accounts.c.id == closing.account_id).values(closed_at=closing.now)
    )
    # Nothing enters from here on, and there is no way back.
    NOTE_DELETED.run(connection, account_id=closing.account_id)
    connection.execute(
        delete(key_directory).where(key_directory.c.account_id == closing.account_id)
    )


@each
def _delete_slice(connection: Connection, account_id: str) -> int:
    lock_account(connection, account_id)
    some = (
        select(resumes.c.id)
        .where(resumes.c.account_id == account_id)
        .order_by(resumes.c.id)
        .limit(SLICE_RESUMES)
    )
    connection.execute(
        delete(documents).where(documents.c.account_id == account_id, documents.c.id.in_(some))
    )
    gone = connection.execute(
        delete(resumes).where(resumes.c.account_id == account_id, resumes.c.id.in_(some))
    ).rowcount
    connection.execute(
        update(account_usage)
        .where(account_usage.c.account_id == account_id)
        .values(resume_count=account_usage.c.resume_count - gone)
    )
    # Every entry has a resume, so none is left when the last resume goes.
    search_index.remove_oldest(connection, account_id, SLICE_RESUMES)
    return gone


LEDGER = (import_requests, imported_digests, imported_items, imported_files, idempotency)
"""What an account has besides resumes, of which there may be more than of those."""


@dataclass(frozen=True, slots=True)
class _Rows:
    account_id: str
    table: Table


@each
def _delete_rows(connection: Connection, rows: _Rows) -> int:
    lock_account(connection, rows.account_id)
    table = rows.table
    keys = tuple(table.primary_key.columns)
    some = select(*keys).where(table.c.account_id == rows.account_id).limit(SLICE_LEDGER_ROWS)
    return connection.execute(
        delete(table).where(table.c.account_id == rows.account_id, tuple_(*keys).in_(some))
    ).rowcount


@each
def _delete_rest(connection: Connection, account_id: str) -> None:
    lock_account(connection, account_id)
    tables = (
        *LEDGER,
        key_directory,
        api_keys,
        search_entries,
        search_progress,
        account_usage,
    )
    for table in tables:
        connection.execute(delete(table).where(table.c.account_id == account_id))
    connection.execute(delete(accounts).where(accounts.c.id == account_id))


@dataclass(frozen=True, slots=True)
class ResumeCounter:
    """What the counter of an account says, and how many resumes there were at that moment."""

    account: str
    resume_count: int
    rows: int


_ROWS: Final = func.count(resumes.c.id)
WRONG_COUNTERS: Final = (
    select(
        accounts.c.name.label("account"),
        account_usage.c.resume_count,
        _ROWS.label("rows"),
        accounts.c.id.label("account_id"),
        func.abs(account_usage.c.resume_count - _ROWS).label("count"),
    )
    .join(account_usage, account_usage.c.account_id == accounts.c.id)
    .outerjoin(resumes, resumes.c.account_id == accounts.c.id)
    .group_by(accounts.c.id, accounts.c.name, account_usage.c.resume_count)
    .having(account_usage.c.resume_count != _ROWS)
    .order_by(accounts.c.name)
)


def list_wrong(store: Store) -> list[ResumeCounter]:
    """Return the counters that are wrong, by the name of the account; none: each quota is exact."""
    with store.read() as connection:
        rows = connection.execute(WRONG_COUNTERS).all()
    return [ResumeCounter(row.account, row.resume_count, row.rows) for row in rows]


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
