"""The accounts screen: list, details, creating, editing, changing the plan, deleting."""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from textual import on, work
from textual.content import Content
from textual.widget import Widget
from textual.worker import get_current_worker

from resumes.errors import InvalidArgument
from resumes.store import accounts, import_history, plans
from resumes.store.accounts import FIRST_PLAN, NAME, AccountInfo, AccountOptions
from resumes.store.plans import PlanInfo, keep_text, maximum_text
from resumes.store.retention import list_due
from resumes.store.store import Store
from resumes.store.versions import OnNewer
from resumes.text import counted
from tui.keys import Place, Target, bindings, shown_key
from tui.screens.base import Order, RowPane, SplitScreen
from tui.screens.dialogs import Chooser, ConfirmDialog, Dialog, Fact, no_accounts
from tui.screens.plans import listing_text
from tui.session import UiSession
from tui.store_calls import Failure, call, store_work
from tui.text import NONE, minute, quota_bar, safe, show_message
from tui.widgets.bars import Note
from tui.widgets.forms import Choices, LabelledField, SafeInput
from tui.widgets.paged_list import ListColumn, age_column, text_cell
from tui.widgets.text_pane import Paragraph, TextPane
from tui.widgets.window import PageRead


def read_losses(store: Store, account: AccountInfo) -> tuple[AccountInfo, list[Fact]]:
    """Return the account's current state, and what would be deleted with it. Raises NotFound."""
    now = accounts.get_account(store, account.name, include_closed=True)
    # By ID: another account may have the name by now.
    has = accounts.get_summary(store, now.id)
    files = sum(count.files for count in import_history.count_files(store, account_id=now.id))
    return now, [
        ("Resumes", f"{now.resume_count:,}"),
        ("Keys", f"{has.keys:,} ({has.active_keys:,} active)"),
        ("Last used", minute(has.last_used_at)),
        ("Files", f"{files:,} in the import history"),
    ]


def reload_account(store: Store, account: AccountInfo) -> AccountInfo:
    """Return the account's current state. Raises NotFound, also if its name is another's by now."""
    now = accounts.get_account(store, account.name)
    if now.id != account.id:
        raise accounts.unknown_account(account.name)
    return now


MAX_CHARS: Final = 80
RULE: Final = "Use 1 to 63 characters: a-z, 0-9 and -, not starting with -."


Made = tuple[AccountInfo, str]
"""An account, and why it has no inbox, empty if it has one."""


class NameDialog(Dialog[Made]):
    """Asks for a name, and saves the account under it. `taken` holds the names in use."""

    DEFAULT_CSS = """
    NameDialog .-bad { color: $text-error; }
    """

    def __init__(
        self, session: UiSession, title: str, name: str, taken: Collection[str], *fields: Widget
    ) -> None:
        self._store = session.store
        self._inboxes = session.settings.inbox
        self._taken = taken
        self._name_line = SafeInput(name, parse=self._parse_name, max_length=MAX_CHARS)
        self._name_note = Note(safe(RULE))
        super().__init__(title, LabelledField("Name", self._name_line), self._name_note, *fields)

    @on(SafeInput.Changed)
    def check_name(self) -> None:
        """Show the problem of the name, if any."""
        line = self._name_line
        self.show_problem(line.find_problem() if line.value.strip() else "")

    def _parse_name(self, text: str) -> str:
        if not NAME.fullmatch(text):
            raise InvalidArgument(f'"{text}" is not a valid name. {RULE}')
        if text in self._taken:
            raise InvalidArgument(f'Account "{text}" already exists.')
        return text

    def show_problem(self, problem: str) -> None:
        self._name_note.set_class(bool(problem), "-bad")
        self._name_note.update(safe(f"! {problem}" if problem else RULE))

    @abstractmethod
    def saving(self) -> Callable[[Store], AccountInfo]:
        """Return a function that saves the account. It may raise Conflict."""

    def submit(self) -> None:
        self.is_saving = True  # immediately: a second press may be queued
        self._save(partial(save_with_inbox, save=self.saving(), inboxes=self._inboxes))

    @store_work()
    async def _save(self, save: Callable[[Store], Made]) -> None:
        self.dismiss(await call(self._store, save))


