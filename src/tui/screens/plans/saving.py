"""Saving a plan, unless somebody else changed it meanwhile."""

from dataclasses import dataclass

from resumes.errors import Conflict
from resumes.store import plans
from resumes.store.plans import PlanChange, PlanInfo, Requests
from resumes.store.store import Store


@dataclass(frozen=True, slots=True)
class Saved:
    """The plan as it is now. `conflict` says why nothing was saved; empty: it was."""

    plan: PlanInfo | None
    conflict: str = ""


def save(store: Store, change: PlanChange) -> Saved:
    """The change is made, or the plan is left as somebody else made it. Raises InvalidArgument."""
    try:
        plans.set_plan_limits(store, change)
    except Conflict as error:
        return Saved(plans.find_plan(store, change.name), error.message)
    return Saved(plans.get_plan(store, change.name))


def change_to(new: PlanInfo, *, shown: PlanInfo | None) -> PlanChange:
    """What makes the plan `new` of the one that was shown; None: there is to be none yet."""
    return PlanChange(
        new.name,
        new.max_resumes,
        new.api_listing,
        dict(zip(Requests, new.rates, strict=True)),
        expected=shown,
        is_new=shown is None,
    )
