"""Accounts: tenants with a plan, their counters, and their contents.

An account's id is random and never reused; its name may be reused. The account's row in
`account_usage` is its lock: each write to an account takes it first (`lock_account`).
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
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
from resumes.store.import_history import NOT_DONE
from resumes.store.import_ledger import FileOutcome
from resumes.store.schema import (
    ACCOUNT_TABLES,
    account_usage,
    accounts,
    api_keys,
    deleted_accounts,
    documents,
    imported_files,
    key_directory,
    plans,
    resumes,
)
from resumes.store.statements import Prepared, upsert
from resumes.store.store import Store, change_count, lock_account
from resumes.text import counted

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
FIRST_PLAN = "free"
ARRIVING = "~import"
"""The end of the name of an account that is being imported, invalid in other names. It is closed."""

SLICE_RESUMES = 500
"""How many resumes of a deleted account one transaction deletes, so that others can write."""

SLICE_ROWS = 5_000
"""How many rows of each of the account's other tables one transaction deletes."""


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """An account, its plan and its number of resumes. `max_resumes` None is unlimited.

    `last_id_us`: the ids of its next resumes are later; 0: it never had a resume. `last_resume_at`: when
    the newest stored resume was created. A closed account is being deleted or imported, and nothing
    else can be stored in it.
    """

    id: str
    name: str
    plan: str
    created_at: str
    resume_count: int
    max_resumes: int | None
    api_listing: bool
    last_id_us: int = 0
    last_resume_at: str | None = None
    is_closed: bool = False

    @property
    def free_places(self) -> int | None:
        """Return how many more resumes the plan allows; None without a limit."""
        return None if self.max_resumes is None else max(0, self.max_resumes - self.resume_count)

    @property
    def is_arriving(self) -> bool:
        """Return whether it is being imported, or its import was interrupted."""
        return self.name.endswith(ARRIVING)

    @property
    def is_over(self) -> bool:
        """Return whether it holds more than its plan allows."""
        return self.max_resumes is not None and self.resume_count > self.max_resumes


_LAST_RESUME_AT = (
    select(resumes.c.created_at)
    .where(resumes.c.account_id == accounts.c.id)
    .order_by(resumes.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
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
        _LAST_RESUME_AT,
        accounts.c.closed_at.is_not(None),
    )
    .join(account_usage, account_usage.c.account_id == accounts.c.id)
    .join(plans, plans.c.name == accounts.c.plan)
)
IS_OPEN = accounts.c.closed_at.is_(None)
PLANS_BY_SIZE = (plans.c.max_resumes.is_(None), plans.c.max_resumes, plans.c.name)
"""The smallest plans first, unlimited ones last."""


def check_name(name: str, kind: str = "account") -> str:
    """Return the name. Raises InvalidArgument unless it is `[a-z0-9][a-z0-9-]{0,62}`."""
    if not NAME.fullmatch(name):
        raise InvalidArgument(
            f"Invalid {kind} name {name[:80]!r}: use 1 to 63 characters of a-z, 0-9 and -, not starting with -"
        )
    return name


def list_accounts(store: Store, *, include_closed: bool = False) -> list[AccountInfo]:
    """Return all accounts by name; closed ones only if asked for."""
    rows = store.fetch(_selected(include_closed).order_by(accounts.c.name))
    return [AccountInfo(*row) for row in rows]


_WITHOUT_TIMES = SELECT_ACCOUNT.with_only_columns(*list(SELECT_ACCOUNT.selected_columns)[:8])


def list_open(store: Store) -> list[AccountInfo]:
    """Return the accounts that are not closed, by name, without reading resumes: `last_resume_at` is
    None for all."""
    rows = store.fetch(_WITHOUT_TIMES.where(IS_OPEN).order_by(accounts.c.name))
    return [AccountInfo(*row) for row in rows]


def find_account(store: Store, name: str, *, include_closed: bool = False) -> AccountInfo | None:
    """Return the account of this name, if any; a closed one only if asked for."""
    rows = store.fetch(_selected(include_closed).where(accounts.c.name == name))
    return AccountInfo(*rows[0]) if rows else None


def get_account(store: Store, name: str, *, include_closed: bool = False) -> AccountInfo:
    """Return the account of this name. Raises NotFound, for a closed one unless asked for."""
    account = find_account(store, name, include_closed=include_closed)
    if account is None:
        raise unknown_account(name)
    return account


def _selected(include_closed: bool) -> Select[Any]:
    return SELECT_ACCOUNT if include_closed else SELECT_ACCOUNT.where(IS_OPEN)


