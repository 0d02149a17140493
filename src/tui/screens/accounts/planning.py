"""Choosing an account's plan, and the question before one that takes something away."""

from resumes.store import plans
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanInfo
from tui.screens.chooser import Chooser
from tui.screens.confirming import ConfirmDialog
from tui.screens.facts import Fact
from tui.screens.plans.limits import listing_text, maximum_text
from tui.session import Session
from tui.text import safe
from tui.widgets.columns import Column, text_cell


class PlanChooser(Chooser[PlanInfo]):
    """Gives the chosen plan, None when nothing was chosen. Begins at the one of the account."""

    def __init__(self, session: Session, account: AccountInfo) -> None:
        super().__init__(
            session.store,
            question=f"Which plan for {account.name}?",
            columns=(
                Column("PLAN", 12, lambda plan: text_cell(plan.name)),
                Column("  RESUMES", 9, lambda plan: safe(f"{maximum_text(plan.max_resumes):>9}")),
                Column("LISTING", 7, lambda plan: safe(listing_text(plan.api_listing))),
                Column("FOR THIS ACCOUNT", 0, lambda plan: safe(fit_text(account, plan))),
            ),
            key=lambda plan: plan.name,
            read=plans.list_plans,
            preset=account.plan,
        )


class PlanDialog(ConfirmDialog):
    """Gives whether to put the account on a plan that takes something away from it."""

    def __init__(self, account: AccountInfo, plan: PlanInfo) -> None:
        super().__init__(
            f"Put {account.name} on the plan {plan.name}?",
            losses(account, plan),
            consequence="It counts at once. Nothing is deleted.",
            verb="Change plan",
        )


def is_over(account: AccountInfo, plan: PlanInfo) -> bool:
    """Whether the account holds more than the plan allows."""
    return plan.max_resumes is not None and account.resume_count > plan.max_resumes


def fit_text(account: AccountInfo, plan: PlanInfo) -> str:
    """What the plan means for the account, in few words."""
    if plan.name == account.plan:
        return "the plan it is on"
    if is_over(account, plan):
        return f"! over: holds {account.resume_count:,}"
    if account.api_listing and not plan.api_listing:
        return "! loses listing"
    if plan.max_resumes is None:
        return "fits"
    return f"fits, {plan.max_resumes - account.resume_count:,} more"


def losses(account: AccountInfo, plan: PlanInfo) -> list[Fact]:
    """What the plan takes away from the account; empty when nothing."""
    found = []
    if is_over(account, plan):
        maximum = maximum_text(plan.max_resumes)
        text = f"holds {account.resume_count:,}, {plan.name} allows {maximum}: keeps them, takes no more"
        found.append(("Resumes", text))
    if account.api_listing and not plan.api_listing:
        found.append(("Listing", f"{plan.name} has none: its keys can no longer list and read"))
    return found
