"""Plans, and the accounts that a change of a plan affects.

A plan determines how many resumes an account may have, how long they are kept, and whether the
account's keys may list resumes over the API.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from resumes.errors import Conflict, InvalidArgument
from resumes.store.accounts import IS_OPEN, PLANS_BY_SIZE, check_name, check_plan
from resumes.store.retention import list_due, list_due_on
from resumes.store.schema import Account, AccountUsage, Plan, PlanBase, account_usage, plans
from resumes.store.store import Store
from resumes.text import counted

MAX_RESUMES = 2**31 - 1
"""The largest limit of resumes, because a column on PostgreSQL cannot store a larger number."""

UNLIMITED = "unlimited"

MAX_KEEP_DAYS = 36_500
"""The maximum number of days that a plan may keep resumes, unless it keeps them forever."""

FOREVER = "forever"

MAX_DIGITS = 18


def maximum_text(maximum: int | None) -> str:
    """Return the maximum number of resumes as text that `parse_maximum` accepts."""
    return UNLIMITED if maximum is None else f"{maximum:,}"


def parse_maximum(text: str) -> int | None:
    """Parse a number of resumes, with or without commas, or `unlimited` (returned as None).

    Raises InvalidArgument.
    """
    return _parse_number(text, "resumes", UNLIMITED)


def keep_text(days: int | None) -> str:
    """Return the time for which a plan keeps resumes as text that `parse_keep_days` accepts."""
    return FOREVER if days is None else counted(days, "day")


def kept_text(days: int | None, due: int) -> str:
    """Return the time for which a plan keeps resumes, with the number of those that are due."""
    return f"{keep_text(days)} ({due:,} due)" if due else keep_text(days)


def listing_text(is_allowed: bool) -> str:
    """Return `yes` if the API lists and returns resumes, otherwise `no`."""
    return "yes" if is_allowed else "no"


def parse_keep_days(text: str) -> int | None:
    """Parse a number of days, with or without the word "days", or `forever` (returned as None).

    Raises InvalidArgument.
    """
    return _parse_number(text.strip().removesuffix("s").removesuffix("day"), "days", FOREVER, text)


def _parse_number(text: str, noun: str, endless: str, whole: str | None = None) -> int | None:
    if text.strip() == endless:
        return None
    digits = text.strip().replace(",", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        raise InvalidArgument(f'"{whole or text}" is neither a number of {noun} nor {endless}')
    return int(digits)


class PlanInfo(PlanBase):
    """A plan, the number of accounts on it, and how many of their resumes are due."""

    accounts: int = 0
    due: int = 0

    @property
    def allowance(self) -> str:
        """Return a short description, such as `50 resumes, no API listing, kept for 30 days`."""
        most = self.max_resumes
        number = f"{UNLIMITED} resumes" if most is None else counted(most, "resume")
        kept = "" if self.keep_days is None else f", kept for {keep_text(self.keep_days)}"
        return f"{number}, {'with' if self.api_listing else 'no'} API listing{kept}"


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A change for `set_plan_limits`.

    If `api_listing` is None, it is not changed, or False for a new plan. If `keep_days` is None,
    resumes are kept forever. `expected` is the plan that the user saw; `is_new` means that the user
    saw no plan. Without either of them, the current plan is not compared.
    """

    name: str
    max_resumes: int | None
    api_listing: bool | None = None
    keep_days: int | None = None
    expected: PlanInfo | None = None
    is_new: bool = False


def list_plans(store: Store) -> list[PlanInfo]:
    """Return all plans, smallest first and unlimited plans last."""
    statement = (
        select(Plan, func.count(col(Account.id)))
        .outerjoin(Account, (col(Account.plan) == Plan.name) & IS_OPEN)
        .group_by(*plans.columns)
        .order_by(*PLANS_BY_SIZE)
    )
    due = Counter[str]()
    for some in list_due(store):
        due[some.plan] += some.resumes
    return [
        PlanInfo.model_validate(plan, update={"accounts": count, "due": due[plan.name]})
        for plan, count in store.fetch(statement)
    ]


def find_plan(store: Store, name: str) -> PlanInfo | None:
    """Return the plan with this name, if any."""
    return next((plan for plan in list_plans(store) if plan.name == name), None)


def get_plan(store: Store, name: str) -> PlanInfo:
    """Return the plan with this name. Raises NotFound; its message lists the existing plans."""
    with store.session() as session:
        check_plan(session, name)
    return next(plan for plan in list_plans(store) if plan.name == name)


