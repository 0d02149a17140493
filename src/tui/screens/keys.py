"""The API keys screen: list, creating, rotating, revoking, and a new key shown once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalGroup
from textual.content import Content
from textual.screen import ModalScreen

from resumes import durations
from resumes.clock import Clock, later
from resumes.errors import Conflict, InvalidArgument
from resumes.store import accounts, api_keys
from resumes.store.api_keys import ACCESS, MAX_GRACE, MAX_NAME_CHARS, KeyInfo, KeyState, NewKey
from resumes.store.store import Store
from tui import clipboard
from tui.keys import Place, Target, bindings, shown_key
from tui.screens.base import ListScreen, Order
from tui.screens.dialogs import (
    ConfirmDialog,
    Dialog,
    Fact,
    FactsDialog,
    ask,
    fact_notes,
    no_accounts,
)
from tui.store_calls import call, store_work
from tui.text import NONE, ago, minute, safe, show_message
from tui.widgets.bars import KeyLine, Note
from tui.widgets.forms import Choices, LabelledField, SafeInput, TextButton
from tui.widgets.paged_list import ListColumn, age_column, text_cell
from tui.widgets.window import PageRead

ParsedDuration = tuple[str, timedelta | None]
"""A duration that the user typed, in words and as a timedelta; None means that it never ends."""

ParseDuration = Callable[[str, int], ParsedDuration]
"""Parses a text, given the current time in microseconds. Raises ValueError."""


def parse_expiry(text: str, now_us: int) -> ParsedDuration:
    """Return the lifetime of a new key; an empty text means no expiry. Raises ValueError."""
    if not text:
        return "Never expires.", None
    span = durations.until(durations.parse_expiry(text), now_us=now_us)
    if span <= timedelta(0):
        raise ValueError("The expiry must be in the future")
    return f"Expires {minute(later(now_us, span))} UTC.", span


def parse_grace(text: str, now_us: int) -> ParsedDuration:
    """Return how long a rotated key stays valid. Raises ValueError."""
    span = durations.parse_duration(text)
    if span > MAX_GRACE:
        raise ValueError("The maximum is 7d")
    if not span:
        return "The old key stops working immediately.", span
    return f"The old key expires {minute(later(now_us, span))} UTC.", span


class DurationField(VerticalGroup):
    """A labelled input line for a duration, with the interpretation of the text below."""

    def __init__(self, label: str, parse: ParseDuration, clock: Clock, preset: str = "") -> None:
        def parse_now(text: str) -> ParsedDuration:
            try:
                return parse(text, clock())
            except ValueError as error:
                raise InvalidArgument(f"{error}.") from None

        self._line = SafeInput(preset, parse=parse_now, hint="such as 7d or 12h")
        self._note = Note(safe(self._line.parsed[0]))
        super().__init__(LabelledField(label, self._line), self._note)

    @property
    def span(self) -> timedelta | None:
        """The duration; None means that it never ends."""
        parsed: ParsedDuration = self._line.parsed
        return parsed[1]

    @on(SafeInput.Changed)
    def show_parsed(self) -> None:
        problem = self._line.find_problem()
        self._note.update(safe(f"! {problem}" if problem else self._line.parsed[0]))


class CreateKeyDialog(Dialog[NewKey]):
    """Creates a key for one of these accounts."""

    VERB = "Create"
    enter_submits = False

    def __init__(self, store: Store, accounts: Sequence[str], preset: str) -> None:
        self._store = store
        self.account = Choices(accounts, preset)
        self._name_line = SafeInput(max_length=MAX_NAME_CHARS)
        self._access = Choices([*ACCESS.values()], ACCESS[False])
        self._expiry = DurationField("Expires", parse_expiry, store.clock)
        super().__init__(
            "New key",
            LabelledField("Account", self.account),
            LabelledField("Name", self._name_line),
            LabelledField("Access", self._access),
            self._expiry,
        )

    def submit(self) -> None:
        create = partial(
            api_keys.create_key,
            account=self.account.chosen,
            name=self._name_line.parsed,
            lifetime=self._expiry.span,
            is_read_only=self._access.chosen == ACCESS[True],
        )
        self.save(self._store, create)


class RotateDialog(Dialog[timedelta]):
    """Asks how long the old key stays valid; the result is this duration."""

    VERB = "Rotate"

    def __init__(self, facts: Sequence[Fact], clock: Clock) -> None:
        self._grace = DurationField("Grace period", parse_grace, clock, "24h")
        super().__init__("Rotate this key?", *fact_notes(facts), self._grace)

    def submit(self) -> None:
        self.dismiss(self._grace.span)


WHAT_TO_DO = (
    "Copy it now. It will not be shown again and cannot be recovered. Press {copy} to copy it, then check "
    "the clipboard (your terminal must support OSC 52), or select it with the mouse (in most terminals "
    "while holding shift)."
)


class NewKeyScreen(ModalScreen[None]):
    """Shows a new key until the user has saved it. `remark` is about the key that it replaces."""

    BINDINGS = bindings(Place.NEW_KEY)
    # Nothing has the focus: an extra Enter must not confirm that the key is saved.
    AUTO_FOCUS = ""

    def __init__(
        self, account: str, new: NewKey, *, remark: str, keymap: Mapping[str, str]
    ) -> None:
        super().__init__()
        self._copy_key = shown_key("new_key.copy", keymap)
        self._stored_key = shown_key("new_key.stored", keymap)
        self._account = account
        self._new = new
        self._remark = remark

    def compose(self) -> ComposeResult:
        texts = [
            safe(f"New API key for {self._account} ({self._new.id})", "bold"),
            safe(self._new.secret, "bold"),
            safe(WHAT_TO_DO.format(copy=self._copy_key)),
            *([safe(self._remark)] if self._remark else []),
        ]
        with Vertical(classes="page"):
            for text in texts:
                yield Note(text)
                yield Note(safe(""))
            label = safe(f"I've saved it ({self._stored_key})")
            yield TextButton(label, id="stored", variant="primary")
        yield KeyLine()

    def action_copy(self) -> None:
        clipboard.send(self, self._new.secret, what="key")

    @on(TextButton.Pressed, "#stored")
    def action_stored(self) -> None:
        self.dismiss()

    def action_back(self) -> None:
        show_message(self, f"Press {self._stored_key} when you have saved the key.", "warning")


STATE_CELLS: Final = 27
FAR: Final = timedelta(days=180)
"""Expiry times further ahead than this are shown with the year instead of the time of day."""


def label(key: KeyInfo) -> str:
    """Return the key's name, or its ID if it has no name."""
    return key.name.strip() or key.id