class CreateAccountDialog(NameDialog):
    """Creates an account."""

    VERB = "Create"
    enter_submits = False

    def __init__(
        self, session: UiSession, plans: Sequence[PlanInfo], taken: Collection[str]
    ) -> None:
        self._plans = {plan.name: plan for plan in plans}
        first = FIRST_PLAN if FIRST_PLAN in self._plans else next(iter(self._plans))
        self._plan_line = Choices(list(self._plans), first)
        self._plan_note = Note(safe(""))
        plan = LabelledField("Plan", self._plan_line)
        super().__init__(session, "New account", "", taken, plan, self._plan_note)

    @on(Choices.Changed)
    def show_plan(self) -> None:
        plan = self._plans[self._plan_line.chosen]
        self._plan_note.update(safe(f"Allows {plan.allowance}."))

    def saving(self) -> Callable[[Store], AccountInfo]:
        return partial(
            accounts.create_account, name=self._name_line.parsed, plan=self._plan_line.chosen
        )


FOLDER_STAYS: Final = (
    "Files in the folder {} still belong to it, until another account takes that name."
)


FIRST_MONTHS: Final = {"default": None, "0": 0, "1": 1}
"""The choices of the number of January in an account's dates."""


class EditAccountDialog(NameDialog):
    """Renames an account, and sets its options."""

    VERB = "Save"

    def __init__(self, session: UiSession, account: AccountInfo, taken: set[str]) -> None:
        self._account = account
        self._first_month = Choices([*FIRST_MONTHS], first_month_text(account))
        self._on_newer = Choices([each.value for each in OnNewer], account.on_newer)
        super().__init__(
            session,
            f"Edit account {account.name}",
            account.name,
            taken - {account.name},
            Note(safe(FOLDER_STAYS.format(account.name), "dim")),
            LabelledField("First month", self._first_month),
            Note(safe(RULE_OF_MONTHS, "dim")),
            LabelledField("On newer", self._on_newer),
            Note(safe(RULE_OF_VERSIONS, "dim")),
        )

    def saving(self) -> Callable[[Store], AccountInfo]:
        options = AccountOptions(
            on_newer=self._on_newer.chosen, first_month=FIRST_MONTHS[self._first_month.chosen]
        )
        return partial(
            save_account, shown=self._account, name=self._name_line.parsed, options=options
        )


RULE_OF_VERSIONS: Final = (
    "Whether a newer resume of a person replaces the older ones, which are deleted."
)
RULE_OF_MONTHS: Final = (
    "The number of January in dates of new resumes. By default, each resume tells."
)


def first_month_text(account: AccountInfo) -> str:
    """Return the choice of FIRST_MONTHS that the account has."""
    return "default" if account.first_month is None else str(account.first_month)


def save_account(
    store: Store, shown: AccountInfo, name: str, options: AccountOptions
) -> AccountInfo:
    """Save what differs from the account as it was shown. Raises NotFound and Conflict."""
    if any(value != getattr(shown, option) for option, value in options.items()):
        accounts.set_options(store, shown.name, options)
    if name != shown.name:
        return accounts.rename_account(store, shown.name, name)
    return accounts.get_account(store, name)


