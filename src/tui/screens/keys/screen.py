"""The API keys, and what can be done with them."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import ClassVar

from textual.binding import BindingType

from resumes.store import accounts, api_keys
from resumes.store.api_keys import KeyInfo, KeyState, NewKey
from tui.actions import Place, bindings
from tui.notices import Failure
from tui.screens.confirming import ConfirmDialog
from tui.screens.keys import changes, rows
from tui.screens.keys.creating import CreateKeyDialog, Wish
from tui.screens.keys.listing import KeyList
from tui.screens.keys.new_key import NewKeyScreen
from tui.screens.keys.registering import Foreign, RegisterKeyDialog
from tui.screens.keys.rotating import RotateDialog
from tui.toasts import tell


class KeysScreen(KeyList):
    """The list, and a key that is made, registered, replaced or revoked from it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.KEYS)

    # A key that is made, here or elsewhere.

    def action_create_key(self) -> None:
        """The form for a new key opens as soon as it is known which accounts there are."""
        self._with_accounts(
            lambda names, preset: self.app.push_screen(
                CreateKeyDialog(names, preset, self.session.store.clock), self._key_wished
            )
        )

    def action_import_key(self) -> None:
        """The form for a key that was made elsewhere opens as soon as the accounts are known."""
        self._with_accounts(
            lambda names, preset: self.app.push_screen(
                RegisterKeyDialog(names, preset), self._key_given
            )
        )

    def _with_accounts(self, ask: Callable[[list[str], str], object]) -> None:
        self.client.read(
            "accounts",
            accounts.list_accounts,
            then=lambda known: self._ask(ask, [account.name for account in known]),
            failed=self.show_failure,
        )

    def _ask(self, ask: Callable[[list[str], str], object], names: list[str]) -> None:
        # Reading may take a while; the reader may be elsewhere by now.
        if not self.is_active:
            return
        if not names:
            line = self.session.program + " accounts create NAME"
            tell(self, f"There are no accounts: `{line}` makes one.")
            return
        preset = self.session.keys_account or self.session.account
        ask(names, preset if preset in names else names[0])

    def _key_wished(self, wish: Wish | None) -> None:
        if wish is not None:
            self.client.change(
                partial(changes.create, wish=wish),
                then=lambda new: self._show_once(wish.account, new),
                failed=self._not_changed,
            )

    def _key_given(self, foreign: Foreign | None) -> None:
        if foreign is not None:
            self.client.change(
                partial(changes.register, foreign=foreign),
                then=lambda key_id: self._changed(f"{key_id} counts from now on."),
                failed=self._not_changed,
            )

    def _show_once(self, account: str, new: NewKey, remark: str = "") -> None:
        def stored(_: None) -> None:
            self.client.change(
                partial(api_keys.mark_shown, key_id=new.id),
                then=lambda _: self._changed(f"{new.id} counts, and is not shown again."),
                failed=self.show_failure,
            )

        self.app.clear_notifications()
        self.action_reload()
        self.app.push_screen(
            NewKeyScreen(account, new, remark=remark, keymap=self.session.keymap), stored
        )

    # A key that ends.

    def action_rotate_key(self) -> None:
        """A dialog asks how long the key shall count beside the one that replaces it."""
        key = self.list.current
        if key is None:
            tell(self, "There is no key to rotate.")
        elif key.state is not KeyState.ACTIVE:
            tell(
                self,
                f"{rows.label(key)} is {key.state}: {self.create_key} makes a new key.",
                "warning",
            )
        else:
            dialog = RotateDialog(self.facts(key), self.session.store.clock)
            self.app.push_screen(dialog, partial(self._grace_given, key))

    def _grace_given(self, key: KeyInfo, grace: timedelta | None) -> None:
        if grace is not None:
            remark = changes.fate(key, grace, self.session.store.clock())
            self.client.change(
                partial(changes.rotate, key=key, grace=grace),
                then=lambda new: self._show_once(key.account, new, remark),
                failed=self._not_changed,
            )

    def action_revoke_key(self) -> None:
        """A dialog asks whether the key shall be revoked, and for its name."""
        key = self.list.current
        if key is None:
            tell(self, "There is no key to revoke.")
        elif key.state is KeyState.REVOKED:
            tell(self, f"{rows.label(key)} is revoked already.", "warning")
        else:
            dialog = ConfirmDialog(
                "Revoke this key?",
                self.facts(key),
                consequence="Programs that use it are refused at once. This cannot be undone.",
                verb="Revoke",
                typed=rows.label(key),
            )
            self.app.push_screen(dialog, partial(self._revoke_answered, key))

    def _revoke_answered(self, key: KeyInfo, is_sure: bool | None) -> None:
        if is_sure:
            self.client.change(
                partial(changes.revoke, key=key),
                then=lambda _: self._changed(f"{rows.label(key)} is revoked."),
                failed=self._not_changed,
            )

    def _changed(self, words: str) -> None:
        tell(self, words)
        self.action_reload()

    def _not_changed(self, failure: Failure) -> None:
        """Why, in a line; and the list shows how things are."""
        if failure.is_passing:
            self.show_failure(failure)
            return
        tell(self, failure.content.plain, "error")
        self.action_reload()
