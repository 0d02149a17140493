"""Foresight: whom a change of a plan would concern, before it is made."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select

from resumes.store.accounts import IS_OPEN
from resumes.store.engine import Store
from resumes.store.plans import PlanChange, find_plan
from resumes.store.schema import account_usage, accounts

MOST_NAMED = 10
"""Accounts that `foresee` names; the rest it counts."""


@dataclass(frozen=True, slots=True)
class Affected:
    """Accounts that a change concerns: how many, and the fullest ten, each with its resumes."""

    count: int
    fullest: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Effects:
    """What a change of a plan does to the accounts on it."""

    over: Affected
    """Those that hold more than the plan would allow: they keep it, and take no more."""

    unlisted: Affected
    """Those whose keys could list and read over the API, and no longer can."""


NOBODY = Affected(0, ())


def foresee(store: Store, change: PlanChange) -> Effects:
    """Whom the change would concern, as things stand. Changes nothing."""
    plan = find_plan(store, change.name)
    if plan is None:
        return Effects(NOBODY, NOBODY)
    over, unlisted = NOBODY, NOBODY
    if change.max_resumes is not None:
        over = _affected(store, plan.name, account_usage.c.resume_count > change.max_resumes)
    if plan.api_listing and change.api_listing is False:
        unlisted = _affected(store, plan.name)
    return Effects(over, unlisted)


def _affected(store: Store, plan: str, *conditions: ColumnElement[bool]) -> Affected:
    statement = (
        select(accounts.c.name, account_usage.c.resume_count, func.count().over())
        .join(account_usage, account_usage.c.account_id == accounts.c.id)
        .where(accounts.c.plan == plan, IS_OPEN, *conditions)
        .order_by(account_usage.c.resume_count.desc(), accounts.c.name)
        .limit(MOST_NAMED)
    )
    with store.read() as connection:
        rows = connection.execute(statement).all()
    return Affected(rows[0][2], [(name, holds) for name, holds, _ in rows]) if rows else NOBODY
