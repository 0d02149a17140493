"""The form for a new account."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from textual import on
from textual.widget import Widget

from resumes.store import accounts
from resumes.store.accounts import FIRST_PLAN, NAME, AccountInfo
from resumes.store.plans import PlanInfo
from resumes.store.store import Store
from tui.screens.dialogs import Dialog
from tui.session import UiSession
from tui.store_calls import call, store_work
from tui.text import safe
from tui.widgets.bars import Note
from tui.widgets.forms import Choices, LabelledField, SafeInput

MAX_CHARS: Final = 80
RULE: Final = "Use 1 to 63 characters: a-z, 0-9 and -, not starting with -."


@dataclass(frozen=True, slots=True)
class Made:
    """The new account, and the folder that its files are to be dropped into.

    `problem` says why that folder could not be made; empty: it is there.
    """

    account: AccountInfo
    inbox: Path
    problem: str = ""


class CreateAccountDialog(Dialog[Made]):
    """Gives the account once it is made, None if it was canceled. `taken` are known names."""

    VERB = "Create"
    DEFAULT_CSS = """
    CreateAccountDialog .-bad { color: $text-error; }
    """

    def __init__(
        self, session: UiSession, plans: Sequence[PlanInfo], taken: Collection[str] = ()
    ) -> None:
        super().__init__("New account")
        self._store = session.store
        self._inboxes = session.settings.inbox
        self._plans = {plan.name: plan for plan in plans}
        self._taken = taken
        self._name_line = SafeInput(max_length=MAX_CHARS)
        first = FIRST_PLAN if FIRST_PLAN in self._plans else next(iter(self._plans))
        self._plan_line = Choices(list(self._plans), first)

    def fields(self) -> Iterable[Widget]:
        yield LabelledField("Name", self._name_line)
        yield Note(safe(RULE), id="name-note")
        yield LabelledField("Plan", self._plan_line)
        yield Note(safe(""), id="plan-note")

    def on_mount(self) -> None:
        self._name_line.focus()

    @on(SafeInput.Changed)
    def check_name(self) -> None:
        """Show what is wrong with the name, if anything."""
        self.show_problem(self._problem() if self._wished_name else "")

    @on(Choices.Changed)
    def show_plan(self) -> None:
        """Show what the plan allows."""
        plan = self._plans[self._plan_line.chosen]
        self.query_one("#plan-note", Note).update(safe(f"Allows {plan.allowance}."))

    @property
    def _wished_name(self) -> str:
        return self._name_line.value.strip()

    def _problem(self) -> str:
        name = self._wished_name
        if not NAME.fullmatch(name):
            return f'"{name}" is not a valid name. {RULE}'
        return f'Account "{name}" already exists.' if name in self._taken else ""

    def show_problem(self, problem: str) -> None:
        note = self.query_one("#name-note", Note)
        note.set_class(bool(problem), "-bad")
        note.update(safe(f"! {problem}" if problem else RULE))

    def is_ready(self) -> bool:
        if problem := self._problem():
            self.show_problem(problem)
            self._name_line.focus()
        return not problem

    def submit(self) -> None:
        self.is_saving = True
        self._create(self._wished_name, self._plan_line.chosen)

    @store_work()
    async def _create(self, name: str, plan: str) -> None:
        self.dismiss(await call(self._store, make, name=name, plan=plan, inboxes=self._inboxes))


def make(store: Store, *, name: str, plan: str, inboxes: Path) -> Made:
    """Create the account, and its inbox if possible. Raises Conflict."""
    account = accounts.create_account(store, name, plan=plan)
    inbox = inboxes / account.name
    try:
        inbox.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return Made(account, inbox, error.strerror or "unknown reason")
    return Made(account, inbox)
