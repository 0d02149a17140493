"""The accounts: how full they are, and on which plan."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.binding import BindingType
from textual.content import Content

from resumes.store.accounts import AccountInfo
from resumes.store.plans import PlanInfo
from resumes.store.store import Store
from resumes.text import counted
from tui.actions import Place, bindings
from tui.keymap import shown_key
from tui.messages import ModeAsked
from tui.notices import Failure
from tui.screens.accounts.absence import no_accounts
from tui.screens.accounts.changes import AccountChanges, SliceGone
from tui.screens.accounts.details import paragraphs, read_details
from tui.screens.accounts.rows import COLUMNS, Order, Row, read_rows
from tui.screens.list_screen import PageRead
from tui.screens.split_screen import SplitScreen
from tui.session import Session
from tui.text import joined, safe
from tui.toasts import tell
from tui.widgets.columns import Column
from tui.widgets.paged_list import PagedList
from tui.widgets.text_pane import Paragraph, TextPane

DETAILS: Final = "details"
"""The group of the calls that read the details beside the list."""


class AccountsScreen(SplitScreen[Row]):
    """Who has how many resumes, on which plan; where there is room, with details beside it."""

    MODE = "accounts"
    REFRESH_S = 5.0
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.ACCOUNTS)
    DEFAULT_CSS = """
    AccountsScreen #split > PagedList { width: 1fr; }
    AccountsScreen #split > .pane { width: 46; border-left: solid $primary; }
    """

    def __init__(self, session: Session) -> None:
        self._details_pane = TextPane()
        super().__init__(session, self._details_pane)
        self._order = Order.NAME
        self._plans: Sequence[PlanInfo] = ()
        self._changes = AccountChanges(self)
        self._shown: Sequence[Paragraph] = ()

    def columns(self) -> Sequence[Column[Row]]:
        return COLUMNS

    def row_key(self, row: Row) -> str:
        return row.account.name

    def reading(self, cursor: str) -> Callable[[Store], PageRead[Row]]:
        return partial(read_rows, order=self._order)

    def page_arrived(self, read: PageRead[Row]) -> None:
        self._plans = read.about

    def heading(self) -> Content:
        parts = [safe(counted(self.list.pages.count, "account"), "bold"), safe(self._order)]
        parts += [
            safe(f"deleting {name}: {going.gone:,} of {going.total:,} resumes", "$warning")
            for name, going in self._changes.going.items()
        ]
        return joined(parts, by=" · ")

    def on_mount(self) -> None:
        if self.session.read_only:
            self.list.say_when_empty(*no_accounts(self.session))
        else:
            key = shown_key("accounts.create", self.session.keymap)
            self.list.say_when_empty(no_accounts(self.session)[0], safe(f"{key} makes one."))

    def read_beside(self, row: Row | None) -> None:
        if row is None:
            self.client.drop(DETAILS)
            gone = "This account is deleted." if self.list.pages.count else ""
            self._show_beside([Paragraph(safe(gone, "dim"))])
            return
        self.client.read(
            DETAILS,
            partial(read_details, name=row.account.name),
            then=lambda details: self._show_beside(paragraphs(details, self.session.settings)),
            failed=self._beside_failed,
        )

    def _beside_failed(self, failure: Failure) -> None:
        # While the store is away the list says so, and what was read stays.
        if not failure.is_passing:
            self._show_beside([Paragraph(failure.content)])

    def _show_beside(self, shown: Sequence[Paragraph]) -> None:
        # Showing scrolls to the start, so what is there already is left alone.
        if shown != self._shown:
            self._shown = shown
            self._details_pane.show(shown)

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
        elif row.account.is_arriving:
            tell(self, f"{row.account.name} is being imported. D removes what an import has left.")
        elif row.account.is_closed:
            tell(self, f"{row.account.name} is being deleted. D goes on with that.")
        else:
            return row.account
        return None
