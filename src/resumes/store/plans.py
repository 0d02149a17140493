"""Plans: how many resumes an account may hold, and whether it may list them over the API."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, select, update

from resumes.errors import InvalidArgument, NotFound
from resumes.store.accounts import check_name
from resumes.store.engine import Store, each
from resumes.store.schema import accounts, plans


@dataclass(frozen=True, slots=True)
class PlanInfo:
    """A plan. `max_resumes` None is unlimited; `accounts` counts those that are on it."""

    name: str
    max_resumes: int | None
    api_listing: bool
    accounts: int


@dataclass(frozen=True, slots=True)
class PlanChange:
    """What `set_plan_limits` changes. `api_listing` None leaves it, and is False for a new plan."""

    name: str
    max_resumes: int | None
    api_listing: bool | None = None


def list_plans(store: Store) -> list[PlanInfo]:
    """All plans, the smallest first, unlimited ones last."""
    statement = (
        select(plans.c.name, plans.c.max_resumes, plans.c.api_listing, func.count(accounts.c.id))
        .select_from(plans.outerjoin(accounts, accounts.c.plan == plans.c.name))
        .group_by(plans.c.name, plans.c.max_resumes, plans.c.api_listing)
        .order_by(plans.c.max_resumes.is_(None), plans.c.max_resumes, plans.c.name)
    )
    with store.read() as connection:
        return [PlanInfo(*row) for row in connection.execute(statement)]


def get_plan(store: Store, name: str) -> PlanInfo:
    """The plan of this name. Raises NotFound, naming those that exist."""
    known = list_plans(store)
    for plan in known:
        if plan.name == name:
            return plan
    raise NotFound(f'Plan not found: "{name}". Plans: {", ".join(plan.name for plan in known)}')


def set_plan_limits(store: Store, change: PlanChange) -> None:
    """The plan exists with these limits, at once and for every account on it.

    Deletes nothing: an account that holds more than its plan now allows keeps it, and creates
    are refused until it fits. Raises InvalidArgument for a bad name or a negative number.
    """
    check_name(change.name, "plan")
    if change.max_resumes is not None and change.max_resumes < 0:
        raise InvalidArgument(f"Invalid maximum {change.max_resumes}: use 0 or more, or unlimited")
    store.write(_set_plan_limits, change)


@each
def _set_plan_limits(connection: Connection, change: PlanChange) -> None:
    listing = {} if change.api_listing is None else {"api_listing": change.api_listing}
    changed = connection.execute(
        update(plans)
        .where(plans.c.name == change.name)
        .values(max_resumes=change.max_resumes, **listing)
    )
    if changed.rowcount == 0:
        connection.execute(
            insert(plans).values(
                name=change.name,
                max_resumes=change.max_resumes,
                api_listing=bool(change.api_listing),
            )
        )
