"""The plans screen: the list, the form for a plan, the review before saving."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

from textual import on, work

from resumes.errors import Conflict
from resumes.store import plans
from resumes.store.accounts import check_name
from resumes.store.plans import (
    AffectedAccounts,
    PlanChange,
    PlanInfo,
    keep_text,
    maximum_text,
    parse_keep_days,
    parse_maximum,
)
from resumes.store.store import Store
from resumes.text import counted
from tui.keys import Place, bindings
from tui.screens.base import ListScreen, Order
from tui.screens.dialogs import ConfirmDialog, Dialog, Fact, FactsDialog
from tui.session import UiSession
from tui.store_calls import Failure, call, store_work
from tui.text import safe, show_message
from tui.widgets.bars import Note
from tui.widgets.forms import Choices, LabelledField, SafeInput
from tui.widgets.paged_list import ListColumn, text_cell
from tui.widgets.window import PageRead


def listing_text(is_allowed: bool) -> str:
    """Return `yes` if the API lists and returns resumes, otherwise `no`."""
    return "yes" if is_allowed else "no"


def facts(plan: PlanInfo) -> Iterator[Fact]:
    """Yield each limit of the plan."""
    yield "Resumes", maximum_text(plan.max_resumes)
    yield "Listing", listing_text(plan.api_listing)
    yield "Keeps", keep_text(plan.keep_days)


def differences(old: PlanInfo, new: PlanInfo) -> list[Fact]:
    """Return what differs, as `50 → 40`; empty if nothing does."""
    return [
        (label, f"{before} → {after}")
        for (label, before), (_, after) in zip(facts(old), facts(new), strict=True)
        if before != after
    ]


MAX_NAMES_CHARS: Final = 200
"""Longest list of names, so that the dialog fits in 24 lines."""


def affected(accounts: AffectedAccounts, max_chars: int) -> str:
    """Return `12 accounts: ana (812), zoe (60) and 10 more`."""
    return f"{counted(accounts.count, 'account')}: {accounts.named(max_chars)}"


MAX_CHARS = 80
BLANK = PlanInfo(name="", max_resumes=100)
"""Initial values of the form for a new plan."""

RULE = "Resumes: a number or unlimited. Keep for: days, or forever."


class PlanForm(Dialog[PlanInfo]):
    """Edits the plan `shown`, or creates one if that is None. The result is the saved plan."""

    VERB = "Save"
    DEFAULT_CSS = """
    PlanForm .problem { color: $text-error; }
    """

    def __init__(self, session: UiSession, shown: PlanInfo | None) -> None:
        self._store = session.store
        self._shown = shown
        self.enter_submits = shown is not None  # changes are reviewed before they are saved
        self._name_line = SafeInput(parse=partial(check_name, kind="plan"), max_length=MAX_CHARS)
        self._maximum = SafeInput(parse=parse_maximum, max_length=MAX_CHARS)
        self._listing = Choices(["no", "yes"], listing_text((shown or BLANK).api_listing))
        self._keep_days = SafeInput(parse=parse_keep_days, max_length=MAX_CHARS)
        self._problem = Note(safe(""))
        self._problem.add_class("problem")
        super().__init__(
            "New plan" if shown is None else f"Plan {shown.name}",
            *([LabelledField("Name", self._name_line)] if shown is None else []),
            LabelledField("Resumes", self._maximum),
            LabelledField("API listing", self._listing),
            LabelledField("Keep for", self._keep_days),
            Note(safe(RULE, "dim")),
            self._problem,
        )

    def on_mount(self) -> None:
        self._fill(self._shown or BLANK)
        self._maximum.action_select_all()  # typing replaces it, as in the other lines

    def _fill(self, plan: PlanInfo) -> None:
        self._maximum.value = maximum_text(plan.max_resumes)
        self._listing.value = listing_text(plan.api_listing)
        self._keep_days.value = keep_text(plan.keep_days)

    @on(SafeInput.Changed)
    def check(self) -> None:
        """Show the problem of the current input."""
        is_begun = self._shown is not None or self._name_line.value
        self.show_problem(self.find_problem()[0] if is_begun else "")

    def _typed_plan(self) -> PlanInfo:
        """Return the plan in the form. Raises InvalidArgument."""
        shown = self._shown
        return PlanInfo(
            name=self._name_line.parsed if shown is None else shown.name,
            max_resumes=self._maximum.parsed,
            api_listing=self._listing.chosen == "yes",
            keep_days=self._keep_days.parsed,
            accounts=0 if shown is None else shown.accounts,
        )

    @store_work(exclusive=True)
    async def submit(self) -> None:
        """Show the plan's effects on accounts, and save it if the user confirms."""
        shown, new = self._shown, self._typed_plan()
        change = PlanChange(
            new.name,
            new.max_resumes,
            new.api_listing,
            new.keep_days,
            expected=shown,
            is_new=shown is None,
        )
        if shown is not None:
            if not (changes := differences(shown, new)):
                self.show_problem("No changes to save.")
                return
            effects = await call(self._store, plans.preview_change, change=change)
            if new.max_resumes is not None:
                over = affected(effects.over, MAX_NAMES_CHARS) if effects.over.count else "none"
                changes.append(("Over limit", over))
            if effects.unlisted.count:
                changes.append(("No listing", affected(effects.unlisted, MAX_NAMES_CHARS // 2)))
            if effects.due.count:
                changes.append(("Due", affected(effects.due, MAX_NAMES_CHARS // 2)))
            kept = ": accounts over the limit keep their resumes but cannot add more"
            what = f"Nothing is deleted{kept if effects.over.count else ''}."
            if new.keep_days not in (None, shown.keep_days):
                days = keep_text(new.keep_days)
                what = (
                    f"Resumes older than {days} are erased within the hour, and cannot be restored."
                )
            dialog = ConfirmDialog(
                f"Change plan {shown.name} for {counted(shown.accounts, 'account')}?",
                changes,
                consequence=f"Takes effect immediately. {what}",
                verb="Save",
            )
            if not self.is_active or not await self.app.push_screen_wait(dialog):
                return
        self.is_saving = True  # immediately: a second press may be queued
        self._save(change)

    @store_work()
    async def _save(self, change: PlanChange) -> None:
        try:
            await call(self._store, plans.set_plan_limits, change)
        except Failure as failure:
            if change.expected is None or not isinstance(failure.__cause__, Conflict):
                raise
            now = await call(self._store, plans.get_plan, change.name)
            self._show_saved(change.expected, now, failure.message)
        else:
            self.dismiss(await call(self._store, plans.get_plan, change.name))

    def _show_saved(self, shown: PlanInfo, plan: PlanInfo, conflict: str) -> None:
        """Show the plan as another process saved it, with the conflict as the problem."""
        others = ", ".join(f"{what} {how}" for what, how in differences(shown, plan))
        self._shown, self.is_saving = plan, False
        # Setting a value posts Changed, which would clear the problem.
        with self.prevent(SafeInput.Changed):
            self._fill(plan)
        self._maximum.focus()
        self.show_problem(f"{conflict}: {others}. Nothing was saved. The current plan is shown.")

    def show_problem(self, problem: str) -> None:
        self._problem.update(safe(f"! {problem}" if problem else ""))


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
            ListColumn(
                "RESUMES", 9, lambda plan: safe(maximum_text(plan.max_resumes)), is_right=True
            ),
            ListColumn("LISTING", 7, lambda plan: safe(listing_text(plan.api_listing))),
            ListColumn("KEEPS", 11, lambda plan: safe(keep_text(plan.keep_days))),
            ListColumn("ACCOUNTS", 8, lambda plan: safe(f"{plan.accounts:,}"), is_right=True),
        )

    def hidden(self) -> Iterable[str]:
        if self.list.current is None or not self.session.read_only:
            yield "choose"  # enter edits

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
        """Open the form for the plan `shown`; None creates one."""
        plan = await self.app.push_screen_wait(PlanForm(self.session, shown))
        if plan is not None:
            show_message(self, f"Saved plan {plan.name}: {plan.allowance}.")
            self.action_reload(row=plan.name)
