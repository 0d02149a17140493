"""The accounts, by name."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from resumes.store import accounts
from resumes.store.accounts import AccountInfo
from resumes.store.engine import Store
from resumes.text import counted
from tui.actions import Place, bindings
from tui.screens.list_screen import ListScreen, PageRead
from tui.text import NONE, safe
from tui.times import day
from tui.widgets.columns import Column, text_cell
from tui.widgets.paged_list import PagedList
from tui.widgets.quota_bar import quota_bar

NO_ACCOUNTS = (
    safe("There are no accounts yet."),
    safe("`resumes accounts create NAME` makes one; then press r."),
)

COLUMNS: tuple[Column[AccountInfo], ...] = (
    Column("NAME", 0, lambda account: text_cell(account.name), at_most=40),
    Column("PLAN", 10, lambda account: text_cell(account.plan)),
    Column("RESUMES", 34, lambda account: quota_bar(account.resume_count, account.max_resumes)),
    Column("CREATED", 10, lambda account: text_cell(day(account.created_at))),
    Column("API LISTING", 11, lambda account: safe("yes" if account.api_listing else NONE), 100),
    Column("ID", 16, lambda account: text_cell(account.id, "dim"), 120),
)


class AccountsScreen(ListScreen[AccountInfo]):
    """Who has how many resumes, on which plan."""

    MODE = "accounts"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.ACCOUNTS)

    class AccountOpened(Message):
        """Somebody show this account's resumes."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def columns(self) -> Sequence[Column[AccountInfo]]:
        return COLUMNS

    def row_key(self, row: AccountInfo) -> str:
        return row.name

    def reading(self, cursor: str) -> Callable[[Store], PageRead[AccountInfo]]:
        return lambda store: PageRead(accounts.list_accounts(store))

    def heading(self) -> Content:
        count = self.list.pages.count
        return safe(counted(count, "account"), "bold")

    def on_mount(self) -> None:
        self.list.say_when_empty(*NO_ACCOUNTS)

    @on(PagedList.Chosen)
    def open_account(self, chosen: PagedList.Chosen) -> None:
        """The account's resumes are asked for."""
        self.post_message(self.AccountOpened(chosen.row.name))
