"""Plans: the number of resumes that an account may have, the API rights of its keys, and the accounts
that a change of a plan affects."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from resumes.errors import Conflict, InvalidArgument
from resumes.store.accounts import IS_OPEN, PLANS_BY_SIZE, check_name, check_plan
from resumes.store.schema import Account, AccountUsage, Plan, PlanBase, account_usage, plans
from resumes.store.store import Store
from resumes.text import counted

MAX_RESUMES = 2**31 - 1
"""The largest limit of resumes: no column of a server holds more."""

UNLIMITED = "unlimited"

MAX_DIGITS = 18


def maximum_text(maximum: int | None) -> str:
    """Return the number of resumes that an account may have, as text that `parse_maximum` accepts."""
    return UNLIMITED if maximum is None else f"{maximum:,}"


def parse_maximum(text: str) -> int | None:
    """Parse a number of resumes, with or without commas; return None for unlimited.

    Raises InvalidArgument.
    """
    if text.strip() == UNLIMITED:
        return None
    digits = text.strip().replace(",", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        raise InvalidArgument(f'"{text}" is neither a number of resumes nor {UNLIMITED}')
    return int(digits)


class PlanInfo(PlanBase):
    """A plan, and the number of accounts on it."""

    accounts: int = 0

    @property
    def allowance(self) -> str:
        """Return a short description: `50 resumes, no API listing`."""
        most = self.max_resumes
        number = f"{UNLIMITED} resumes" if most is None else counted(most, "resume")
        return f"{number}, {'with' if self.api_listing else 'no'} API listing"


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A change for `set_plan_limits`. `api_listing` None keeps the value; for a new plan it is False.

    `expected` is the plan that the user saw, `is_new` says that there was none; without either, the
    present plan is not compared.
    """

    name: str
    max_resumes: int | None
    api_listing: bool | None = None
    expected: PlanInfo | None = None
    is_new: bool = False


def list_plans(store: Store) -> list[PlanInfo]:
    """Return all plans, the smallest first, unlimited ones last."""
    statement = (
        select(Plan, func.count(col(Account.id)))
        .outerjoin(Account, (col(Account.plan) == Plan.name) & IS_OPEN)
        .group_by(*plans.columns)
        .order_by(*PLANS_BY_SIZE)
    )
    return [
        PlanInfo.model_validate(plan, update={"accounts": count})
        for plan, count in store.fetch(statement)
    ]


def find_plan(store: Store, name: str) -> PlanInfo | None:
    """Return the plan of this name, if any."""
    return next((plan for plan in list_plans(store) if plan.name == name), None)


def get_plan(store: Store, name: str) -> PlanInfo:
    """Return the plan of this name. Raises NotFound, naming those that exist."""
    with store.session() as session:
        check_plan(session, name)
    return next(plan for plan in list_plans(store) if plan.name == name)


def set_plan_limits(store: Store, change: PlanChange) -> None:
    """Create the plan, or change its limits, immediately and for every account on it.

    Deletes nothing: an account that has more resumes than its plan now allows keeps them, and creates
    are refused until it fits, except those that are being committed. Raises InvalidArgument for a bad
    name or number, and Conflict when the plan differs from the expected one.
    """
    check_change(change)

    def write(session: Session) -> None:
        plan = session.get(Plan, change.name, with_for_update=True)
        if change.is_new and plan is not None:
            raise Conflict(f'Plan "{change.name}" already exists')
        if (seen := change.expected) is not None and (
            plan is None
            or (plan.max_resumes, plan.api_listing) != (seen.max_resumes, seen.api_listing)
        ):
            raise Conflict(f'Plan "{change.name}" was changed by someone else in the meantime')
        plan = plan or Plan(name=change.name)
        plan.max_resumes = change.max_resumes
        if change.api_listing is not None:
            plan.api_listing = change.api_listing
        session.add(plan)

    store.write(write)


def check_change(change: PlanChange) -> None:
    """Raise InvalidArgument for a bad name or number."""
    check_name(change.name, "plan")
    if change.max_resumes is not None and not 0 <= change.max_resumes <= MAX_RESUMES:
        raise InvalidArgument(
            f"Invalid maximum {change.max_resumes}: use 0 to {MAX_RESUMES:,}, or unlimited"
        )


MAX_NAMED = 10
"""The maximum number of accounts that `preview_change` names; others are counted."""


@dataclass(frozen=True, slots=True)
class AffectedAccounts:
    """The accounts that a change affects: their number, and the fullest ten, each with its resumes."""

    count: int
    fullest: Sequence[tuple[str, int]]

    def named(self, max_chars: int | None = None) -> str:
        """Return `ana (812), zoe (60) and 10 more`; at least one is named."""
        names: list[str] = []
        for name, holds in self.fullest:
            text = f"{name} ({holds:,})"
            if names and max_chars is not None and sum(map(len, names)) + len(text) > max_chars:
                break
            names.append(text)
        rest = self.count - len(names)
        return ", ".join(names) + (f" and {rest:,} more" if rest else "")


@dataclass(frozen=True, slots=True)
class PlanImpact:
    """The effects of a change of a plan on its accounts."""

    over: AffectedAccounts
    """Accounts with more resumes than the plan would allow: they keep them, but cannot store more."""

    unlisted: AffectedAccounts
    """Accounts whose keys could no longer list and read over the API."""


def preview_change(store: Store, change: PlanChange) -> PlanImpact:
    """Return the accounts that the change would affect now. Changes nothing."""
    plan = find_plan(store, change.name)
    over = unlisted = AffectedAccounts(0, [])
    if plan is not None and change.max_resumes is not None:
        over = _affected(store, plan.name, account_usage.c.resume_count > change.max_resumes)
    if plan is not None and plan.api_listing and change.api_listing is False:
        unlisted = _affected(store, plan.name)
    return PlanImpact(over, unlisted)


def _affected(store: Store, plan: str, *conditions: ColumnElement[bool]) -> AffectedAccounts:
    statement = (
        select(Account.name, AccountUsage.resume_count, func.count().over())
        .join(AccountUsage)
        .where(Account.plan == plan, IS_OPEN, *conditions)
        .order_by(col(AccountUsage.resume_count).desc(), Account.name)
        .limit(MAX_NAMED)
    )
    rows = store.fetch(statement)
    count = rows[0][2] if rows else 0
    return AffectedAccounts(count, [(name, holds) for name, holds, _ in rows])
