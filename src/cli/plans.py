"""`resumes plans`: what accounts may hold and do."""

from typing import TYPE_CHECKING, Any

import click

from cli.candidates import plan_names
from cli.commands import group
from cli.output import Column, limit, put_json, put_table, say
from cli.session import Session, pass_session

if TYPE_CHECKING:
    from resumes.store.plans import PlanInfo

COLUMNS = (
    Column("plan", is_flexible=True),
    Column("resumes", is_number=True),
    Column("API listing"),
    Column("accounts", is_number=True),
)


class Maximum(click.ParamType[int | None]):
    """A number of resumes, or `unlimited`, which becomes None."""

    name = "maximum"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """The number; a usage error for what is neither a number nor `unlimited`."""
        if value == "unlimited":
            return None
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
            return int(value)
        self.fail(f'"{value}" is neither a number of resumes nor unlimited', param, ctx)


@group()
def plans() -> None:
    """See and set what plans allow."""


@plans.command("list")
@pass_session
def list_(session: Session) -> None:
    """List all plans."""
    from resumes.store import plans

    with session.store() as store:
        known = plans.list_plans(store)
    if session.as_json:
        put_json({"plans": [as_json(plan) for plan in known]})
    else:
        put_table(COLUMNS, map(_row, known))


@plans.command("set")
@click.argument("name", shell_complete=plan_names)
@click.option(
    "--max-resumes",
    type=Maximum(),
    required=True,
    metavar="N|unlimited",
    help="How many resumes an account on it may hold.",
)
@click.option(
    "--api-listing/--no-api-listing",
    default=None,
    help="Whether resumes can be listed and read over the API. Default: as it was, no for a new plan.",
)
@pass_session
def set_(session: Session, name: str, max_resumes: int | None, api_listing: bool | None) -> None:
    """Make the plan NAME, or change it for every account on it."""
    from resumes.store import plans

    with session.store(makes=True) as store:
        plans.set_plan_limits(store, plans.PlanChange(name, max_resumes, api_listing))
        plan = plans.get_plan(store, name)
    if session.as_json:
        put_json(as_json(plan))
        return
    listing = "with" if plan.api_listing else "without"
    number = "any number of" if plan.max_resumes is None else f"{plan.max_resumes:,}"
    say(f'Plan "{plan.name}" allows {number} resumes, {listing} listing over the API.')


def _row(plan: "PlanInfo") -> list[str]:
    listing = "yes" if plan.api_listing else "no"
    return [plan.name, limit(plan.max_resumes), listing, f"{plan.accounts:,}"]


def as_json(plan: "PlanInfo") -> dict[str, Any]:
    """The plan as `--json` prints it. `maxResumes` null: unlimited."""
    return {
        "name": plan.name,
        "maxResumes": plan.max_resumes,
        "apiListing": bool(plan.api_listing),
        "accounts": plan.accounts,
    }
