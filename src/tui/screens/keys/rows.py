"""What the list and the dialogs say about one key."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from textual.content import Content

from resumes.clock import Clock, later
from resumes.store.api_keys import KeyInfo, KeyState
from tui.screens.facts import Fact
from tui.screens.keys.ages import ago
from tui.text import NONE, safe
from tui.times import day, minute
from tui.widgets.columns import Column, text_cell

NEVER_SHOWN: Final = "never shown"
STATE_CELLS: Final = 19
FAR: Final = timedelta(days=180)
"""From here on the year of an instant matters more than its minute."""

_SIGNS: Final = {KeyState.ACTIVE: "✓", KeyState.REVOKED: "✗", KeyState.EXPIRED: "✗"}


def label(key: KeyInfo) -> str:
    """What people call the key: its name, or its id when it has none."""
    return key.name.strip() or key.id


def state_words(key: KeyInfo) -> str:
    """Active, until when, revoked or expired; and whether its owner can ever have seen it."""
    if key.state is not KeyState.ACTIVE:
        return key.state
    if key.shown_at is None:
        return NEVER_SHOWN
    return "active" if key.expires_at is None else f"until {minute(key.expires_at)}"


def columns(clock: Clock) -> Sequence[Column[KeyInfo]]:
    """The columns of the list of keys. `clock` says what `ago` counts from."""
    return (
        Column("KEY", 13, lambda key: text_cell(key.masked)),
        Column("STATE", STATE_CELLS, lambda key: state_cell(key, clock())),
        Column("LAST USED", 10, lambda key: text_cell(ago(key.last_used_at, clock()))),
        Column("EXPIRES (UTC)", 16, lambda key: text_cell(minute(key.expires_at)), 105),
        Column("CREATED (UTC)", 16, lambda key: text_cell(minute(key.created_at)), 125),
        Column("ID", 16, lambda key: text_cell(key.id, "dim"), 145),
        Column("ACCOUNT", 0, lambda key: text_cell(key.account), at_most=40),
        Column("NAME", 0, lambda key: text_cell(key.name or None)),
    )


def state_cell(key: KeyInfo, now_us: int) -> Content:
    """The state behind a sign, so that it needs no colour to be seen."""
    if key.state is not KeyState.ACTIVE:
        return safe(f"{_SIGNS[key.state]} {key.state}", "dim")
    if key.shown_at is None:
        return safe(f"! {NEVER_SHOWN}", "$text-warning")
    if key.expires_at is None:
        return safe(f"{_SIGNS[key.state]} active", "$text-success")
    return safe(f"~ until {_short(key.expires_at, now_us)}", "$text-warning")


def _short(instant: str, now_us: int) -> str:
    """`01-31 09:00`, or `2027-01-31` for what is far ahead."""
    return minute(instant)[5:] if instant < later(now_us, FAR) else day(instant)


def facts(key: KeyInfo, now_us: int) -> list[Fact]:
    """Everything that is known of the key; times are UTC."""
    used = ago(key.last_used_at, now_us)
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
