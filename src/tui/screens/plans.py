"""The plans screen: the list, the form for a plan, the review before saving."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

from textual import work

from resumes.errors import Conflict
from resumes.store import plans
from resumes.store.accounts import check_name
from resumes.store.plans import (
    PlanChange,
    PlanInfo,
    keep_text,
    kept_text,
    listing_text,
    maximum_text,
    parse_keep_days,
    parse_maximum,
)
from resumes.store.store import Store
from resumes.text import counted
from tui.keys import Place, bindings
from tui.screens.base import ListScreen, Order
from tui.screens.checked_dialog import CheckedDialog
from tui.screens.dialogs import ConfirmDialog, Fact, FactsDialog, ask
from tui.store_calls import Failure, call, store_work
from tui.text import safe, show_message
from tui.widgets.bars import Note
from tui.widgets.forms import Choices, LabelledField, SafeInput
from tui.widgets.paged_list import ListColumn, text_cell
from tui.widgets.window import PageRead


def facts(plan: PlanInfo | PlanChange) -> Iterator[Fact]:
    """Yield each limit of the plan."""
    yield "Resumes", maximum_text(plan.max_resumes)
    yield "Listing", listing_text(bool(plan.api_listing))
    yield "Keeps", keep_text(plan.keep_days)


def differences(old: PlanInfo, new: PlanInfo | PlanChange) -> list[Fact]:
    """Return the facts that differ, with values such as `50 → 40`."""
    return [
        (label, f"{before} → {after}")
        for (label, before), (_, after) in zip(facts(old), facts(new), strict=True)
        if before != after
    ]


MAX_NAMES_CHARS: Final = 100
"""The maximum length of a list of names, so that the dialog fits in 24 lines."""

BLANK = PlanInfo(name="", max_resumes=100)
"""Initial values of the form for a new plan."""

RULE = "Resumes: a number or unlimited. Keep for: days, or forever."


class PlanForm(CheckedDialog[PlanInfo]):
    """Edits the plan `shown`, or creates a plan if it is None. The result is the saved plan."""

    VERB = "Save"

    def __init__(self, store: Store, shown: PlanInfo | None) -> None:
        self._shown, plan = shown, shown or BLANK
        self.enter_submits = shown is not None  # changes are reviewed before they are saved
        self._name_line = SafeInput(parse=partial(check_name, kind="plan"))
        self._maximum = SafeInput(maximum_text(plan.max_resumes), parse=parse_maximum)
        self._listing = Choices(["no", "yes"], listing_text(plan.api_listing))
        self._keep_days = SafeInput(keep_text(plan.keep_days), parse=parse_keep_days)
        super().__init__(
            store,
            "New plan" if shown is None else f"Plan {shown.name}",
            *([LabelledField("Name", self._name_line)] if shown is None else []),
            LabelledField("Resumes", self._maximum),
            LabelledField("API listing", self._listing),
            LabelledField("Keep for", self._keep_days),
            Note(safe(RULE, "dim")),
        )

    @store_work(exclusive=True)
    async def submit(self) -> None:
        """Show the plan's effects on accounts, and save it if the user confirms."""
        shown = self._shown
        change = PlanChange(
            self._name_line.parsed if shown is None else shown.name,
            self._maximum.parsed,
            self._listing.chosen == "yes",
            self._keep_days.parsed,
            expected=shown,
            is_new=shown is None,
        )
        if shown is not None:
            if not (changes := differences(shown, change)):
                self.show_problem("No changes to save.")
                return
            impact = await call(self.store, plans.preview_change, change=change)
            what = "Nothing is deleted."
            if change.keep_days not in (None, shown.keep_days):
                older = f"Resumes older than {keep_text(change.keep_days)}"
                what = f"{older} are erased within the hour, and cannot be restored."
            more = impact.sentences(change.max_resumes, MAX_NAMES_CHARS)
            dialog = ConfirmDialog(
                f"Change plan {shown.name} for {counted(shown.accounts, 'account')}?",
                changes,
                consequence=" ".join(["Takes effect immediately.", what, *more]),
                verb="Save",
            )
            if not await ask(self, dialog):
                return
        self.save(self.store, partial(save_plan, change=change))

    def show_failure(self, failure: Failure) -> None:
        if self._shown is not None and isinstance(failure.__cause__, Conflict):
            self._show_saved(self._shown, failure.message)
        else:
            super().show_failure(failure)

    @store_work()
    async def _show_saved(self, shown: PlanInfo, conflict: str) -> None:
        """Show the plan as another process has saved it, and show the conflict as a problem."""
        self._shown = plan = await call(self.store, plans.get_plan, shown.name)
        others = ", ".join(f"{what} {how}" for what, how in differences(shown, plan))
        # Setting a value posts Changed, which would clear the problem.
        with self.prevent(SafeInput.Changed):
            self._maximum.value = maximum_text(plan.max_resumes)
            self._listing.value = listing_text(plan.api_listing)
            self._keep_days.value = keep_text(plan.keep_days)
        self._maximum.focus()
        self.show_problem(f"{conflict}: {others}. Nothing was saved. The current plan is shown.")


