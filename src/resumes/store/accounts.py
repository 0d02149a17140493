"""Accounts: tenants with a plan, their counters, and their contents.

An account's ID is random and never reused; its name may be reused. The account's row in
`account_usage` is its lock: each write to the account locks this row first (`lock_account`).
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

import sqlalchemy
from sqlalchemy import ColumnElement, Select, Table, delete, tuple_
from sqlmodel import Session, col, func, select

from resumes.clock import timestamp
from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.store import identifiers, search_index
from resumes.store.erasing import erase
from resumes.store.import_history import NOT_DONE
from resumes.store.import_ledger import FileOutcome
from resumes.store.schema import (
    ACCOUNT_TABLES,
    Account,
    AccountBase,
    AccountUsage,
    ApiKey,
    DeletedAccount,
    ImportedFile,
    KeyDirectory,
    Plan,
    PlanBase,
    ResumeRow,
    account_usage,
    accounts,
    plans,
    resumes,
)
from resumes.store.store import Store, lock_account
from resumes.store.versions import OnNewer
from resumes.text import counted

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
FIRST_PLAN = "free"
MAX_FORMER_NAMES = 100
"""How many former names of an account are kept; the oldest ones are dropped."""

ARRIVING = "~import"
"""The suffix of an account's name during its import, when it is closed. Invalid in other names."""

SLICE_RESUMES = 500
"""How many resumes of a deleted account one transaction deletes, so that others can write."""

SLICE_ROWS = 5_000
"""How many of the account's rows in another table one transaction deletes."""


class AccountInfo(AccountBase):
    """An account, its plan and its number of resumes.

    If `max_resumes` is None, the number is unlimited; if `keep_days` is None, resumes are kept
    forever. The IDs of new resumes are greater than `last_id_us`, which is 0 if the account never
    had a resume. `last_resume_at` is the time when the newest stored resume was created, if it was
    requested.
    """

    resume_count: int
    max_resumes: int | None
    api_listing: bool
    keep_days: int | None
    last_id_us: int
    last_resume_at: str | None = None

    @property
    def is_closed(self) -> bool:
        """Return whether the account is being deleted or imported, so no resumes can be added."""
        return self.closed_at is not None

    @property
    def free_places(self) -> int | None:
        """Return how many more resumes the plan allows, or None if there is no limit."""
        return None if self.max_resumes is None else max(0, self.max_resumes - self.resume_count)

    @property
    def is_arriving(self) -> bool:
        """Return whether the account is being imported, or its import was interrupted."""
        return self.name.endswith(ARRIVING)

    @property
    def is_over(self) -> bool:
        """Return whether the account has more resumes than its plan allows."""
        return self.max_resumes is not None and self.resume_count > self.max_resumes

    def loses_listing(self, plan: PlanBase) -> bool:
        """Return whether the account's keys could no longer list and read resumes on the plan."""
        return bool(self.api_listing and not plan.api_listing)

    def loses_days(self, plan: PlanBase) -> bool:
        """Return whether the plan keeps resumes for fewer days than the account's current plan."""
        return plan.keep_days is not None and plan.keep_days < (self.keep_days or math.inf)


# These statements use tables, because every command would otherwise have to map the models first.
_LAST_RESUME_AT = (
    select(resumes.c.created_at)
    .where(resumes.c.account_id == account_usage.c.account_id)
    .order_by(resumes.c.id.desc())
    .limit(1)
)
_ACCOUNT = (
    sqlalchemy.select(
        *accounts.columns,
        account_usage.c.resume_count,
        account_usage.c.last_id_us,
        plans.c.max_resumes,
        plans.c.api_listing,
        plans.c.keep_days,
    )
    .join(account_usage)
    .join(plans, plans.c.name == accounts.c.plan)
)
IS_OPEN = accounts.c.closed_at.is_(None)
_WITHOUT_COUNTS = (
    sqlalchemy.select(
        *accounts.columns,
        func.coalesce(plans.c.max_resumes, 0).label("resume_count"),
        sqlalchemy.literal(0).label("last_id_us"),
        *plans.c["max_resumes", "api_listing", "keep_days"],
    )
    .join(plans, plans.c.name == accounts.c.plan)
    .where(IS_OPEN)
)
PLANS_BY_SIZE = (plans.c.max_resumes.is_(None), plans.c.max_resumes, plans.c.name)
"""The columns that sort plans by size: the smallest plans first, unlimited plans last."""


def check_name(name: str, kind: str = "account") -> str:
    """Return the name. Raises InvalidArgument unless it is `[a-z0-9][a-z0-9-]{0,62}`."""
    if not NAME.fullmatch(name):
        raise InvalidArgument(
            f"Invalid {kind} name {name[:80]!r}: use 1 to 63 characters of a-z, 0-9 and -, not starting with -"
        )
    return name


