"""The API keys of an account, or of all."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content

from resumes.store import accounts, keys
from resumes.store.engine import Store
from resumes.store.keys import KeyInfo, KeyState, NewKey
from resumes.text import counted
from tui.actions import Place, bindings
from tui.screens.accounts.chooser import AccountChooser, Choice
from tui.screens.accounts.screen import NO_ACCOUNTS
from tui.screens.keys.creating import CreateKeyDialog, Wish
from tui.screens.keys.dialogs import KeyDialog, RevokeDialog
from tui.screens.keys.new_key import NewKeyScreen
from tui.screens.list_screen import ListScreen, PageRead
from tui.text import safe
from tui.times import day, minute
from tui.toasts import tell
from tui.widgets.columns import Column, text_cell
from tui.widgets.paged_list import PagedList

STATE_STYLES = {
    KeyState.ACTIVE: "$text-success",
    KeyState.REVOKED: "dim",
    KeyState.EXPIRED: "dim",
}


def state_cell(key: KeyInfo) -> Content:
    """Active, revoked or expired; and whether its owner can ever have seen it."""
    never_shown = key.state is KeyState.ACTIVE and key.shown_at is None
    return safe("never shown" if never_shown else key.state, STATE_STYLES[key.state])


COLUMNS: tuple[Column[KeyInfo], ...] = (
    Column("KEY", 13, lambda key: text_cell(key.masked)),
    Column("STATE", 11, state_cell),
    Column("LAST USED", 10, lambda key: text_cell(day(key.last_used_at))),
    Column("CREATED (UTC)", 16, lambda key: text_cell(minute(key.created_at)), 120),
    Column("EXPIRES", 10, lambda key: text_cell(day(key.expires_at)), 100),
    Column("ID", 16, lambda key: text_cell(key.id, "dim"), 140),
    Column("ACCOUNT", 0, lambda key: text_cell(key.account), at_most=40),
    Column("NAME", 0, lambda key: text_cell(key.name or None)),
)


class KeysScreen(ListScreen[KeyInfo]):
    """Which keys there are. Never a key itself: those are shown once, when they are made."""

    MODE = "keys"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.KEYS)

    def columns(self) -> Sequence[Column[KeyInfo]]:
        return COLUMNS

    def row_key(self, row: KeyInfo) -> str:
        return row.id

    def reading(self, cursor: str) -> Callable[[Store], PageRead[KeyInfo]]:
        return partial(read_keys, account=self.session.keys_account)

    def page_arrived(self, read: PageRead[KeyInfo]) -> None:
        if not read.about:
            self.list.say_when_empty(*NO_ACCOUNTS)
        elif self.session.read_only:
            self.list.say_when_empty(safe("There are no keys here yet."))
        else:
            self.list.say_when_empty(safe("There are no keys here yet."), safe("n makes one."))

    def heading(self) -> Content:
        count = self.list.pages.count
        whose = self.session.keys_account or "all accounts"
        return safe(f"{whose} · ", "bold") + safe(counted(count, "key"))

    @on(PagedList.Chosen)
    def show_key(self, chosen: PagedList.Chosen) -> None:
        """What is known of the key is shown."""
        self.app.push_screen(KeyDialog(chosen.row))

    def action_choose_account(self) -> None:
        """A dialog asks whose keys to show."""
        self.app.push_screen(AccountChooser(self.session, offer_all=True), self._account_chosen)

    def _account_chosen(self, choice: Choice | None) -> None:
        if choice is not None:
            self.session.keys_account = choice.name
            self.restart()

    def action_create_key(self) -> None:
        """The form for a new key is being opened."""
        self.client.read(
            "accounts", accounts.list_accounts, then=self._ask_for_key, failed=self.show_failure
        )

    def _ask_for_key(self, known: Sequence[accounts.AccountInfo]) -> None:
        if not known:
            tell(self, "There are no accounts: `resumes accounts create NAME` makes one.")
            return
        names = [account.name for account in known]
        preset = self.session.keys_account or self.session.account
        dialog = CreateKeyDialog(names, preset if preset in names else names[0])
        self.app.push_screen(dialog, self._key_wished)

    def _key_wished(self, wish: Wish | None) -> None:
        if wish is not None:
            self.client.change(
                partial(keys.create_key, account=wish.account, name=wish.name),
                then=lambda new: self._show_once(wish, new),
                failed=self.show_failure,
            )

    def _show_once(self, wish: Wish, new: NewKey) -> None:
        def stored(_: None) -> None:
            self.client.change(
                partial(keys.mark_shown, key_id=new.id),
                then=lambda _: self.action_reload(),
                failed=self.show_failure,
            )

        self.action_reload()
        self.app.push_screen(NewKeyScreen(wish.account, new), stored)

    def action_revoke_key(self) -> None:
        """A dialog asks whether the key shall be revoked."""
        key = self.list.current
        if key is None:
            tell(self, "There is no key to revoke.")
        elif key.state is KeyState.REVOKED:
            tell(self, f"{key.id} is revoked already.")
        else:
            self.app.push_screen(RevokeDialog(key), partial(self._revoke_answered, key))

    def _revoke_answered(self, key: KeyInfo, is_sure: bool | None) -> None:
        if is_sure:
            self.client.change(
                partial(keys.revoke_key, key_id=key.id),
                then=lambda _: self._revoked(key),
                failed=self.show_failure,
            )

    def _revoked(self, key: KeyInfo) -> None:
        tell(self, f"{key.id} is revoked.")
        self.action_reload()


def read_keys(store: Store, account: str | None) -> PageRead[KeyInfo]:
    """All keys, or the account's, and whether there are accounts."""
    return PageRead(
        keys.list_keys(store, account=account), about=bool(accounts.list_accounts(store))
    )
