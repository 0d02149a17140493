"""The rows of the accounts."""

from resumes.store import accounts, keys, plans
from resumes.store.accounts import AccountInfo
from resumes.store.engine import Store
from tests.tui.builders import an_account, stored_many
from tui.screens.accounts.rows import Order, Row, ordered, read_rows, usage_cell


def a_row(name: str, holds: int, at_most: int | None, *, is_closed: bool = False) -> Row:
    info = AccountInfo(
        "id", name, "pro", "2026-01-31T09:00:00.000Z", holds, at_most, False, 0, is_closed
    )
    return Row(info, 0)


def names(rows: list[Row]) -> list[str]:
    return [row.account.name for row in rows]


def test_the_fullest_come_first_and_those_without_a_limit_last() -> None:
    rows = [
        a_row("endless", 900, None),
        a_row("half", 5, 10),
        a_row("over", 12, 10),
        a_row("none-allowed", 0, 0),
        a_row("empty", 0, 10),
        a_row("also-half", 50, 100),
    ]

    fullest = names(ordered(rows, Order.FULLEST))

    assert fullest == ["over", "none-allowed", "also-half", "half", "empty", "endless"]
    assert names(ordered(rows, Order.NAME)) == sorted(fullest)


def test_the_orders_follow_one_another() -> None:
    assert (Order.NAME.next, Order.FULLEST.next) == (Order.FULLEST, Order.NAME)


def test_rows_know_the_keys_that_count_and_the_plans(store: Store) -> None:
    an_account(store, "zoe")
    keys.create_key(store, "zoe")
    keys.revoke_key(store, keys.create_key(store, "zoe").id)

    read = read_rows(store, Order.NAME)

    assert [(row.account.name, row.active_keys) for row in read.rows] == [("ana", 0), ("zoe", 1)]
    assert read.about == plans.list_plans(store)


def test_an_account_that_is_being_deleted_says_what_is_left(store: Store) -> None:
    stored_many(store, 501)
    accounts.delete_account(store, "ana", with_resumes=True, goes_on=lambda _: False)

    (row,) = read_rows(store, Order.NAME).rows

    assert usage_cell(row).plain == "being deleted, 1 left"


def test_an_account_that_is_being_imported_says_so() -> None:
    row = a_row("ana~import", 7, 10, is_closed=True)
    assert usage_cell(row).plain == "being imported, 7 so far"
    assert usage_cell(a_row("half", 5, 10)).plain == "████░░░░ 5/10 50 %"
