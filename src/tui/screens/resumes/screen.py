"""The resumes of one account, page by page through the function that serves the API."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content

from resumes.store import accounts, listing
from resumes.store.accounts import AccountInfo
from resumes.store.engine import Store
from resumes.store.listing import Entry
from tui.actions import Place, bindings
from tui.screens.accounts.chooser import AccountChooser, Choice
from tui.screens.accounts.screen import NO_ACCOUNTS
from tui.screens.list_screen import ListScreen, PageRead
from tui.screens.resumes.detail import DetailScreen
from tui.session import Session
from tui.text import safe
from tui.times import minute
from tui.widgets.columns import Column, text_cell
from tui.widgets.paged_list import PagedList

PAGE_SIZE = 100

# The title is last: a terminal that measures a letter otherwise than we do moves only what
# stands to the right of it.
COLUMNS: tuple[Column[Entry], ...] = (
    Column("CREATED (UTC)", 16, lambda entry: text_cell(minute(entry.created_at))),
    Column("ID", 24, lambda entry: text_cell(entry.id, "dim"), 130),
    Column("NAME", 24, lambda entry: text_cell(entry.name), 100),
    Column("FILENAME", 32, lambda entry: text_cell(entry.filename), 160),
    Column("TITLE", 0, lambda entry: text_cell(entry.shown_title)),
)


class ResumesScreen(ListScreen[Entry]):
    """The resumes of the session's account, oldest first."""

    MODE = "resumes"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.RESUMES)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._account: AccountInfo | None = None
        self._asked_for = session.account

    def columns(self) -> Sequence[Column[Entry]]:
        return COLUMNS

    def row_key(self, row: Entry) -> str:
        return row.id

    def reading(self, cursor: str) -> Callable[[Store], PageRead[Entry]]:
        if cursor and self._account is not None:
            return partial(read_page, account=self._account, cursor=cursor)
        return partial(read_first_page, name=self._asked_for)

    def page_arrived(self, read: PageRead[Entry]) -> None:
        self._account = read.about
        if self._account is None:
            self.list.say_when_empty(*NO_ACCOUNTS)
            return
        self._asked_for = self._account.name
        if self.session.account is None:
            self.session.account = self._account.name
        self.list.say_when_empty(
            safe(f"{self._account.name} holds no resumes yet."),
            safe(f"`resumes import FILE --account {self._account.name}` brings some in."),
        )

    def heading(self) -> Content:
        if self._account is None:
            return safe(self._asked_for or "No account", "bold")
        return safe(f"{self._account.name} · ", "bold") + safe(self._extent())

    def _extent(self) -> str:
        pages = self.list.pages
        if not pages.is_complete:
            return f"{pages.count:,} loaded · more…"
        if not pages.count:
            return "no resumes"
        return f"{min(self.list.cursor + 1, pages.count):,} of {pages.count:,}"

    def on_screen_resume(self) -> None:
        """Another account may have been asked for from another screen."""
        if self.session.account not in (None, self._asked_for):
            self._show_account(self.session.account)
        if self.session.open_id is not None and self.session.account is not None:
            opened, self.session.open_id = self.session.open_id, None
            self._open(opened)

    def _show_account(self, name: str | None) -> None:
        self._account = None
        self._asked_for = self.session.account = name
        self.restart()

    def action_choose_account(self) -> None:
        """A dialog asks which account to show."""
        self.app.push_screen(AccountChooser(self.session), self._account_chosen)

    def _account_chosen(self, choice: Choice | None) -> None:
        if choice is not None:
            self._show_account(choice.name)

    @on(PagedList.Chosen)
    def open_resume(self, chosen: PagedList.Chosen) -> None:
        """The resume is open to read."""
        self._open(chosen.row.id)

    def _open(self, resume_id: str) -> None:
        if self.session.account is not None:
            self.app.push_screen(DetailScreen(self.session, self.session.account, resume_id))


def read_first_page(store: Store, name: str | None) -> PageRead[Entry]:
    """The account of this name, or the first there is, and its first page."""
    if name is not None:
        return read_page(store, accounts.get_account(store, name), "")
    known = accounts.list_accounts(store)
    return read_page(store, known[0], "") if known else PageRead([])


def read_page(store: Store, account: AccountInfo, cursor: str) -> PageRead[Entry]:
    """The page after the cursor."""
    page = listing.list_page(store, account.id, cursor=cursor, limit=PAGE_SIZE)
    return PageRead(page.entries, page.cursor, account)
