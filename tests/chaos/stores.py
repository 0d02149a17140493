"""Stores of any engine for clients of the campaign."""

from resumes.store import accounts, keys, open_store, plans
from resumes.store.plans import PlanChange


def make_account(url: str) -> str:
    """A key of the account "ada", which may have any number of resumes, in the store at this address."""
    with open_store(url) as store:
        plans.set_plan_limits(store, PlanChange("business", None))
        accounts.create_account(store, "ada", plan="business")
        return keys.create_key(store, "ada").secret