def unknown_account(name: str) -> NotFound:
    """Return the error for a name that no account has."""
    return NotFound(f'Account not found: "{name}". `resumes accounts list` shows all accounts')


def find_open(store: Store, account_ids: Collection[str]) -> set[str]:
    """Return the ids of accounts that exist and are not closed."""
    statement = select(accounts.c.id).where(accounts.c.id.in_(account_ids), IS_OPEN)
    return {account_id for (account_id,) in store.fetch(statement)}


def find_deleted(store: Store, account_ids: Collection[str]) -> set[str]:
    """Return the ids of accounts that this store has deleted, or has begun to delete.

    An account that is neither open nor deleted may belong to another store, or be newer than a backup
    that was restored.
    """
    statement = select(deleted_accounts.c.id).where(deleted_accounts.c.id.in_(account_ids))
    return {account_id for (account_id,) in store.fetch(statement)}


# Creating and changing


def create_account(store: Store, name: str, *, plan: str = FIRST_PLAN) -> AccountInfo:
    """Create an account without resumes. Raises InvalidArgument, NotFound for the plan, Conflict."""
    check_name(name)
    account_id, now = identifiers.account_id(), timestamp(store.clock())

    def change(connection: Connection) -> None:
        check_plan(connection, plan)
        known = connection.execute(
            select(accounts.c.closed_at).where(accounts.c.name == name)
        ).first()
        if known is not None:
            state = "already exists" if known.closed_at is None else "is still being deleted"
            raise Conflict(f'Account "{name}" {state}')
        add_account(connection, account_id, name=name, plan=plan, created_at=now)

    store.write(change)
    return get_account(store, name)


def add_account(
    connection: Connection, account_id: str, *, last_id_us: int = 0, **values: Any
) -> None:
    """Add the account's row with these values, and its counter."""
    connection.execute(insert(accounts).values(id=account_id, **values))
    usage = {"account_id": account_id, "resume_count": 0, "last_id_us": last_id_us}
    connection.execute(insert(account_usage).values(usage))


def check_plan(connection: Connection, name: str, *, hint: str = "Plans") -> None:
    """Raise NotFound, with the names of all plans after the hint, unless the plan exists."""
    known = connection.execute(select(plans.c.name).order_by(*PLANS_BY_SIZE)).scalars().all()
    if name not in known:
        raise NotFound(f'Plan not found: "{name[:80]}". {hint}: {", ".join(known)}')


def set_plan(store: Store, name: str, plan: str) -> None:
    """Move the account to the plan, immediately. Raises NotFound for either."""

    def change(connection: Connection) -> None:
        check_plan(connection, plan)
        account_id = lock_open_account(connection, name)
        connection.execute(update(accounts).where(accounts.c.id == account_id).values(plan=plan))

    store.write(change)


def lock_open_account(connection: Connection, name: str) -> str:
    """Lock the account's row for this transaction; return its id. Raises NotFound."""
    this = select(accounts.c.id).where(accounts.c.name == name, IS_OPEN)
    account_id: str | None = connection.execute(this).scalar()
    if account_id is None:
        raise unknown_account(name)
    lock_account(connection, account_id)
    # Check again: it may have been closed while this waited for its row.
    if connection.execute(this).scalar() != account_id:
        raise unknown_account(name)
    return account_id


# Deleting

NOTE_DELETED = Prepared(upsert(deleted_accounts).on_conflict_do_nothing())


def delete_account(
    store: Store,
    name: str,
    *,
    account_id: str | None = None,
    with_resumes: bool = False,
    should_continue: Callable[[int], bool] = lambda _: True,
) -> int:
    """Delete the account with its keys, resumes and ledger; return the number of resumes deleted.

    With an `account_id`, only if the account of this name has it. Raises NotFound, and Conflict when it
    has resumes and `with_resumes` is False. The account is closed first, so that nothing is stored in
    it while its resumes are deleted, slice by slice. After each slice `should_continue` is called with
    the number so far, and returns whether to continue. Call this again to finish a deletion that was
    interrupted, here or by the end of the process.
    """
    owner = account_id or get_account(store, name, include_closed=True).id
    now = timestamp(store.clock())

    def write(change: Callable[..., int], *values: Any) -> int:
        return store.write(lambda connection: change(connection, owner, *values), account_id=owner)

    write(_close, name, with_resumes, now)
    deleted = 0
    while slice_deleted := write(_delete_slice):
        deleted += slice_deleted
        if not should_continue(deleted):
            return deleted
    for table in ACCOUNT_TABLES:
        # The counter's row is the lock, so it has to exist as long as the account.
        while table is not account_usage and write(_delete_rows, table):
            pass
    write(_delete_rest)
    return deleted


