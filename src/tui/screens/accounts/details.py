"""What is known of an account, for the pane beside the list."""

from collections.abc import Iterator
from dataclasses import dataclass

from resumes.settings import Settings
from resumes.store import accounts, plans
from resumes.store.accounts import AccountInfo, AccountSummary
from resumes.store.plans import PlanInfo
from resumes.store.store import Store
from tui.screens.facts import Fact
from tui.screens.plans.limits import WINDOWS, listing_text, maximum_text, rate_text
from tui.text import NONE, safe
from tui.times import minute
from tui.widgets.quota_bar import percent_used
from tui.widgets.text_pane import Paragraph

LABEL_CELLS = 12


@dataclass(frozen=True, slots=True)
class Details:
    """An account with its plan, its keys and its files."""

    account: AccountInfo
    plan: PlanInfo
    summary: AccountSummary


def read_details(store: Store, name: str) -> Details:
    """The account as it is now. Raises NotFound."""
    account = accounts.get_account(store, name, closed_too=True)
    return Details(
        account, plans.get_plan(store, account.plan), accounts.get_summary(store, account.id)
    )


def paragraphs(details: Details, settings: Settings) -> list[Paragraph]:
    """A heading, and a line for each fact; the settings give the rates that the plan does not."""
    lines = [Paragraph(safe(details.account.name, "bold"))]
    for group in (_usage(details), _plan(details.plan, settings), _keys_and_files(details)):
        lines.append(Paragraph(safe("")))
        lines += [Paragraph(safe(value), f"{label:<{LABEL_CELLS}}") for label, value in group]
    return lines


def _usage(details: Details) -> Iterator[Fact]:
    account = details.account
    if account.is_arriving:
        yield "State", "being imported; D removes what is left of an import that was cut off"
    elif account.is_closed:
        yield "State", "being deleted; D goes on with it"
    yield "Resumes", f"{account.resume_count:,} of {maximum_text(account.max_resumes)}"
    if account.max_resumes is not None:
        yield (
            "Full",
            f"{percent_used(account.resume_count, account.max_resumes)} %, {_room(account)}",
        )
    yield "Newest", minute(account.last_resume_at)
    yield "Created", minute(account.created_at)
    yield "Id", account.id


def _room(account: AccountInfo) -> str:
    if account.is_over:
        return "over: keeps all, takes no more"
    return f"room for {account.free_places:,} more"


def _plan(plan: PlanInfo, settings: Settings) -> Iterator[Fact]:
    yield "Plan", plan.name
    yield "API listing", listing_text(plan.api_listing)
    defaults = settings.rate_per_minute, settings.rate_per_hour, settings.rate_per_day
    for label, rate, default in zip(WINDOWS.values(), plan.rates, defaults, strict=True):
        yield label, f"{rate_text(default)} (default)" if rate is None else rate_text(rate)


def _keys_and_files(details: Details) -> Iterator[Fact]:
    has = details.summary
    yield "Keys", f"{has.active_keys:,} active of {has.keys:,}" if has.keys else NONE
    yield "Last used", minute(has.last_used_at)
    yield "Files held", f"{has.files_held:,}"
    yield "Failed", f"{has.files_failed:,}"