def list_accounts(store: Store, *, include_closed: bool = False) -> list[AccountInfo]:
    """Return all accounts, sorted by name; include closed accounts only on request."""
    statement = _selected(_LAST_RESUME_AT, include_closed).order_by(accounts.c.name)
    return [_info(row) for row in store.fetch(statement)]


def list_open(store: Store) -> list[AccountInfo]:
    """Return the accounts that are not closed, sorted by name.

    Resumes are not read, so `last_resume_at` is None. If an account's shard does not answer, the
    account is returned as if it were full, or empty if its plan has no limit.
    """
    statement = _ACCOUNT.where(IS_OPEN).order_by(accounts.c.name)
    rows = [*store.fetch_reachable(statement, account_usage.c.account_id)]
    if store.is_sharded:
        known = {row.id for row in rows}
        rows += [row for row in store.fetch(_WITHOUT_COUNTS) if row.id not in known]
        rows.sort(key=lambda row: row.name)
    return [_info(row) for row in rows]


def find_account(store: Store, name: str, *, include_closed: bool = False) -> AccountInfo | None:
    """Return the account with this name, if any; return a closed account only on request."""
    this = accounts.c.name == name
    for (account_id,) in store.fetch(sqlalchemy.select(accounts.c.id).where(this)):
        # Both parts contain the account's ID, so that a sharded store asks only one shard.
        last_at = _LAST_RESUME_AT.where(resumes.c.account_id == account_id)
        of_account = this, account_usage.c.account_id == account_id
        for row in store.fetch(_selected(last_at, include_closed).where(*of_account)):
            return _info(row)
    return None


def by_folder(infos: Iterable[AccountInfo]) -> dict[str, AccountInfo]:
    """Map folder names to their accounts. A current name takes precedence over a former name."""
    infos = list(infos)
    former = {folder: info for info in infos for folder in info.folders}
    return former | {info.name: info for info in infos}


def find_owner(store: Store, folder: str) -> AccountInfo | None:
    """Return the open account that owns the folder of this name, if any."""
    now = _find_renamed(store, folder)
    return find_account(store, folder if now is None else now)


def _find_renamed(store: Store, name: str) -> str | None:
    """Return the current name of the open account that formerly had this name, if any."""
    if not NAME.fullmatch(name):
        return None
    return next(iter(store.fetch(select(Account.name).where(_had(name), IS_OPEN))), None)


def _had(name: str) -> ColumnElement[bool]:
    return (" " + accounts.c.former_names + " ").contains(f" {name} ")


def _info(row: sqlalchemy.Row[*tuple[Any, ...]]) -> AccountInfo:
    return AccountInfo.model_validate(row._mapping)


def get_account(store: Store, name: str, *, include_closed: bool = False) -> AccountInfo:
    """Return the account with this name. Raises NotFound. Closed accounts need `include_closed`."""
    account = find_account(store, name, include_closed=include_closed)
    if account is None:
        now = _find_renamed(store, name)
        if now is not None:
            raise NotFound(f'Account not found: "{name}". It was renamed to "{now}"')
        raise unknown_account(name)
    return account


def _selected(last_resume_at: Select[Any], include_closed: bool) -> Select[*tuple[Any, ...]]:
    selected = _ACCOUNT.add_columns(last_resume_at.scalar_subquery().label("last_resume_at"))
    return selected if include_closed else selected.where(IS_OPEN)


def unknown_account(name: str) -> NotFound:
    """Return the error for an account name that does not exist."""
    return NotFound(f'Account not found: "{name}". `resumes accounts list` shows all accounts')


def find_open(store: Store, account_ids: Collection[str]) -> Sequence[Account]:
    """Return those of the accounts with these IDs that exist and are not closed."""
    return store.fetch(select(Account).where(col(Account.id).in_(account_ids), IS_OPEN))


def find_deleted(store: Store, account_ids: Collection[str]) -> set[str]:
    """Return those of the IDs whose accounts this store has deleted or has begun to delete.

    An account that is neither open nor deleted may belong to another store, or it may have been
    created after the backup that this store was restored from.
    """
    ids = col(DeletedAccount.id)
    return {*store.fetch(select(ids).where(ids.in_(account_ids)))}


# Creating and changing


def create_account(
    store: Store, name: str, *, plan: str = FIRST_PLAN, takes_folder: bool = False
) -> AccountInfo:
    """Create an account. Raises InvalidArgument, Conflict, and NotFound if the plan is unknown.

    With `takes_folder`, the name may be a former name of another account, which then loses it.
    """
    check_name(name)
    account_id, now = identifiers.account_id(), timestamp(store.clock())

    def change(session: Session) -> None:
        check_plan(session, plan)
        take_name(session, name, takes_folder=takes_folder)
        add_account(session, Account(id=account_id, name=name, plan=plan, created_at=now))

    store.write(change)
    return get_account(store, name)