def save_plan(store: Store, *, change: PlanChange) -> PlanInfo:
    """Save the change, and return the plan. Raises Conflict."""
    plans.set_plan_limits(store, change)
    return plans.get_plan(store, change.name)


LIMIT_COLUMNS: Final[Sequence[ListColumn[PlanInfo]]] = (
    ListColumn("RESUMES", 9, lambda plan: safe(maximum_text(plan.max_resumes)), is_right=True),
    ListColumn("LISTING", 7, lambda plan: safe(listing_text(plan.api_listing))),
)


class PlansScreen(ListScreen[PlanInfo]):
    """The plans, with their limits and numbers of accounts."""

    MODE = "plans"
    ROW = "plan"
    ORDERS = (
        Order(""),  # the smallest first
        Order("by name", attrgetter("name")),
        Order("most accounts first", lambda plan: (-plan.accounts, plan.name)),
    )
    BINDINGS = bindings(Place.PLANS)

    def columns(self) -> Sequence[ListColumn[PlanInfo]]:
        return (
            ListColumn("NAME", 0, lambda plan: text_cell(plan.name, "bold"), at_most=40),
            *LIMIT_COLUMNS,
            ListColumn("KEEPS", 20, lambda plan: safe(kept_text(plan.keep_days, plan.due))),
            ListColumn("ACCOUNTS", 8, lambda plan: safe(f"{plan.accounts:,}"), is_right=True),
        )

    def hidden(self) -> Iterable[str]:
        if self.list.current is None or not self.session.read_only:
            yield "choose"  # enter does the same as Edit, which is shown

    def row_key(self, row: PlanInfo) -> str:
        return row.name

    def words(self, row: PlanInfo) -> str:
        return row.name

    def reading(self, cursor: str) -> Callable[[Store], PageRead[PlanInfo]]:
        return lambda store: PageRead(plans.list_plans(store))

    def open_row(self, row: PlanInfo) -> None:
        """Open the form for the plan; in a read-only session show its limits."""
        if self.session.read_only:
            on_it = ("Accounts", f"{row.accounts:,}")
            self.app.push_screen(FactsDialog(f"Plan {row.name}", [*facts(row), on_it]))
        else:
            self._edit(row)

    def action_edit_plan(self) -> None:
        if self.current_row("edit") is not None:
            self.list.action_choose()

    def action_create_plan(self) -> None:
        self._edit(None)

    @work
    async def _edit(self, shown: PlanInfo | None) -> None:
        """Open the form for the plan `shown`, or for a new plan if it is None."""
        if (plan := await ask(self, PlanForm(self.session.store, shown))) is not None:
            show_message(self, f"Saved plan {plan.name}: {plan.allowance}.")
            self.action_reload(row=plan.name)