def name_cell(key: KeyInfo) -> Content:
    """Return the name, or the ID in dim style if the key has no name."""
    return text_cell(label(key), "bold" if key.name.strip() else "dim")


def state_of(key: KeyInfo, shown: Callable[[str], str] = minute) -> tuple[str, str, str]:
    """Return the sign, words and style of the key's state. `shown` formats the time of its end."""
    words = api_keys.describe_state(key, shown)
    if key.state is not KeyState.ACTIVE:
        return "✗", words, "dim"
    if key.shown_at is None:
        return "!", "never shown", "$text-warning"
    if key.expires_at is None:
        return "✓", words, "$text-success"
    return "~", words, "$text-warning"


def state_cell(key: KeyInfo, now_us: int) -> Content:
    """Return the state, with its end as `01-31 09:00` or, if far in the future, as `2027-01-31`."""
    far = later(now_us, FAR)
    sign, words, style = state_of(key, lambda at: minute(at)[5:] if at < far else at[:10])
    return safe(f"{sign} {words}", style)


def revoke(store: Store, key: KeyInfo) -> None:
    """Revoke the key. Raises NotFound, and Conflict if it was already revoked."""
    now = api_keys.get_key(store, key.id)
    if now.state is KeyState.REVOKED:
        raise Conflict(f'"{label(key)}" was already revoked at {minute(now.revoked_at)} UTC')
    api_keys.revoke_key(store, key.id)


