"""The accounts as the list shows them, and their order."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from textual.content import Content

from resumes.store import accounts, plans
from resumes.store.accounts import AccountInfo
from resumes.store.store import Store
from tui.screens.list_screen import PageRead
from tui.screens.plans.limits import listing_text
from tui.text import safe
from tui.times import day
from tui.widgets.columns import Column, text_cell
from tui.widgets.quota_bar import quota_bar


class Order(StrEnum):
    """What the accounts are sorted by; the value says so."""

    NAME = "by name"
    FULLEST = "fullest first"

    @property
    def next(self) -> "Order":
        """The order that comes after it."""
        return Order.FULLEST if self is Order.NAME else Order.NAME


@dataclass(frozen=True, slots=True)
class Row:
    """An account, and how many of its keys count."""

    account: AccountInfo
    active_keys: int


def read_rows(store: Store, order: Order) -> PageRead[Row]:
    """Every account, those that are being deleted too; `about` is the list of all plans."""
    active_keys = accounts.count_active_keys(store)
    rows = [
        Row(account, active_keys.get(account.id, 0))
        for account in accounts.list_accounts(store, closed_too=True)
    ]
    return PageRead(ordered(rows, order), about=plans.list_plans(store))


def ordered(rows: Sequence[Row], order: Order) -> list[Row]:
    """The rows in that order; those without a limit come last of the fullest first."""
    if order is Order.NAME:
        return sorted(rows, key=lambda row: row.account.name)
    return sorted(rows, key=lambda row: (-fullness(row.account), row.account.name))


def fullness(account: AccountInfo) -> float:
    """1 is full; negative where there is no limit. A plan of none is as full as what is held."""
    if account.max_resumes is None:
        return -1.0
    return (account.resume_count + (account.max_resumes == 0)) / max(1, account.max_resumes)


def usage_cell(row: Row) -> Content:
    """How full the account is, or how much of it is still to go."""
    account = row.account
    if account.is_arriving:
        return safe(f"being imported, {account.resume_count:,} so far", "$warning")
    if account.is_closed:
        return safe(f"being deleted, {account.resume_count:,} left", "$warning")
    return quota_bar(account.resume_count, account.max_resumes)


COLUMNS: tuple[Column[Row], ...] = (
    Column("NAME", 0, lambda row: text_cell(row.account.name), at_most=40),
    Column("PLAN", 10, lambda row: text_cell(row.account.plan)),
    Column("RESUMES", 34, usage_cell),
    Column("CREATED", 10, lambda row: text_cell(day(row.account.created_at)), 74),
    Column("KEYS", 4, lambda row: safe(f"{row.active_keys:>4,}"), 90),
    Column("API LISTING", 11, lambda row: safe(listing_text(row.account.api_listing)), 100),
    Column("NEWEST", 10, lambda row: text_cell(day(row.account.last_resume_at)), 115),
    Column("ID", 16, lambda row: text_cell(row.account.id, "dim"), 130),
)
