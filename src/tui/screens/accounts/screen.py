"""The accounts: how full they are, and on which plan."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from resumes.store.accounts import AccountInfo
from resumes.store.engine import Store
from resumes.store.plans import PlanInfo
from resumes.text import counted
from tui.actions import Place, bindings
from tui.messages import ModeAsked
from tui.screens.accounts.changes import AccountChanges, SliceGone
from tui.screens.accounts.details import Details, paragraphs, read_details
from tui.screens.accounts.rows import COLUMNS, Order, Row, read_rows
from tui.screens.list_screen import ListScreen, PageRead
from tui.session import Session
from tui.text import joined, safe
from tui.toasts import tell
from tui.widgets.columns import Column
from tui.widgets.paged_list import PagedList
from tui.widgets.text_pane import TextPane

NO_ACCOUNTS = (
    safe("There are no accounts yet."),
    safe("`resumes accounts create NAME` makes one; then press r."),
)

REST_S: Final = 0.08
"""How long the cursor rests on an account before its details are read."""


class AccountsScreen(ListScreen[Row]):
    """Who has how many resumes, on which plan; where there is room, with details beside it."""

    MODE = "accounts"
    REFRESH_S = 5.0
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.ACCOUNTS)
    DEFAULT_CSS = """
    AccountsScreen TextPane { display: none; width: 46; border-left: solid $primary; }
    AccountsScreen.-wide TextPane, AccountsScreen.-very-wide TextPane { display: block; }
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._order = Order.NAME
        self._plans: Sequence[PlanInfo] = ()
        self._changes = AccountChanges(self)
        self._pane = TextPane()
        self._details: Details | None = None
        self._resting: Timer | None = None

    def columns(self) -> Sequence[Column[Row]]:
        return COLUMNS

    def row_key(self, row: Row) -> str:
        return row.account.name

    def reading(self, cursor: str) -> Callable[[Store], PageRead[Row]]:
        return partial(read_rows, order=self._order)

    def page_arrived(self, read: PageRead[Row]) -> None:
        self._plans = read.about

    def body(self) -> Iterable[Widget]:
        yield Horizontal(self.list, self._pane)

    def heading(self) -> Content:
        parts = [safe(counted(self.list.pages.count, "account"), "bold"), safe(self._order)]
        parts += [
            safe(f"deleting {name}: {going.gone:,} of {going.total:,} resumes", "$warning")
            for name, going in self._changes.going.items()
        ]
        return joined(parts, by=" · ")

    def on_mount(self) -> None:
        if self.session.read_only:
            self.list.say_when_empty(*NO_ACCOUNTS)
        else:
            self.list.say_when_empty(NO_ACCOUNTS[0], safe("n makes one."))

    @on(PagedList.Changed)
    def await_rest(self) -> None:
        """The details will be read as soon as the cursor rests."""
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST_S, self._read_details)

    def _read_details(self) -> None:
        row = self.list.current
        if row is None or not self._pane.display:
            return
        self.client.read(
            "details",
            partial(read_details, name=row.account.name),
            then=self._show_details,
            failed=lambda _: None,
        )

    def _show_details(self, details: Details) -> None:
        # Showing scrolls to the start, so what is there already is left alone.
        if details != self._details:
            self._details = details
            self._pane.show(paragraphs(details, self.session.settings))

    @on(PagedList.Chosen)
    def open_account(self) -> None:
        """The account's resumes are asked for."""
        account = self._account("open")
        if account is not None:
            self.session.account = account.name
            self.post_message(ModeAsked("resumes"))

    def action_show_keys(self) -> None:
        """The account's keys are asked for."""
        account = self._account("show the keys of")
        if account is not None:
            self.session.keys_account = account.name
            self.post_message(ModeAsked("keys"))

    def action_show_imports(self) -> None:
        """The files that came in for the account are asked for."""
        account = self._account("show the imports of")
        if account is not None:
            self.session.imports_account = account.name
            self.post_message(ModeAsked("imports"))

    def action_next_order(self) -> None:
        """The accounts are being read again, to be in another order."""
        self._order = self._order.next
        self.restart()

    def action_create_account(self) -> None:
        """The form for a new account is open."""
        if not self._plans:
            tell(self, "The plans are not read yet. Try again in a moment.")
        else:
            self._changes.create(self._plans, self._names())

    def _names(self) -> set[str]:
        rows = map(self.list.pages.peek, range(self.list.pages.count))
        return {row.account.name for row in rows if isinstance(row, Row)}

    def action_change_plan(self) -> None:
        """A dialog asks which plan the account shall be on."""
        account = self._account("change the plan of")
        if account is not None:
            self._changes.change_plan(account)

    def action_delete_account(self) -> None:
        """A dialog will ask whether to delete the account; one half deleted may be gone on with."""
        row = self.list.current
        if row is None:
            tell(self, "There is no account to delete.")
        else:
            self._changes.delete(row.account)

    @on(SliceGone)
    def show_progress(self, slice_gone: SliceGone) -> None:
        """The title line says how many resumes went."""
        self._changes.note_progress(slice_gone)

    def _account(self, verb: str) -> AccountInfo | None:
        """The account that has the cursor; None, with the reason told, where nothing can be done."""
        row = self.list.current
        if row is None:
            tell(self, f"There is no account to {verb}.")
        elif row.account.is_closed:
            tell(self, f"{row.account.name} is being deleted. D goes on with that.")
        else:
            return row.account
        return None
