"""Accounts that hold as many resumes as their plans allow, or more."""

from collections.abc import Iterator, Sequence

from resumes.health.findings import MAX_NAMED, Finding, notice
from resumes.health.installation import Installation
from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanInfo
from resumes.text import counted


def iter_quota_findings(
    installation: Installation, known: Sequence[AccountInfo], plans: Sequence[PlanInfo]
) -> Iterator[Finding]:
    """The accounts that can take nothing more, the first of them by name."""
    full = [account for account in known if account.free_places == 0]
    for account in full[:MAX_NAMED]:
        yield _full(installation, account, plans)
    if len(full) > MAX_NAMED:
        yield notice(
            "quota",
            f"{counted(len(full) - MAX_NAMED, 'further account')} can take no more resumes",
            f"{installation.command_line('accounts', 'list')} shows all",
            installation.command_line("accounts", "list"),
            about="further",
        )
    if not full:
        yield Finding("quota", "every account has room for more resumes")


def _full(installation: Installation, account: AccountInfo, plans: Sequence[PlanInfo]) -> Finding:
    # The smallest plan with room; where there is none, the account's own can be made larger.
    larger = next((plan.name for plan in plans if _has_room(plan, account)), None)
    if larger is not None:
        command = installation.command_line("accounts", "set-plan", account.name, larger)
    else:
        command = installation.command_line("plans", "list")
    way = "move it to a larger plan" if larger is not None else "make its plan larger"
    return notice(
        "quota",
        f"{account.name} holds {account.resume_count:,} of the {account.max_resumes or 0:,} "
        f"resumes of its plan {account.plan}, so new ones are refused and files held",
        f"Delete resumes, or {way}: {command}",
        command,
        about=account.name,
    )


def _has_room(plan: PlanInfo, account: AccountInfo) -> bool:
    return plan.max_resumes is None or plan.max_resumes > account.resume_count
