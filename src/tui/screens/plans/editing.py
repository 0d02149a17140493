"""The form for a plan: its limits, checked as they are typed."""

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen

from resumes.errors import InvalidArgument
from resumes.store import plans
from resumes.store.accounts import check_name
from resumes.store.plans import PlanChange, PlanImpact, PlanInfo
from tui.actions import Place, bindings
from tui.notices import Failure
from tui.screens.plans.limits import (
    WINDOWS,
    differences,
    listing_text,
    maximum_text,
    parse_maximum,
    parse_rate,
    rate_text,
)
from tui.screens.plans.reviewing import ReviewDialog
from tui.screens.plans.saving import Saved, change_to, save
from tui.session import Session
from tui.store_client import Reply, StoreClient
from tui.text import safe
from tui.toasts import tell
from tui.widgets.fields import Choices, LabelledField, SafeInput, TextButton
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import Note, TitleLine

MAX_CHARS = 80
BLANK = PlanInfo("", 100, api_listing=False, accounts=0)
"""What the form for a new plan begins with."""

RULE = (
    "Resumes of an account: a number or unlimited. Requests of a key: a number, unlimited, "
    "or default, which is what the settings say."
)


class PlanForm(ModalScreen[PlanInfo | None]):
    """Gives the plan as it was saved, None when it was not. `shown` None makes a new plan."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)
    DEFAULT_CSS = """
    PlanForm #problem { color: $text-error; }
    """

    def __init__(self, session: Session, shown: PlanInfo | None) -> None:
        super().__init__()
        self._client = StoreClient(session.store, self)
        self._shown = shown
        self._is_asking = False
        self._is_saving = False
        self._name_line = SafeInput(max_length=MAX_CHARS)
        self._maximum = SafeInput(max_length=MAX_CHARS)
        self._listing = Choices(["no", "yes"], listing_text((shown or BLANK).api_listing))
        self._rates = {window: SafeInput(max_length=MAX_CHARS) for window in WINDOWS}

    def compose(self) -> ComposeResult:
        title = "A new plan" if self._shown is None else f"The plan {self._shown.name}"
        with Vertical(classes="dialog"):
            yield TitleLine(safe(title, "bold"))
            if self._shown is None:
                yield LabelledField("Name", self._name_line)
            yield LabelledField("Resumes", self._maximum)
            yield LabelledField("API listing", self._listing)
            for window, label in WINDOWS.items():
                yield LabelledField(label, self._rates[window])
            yield Note(safe(RULE, "dim"))
            yield Note(safe(""), id="problem")
            with Horizontal(classes="buttons"):
                yield TextButton(safe("Save"), id="save", variant="primary")
                yield TextButton(safe("Cancel"), id="cancel")
        yield KeyLine()

    def on_mount(self) -> None:
        self._fill(self._shown or BLANK)
        (self._name_line if self._shown is None else self._maximum).focus()

    def _fill(self, plan: PlanInfo, *, was: PlanInfo | None = None) -> None:
        """The form says the plan's limits, but where something else was typed than it `was`."""
        if was is None or self._maximum.value == maximum_text(was.max_resumes):
            self._maximum.value = maximum_text(plan.max_resumes)
        if was is None or self._listing.chosen == listing_text(was.api_listing):
            self._listing.value = listing_text(plan.api_listing)
        before = (None,) * len(WINDOWS) if was is None else was.rates
        for line, rate, rate_was in zip(self._rates.values(), plan.rates, before, strict=True):
            if was is None or line.value == rate_text(rate_was):
                line.value = rate_text(rate)

    @on(SafeInput.Changed)
    def check(self) -> None:
        """What is wrong with what was typed so far is said."""
        is_begun = self._shown is not None or self._name_line.value
        try:
            self._wished()
        except InvalidArgument as error:
            self._tell_problem(error.message if is_begun else "")
        else:
            self._tell_problem("")

    def _wished(self) -> PlanInfo:
        """The plan as the form says. Raises InvalidArgument."""
        shown = self._shown
        rates = (parse_rate(line.value, window) for window, line in self._rates.items())
        return PlanInfo(
            check_name(self._name_line.value.strip(), "plan") if shown is None else shown.name,
            parse_maximum(self._maximum.value),
            self._listing.chosen == "yes",
            0 if shown is None else shown.accounts,
            *rates,
        )

    @on(SafeInput.Submitted)
    @on(TextButton.Pressed, "#save")
    def submit(self) -> None:
        """What the plan would be is asked about, if there is nothing wrong with it."""
        try:
            new = self._wished()
        except InvalidArgument as error:
            self._tell_problem(error.message)
            return
        if self._is_asking or self._is_saving:
            return
        change = change_to(new, shown=self._shown)
        if self._shown is None:
            self._save(change)
        elif not differences(self._shown, new):
            self._tell_problem("Nothing here differs from what the plan is.")
        else:
            self._foresee(self._shown, new, change)

    def _foresee(self, shown: PlanInfo, new: PlanInfo, change: PlanChange) -> None:
        def review(effects: PlanImpact) -> None:
            self._is_asking = False
            answered = partial(self._review_answered, change)
            self.app.push_screen(ReviewDialog(shown, new, effects), answered)

        self._is_asking = True
        self._client.read(
            "effects", partial(plans.preview_change, change=change), then=review, failed=self._fail
        )

    def _review_answered(self, change: PlanChange, is_sure: bool | None) -> None:
        if is_sure:
            self._save(change)

    def _save(self, change: PlanChange) -> None:
        self._is_saving = True
        self._client.change(partial(save, change=change), then=self._saved, failed=self._fail)

    def _saved(self, saved: Saved) -> None:
        self._is_saving = False
        if not saved.conflict:
            self.dismiss(saved.plan)
        elif self._shown is None or saved.plan is None:
            self._tell_problem(f"{saved.conflict}. Nothing was saved.")
        else:
            self._take_over(self._shown, saved.plan, saved.conflict)

    def _take_over(self, shown: PlanInfo, plan: PlanInfo, conflict: str) -> None:
        """The form is about the plan as somebody else made it; what was typed here stays."""
        others = ", ".join(f"{what} {how}" for what, how in differences(shown, plan))
        self._shown = plan
        # Whoever sets a line is told that it changed, and would take the problem away.
        with self.prevent(SafeInput.Changed):
            self._fill(plan, was=shown)
        self._tell_problem(f"{conflict}: {others}. Nothing was saved; save again to go on.")

    def _fail(self, failure: Failure) -> None:
        self._is_asking = self._is_saving = False
        self._tell_problem(f"{failure.message}. What you typed is kept; enter tries again.")

    def _tell_problem(self, problem: str) -> None:
        self.query_one("#problem", Note).update(safe(f"! {problem}" if problem else ""))

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """The store call has ended."""
        self._client.deliver(reply)

    @on(TextButton.Pressed, "#cancel")
    def action_cancel(self) -> None:
        """The plan stays as it is; what is being saved already is told of when it is."""
        if self._is_saving:
            tell(self, "It is being saved.")
        else:
            self.dismiss(None)
