"""The API keys screen: the list, a new key shown once, revoking."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from resumes.clock import later
from resumes.errors import Conflict
from resumes.store import accounts, api_keys
from resumes.store.api_keys import KeyInfo, KeyState, NewKey
from resumes.store.store import Store
from tui import clipboard
from tui.keys import Place, Target, bindings, shown_key
from tui.screens.base import ListScreen, Order, PageRead
from tui.screens.dialogs import ConfirmDialog, Fact, FactsDialog, no_accounts
from tui.screens.key_forms import CreateKeyDialog, KeyForm, R, RegisterKeyDialog, RotateDialog
from tui.store_calls import Failure, call, store_work
from tui.text import NONE, ago, minute, safe, tell
from tui.widgets.bars import KeyLine, Note
from tui.widgets.forms import TextButton
from tui.widgets.paged_list import ListColumn, PagedList, age_column, text_cell

WHAT_TO_DO = (
    "Copy it now. It will not be shown again and cannot be recovered. Press {copy} to copy it, then check "
    "the clipboard (your terminal must support OSC 52), or select it with the mouse (in most terminals "
    "while holding shift)."
)


class NewKeyScreen(ModalScreen[None]):
    """Ends only by saying that the key was stored. `remark` is about what it replaces."""

    BINDINGS = bindings(Place.NEW_KEY)
    # Nothing has the focus: an Enter too many must not count as "stored".
    AUTO_FOCUS = ""

    def __init__(
        self,
        account: str,
        new: NewKey,
        *,
        remark: str,
        keymap: Mapping[str, str],
    ) -> None:
        super().__init__()
        self._copy_key = shown_key("new_key.copy", keymap)
        self._stored_key = shown_key("new_key.stored", keymap)
        self._account = account
        self._new = new
        self._remark = remark

    def compose(self) -> ComposeResult:
        with Vertical(classes="page"):
            yield Note(safe(f"New API key for {self._account} ({self._new.id})", "bold"))
            yield Note(safe(""))
            yield Note(safe(self._new.secret, "bold"), id="secret")
            yield Note(safe(""))
            yield Note(safe(WHAT_TO_DO.format(copy=self._copy_key)))
            yield Note(safe(""))
            if self._remark:
                yield Note(safe(self._remark))
                yield Note(safe(""))
            label = safe(f"I've saved it ({self._stored_key})")
            yield TextButton(label, id="stored", variant="primary")
        yield KeyLine()

    def action_copy(self) -> None:
        """Ask the terminal to put the key on the clipboard; it gives no answer."""
        clipboard.send(self, self._new.secret, what="key")

    @on(TextButton.Pressed, "#stored")
    def action_stored(self) -> None:
        """Close the screen."""
        self.dismiss()

    def action_back(self) -> None:
        """Say how to close the screen."""
        tell(self, f"Press {self._stored_key} when you have saved the key.", "warning")


NEVER_SHOWN: Final = "never shown"
STATE_CELLS: Final = 27
FAR: Final = timedelta(days=180)
"""From here on the year of an instant matters more than its minute."""


def label(key: KeyInfo) -> str:
    """Return the key's name, or its ID if it has none."""
    return key.name.strip() or key.id


def state_words(key: KeyInfo) -> str:
    """Return the state: active, until when and why, revoked or expired; or that it was never shown."""
    if key.state is not KeyState.ACTIVE:
        return key.state
    if key.shown_at is None:
        return NEVER_SHOWN
    return "active" if key.expires_at is None else f"{_ends(key)} {minute(key.expires_at)}"


def _ends(key: KeyInfo) -> str:
    return "expires" if key.replaced_by is None else "rotated, ends"


def state_cell(key: KeyInfo, now_us: int) -> Content:
    """Return the state after a sign, so that it is readable without color.

    It ends at `01-31 09:00`, or at `2027-01-31` if that is far ahead.
    """
    if key.state is not KeyState.ACTIVE:
        return safe(f"✗ {key.state}", "dim")
    if key.shown_at is None:
        return safe(f"! {NEVER_SHOWN}", "$text-warning")
    if key.expires_at is None:
        return safe("✓ active", "$text-success")
    is_near = key.expires_at < later(now_us, FAR)
    ends = minute(key.expires_at)[5:] if is_near else key.expires_at[:10]
    return safe(f"~ {_ends(key)} {ends}", "$text-warning")