def _close(connection: Connection, account_id: str, name: str, with_resumes: bool, now: str) -> int:
    count = lock_account(connection, account_id)
    # An account that is being imported gets another name at the end.
    this = select(accounts.c.id).where(accounts.c.id == account_id, accounts.c.name == name)
    if count is None or connection.execute(this).first() is None:
        raise unknown_account(name)
    if count and not with_resumes:
        raise Conflict(
            f"The account has {counted(count, 'resume')}: add --with-resumes to delete them too"
        )
    connection.execute(update(accounts).where(accounts.c.id == account_id).values(closed_at=now))
    # From here on nothing can be stored in it, and the deletion cannot be undone.
    NOTE_DELETED.run(connection, id=account_id)
    connection.execute(delete(key_directory).where(key_directory.c.account_id == account_id))
    return count


def _delete_slice(connection: Connection, account_id: str) -> int:
    some = (
        select(resumes.c.id)
        .where(resumes.c.account_id == account_id)
        .order_by(resumes.c.id)
        .limit(SLICE_RESUMES)
    )
    connection.execute(
        delete(documents).where(documents.c.account_id == account_id, documents.c.id.in_(some))
    )
    deleted = connection.execute(
        delete(resumes).where(resumes.c.account_id == account_id, resumes.c.id.in_(some))
    ).rowcount
    change_count(connection, account_id, -deleted)
    # Every search entry has a resume, so no entry is left after the last resume.
    search_index.remove_oldest(connection, account_id, SLICE_RESUMES)
    return deleted


def _delete_rows(connection: Connection, account_id: str, table: Table) -> int:
    keys = tuple(table.primary_key.columns)
    some = select(*keys).where(table.c.account_id == account_id).limit(SLICE_ROWS)
    return connection.execute(
        delete(table).where(table.c.account_id == account_id, tuple_(*keys).in_(some))
    ).rowcount


def _delete_rest(connection: Connection, account_id: str) -> int:
    search_index.remove_strays(connection, account_id)
    for table in ACCOUNT_TABLES:
        connection.execute(delete(table).where(table.c.account_id == account_id))
    return connection.execute(delete(accounts).where(accounts.c.id == account_id)).rowcount


# Counters


@dataclass(frozen=True, slots=True)
class ResumeCounter:
    """The counter of an account, and its actual number of resumes at the same moment."""

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
    """Return the counters that are wrong, by account name; if empty, all quotas are exact."""
    return [ResumeCounter(*row[:3]) for row in store.fetch(WRONG_COUNTERS)]


# Keys and files


@dataclass(frozen=True, slots=True)
class AccountSummary:
    """An account's keys, and its files that are not done.

    `keys` counts revoked and expired keys too; `last_used_at` is None if no key was ever used.
    """

    keys: int
    active_keys: int
    last_used_at: str | None
    files_held: int
    files_failed: int


def get_summary(store: Store, account_id: str) -> AccountSummary:
    """Return the keys and files of the account; zeros if there is no such account."""
    of_keys = select(
        func.count(),
        func.count().filter(_is_active(store)),
        func.max(api_keys.c.last_used_at),
    ).where(api_keys.c.account_id == account_id)
    ((keys, active_keys, last_used_at),) = store.fetch(of_keys)
    outcome = imported_files.c.outcome
    of_account = NOT_DONE, imported_files.c.account_id == account_id
    files = dict(store.fetch(select(outcome, func.count()).where(*of_account).group_by(outcome)))
    held, failed = files.get(FileOutcome.HELD, 0), files.get(FileOutcome.FAILED, 0)
    return AccountSummary(keys, active_keys, last_used_at, held, failed)


def count_active_keys(store: Store) -> dict[str, int]:
    """Return the number of active keys by account id; accounts without active keys are left out."""
    statement = (
        select(api_keys.c.account_id, func.count())
        .where(_is_active(store))
        .group_by(api_keys.c.account_id)
    )
    return dict(store.fetch(statement))


def _is_active(store: Store) -> ColumnElement[bool]:
    is_unexpired = api_keys.c.expires_at > timestamp(store.clock())
    return api_keys.c.revoked_at.is_(None) & (api_keys.c.expires_at.is_(None) | is_unexpired)