def save_with_inbox(store: Store, save: Callable[[Store], AccountInfo], inboxes: Path) -> Made:
    """Save the account and make its inbox, or return why it has no inbox as well. Raises Conflict."""
    account = save(store)
    try:
        (inboxes / account.name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return account, error.strerror or "unknown reason"
    return account, ""


def is_over_limit(account: AccountInfo, plan: PlanInfo) -> bool:
    """Return whether the account holds more than the plan allows."""
    return plan.max_resumes is not None and account.resume_count > plan.max_resumes


def keeps_less(account: AccountInfo, plan: PlanInfo) -> bool:
    """Return whether the plan keeps resumes for fewer days than the account's plan."""
    return plan.keep_days is not None and plan.keep_days < (account.keep_days or math.inf)


def fit_text(account: AccountInfo, plan: PlanInfo) -> str:
    """Return in a few words whether the account fits into the plan."""
    if plan.name == account.plan:
        return "current"
    if is_over_limit(account, plan):
        return f"! over limit (has {account.resume_count:,})"
    if account.api_listing and not plan.api_listing:
        return "! loses API listing"
    if keeps_less(account, plan):
        return f"! kept for {keep_text(plan.keep_days)}"
    if plan.max_resumes is None:
        return "no limit"
    return f"{plan.max_resumes - account.resume_count:,} left"


def find_losses(account: AccountInfo, plan: PlanInfo) -> list[Fact]:
    """Return what the account would lose on the plan; empty if nothing."""
    found = []
    if is_over_limit(account, plan):
        maximum = maximum_text(plan.max_resumes)
        text = f"{account.resume_count:,} (limit {maximum}): kept, but new ones are refused"
        found.append(("Resumes", text))
    if account.api_listing and not plan.api_listing:
        found.append(("Listing", "lost: its keys can no longer list or read"))
    if keeps_less(account, plan):
        text = f"for {keep_text(plan.keep_days)}: older ones are erased within the hour"
        found.append(("Kept", text))
    return found


LABEL_CELLS = 14


def read_details(store: Store, name: str) -> list[Paragraph]:
    """Return a heading and a line for each current fact about the account. Raises NotFound."""
    account = accounts.get_account(store, name, include_closed=True)
    return [
        Paragraph(safe(account.name, "bold")),
        Paragraph(quota_bar(account.resume_count, account.max_resumes)),
        *(
            Paragraph(safe(value), f"{label:<{LABEL_CELLS}}", "dim")
            for label, value in _iter_facts(store, account)
        ),
    ]


def _iter_facts(store: Store, account: AccountInfo) -> Iterator[Fact]:
    plan, has = plans.get_plan(store, account.plan), accounts.get_summary(store, account.id)
    yield "", ""
    if account.is_arriving:
        yield "State", "being imported; if that was interrupted, press D to remove it"
    elif account.is_closed:
        yield "State", "being deleted; press D to continue"
    yield "Resumes", f"{account.resume_count:,} of {maximum_text(account.max_resumes)}"
    if account.is_over:
        yield "", "over limit: existing resumes kept, new ones refused"
    elif account.free_places is not None:
        yield "", f"{account.free_places:,} left"
    yield "Newest", minute(account.last_resume_at)
    yield "Created", minute(account.created_at)
    if account.former_names:
        yield "Former names", account.former_names.replace(" ", ", ")
    yield "ID", account.id
    yield "", ""
    yield "Plan", plan.name
    yield "API listing", listing_text(plan.api_listing)
    if plan.keep_days is not None:
        due = sum(some.resumes for some in list_due(store, account.name))
        yield "Keeps", f"{keep_text(plan.keep_days)}{f' ({due:,} due)' if due else ''}"
    yield "First month", first_month_text(account)
    yield "On newer", account.on_newer
    yield "", ""
    yield "Keys", f"{has.active_keys:,} active of {has.keys:,}" if has.keys else NONE
    yield "Last used", minute(has.last_used_at)
    yield "Held files", f"{has.files_held:,}"
    yield "Failed files", f"{has.files_failed:,}"


def read_accounts(store: Store) -> PageRead[AccountInfo]:
    """Return every account, also those being deleted. `about` holds all plans, and the number of
    active keys by account ID."""
    about = plans.list_plans(store), accounts.count_active_keys(store)
    return PageRead(accounts.list_accounts(store, include_closed=True), about=about)


def used_fraction(account: AccountInfo) -> float:
    """Return the used fraction of the limit; negative without one, at least 1 if the limit is 0."""
    if account.max_resumes is None:
        return -1.0
    return (account.resume_count + (account.max_resumes == 0)) / max(1, account.max_resumes)


def usage_cell(account: AccountInfo) -> Content:
    """Return how full the account is, or the progress of its import or deletion."""
    if account.is_arriving:
        return safe(f"being imported, {account.resume_count:,} so far", "$warning")
    if account.is_closed:
        return safe(f"being deleted, {account.resume_count:,} left", "$warning")
    return quota_bar(account.resume_count, account.max_resumes)


class AccountPane(TextPane, RowPane[str]):
    """Shows the details of an account, found by name."""

    def __init__(self, session: UiSession) -> None:
        super().__init__()
        self.session = session
        self.add_class("panel")
        self.border_title = safe("Details")

    def reading(self, wanted: str) -> Callable[[Store], list[Paragraph]]:
        return partial(read_details, name=wanted)

    def show_read(self, read: list[Paragraph]) -> None:
        self.show(read)


class AccountsScreen(SplitScreen[AccountInfo, str]):
    """The accounts with their plans and usage; in a wide terminal also the details of one."""

    MODE = "accounts"
    ROW = "account"
    ORDERS = (
        Order("by name", lambda row: row.name),
        Order("fullest first", lambda row: (-used_fraction(row), row.name)),
    )
    REFRESH_S = 5.0
    BINDINGS = bindings(Place.ACCOUNTS)
    DEFAULT_CSS = """
    AccountsScreen #split > PagedList { width: 1fr; }
    AccountsScreen #split > .pane { width: 46; }
    """

    def __init__(self, session: UiSession) -> None:
        super().__init__(session, AccountPane(session))
        self._plans: Sequence[PlanInfo] = ()
        self._active_keys: Mapping[str, int] = {}
        self._deleting: dict[str, tuple[int, int]] = {}
        """By name, the accounts being deleted here: the resumes deleted so far, and the total."""

    def columns(self) -> Sequence[ListColumn[AccountInfo]]:
        clock = self.session.store.clock
        return (
            ListColumn("NAME", 0, lambda row: text_cell(row.name, "bold"), at_most=40),
            ListColumn("PLAN", 10, lambda row: text_cell(row.plan)),
            ListColumn("RESUMES", 34, usage_cell),
            ListColumn(
                "KEYS",
                5,
                lambda row: safe(f"{self._active_keys.get(row.id, 0):,}"),
                86,
                is_right=True,
            ),
            ListColumn("API LISTING", 11, lambda row: safe(listing_text(row.api_listing)), 100),
            ListColumn("ID", 16, lambda row: text_cell(row.id, "dim"), 130),
            age_column("NEWEST", attrgetter("last_resume_at"), clock, 74),
            age_column("CREATED", attrgetter("created_at"), clock, 100),
        )

    def hidden(self) -> Iterable[str]:
        if self.list.current is None:
            yield from ("choose", "edit_account", "change_plan", "show('keys')", "show('imports')")
            yield "delete_account"

    def row_key(self, row: AccountInfo) -> str:
        return row.name

    def words(self, row: AccountInfo) -> str:
        return f"{row.name} {row.plan} {row.id}"

    def reading(self, cursor: str) -> Callable[[Store], PageRead[AccountInfo]]:
        return read_accounts

    def page_arrived(self, read: PageRead[AccountInfo]) -> Sequence[Content]:
        self._plans, self._active_keys = read.about
        if self.session.read_only:
            return no_accounts(self.session)
        key = shown_key("accounts.create", self.session.settings.keymap)
        return no_accounts(self.session)[0], safe(f"Press {key} to create one.")

    def heading(self) -> Iterable[Content]:
        yield from super().heading()
        for name, (gone, total) in self._deleting.items():
            yield safe(f"deleting {name}: {gone:,} of {counted(total, 'resume')}", "$warning")

    def wanted_of(self, row: AccountInfo) -> str:
        return row.name

    def open_row(self, row: AccountInfo) -> None:
        self.action_show("resumes")

    def action_show(self, mode: str, opens: str = "") -> None:
        if (account := self._account(f"show {mode} for")) is not None:
            self.follow_link(Target(mode, account.name, opens=opens), account.name)

    def action_create_key(self) -> None:
        self.action_show("keys", "new")

    @work
    async def action_create_account(self) -> None:
        if not self._plans:
            show_message(self, "Plans are still loading. Try again in a moment.")
            return
        form = CreateAccountDialog(self.session, self._plans, self._taken_names())
        if (made := await self.app.push_screen_wait(form)) is not None:
            self._show_made("Created", *made)

    @work
    async def action_edit_account(self) -> None:
        if (account := self._account("edit")) is None:
            return
        form = EditAccountDialog(self.session, account, self._taken_names())
        if (made := await self.app.push_screen_wait(form)) is None:
            return
        name, new, session = account.name, made[0].name, self.session
        session.deletions.rename(name, new)
        session.accounts = {
            mode: new if whose == name else whose for mode, whose in session.accounts.items()
        }
        self._show_made("Saved", *made)

    def _taken_names(self) -> set[str]:
        return {row.name for row in self.list.window.rows}

    def _show_made(self, verb: str, account: AccountInfo, problem: str) -> None:
        """Show what was done, and where the account's inbox is or why it has none."""
        name, inboxes = account.name, self.session.settings.inbox
        if problem:
            show_message(
                self, f"{verb} {name} without its inbox {inboxes / name}: {problem}.", "warning"
            )
        else:
            # The full path is often longer than the line.
            inbox = f"{inboxes.name}/{name}"
            show_message(self, f"{verb} {name} (plan: {account.plan}). Inbox: {inbox}")
        self.action_reload(row=name)

    @store_work()
    async def action_change_plan(self) -> None:
        if (account := self._account("change the plan of")) is None:
            return
        chooser = Chooser(
            self.session.store,
            title=f"Choose plan for {account.name}",
            columns=(
                ListColumn("PLAN", 12, lambda plan: text_cell(plan.name)),
                ListColumn(
                    "RESUMES", 9, lambda plan: safe(maximum_text(plan.max_resumes)), is_right=True
                ),
                ListColumn("LISTING", 7, lambda plan: safe(listing_text(plan.api_listing))),
                ListColumn("FOR THIS ACCOUNT", 0, lambda plan: safe(fit_text(account, plan))),
            ),
            key=lambda plan: plan.name,
            read=plans.list_plans,
            preset=account.plan,
        )
        if (plan := await self.app.push_screen_wait(chooser)) is None:
            return
        now = await call(self.session.store, reload_account, account)
        if plan.name == now.plan:
            show_message(self, f"{now.name} is already on plan {plan.name}.")
            return
        if not self.is_active:  # the user left the screen
            return
        if lost := find_losses(now, plan):
            dialog = ConfirmDialog(
                f"Move {now.name} to plan {plan.name}?",
                lost,
                consequence="Takes effect immediately. "
                + ("Erased resumes are lost." if keeps_less(now, plan) else "Nothing is deleted."),
                verb="Change plan",
            )
            if not await self.app.push_screen_wait(dialog):
                return
        await call(self.session.store, accounts.set_plan, name=now.name, plan=plan.name)
        show_message(self, f"Moved {now.name} to plan {plan.name}.")
        self.action_reload()

    @store_work()
    async def action_delete_account(self) -> None:
        """Delete the account after asking, or continue an interrupted deletion."""
        if (row := self.current_row("delete")) is None:
            return
        if row.name in self._deleting:
            show_message(self, f"{row.name} is being deleted.")
            return
        account, lost = await call(self.session.store, read_losses, row)
        if not self.is_active:  # the user left the screen during the count
            return
        dialog = ConfirmDialog(
            f"Permanently delete account {account.name}?",
            lost,
            consequence="This cannot be undone. Its keys stop working immediately.",
            verb="Delete",
            typed=account.name,
        )
        if not await self.app.push_screen_wait(dialog):
            return
        name, session, worker = account.name, self.session, get_current_worker()
        self._deleting[name] = 0, account.resume_count
        self.show_heading()

        def should_continue(gone: int) -> bool:
            """Report progress, from a thread; return False once the program ends."""
            self.call_later(self._show_progress, name, gone)
            return not worker.is_cancelled

        try:
            delete = partial(
                accounts.delete_account,
                account_id=account.id,
                with_resumes=True,
                should_continue=should_continue,
            )
            gone = await call(session.store, delete, name)
        except Failure:
            self.call_later(self.show_heading)
            raise
        finally:
            del self._deleting[name]
        session.deletions.forget(name)
        session.accounts = {
            mode: None if whose == name else whose for mode, whose in session.accounts.items()
        }
        show_message(self, f"Deleted {name} with {counted(gone, 'resume')}.")
        self.action_reload()

    def _show_progress(self, name: str, gone: int) -> None:
        """Show the number of deleted resumes; refresh the list after the first slice."""
        if name in self._deleting:
            before, total = self._deleting[name]
            self._deleting[name] = gone, total
            self.show_heading()
            if not before:
                self.list.refresh_rows()

    def _account(self, verb: str) -> AccountInfo | None:
        """Return the account at the cursor; if it cannot be changed, show why and return None."""
        if (row := self.current_row(verb)) is None:
            return None
        if row.is_arriving:
            show_message(
                self,
                f"{row.name} is being imported. If that was interrupted, press D to remove it.",
            )
        elif row.is_closed:
            show_message(self, f"{row.name} is being deleted. Press D to continue.")
        else:
            return row
        return None