def rename_account(store: Store, name: str, new: str, *, takes_folder: bool = False) -> AccountInfo:
    """Rename the account, which still owns the folders with its former names.

    `takes_folder` has the same meaning as in `create_account`. Raises InvalidArgument, NotFound and
    Conflict.
    """
    check_name(new)

    def change(session: Session) -> None:
        account = lock_open_account(session, name)
        take_name(session, new, account.id, takes_folder=takes_folder)
        former = [each for each in (*account.former_names.split(), name) if each != new]
        account.name, account.former_names = new, " ".join(former[-MAX_FORMER_NAMES:])

    store.write(change)
    return get_account(store, new)


FIRST_MONTHS: Final = {None: "default", 0: "0 (January is 0)", 1: "1 (January is 1)"}
"""The numbers of January that an account's dates may have, in words."""


class AccountOptions(TypedDict, total=False):
    """Options of an account, by column name. Options that are left out are not changed."""

    on_newer: str
    first_month: int | None


def set_options(store: Store, name: str, options: AccountOptions) -> AccountInfo:
    """Set options of the account; they apply to resumes that are created from now on.

    Raises NotFound; raises Conflict for `replace` while resumes that are not indexed lack a person.
    """

    def change(session: Session) -> None:
        account = lock_open_account(session, name)
        replaces = options.get("on_newer") == OnNewer.REPLACE
        if replaces and not search_index.index_all_persons(session, account.id):
            raise Conflict(
                f'Not all resumes of account "{name}" are indexed yet, so older versions could be missed. '
                "Try again once they are: `resumes doctor` shows how many are not"
            )
        for option, value in options.items():
            setattr(account, option, value)

    store.write(change)
    return get_account(store, name)


def take_name(
    session: Session, name: str, account_id: str = "", *, takes_folder: bool = False
) -> None:
    """Raise Conflict if an account has the name, or one other than `account_id` had it before.

    With `takes_folder`, remove the name from the former names of the other account instead.
    """
    is_known = (col(Account.name) == name) | _had(name)
    for known in session.exec(select(Account).where(is_known)).all():
        if known.name == name:
            state = "already exists" if known.closed_at is None else "is still being deleted"
            raise Conflict(f'Account "{name}" {state}')
        if known.id == account_id:
            continue
        if not takes_folder:
            raise Conflict(
                f'"{name}" is a former name of the account "{known.name}", to which files in the folder '
                f'"{name}" still belong. Choose another name, or take the name and the folder with --force'
            )
        lock_account(session, known.id)
        kept = [each for each in known.former_names.split() if each != name]
        known.former_names = " ".join(kept)


def add_account(session: Session, account: Account, *, last_id_us: int = 0) -> None:
    """Add the account and its counter."""
    session.add(account)
    session.add(AccountUsage(account_id=account.id, last_id_us=last_id_us))


def check_plan(session: Session, name: str, *, hint: str = "Plans") -> None:
    """Raise NotFound unless the plan exists; its message lists all plans after `hint`."""
    known = session.exec(select(Plan.name).order_by(*PLANS_BY_SIZE)).all()
    if name not in known:
        raise NotFound(f'Plan not found: "{name[:80]}". {hint}: {", ".join(known)}')


def set_plan(store: Store, name: str, plan: str) -> None:
    """Move the account to the plan. Raises NotFound if the account or the plan does not exist."""

    def change(session: Session) -> None:
        check_plan(session, plan)
        lock_open_account(session, name).plan = plan

    store.write(change)


def lock_open_account(session: Session, name: str) -> Account:
    """Lock the account's row for this transaction, and return the account. Raises NotFound."""
    this = select(Account).where(Account.name == name, IS_OPEN)
    account = session.exec(this).first()
    if account is not None:
        lock_account(session, account.id)
    # Check again: the account may have been closed while this transaction waited for its row.
    if account is None or session.exec(this).first() is not account:
        raise unknown_account(name)
    return account


# Deleting


def delete_account(
    store: Store,
    name: str,
    *,
    account_id: str | None = None,
    with_resumes: bool = False,
    should_continue: Callable[[int], bool] = lambda _: True,
) -> int:
    """Delete the account with its keys, resumes and ledger; return the number of deleted resumes.

    If `account_id` is given, the account with this name must have this ID. Raises NotFound, and
    Conflict if the account has resumes and `with_resumes` is False. The account is closed first, so
    that no resumes are added while its resumes are deleted in slices. After each slice,
    `should_continue` is called with the number of resumes deleted so far; if it returns False, the
    deletion is interrupted. Call this function again to finish an interrupted deletion, also after
    a crash.
    """
    owner = account_id or get_account(store, name, include_closed=True).id
    now = timestamp(store.clock())

    def write(change: Callable[..., int], *values: Any) -> int:
        return store.write(lambda session: change(session, owner, *values), account_id=owner)

    write(_close, name, with_resumes, now)
    deleted = 0
    while slice_deleted := write(_delete_slice):
        deleted += slice_deleted
        if not should_continue(deleted):
            return deleted
    for table in ACCOUNT_TABLES:
        # The counter's row is the account's lock, so it must exist until the account is deleted.
        while table is not account_usage and write(_delete_rows, table):
            pass
    write(_delete_rest)
    return deleted


