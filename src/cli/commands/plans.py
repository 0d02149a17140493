"""`resumes plans`: list the plans and set their limits."""

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from cli.groups import group
from cli.output import Column, put_json, put_table, say
from cli.session import Session, pass_session
from resumes.errors import InvalidArgument
from resumes.store import plans as store_plans
from resumes.store.plans import (
    AffectedAccounts,
    PlanInfo,
    kept_text,
    listing_text,
    maximum_text,
    parse_keep_days,
    parse_maximum,
)

COLUMNS = (
    Column("plan", lambda plan: plan.name, is_flexible=True),
    Column("resumes", lambda plan: maximum_text(plan.max_resumes), is_number=True),
    Column("API listing", lambda plan: listing_text(plan.api_listing)),
    Column("keeps resumes", lambda plan: kept_text(plan.keep_days, plan.due)),
    Column("accounts", lambda plan: f"{plan.accounts:,}", is_number=True),
)


def _parsed(parse: Callable[[str], int | None]) -> Callable[[str], int | None]:
    """Return a function that parses an option's value and raises ValueError, as click expects."""

    def parse_value(text: str) -> int | None:
        try:
            return parse(text)
        except InvalidArgument as error:
            raise ValueError(error.message) from None

    return parse_value


@group()
def plans() -> None:
    """Show and change plans."""


@plans.command("list")
@pass_session
def list_(session: Session) -> None:
    """List all plans."""
    with session.store() as store:
        known = store_plans.list_plans(store)
    if session.as_json:
        put_json({"plans": [as_json(plan) for plan in known]})
    else:
        put_table(COLUMNS, known)


@plans.command("set")
@click.argument("name")
@click.option(
    "--max-resumes",
    type=_parsed(parse_maximum),
    metavar="N|unlimited",
    help="Maximum number of resumes per account; required for a new plan.",
)
@click.option(
    "--api-listing/--no-api-listing",
    default=None,
    help="Allow clients to list and read resumes and to get PDFs over the API. [default: "
    "unchanged, or off for a new plan]",
)
@click.option(
    "--keep-days",
    type=_parsed(parse_keep_days),
    metavar="N|forever",
    help="Number of days after which resumes are erased, with their documents. [default: unchanged, or "
    "forever for a new plan]",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show which accounts the change would affect, without changing anything.",
)
@pass_session
def set_(
    session: Session,
    name: str,
    max_resumes: int | None,
    api_listing: bool | None,
    keep_days: int | None,
    dry_run: bool,
) -> None:
    """Create or change the plan NAME.

    The command itself does not delete any resumes. Accounts that exceed a new limit keep their resumes, but
    cannot add more. With --keep-days, services erase older resumes within the hour, and then hourly.
    """
    with session.store(create=not dry_run) as store:
        known = store_plans.find_plan(store, name)
        if not _is_given("max_resumes"):
            if known is None:
                reason = f'there is no plan "{name}" yet'
                raise click.UsageError(f"Missing option '--max-resumes': {reason}")
            max_resumes = known.max_resumes
        if known is not None and not _is_given("keep_days"):
            keep_days = known.keep_days
        change = store_plans.PlanChange(name, max_resumes, api_listing, keep_days, expected=known)
        store_plans.check_change(change)
        effects = store_plans.preview_change(store, change)
        sentences, plan = effects.sentences(max_resumes), None
        if not dry_run:
            store_plans.set_plan_limits(store, change)
            plan = store_plans.get_plan(store, name)
    if session.as_json:
        put_json(
            as_json(plan)
            if plan
            else {
                "over": _as_json(effects.over),
                "unlisted": _as_json(effects.unlisted),
                "due": _as_json(effects.due),
            }
        )
    else:
        say(
            "Dry run: nothing was changed."
            if plan is None
            else f'Plan "{plan.name}": {plan.allowance}.'
        )
        if plan is None and not sentences:
            say("No account would exceed its limit, lose API listing, or have resumes erased now.")
    for sentence in sentences:
        say(sentence)


def _is_given(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT


def _as_json(affected: AffectedAccounts) -> dict[str, Any]:
    fullest = [{"account": name, "resumes": holds} for name, holds in affected.fullest]
    return {"count": affected.count, "fullest": fullest}


def as_json(plan: PlanInfo) -> dict[str, Any]:
    """Return the plan as `--json` prints it.

    `maxResumes` is null if it is unlimited, and `keepDays` is null if resumes are kept forever."""
    return {
        "name": plan.name,
        "maxResumes": plan.max_resumes,
        "apiListing": bool(plan.api_listing),
        "keepDays": plan.keep_days,
        "accounts": plan.accounts,
        "dueResumes": plan.due,
    }
