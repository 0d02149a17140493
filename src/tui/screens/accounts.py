"""The accounts screen: list, details, creating, editing, changing the plan, deleting."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

from textual import on, work
from textual.content import Content
from textual.worker import get_current_worker

from resumes.errors import InvalidArgument
from resumes.store import accounts, import_history, plans
from resumes.store.accounts import FIRST_MONTHS, FIRST_PLAN, AccountInfo, AccountOptions
from resumes.store.plans import PlanInfo, keep_text, kept_text, listing_text, maximum_text
from resumes.store.retention import list_due
from resumes.store.store import Store
from resumes.store.versions import OnNewer
from resumes.text import counted
from tui.keys import Place, Target, bindings, shown_key
from tui.screens.base import Order, RowPane, SplitScreen
from tui.screens.checked_dialog import CheckedDialog
from tui.screens.dialogs import Chooser, ConfirmDialog, Fact, ask, no_accounts
from tui.screens.plans import LIMIT_COLUMNS
from tui.session import UiSession
from tui.store_calls import call, store_work
from tui.text import NONE, minute, quota_bar, safe, show_message
from tui.widgets.bars import Note
from tui.widgets.forms import Choices, LabelledField, SafeInput
from tui.widgets.paged_list import ListColumn, age_column, text_cell
from tui.widgets.text_pane import Paragraph, TextPane
from tui.widgets.window import PageRead


def read_losses(store: Store, account: AccountInfo) -> tuple[AccountInfo, list[Fact]]:
    """Return the account's current state, and what would be deleted with it. Raises NotFound."""
    now = reload_account(store, account, include_closed=True)
    # Use the ID, because another account may have the name by now.
    has = accounts.get_summary(store, now.id)
    files = sum(count.files for count in import_history.count_files(store, account_id=now.id))
    return now, [
        ("Resumes", f"{now.resume_count:,}"),
        ("Keys", f"{has.keys:,} ({has.active_keys:,} active)"),
        ("Last used", minute(has.last_used_at)),
        ("Files", f"{files:,} in the import history"),
    ]


def reload_account(
    store: Store, account: AccountInfo, *, include_closed: bool = False
) -> AccountInfo:
    """Return the account's current state. Raises NotFound, even if another account has its name."""
    now = accounts.get_account(store, account.name, include_closed=include_closed)
    if now.id != account.id:
        raise accounts.unknown_account(account.name)
    return now


def name_line(name: str, taken: Collection[str]) -> SafeInput:
    """Return an input line for the name of an account, which must not be one of `taken`."""

    def parse(text: str) -> str:
        if accounts.check_name(text) in taken:
            raise InvalidArgument(f'Account "{text}" already exists.')
        return text

    return SafeInput(name, parse=parse)


class CreateAccountDialog(CheckedDialog[AccountInfo]):
    """Creates an account."""

    VERB = "Create"
    enter_submits = False

    def __init__(self, store: Store, plans: Sequence[PlanInfo], taken: Collection[str]) -> None:
        self._plans = {plan.name: plan for plan in plans}
        self._name_line = name_line("", taken)
        first = FIRST_PLAN if FIRST_PLAN in self._plans else next(iter(self._plans))
        self._plan_line = Choices(list(self._plans), first)
        self._allowance = Note(safe(""))
        super().__init__(
            store,
            "New account",
            LabelledField("Name", self._name_line),
            LabelledField("Plan", self._plan_line),
            self._allowance,
        )

    @on(Choices.Changed)
    def show_plan(self) -> None:
        plan = self._plans[self._plan_line.chosen]
        self._allowance.update(safe(f"Allows {plan.allowance}."))

    def submit(self) -> None:
        name, plan = self._name_line.parsed, self._plan_line.chosen
        self.save(self.store, partial(accounts.create_account, name=name, plan=plan))


class EditAccountDialog(CheckedDialog[AccountInfo]):
    """Renames an account, and sets its options."""

    VERB = "Save"

    def __init__(self, store: Store, account: AccountInfo, taken: set[str]) -> None:
        self._account = account
        self._name_line = name_line(account.name, taken - {account.name})
        self._first_month = Choices([*FIRST_MONTHS.values()], FIRST_MONTHS[account.first_month])
        self._on_newer = Choices([each.value for each in OnNewer], account.on_newer)
        folder = f"Files in the folder {account.name} still belong to it"
        fields = (
            ("Name", self._name_line, f"{folder}, until another account takes that name."),
            ("First month", self._first_month, RULE_OF_MONTHS),
            ("On newer", self._on_newer, RULE_OF_VERSIONS),
        )
        super().__init__(
            store,
            f"Edit account {account.name}",
            *(
                widget
                for label, field, note in fields
                for widget in (LabelledField(label, field), Note(safe(note, "dim")))
            ),
        )

    def submit(self) -> None:
        months = {text: month for month, text in FIRST_MONTHS.items()}
        first_month = months[self._first_month.chosen]
        options = AccountOptions(on_newer=self._on_newer.chosen, first_month=first_month)
        name = self._name_line.parsed
        save = partial(save_account, shown=self._account, name=name, options=options)
        self.save(self.store, save)


