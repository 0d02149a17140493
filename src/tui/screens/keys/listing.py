"""The list of API keys, of an account or of all."""

from collections.abc import Callable, Sequence
from functools import partial

from textual import on
from textual.content import Content

from resumes.store import accounts, api_keys
from resumes.store.api_keys import KeyInfo
from resumes.store.store import Store
from resumes.text import counted
from tui.keymap import shown_key
from tui.screens.accounts.absence import no_accounts
from tui.screens.accounts.chooser import AccountChooser, Choice
from tui.screens.facts import Fact, FactsDialog
from tui.screens.keys import rows
from tui.screens.list_screen import ListScreen, PageRead
from tui.session import Session
from tui.text import safe
from tui.widgets.columns import Column
from tui.widgets.paged_list import PagedList

NO_KEYS = safe("There are no keys here yet.")


class KeyList(ListScreen[KeyInfo]):
    """Which keys there are. Never a key itself: those are shown once, when they are made."""

    MODE = "keys"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._account = session.keys_account

    def columns(self) -> Sequence[Column[KeyInfo]]:
        return rows.columns(self.session.store.clock)

    def row_key(self, row: KeyInfo) -> str:
        return row.id

    def reading(self, cursor: str) -> Callable[[Store], PageRead[KeyInfo]]:
        return partial(read_keys, account=self._account)

    def page_arrived(self, read: PageRead[KeyInfo]) -> None:
        if not read.about:
            self.list.say_when_empty(*no_accounts(self.session))
        elif self.session.read_only:
            self.list.say_when_empty(NO_KEYS)
        else:
            self.list.say_when_empty(NO_KEYS, safe(f"{self.create_key} makes one."))

    def heading(self) -> Content:
        count = self.list.pages.count
        whose = self._account or "all accounts"
        return safe(f"{whose} · ", "bold") + safe(counted(count, "key"))

    @on(PagedList.Chosen)
    def show_key(self, chosen: PagedList.Chosen) -> None:
        """What is known of the key is shown."""
        remark = "The key in full was shown when it was made, and never again."
        self.app.push_screen(FactsDialog("A key", self.facts(chosen.row), remark=remark))

    def on_screen_resume(self) -> None:
        """Another account may have been asked for from another screen."""
        if self.session.keys_account != self._account:
            self._show_account(self.session.keys_account)

    def _show_account(self, name: str | None) -> None:
        self._account = self.session.keys_account = name
        self.restart()

    def action_choose_account(self) -> None:
        """A dialog asks whose keys to show."""
        self.app.push_screen(AccountChooser(self.session, offer_all=True), self._account_chosen)

    def _account_chosen(self, choice: Choice | None) -> None:
        if choice is not None:
            self._show_account(choice.name)

    @property
    def create_key(self) -> str:
        """The key that makes a new one, as the user has it."""
        return shown_key("keys.create", self.session.keymap)

    def facts(self, key: KeyInfo) -> list[Fact]:
        """Everything that is known of the key, now."""
        return rows.facts(key, self.session.store.clock())


def read_keys(store: Store, account: str | None) -> PageRead[KeyInfo]:
    """All keys, or the account's, and whether there are accounts."""
    return PageRead(
        api_keys.list_keys(store, account=account), about=bool(accounts.list_accounts(store))
    )