def revoke(store: Store, key: KeyInfo) -> None:
    """Revoke the key. Raises NotFound, and Conflict if it is already revoked."""
    found = api_keys.get_key(store, key.id)
    if found.state is KeyState.REVOKED and found.revoked_at is not None:
        raise Conflict(f'"{label(key)}" was already revoked at {minute(found.revoked_at)} UTC')
    api_keys.revoke_key(store, key.id)


def fate(old: KeyInfo, grace: timedelta, now_us: int) -> str:
    """Return a sentence about until when a key that is rotated now stays valid."""
    if not grace:
        return f"The old key {old.id} no longer works."
    ends = min(later(now_us, grace), old.expires_at or "9")
    return f"The old key {old.id} expires {minute(ends)} UTC."


class KeysScreen(ListScreen[KeyInfo]):
    """The keys that there are, never a key itself: those are shown once, when they are made."""

    MODE = "keys"
    ROW = "key"
    OF_ALL = "all accounts"
    ORDERS = (
        Order(""),  # by account
        Order("newest first", attrgetter("created_at"), is_descending=True),
        Order("last used first", lambda key: key.last_used_at or "", is_descending=True),
    )
    BINDINGS = bindings(Place.KEYS)

    def columns(self) -> Sequence[ListColumn[KeyInfo]]:
        clock = self.session.store.clock
        return (
            ListColumn("STATE", STATE_CELLS, lambda key: state_cell(key, clock())),
            ListColumn("NAME", 0, lambda key: text_cell(key.name or None, "bold"), at_most=40),
            ListColumn("ACCOUNT", 0, lambda key: text_cell(key.account)),
            ListColumn("ID", 16, lambda key: text_cell(key.id, "dim")),
            ListColumn("KEY", 13, lambda key: text_cell(key.masked, "dim"), 100),
            age_column("USED", attrgetter("last_used_at"), clock, none="never"),
            age_column("CREATED", attrgetter("created_at"), clock, 110),
        )

    def labels(self) -> Mapping[str, str]:
        key = self.list.current
        return {
            **({} if key is not None else {"choose": ""}),
            **({} if key and key.state is KeyState.ACTIVE else {"rotate_key": ""}),
            **({} if key and key.state is not KeyState.REVOKED else {"revoke_key": ""}),
        }

    def row_key(self, row: KeyInfo) -> str:
        return row.id

    def words(self, row: KeyInfo) -> str:
        return f"{row.id} {row.account} {row.name} {row.state}"

    def reading(self, cursor: str) -> Callable[[Store], PageRead[KeyInfo]]:
        account = self.account
        return lambda store: PageRead(
            api_keys.list_keys(store, account=account), about=bool(accounts.list_accounts(store))
        )

    def page_arrived(self, read: PageRead[KeyInfo]) -> Sequence[Content]:
        if not read.about:
            return no_accounts(self.session)
        how = [] if self.session.read_only else [f"Press {self.create_key} to create one."]
        return list(map(safe, ["No keys yet.", *how]))

    @on(PagedList.Chosen)
    def show_key(self, chosen: PagedList.Chosen) -> None:
        remark = "The full key was shown only at creation."
        self.app.push_screen(FactsDialog("Key details", self.facts(chosen.row), remark=remark))

    def action_open_account(self) -> None:
        key = self.list.current
        if key is None:
            tell(self, "No key selected.")
        else:
            self.follow_link(Target("accounts", row=key.account), label(key))

    @property
    def create_key(self) -> str:
        """The keyboard key that creates a new key, as the user has it."""
        return shown_key("keys.create", self.session.keymap)

    def facts(self, key: KeyInfo) -> list[Fact]:
        """Return everything that is known of the key; times are UTC."""
        used = ago(key.last_used_at, self.session.store.clock())
        if key.last_used_at is not None:
            used = f"{minute(key.last_used_at)} ({used})"
        return [
            ("Key", f"{key.masked}  ({key.id})"),
            ("Account", key.account),
            ("Name", key.name or NONE),
            ("State", state_words(key)),
            ("Created", f"{minute(key.created_at)}, shown {minute(key.shown_at)}"),
            ("Last used", used),
            ("Expires", minute(key.expires_at)),
            ("Revoked", minute(key.revoked_at)),
        ]

    # A key that is made, here or elsewhere.

    @store_work()
    async def action_create_key(self) -> None:
        """Open the form for a new key, once it is known which accounts there are."""
        form = partial(CreateKeyDialog, clock=self.session.store.clock)
        if (wish := await self._ask_for(form)) is not None:
            account, create = wish
            await self._show_once(account, await call(self.session.store, create))

    @store_work()
    async def action_import_key(self) -> None:
        """Open the form for a key that was made elsewhere, once the accounts are known."""
        if (wish := await self._ask_for(RegisterKeyDialog)) is not None:
            key_id = await call(self.session.store, wish[1])
            self._changed(f"Imported {key_id}.", key_id)

    async def _ask_for(
        self, form: Callable[[list[str], str], KeyForm[R]]
    ) -> tuple[str, Callable[[Store], R]] | None:
        """Return what the form gives; None if it was canceled, or no key can be made now."""
        known = await call(self.session.store, accounts.list_accounts)
        # Reading takes time; the user may be elsewhere by now.
        if not self.is_active:
            return None
        names = [account.name for account in known]
        if not names:
            line = self.session.program + " accounts create NAME"
            tell(self, f"No accounts yet. Create one with `{line}`.")
            return None
        preset = self.account or self.session.accounts.get("resumes")
        return await self.app.push_screen_wait(form(names, preset if preset in names else names[0]))

    async def _show_once(self, account: str, new: NewKey, remark: str = "") -> None:
        self.action_reload(row=new.id)
        shown = NewKeyScreen(account, new, remark=remark, keymap=self.session.keymap)
        await self.app.push_screen_wait(shown)
        await call(self.session.store, api_keys.mark_shown, key_id=new.id)
        self._changed(f"{new.id} is active.", new.id)

    # A key that ends.

    @store_work()
    async def action_rotate_key(self) -> None:
        """Rotate the key at the cursor, after asking how long the old one stays valid."""
        if (key := self.current_row("rotate")) is None:
            return
        if key.state is not KeyState.ACTIVE:
            words = f"{label(key)} is {key.state}. Press {self.create_key} to create a new key."
            tell(self, words, "warning")
            return
        store = self.session.store
        grace = await self.app.push_screen_wait(RotateDialog(self.facts(key), store.clock))
        if grace is not None:
            remark = fate(key, grace, store.clock())
            new = await call(store, api_keys.rotate_key, key.id, grace=grace)
            await self._show_once(key.account, new, remark)

    @store_work()
    async def action_revoke_key(self) -> None:
        """Revoke the key at the cursor, whose name has to be typed."""
        if (key := self.current_row("revoke")) is None:
            return
        if key.state is KeyState.REVOKED:
            tell(self, f"{label(key)} is already revoked.", "warning")
            return
        dialog = ConfirmDialog(
            "Revoke this key?",
            self.facts(key),
            consequence="Programs that use it stop working immediately. This cannot be undone.",
            verb="Revoke",
            typed=label(key),
        )
        if await self.app.push_screen_wait(dialog):
            await call(self.session.store, revoke, key)
            self._changed(f"Revoked {label(key)}.")

    def _changed(self, words: str, key_id: str = "") -> None:
        tell(self, words)
        self.action_reload(row=key_id)

    def show_failure(self, failure: Failure) -> None:
        """Say why in a line, and show how things are; above the list while the store is away."""
        if failure.is_passing:
            super().show_failure(failure)
            return
        tell(self, failure.content.plain, "error")
        self.action_reload()