RULE_OF_VERSIONS: Final = (
    "Whether a newer resume of a person replaces the older ones, which are deleted."
)
RULE_OF_MONTHS: Final = (
    "The number of January in dates of new resumes. By default, each resume tells."
)


def save_account(
    store: Store, shown: AccountInfo, name: str, options: AccountOptions
) -> AccountInfo:
    """Save what differs from the account as it was `shown`. Raises NotFound or Conflict."""
    reload_account(store, shown)
    if any(value != getattr(shown, option) for option, value in options.items()):
        accounts.set_options(store, shown.name, options)
    if name != shown.name:
        return accounts.rename_account(store, shown.name, name)
    return accounts.get_account(store, name)


def find_losses(account: AccountInfo, plan: PlanInfo) -> dict[str, tuple[str, str]]:
    """Return what the account would lose on the plan, by label, in a few words and in full."""
    losses: dict[str, tuple[str, str]] = {}
    has = f"{account.resume_count:,}"
    if plan.max_resumes is not None and account.resume_count > plan.max_resumes:
        limit = f"(limit {maximum_text(plan.max_resumes)})"
        full = f"{has} {limit}: kept, but new ones are refused"
        losses["Resumes"] = f"over limit (has {has})", full
    if account.loses_listing(plan):
        losses["Listing"] = "loses API listing", "lost: its keys can no longer list or read"
    if account.loses_days(plan):
        kept = f"for {keep_text(plan.keep_days)}"
        losses["Kept"] = f"kept {kept}", f"{kept}: older ones are erased within the hour"
    return losses


def fit_text(account: AccountInfo, plan: PlanInfo) -> str:
    """Describe in a few words whether the account fits the plan."""
    if plan.name == account.plan:
        return "current"
    for few_words, _ in find_losses(account, plan).values():
        return f"! {few_words}"
    if plan.max_resumes is None:
        return "no limit"
    return f"{plan.max_resumes - account.resume_count:,} left"


LABEL_CELLS = 14


def read_details(store: Store, name: str) -> list[Paragraph]:
    """Return the account's name, its quota bar, and a line for each fact. Raises NotFound."""
    account = accounts.get_account(store, name, include_closed=True)
    has = accounts.get_summary(store, account.id)
    due = sum(some.resumes for some in list_due(store, name))
    kept = kept_text(account.keep_days, due)
    room = "" if account.free_places is None else f"{account.free_places:,} left"
    if account.is_over:
        room = "over limit: existing resumes kept, new ones refused"
    facts = (
        ("", ""),
        ("State", closed_text(account) if account.is_closed else None),
        ("Resumes", f"{account.resume_count:,} of {maximum_text(account.max_resumes)}"),
        ("", room or None),
        ("Newest", minute(account.last_resume_at)),
        ("Created", minute(account.created_at)),
        ("Former names", account.former_names.replace(" ", ", ") or None),
        ("ID", account.id),
        ("", ""),
        ("Plan", account.plan),
        ("API listing", listing_text(account.api_listing)),
        ("Keeps", None if account.keep_days is None else kept),
        ("First month", FIRST_MONTHS[account.first_month]),
        ("On newer", account.on_newer),
        ("", ""),
        ("Keys", f"{has.active_keys:,} active of {has.keys:,}" if has.keys else NONE),
        ("Last used", minute(has.last_used_at)),
        ("Held files", f"{has.files_held:,}"),
        ("Failed files", f"{has.files_failed:,}"),
    )
    return [
        Paragraph(safe(account.name, "bold")),
        Paragraph(quota_bar(account.resume_count, account.max_resumes)),
        *(
            Paragraph(safe(value), f"{label:<{LABEL_CELLS}}", "dim")
            for label, value in facts
            if value is not None
        ),
    ]


def closed_text(account: AccountInfo) -> str:
    """Return what is happening to a closed account, and how to continue if it was interrupted."""
    if account.is_arriving:
        return "being imported. If that was interrupted, press D to remove it."
    return "being deleted. Press D to continue."


def read_accounts(store: Store) -> PageRead[AccountInfo]:
    """Return all accounts, even those being deleted. `about` holds all plans, and the number of
    active keys by account ID."""
    about = plans.list_plans(store), accounts.count_active_keys(store)
    return PageRead(accounts.list_accounts(store, include_closed=True), about=about)