def _close(session: Session, account_id: str, name: str, with_resumes: bool, now: str) -> int:
    count = lock_account(session, account_id)
    account = session.get(Account, account_id)
    # The name may have changed: an imported account gets its final name at the end.
    if count is None or account is None or account.name != name:
        raise unknown_account(name)
    if count and not with_resumes:
        raise Conflict(
            f"The account has {counted(count, 'resume')}: add --with-resumes to delete them too"
        )
    account.closed_at = now
    # From now on, nothing can be stored in the account, and the deletion cannot be undone.
    session.merge(DeletedAccount(id=account_id))
    session.exec(delete(KeyDirectory).where(col(KeyDirectory.account_id) == account_id))
    return count


def _delete_slice(session: Session, account_id: str) -> int:
    some = (
        select(ResumeRow.id)
        .where(ResumeRow.account_id == account_id)
        .order_by(ResumeRow.id)
        .limit(SLICE_RESUMES)
    )
    return erase(session, account_id, session.exec(some).all())


def _delete_rows(session: Session, account_id: str, table: Table) -> int:
    keys = tuple(table.primary_key.columns)
    some = select(*keys).where(table.c.account_id == account_id).limit(SLICE_ROWS)
    these = table.c.account_id == account_id, tuple_(*keys).in_(some)
    return session.exec(delete(table).where(*these)).rowcount


def _delete_rest(session: Session, account_id: str) -> int:
    for table in ACCOUNT_TABLES:
        session.exec(delete(table).where(table.c.account_id == account_id))
    return session.exec(delete(accounts).where(accounts.c.id == account_id)).rowcount


# Counters


_ROWS: Final = func.count(resumes.c.id)
WRONG_COUNTERS: Final = (
    sqlalchemy.select(
        accounts.c.name.label("account"),
        account_usage.c.resume_count,
        _ROWS.label("rows"),
        accounts.c.id.label("account_id"),
        func.abs(account_usage.c.resume_count - _ROWS).label("count"),
    )
    .join(account_usage, account_usage.c.account_id == accounts.c.id)
    .outerjoin(resumes, resumes.c.account_id == account_usage.c.account_id)
    .group_by(accounts.c.id, accounts.c.name, account_usage.c.resume_count)
    .having(account_usage.c.resume_count != _ROWS)
    .order_by(accounts.c.name)
)


def list_wrong(store: Store) -> Sequence[Any]:
    """Return `account`, `resume_count` and the actual number of `rows` for each wrong counter.

    The counters are sorted by account name; there are none if all quotas are exact.
    """
    return store.fetch(WRONG_COUNTERS)


# Keys and files


@dataclass(frozen=True, slots=True)
class AccountSummary:
    """The number of an account's keys, and of its files that are not done.

    `keys` includes revoked and expired keys; `last_used_at` is None if no key was ever used.
    """

    keys: int
    active_keys: int
    last_used_at: str | None
    files_held: int
    files_failed: int


def get_summary(store: Store, account_id: str) -> AccountSummary:
    """Count the account's keys and files; all numbers are 0 if the account does not exist."""
    of_keys = select(
        func.count(), func.count().filter(_is_active(store)), func.max(ApiKey.last_used_at)
    ).where(ApiKey.account_id == account_id)
    ((keys, active_keys, last_used_at),) = store.fetch(of_keys)
    outcome = col(ImportedFile.outcome)
    of_account = NOT_DONE, ImportedFile.account_id == account_id
    files = dict(store.fetch(select(outcome, func.count()).where(*of_account).group_by(outcome)))
    held, failed = files.get(FileOutcome.HELD, 0), files.get(FileOutcome.FAILED, 0)
    return AccountSummary(keys, active_keys, last_used_at, held, failed)


def count_active_keys(store: Store) -> dict[str, int]:
    """Return the number of active keys by account ID; leave out accounts without active keys."""
    statement = (
        select(ApiKey.account_id, func.count())
        .where(_is_active(store))
        .group_by(col(ApiKey.account_id))
    )
    return dict(store.fetch(statement))


def _is_active(store: Store) -> ColumnElement[bool]:
    ends = col(ApiKey.expires_at)
    return col(ApiKey.revoked_at).is_(None) & (ends.is_(None) | (ends > timestamp(store.clock())))