class KeysScreen(ListScreen[KeyInfo]):
    """The list of keys, without their secrets, which are shown only once, when they are created."""

    MODE = "keys"
    ROW = "key"
    ALL_LABEL = "all accounts"
    ORDERS = (
        Order(""),  # by account
        Order("newest first", attrgetter("created_at"), is_descending=True),
        Order("last used first", lambda key: key.last_used_at or "", is_descending=True),
    )
    BINDINGS = bindings(Place.KEYS)

    def columns(self) -> Sequence[ListColumn[KeyInfo]]:
        clock = self.session.store.clock
        return (
            ListColumn("NAME", 0, name_cell, at_most=40),
            ListColumn("ACCOUNT", 0, lambda key: text_cell(key.account), at_most=40),
            ListColumn("STATE", STATE_CELLS, lambda key: state_cell(key, clock())),
            ListColumn("ID", 16, lambda key: text_cell(key.id, "dim"), 96),
            ListColumn("ACCESS", 9, lambda key: safe(ACCESS[key.is_read_only]), 90),
            ListColumn("KEY", 13, lambda key: text_cell(key.masked, "dim"), 100),
            age_column("USED", attrgetter("last_used_at"), clock, none="never"),
            age_column("CREATED", attrgetter("created_at"), clock, 110),
        )

    def hidden(self) -> Iterable[str]:
        if (key := self.list.current) is None:
            yield "choose"
        if key is None or key.state is not KeyState.ACTIVE:
            yield "rotate_key"
        if key is None or key.state is KeyState.REVOKED:
            yield "revoke_key"

    def row_key(self, row: KeyInfo) -> str:
        return row.id

    def words(self, row: KeyInfo) -> str:
        return f"{row.id} {row.account} {row.name} {row.state} {ACCESS[row.is_read_only]}"

    def reading(self, cursor: str) -> Callable[[Store], PageRead[KeyInfo]]:
        account = self.account
        return lambda store: PageRead(
            api_keys.list_keys(store, account=account), about=bool(accounts.list_accounts(store))
        )

    def page_arrived(self, read: PageRead[KeyInfo]) -> Sequence[Content]:
        if not read.about:
            return no_accounts(self.session)
        create = shown_key("keys.create", self.session.settings.keymap)
        how = [] if self.session.read_only else [safe(f"Press {create} to create one.")]
        return [safe("No keys yet."), *how]

    def open_row(self, row: KeyInfo) -> None:
        remark = "The full key was shown only at creation."
        self.app.push_screen(FactsDialog("Key details", self.facts(row), remark=remark))

    def action_open_account(self) -> None:
        if (key := self.current_row("show the account of")) is not None:
            self.follow_link(Target("accounts", row=key.account), label(key))

    def facts(self, key: KeyInfo) -> list[Fact]:
        """Return all details of the key; times are UTC."""
        used = ago(key.last_used_at, self.session.store.clock())
        if key.last_used_at is not None:
            used = f"{minute(key.last_used_at)} ({used})"
        return [
            ("Key", f"{key.masked}  ({key.id})"),
            ("Account", key.account),
            ("Name", key.name or NONE),
            ("Access", ACCESS[key.is_read_only]),
            ("State", state_of(key)[1]),
            ("Created", f"{minute(key.created_at)}, shown {minute(key.shown_at)}"),
            ("Last used", used),
            ("Expires", minute(key.expires_at)),
            ("Revoked", minute(key.revoked_at)),
        ]

    # Creating keys.

    def open_link(self, link: Target) -> None:
        super().open_link(link)
        if link.opens:
            self.action_create_key()

    @store_work()
    async def action_create_key(self) -> None:
        store = self.session.store
        known = await call(store, accounts.list_accounts)
        names = [account.name for account in known]
        if not names:
            line = self.session.program + " accounts create NAME"
            show_message(self, f"No accounts yet. Create one with `{line}`.")
            return
        chosen = self.account or self.session.accounts.get("resumes")
        preset = chosen if chosen in names else names[0]
        dialog = CreateKeyDialog(store, names, preset)
        if (new := await ask(self, dialog)) is not None:
            await self._show_once(dialog.account.chosen, new)

    async def _show_once(self, account: str, new: NewKey, remark: str = "") -> None:
        self.action_reload(row=new.id)
        shown = NewKeyScreen(account, new, remark=remark, keymap=self.session.settings.keymap)
        await self.app.push_screen_wait(shown)
        await call(self.session.store, api_keys.mark_shown, key_id=new.id)
        show_message(self, f"{new.id} is active.")
        self.action_reload(row=new.id)

    # Rotating and revoking keys.

    @store_work()
    async def action_rotate_key(self) -> None:
        """Rotate the key at the cursor, after asking how long the old key stays valid."""
        if (key := self.current_row("rotate")) is None:
            return
        if key.state is not KeyState.ACTIVE:
            create = shown_key("keys.create", self.session.settings.keymap)
            words = f"{label(key)} is {key.state}. Press {create} to create a new key."
            show_message(self, words, "warning")
            return
        store = self.session.store
        grace = await ask(self, RotateDialog(self.facts(key), store.clock))
        if grace is not None:
            remark = f"The old key {key.id} no longer works."
            if grace:
                ends = min(later(store.clock(), grace), key.expires_at or "9")
                remark = f"The old key {key.id} expires {minute(ends)} UTC."
            new = await call(store, api_keys.rotate_key, key.id, grace=grace)
            await self._show_once(key.account, new, remark)

    @store_work()
    async def action_revoke_key(self) -> None:
        """Revoke the key at the cursor; the user must type its name to confirm."""
        if (key := self.current_row("revoke")) is None:
            return
        if key.state is KeyState.REVOKED:
            show_message(self, f"{label(key)} is already revoked.", "warning")
            return
        dialog = ConfirmDialog(
            "Revoke this key?",
            self.facts(key),
            consequence="Programs that use it stop working immediately. This cannot be undone.",
            verb="Revoke",
            typed=label(key),
        )
        if await ask(self, dialog):
            await call(self.session.store, revoke, key)
            show_message(self, f"Revoked {label(key)}.")
            self.action_reload()
