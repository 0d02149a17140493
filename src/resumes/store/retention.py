"""Retention: resumes are erased after the number of days for which their account's plan keeps them.

Once an hour, one of the store's services erases the resumes that are due; `resumes expire` does so
immediately. The ID of a resume begins with the time of its creation, or with a later time if a
clock was ahead. So the resumes that are due are at the beginning of the account's list, and none is
erased early.
"""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import ClassVar, Final, NamedTuple

import sqlalchemy
from sqlalchemy import BigInteger, bindparam, cast, update
from sqlmodel import Session, col, func, select

from resumes.clock import later, timestamp
from resumes.store.accounts import IS_OPEN
from resumes.store.background import BackgroundThread, logger
from resumes.store.erasing import erase
from resumes.store.schema import (
    Account,
    BinaryText,
    Plan,
    ResumeRow,
    StoreFact,
    accounts,
    plans,
    resumes,
    store_facts,
)
from resumes.store.store import Store, set_facts
from resumes.text import counted

DAY_US: Final = 24 * 3_600 * 1_000_000

SWEEP_INTERVAL: Final = timedelta(hours=1)

SLICE_RESUMES: Final = 50
"""How many resumes one transaction erases, so that others can write."""

SHARE: Final = 0.1
"""The maximum share of the time that a sweep uses; it pauses in between."""


def due_before(keep_days: int, now_us: int) -> str:
    """Return the ID before which resumes are due on a plan that keeps them for `keep_days`."""
    return f"{max(0, now_us - keep_days * DAY_US):016x}"


class Due(NamedTuple):
    """The number of an account's resumes that its plan no longer keeps.

    `overdue` is the number of resumes that have been due for more than a day.
    """

    plan: str
    keep_days: int
    account_id: str
    account: str
    resumes: int
    overdue: int
    oldest_at: str


def list_due(store: Store, account: str | None = None) -> list[Due]:
    """Count the resumes that are due in each account, or only in `account`; sort by name."""
    limited = sqlalchemy.select(*plans.c["name", "keep_days"]).where(plans.c.keep_days.is_not(None))
    found = [
        due
        for plan in store.fetch(limited)
        for due in list_due_on(store, plan.name, plan.keep_days, account)
    ]
    return sorted(found, key=lambda due: due.account)


def list_due_on(store: Store, plan: str, keep_days: int, account: str | None = None) -> list[Due]:
    """Count each account's resumes that would be due on the plan with `keep_days`, most first."""
    now_us = store.clock()
    count = func.count()
    statement = (
        sqlalchemy.select(
            accounts.c.id,
            accounts.c.name,
            count,
            count.filter(resumes.c.id < due_before(keep_days + 1, now_us)),
            func.min(resumes.c.created_at),
        )
        .join(resumes, resumes.c.account_id == accounts.c.id)
        .where(accounts.c.plan == plan, IS_OPEN, resumes.c.id < due_before(keep_days, now_us))
        .group_by(accounts.c.id, accounts.c.name)
        .order_by(count.desc(), accounts.c.name)
    )
    if account is not None:
        statement = statement.where(accounts.c.name == account)
    return [Due(plan, keep_days, *row) for row in store.fetch(statement)]


def keep_days_by_folder(store: Store) -> dict[str, int]:
    """Map folders to the days for which their account's plan keeps resumes, if not forever."""
    limited = (
        select(Account, Plan.keep_days).join(Plan).where(IS_OPEN, col(Plan.keep_days).is_not(None))
    )
    return {folder: days for account, days in store.fetch(limited) for folder in account.folders}


def count_expired(store: Store) -> int:
    """Return the number of resumes that the store has erased because they were due."""
    return sum(map(int, store.fetch(select(StoreFact.value).where(StoreFact.name == "expired"))))


def iter_erased(store: Store, account_id: str, *, is_sweep: bool = False) -> Iterator[int]:
    """Erase the resumes that are due in the account in slices, and yield the size of each slice.

    If this is interrupted, the other resumes stay due. Each slice reads the plan again, because it
    may have changed.
    """
    while True:
        change = partial(_erase_slice, account_id, store.clock(), is_sweep)
        if not (erased := store.write(change, account_id=account_id)):
            return
        yield erased


def _erase_slice(account_id: str, now_us: int, is_sweep: bool, session: Session) -> int:
    plan = select(Plan.keep_days).join(Account).where(Account.id == account_id, IS_OPEN)
    keep_days = session.exec(plan).first()
    if keep_days is None:
        return 0
    due = (
        select(ResumeRow.id)
        .where(ResumeRow.account_id == account_id, ResumeRow.id < due_before(keep_days, now_us))
        .order_by(ResumeRow.id)
        .limit(SLICE_RESUMES)
    )
    erased = erase(session, account_id, session.exec(due).all())
    if erased:
        session.exec(_COUNT, params={"erased": erased})
    if is_sweep:
        set_facts(session, swept_at=timestamp(now_us))
    return erased


_NUMBER: Final = cast(store_facts.c.value, BigInteger) + bindparam("erased", type_=BigInteger)
_COUNT: Final = (
    update(store_facts)
    .where(store_facts.c.name == "expired")
    .values(value=cast(_NUMBER, BinaryText))
)


def sweep(store: Store, pause: Callable[[float], bool] = lambda seconds: False) -> int:
    """Erase the resumes that are due in all accounts, and return their number.

    Do nothing if a process began a sweep during the last hour. After each slice, `pause` is called
    with the number of seconds to wait; it returns whether to stop.
    """
    is_limited = select(plans.c.name).where(plans.c.keep_days.is_not(None)).exists()
    swept_at = select(StoreFact.value).where(StoreFact.name == "swept_at", is_limited)
    now_us = store.clock()
    if not any(_is_past(at, now_us) for at in store.fetch(swept_at)):
        return 0
    if not store.write(partial(_begin, now_us)):
        return 0
    erased = 0
    for due in list_due(store):
        began_s = time.perf_counter()
        for count in iter_erased(store, due.account_id, is_sweep=True):
            erased += count
            if pause((time.perf_counter() - began_s) * (1 / SHARE - 1)):
                return erased
            began_s = time.perf_counter()
    return erased


def _is_past(swept_at: str, now_us: int) -> bool:
    """Return whether the last sweep was long ago, or in the future due to a wrong clock."""
    return not later(now_us, -SWEEP_INTERVAL) < swept_at <= later(now_us, SWEEP_INTERVAL)


def _begin(now_us: int, session: Session) -> bool:
    """Begin a sweep and return True, unless another process has begun a sweep."""
    fact = session.get(StoreFact, "swept_at", with_for_update=True)
    if fact is None or not _is_past(fact.value, now_us):
        return False
    fact.value = timestamp(now_us)
    return True


class Sweeper(BackgroundThread):
    """A service's thread that sweeps when a sweep is due. Only one sweeps at a time."""

    NAME: ClassVar[str] = "retention"
    FAILURE: ClassVar[str] = "Resumes that are due cannot be erased; will retry"

    def __init__(self, store: Store, *, interval_s: float = 60.0) -> None:
        super().__init__(store, interval_s=interval_s)

    def step(self) -> float:
        if erased := sweep(self._store, self._stopping.wait):
            logger.info("Erased %s that their plans no longer keep", counted(erased, "resume"))
        return self._interval_s