def used_fraction(account: AccountInfo) -> float:
    """Return the used fraction of the limit: negative if unlimited, at least 1 for a limit of 0."""
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
    """Shows the details of an account, which is identified by its name."""

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
    """Shows accounts with their plans and usage and, in a wide terminal, details of one account."""

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
        self._deleting = set[str]()
        """The names of the accounts that this screen is deleting."""

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
            yield from ("choose", "edit_account", "change_plan", "delete_account")
            yield from ("show('keys')", "show('imports')")

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

    def wanted_of(self, row: AccountInfo) -> str:
        return row.name

    def open_row(self, row: AccountInfo) -> None:
        if self._is_usable(row):
            self.follow_link(Target("resumes", row.name), row.name)

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
        form = CreateAccountDialog(self.session.store, self._plans, self._taken_names())
        if (account := await ask(self, form)) is not None:
            await self._show_saved("Created", account)

    @work
    async def action_edit_account(self) -> None:
        if (account := self._account("edit")) is None:
            return
        form = EditAccountDialog(self.session.store, account, self._taken_names())
        if (saved := await ask(self, form)) is not None:
            self.session.deletions.rename(account.name, saved.name)
            self._replace_shown(account.name, saved.name)
            await self._show_saved("Saved", saved)

    def _taken_names(self) -> set[str]:
        return {row.name for row in self.list.window.rows}

    def _replace_shown(self, name: str, new: str | None) -> None:
        """Show `new`, or all accounts if it is None, in the modes that show the account `name`."""
        shown = self.session.accounts
        shown.update({mode: new for mode, whose in shown.items() if whose == name})

    async def _show_saved(self, verb: str, account: AccountInfo) -> None:
        """Create the account's inbox; show what was done, and the inbox or why it is missing."""
        name, inbox = account.name, self.session.settings.inbox / account.name
        try:
            await asyncio.to_thread(inbox.mkdir, parents=True, exist_ok=True)
        except OSError as error:
            why = error.strerror or "unknown reason"
            show_message(self, f"{verb} {name} without its inbox {inbox}: {why}.", "warning")
        else:
            # The full path often does not fit on the line.
            folder = f"{inbox.parent.name}/{name}"
            show_message(self, f"{verb} {name} (plan: {account.plan}). Inbox: {folder}")
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
                *LIMIT_COLUMNS,
                ListColumn("FOR THIS ACCOUNT", 0, lambda plan: safe(fit_text(account, plan))),
            ),
            key=lambda plan: plan.name,
            read=plans.list_plans,
            preset=account.plan,
        )
        if (plan := await ask(self, chooser)) is None:
            return
        now = await call(self.session.store, reload_account, account)
        if plan.name == now.plan:
            show_message(self, f"{now.name} is already on plan {plan.name}.")
            return
        if lost := find_losses(now, plan):
            dialog = ConfirmDialog(
                f"Move {now.name} to plan {plan.name}?",
                [(label, in_full) for label, (_, in_full) in lost.items()],
                consequence="Takes effect immediately. "
                + ("Erased resumes are lost." if "Kept" in lost else "Nothing is deleted."),
                verb="Change plan",
            )
            if not await ask(self, dialog):
                return
            await call(self.session.store, reload_account, account)
        await call(self.session.store, accounts.set_plan, name=now.name, plan=plan.name)
        show_message(self, f"Moved {now.name} to plan {plan.name}.")
        self.action_reload()

    @store_work()
    async def action_delete_account(self) -> None:
        """Delete the account after confirmation, or continue an interrupted deletion."""
        if (row := self.current_row("delete")) is None:
            return
        if row.name in self._deleting:
            show_message(self, f"{row.name} is being deleted.")
            return
        account, lost = await call(self.session.store, read_losses, row)
        dialog = ConfirmDialog(
            f"Permanently delete account {account.name}?",
            lost,
            consequence="This cannot be undone. Its keys stop working immediately.",
            verb="Delete",
            typed=account.name,
        )
        if not await ask(self, dialog):
            return
        name, worker = account.name, get_current_worker()
        self._deleting.add(name)
        try:
            delete = partial(
                accounts.delete_account,
                account_id=account.id,
                with_resumes=True,
                should_continue=lambda _: not worker.is_cancelled,  # stop when the program ends
            )
            gone = await call(self.session.store, delete, name)
        finally:
            self._deleting.remove(name)
        self.session.deletions.forget(name)
        self._replace_shown(name, None)
        show_message(self, f"Deleted {name} with {counted(gone, 'resume')}.")
        self.action_reload()

    def _account(self, verb: str) -> AccountInfo | None:
        """Return the account at the cursor; if it cannot be changed, show why and return None."""
        row = self.current_row(verb)
        return row if row is not None and self._is_usable(row) else None

    def _is_usable(self, row: AccountInfo) -> bool:
        """Return whether the account can be shown and changed; if not, show why."""
        if row.is_closed:
            show_message(self, f"{row.name} is {closed_text(row)}")
        return not row.is_closed
