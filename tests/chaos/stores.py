"""Stores of any engine for clients of the campaign."""

from pathlib import Path

from resumes.store import accounts, api_keys, creation, open_store, plans
from resumes.store.plans import PlanChange
from tests.support.resumes import a_resume


def make_account(url: str) -> str:
    """A key of the account "ada", which may have any number of resumes, in the store at this address."""
    with open_store(url) as store:
        plans.set_plan_limits(store, PlanChange("business", None))
        accounts.create_account(store, "ada", plan="business")
        return api_keys.create_key(store, "ada").secret


def a_full_store(path: Path, count: int) -> dict[str, str]:
    """In the file is a store, closed, whose account "ada" has so many resumes; their names by ids."""
    make_account(f"sqlite:///{path}")
    told = {}
    with open_store(f"sqlite:///{path}") as store:
        account_id = accounts.get_account(store, "ada").id
        for number in range(count):
            (outcome,) = creation.create(store, account_id, [a_resume(f"number {number}")])
            assert isinstance(outcome, creation.Created)
            told[outcome.id] = f"number {number}"
    return told
