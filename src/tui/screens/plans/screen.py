"""The plans, the smallest first."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content

from resumes.store import plans
from resumes.store.plans import PlanInfo
from resumes.store.store import Store
from resumes.text import counted
from tui.actions import Place, bindings
from tui.screens.facts import FactsDialog
from tui.screens.list_screen import ListScreen, PageRead
from tui.screens.plans.editing import PlanForm
from tui.screens.plans.limits import allowance, facts, listing_text, maximum_text, rate_text
from tui.text import joined, safe
from tui.toasts import tell
from tui.widgets.columns import Column, text_cell
from tui.widgets.paged_list import PagedList


def rate_column(heading: str, rate: Callable[[PlanInfo], int | None]) -> Column[PlanInfo]:
    """A column of requests, numbers to the right."""
    return Column(heading, 10, lambda plan: safe(f"{rate_text(rate(plan)):>10}"))


COLUMNS: tuple[Column[PlanInfo], ...] = (
    Column("NAME", 0, lambda plan: text_cell(plan.name), at_most=40),
    Column("  RESUMES", 9, lambda plan: safe(f"{maximum_text(plan.max_resumes):>9}")),
    Column("LISTING", 7, lambda plan: safe(listing_text(plan.api_listing))),
    rate_column("PER MINUTE", attrgetter("requests_per_minute")),
    rate_column("  PER HOUR", attrgetter("requests_per_hour")),
    rate_column("   PER DAY", attrgetter("requests_per_day")),
    Column("ACCOUNTS", 8, lambda plan: safe(f"{plan.accounts:>8,}")),
)


class PlansScreen(ListScreen[PlanInfo]):
    """What each plan allows, and how many accounts are on it."""

    MODE = "plans"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.PLANS)

    def columns(self) -> Sequence[Column[PlanInfo]]:
        return COLUMNS

    def row_key(self, row: PlanInfo) -> str:
        return row.name

    def reading(self, cursor: str) -> Callable[[Store], PageRead[PlanInfo]]:
        return lambda store: PageRead(plans.list_plans(store))

    def heading(self) -> Content:
        settings = self.session.settings
        rates = settings.rate_per_minute, settings.rate_per_hour, settings.rate_per_day
        windows = zip(rates, ("a minute", "an hour", "a day"), strict=True)
        default = ", ".join(f"{rate_text(rate)} {window}" for rate, window in windows)
        count = counted(self.list.pages.count, "plan")
        return joined([safe(count, "bold"), safe(f"default: {default}", "dim")], by=" · ")

    @on(PagedList.Chosen)
    def open_plan(self, chosen: PagedList.Chosen) -> None:
        """The form for the plan is open, or what it allows is shown while nothing can change."""
        plan: PlanInfo = chosen.row
        if self.session.read_only:
            on_it = ("Accounts", f"{plan.accounts:,}")
            self.app.push_screen(FactsDialog(f"The plan {plan.name}", [*facts(plan), on_it]))
        else:
            self.app.push_screen(PlanForm(self.session, plan), self._saved)

    def action_edit_plan(self) -> None:
        """The form for the plan is open."""
        if self.list.current is None:
            tell(self, "There is no plan here to change.")
        else:
            self.list.action_choose()

    def action_create_plan(self) -> None:
        """The form for a new plan is open."""
        self.app.push_screen(PlanForm(self.session, None), self._saved)

    def _saved(self, plan: PlanInfo | None) -> None:
        if plan is not None:
            tell(self, f"Saved. {plan.name}: {allowance(plan)}.")
            self.action_reload()