def set_plan_limits(store: Store, change: PlanChange) -> None:
    """Create the plan or change its limits, with immediate effect for all accounts on the plan.

    This deletes nothing. An account with more resumes than its plan now allows keeps them, but
    create requests are rejected until it fits, except requests that are being committed. Resumes
    that the plan no longer keeps become due (`retention`). Raises InvalidArgument for an invalid
    name or number, and Conflict if the plan differs from the expected plan.
    """
    check_change(change)

    def write(session: Session) -> None:
        plan = session.get(Plan, change.name, with_for_update=True)
        if change.is_new and plan is not None:
            raise Conflict(f'Plan "{change.name}" already exists')
        if (seen := change.expected) is not None and (
            plan is None or plan.model_dump() != seen.model_dump(exclude={"accounts", "due"})
        ):
            raise Conflict(f'Plan "{change.name}" was changed by someone else in the meantime')
        plan = plan or Plan(name=change.name)
        plan.max_resumes, plan.keep_days = change.max_resumes, change.keep_days
        if change.api_listing is not None:
            plan.api_listing = change.api_listing
        session.add(plan)

    store.write(write)


def check_change(change: PlanChange) -> None:
    """Raise InvalidArgument for an invalid name or number."""
    check_name(change.name, "plan")
    if change.max_resumes is not None and not 0 <= change.max_resumes <= MAX_RESUMES:
        raise InvalidArgument(
            f"Invalid maximum {change.max_resumes}: use 0 to {MAX_RESUMES:,}, or unlimited"
        )
    if change.keep_days is not None and not 1 <= change.keep_days <= MAX_KEEP_DAYS:
        raise InvalidArgument(
            f"Invalid number of days {change.keep_days}: use 1 to {MAX_KEEP_DAYS:,}, or {FOREVER}"
        )


MAX_NAMED = 10
"""The maximum number of accounts that `preview_change` names; other accounts are only counted."""


@dataclass(frozen=True, slots=True)
class AffectedAccounts:
    """The number of accounts that a change affects, and the ten accounts with the most resumes.

    If the change affects resumes that are due, only these are counted.
    """

    count: int
    fullest: Sequence[tuple[str, int]]

    def named(self, max_chars: int | None = None) -> str:
        """Return a list such as `ana (812), zoe (60) and 10 more`, with at least one name."""
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
    """The effects of a plan change on the plan's accounts."""

    over: AffectedAccounts
    """Accounts with more resumes than the plan would allow. They keep them, but cannot add more."""

    unlisted: AffectedAccounts
    """Accounts whose keys could no longer list and read resumes over the API."""

    due: AffectedAccounts
    """Accounts with resumes that would be due; none if the plan's `keep_days` does not change."""

    def sentences(self, max_resumes: int | None, max_chars: int | None = None) -> list[str]:
        """Return a sentence on each kind of affected accounts. `max_resumes` is the plan's new limit; lists of
        names have at most `max_chars` characters."""
        limit = maximum_text(max_resumes)
        kinds = (
            (self.over, "is", "are", f"over the limit of {limit}"),
            (self.unlisted, "loses", "lose", "API listing"),
            (self.due, "has", "have", "older resumes, which services erase within the hour"),
        )
        found = [
            f"{counted(some.count, 'account')} {one if some.count == 1 else more} {what}: {some.named(max_chars)}."
            for some, one, more, what in kinds
            if some.count
        ]
        if self.over.count:
            they = "It keeps its" if self.over.count == 1 else "They keep their"
            found[0] += f" {they} resumes but cannot add more."
        return found


def preview_change(store: Store, change: PlanChange) -> PlanImpact:
    """Return the accounts that the change would affect now, without changing anything."""
    plan = find_plan(store, change.name)
    over = unlisted = due = AffectedAccounts(0, [])
    if plan is not None and change.max_resumes is not None:
        over = _affected(store, plan.name, account_usage.c.resume_count > change.max_resumes)
    if plan is not None and plan.api_listing and change.api_listing is False:
        unlisted = _affected(store, plan.name)
    if plan is not None and change.keep_days not in (None, plan.keep_days):
        found = list_due_on(store, plan.name, change.keep_days)
        due = AffectedAccounts(
            len(found), [(some.account, some.resumes) for some in found[:MAX_NAMED]]
        )
    return PlanImpact(over, unlisted, due)


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
