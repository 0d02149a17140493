"""The rows of the list: their order, and what they say."""

import pytest

from resumes.errors import NotFound
from resumes.store import asking
from resumes.store.engine import Store
from resumes.store.ledger import SO_FAR, FileOutcome
from resumes.store.requests import Action
from tests.tui.builders import an_account
from tests.tui.screens.imports.builders import a_file, an_id
from tui.screens.imports.rows import (
    COLUMNS,
    PAGE_SIZE,
    SIGNS,
    Row,
    outcome_content,
    position,
    read_page,
    reason_cell,
)

FAILED, HELD, DUPLICATE, DONE = (
    FileOutcome.FAILED,
    FileOutcome.HELD,
    FileOutcome.DUPLICATE,
    FileOutcome.DONE,
)


def listed(store: Store, account: str | None = None, outcome: FileOutcome | None = None) -> str:
    """The first digits of the ids on the first page."""
    page = read_page(store, account=account, outcome=outcome, cursor="")
    return "".join(row.file.claim_id[0] for row in page.rows)


def test_positions_rise_along_the_list(store: Store) -> None:
    for number, outcome in enumerate((DONE, FAILED, HELD, FAILED, DUPLICATE, DONE), 1):
        a_file(store, an_id(str(number)), outcome)
    rows = read_page(store, account=None, outcome=None, cursor="").rows

    assert [row.file.claim_id[0] for row in rows] == list("423561")
    positions = list(map(position, rows))
    assert positions == sorted(positions)


@pytest.mark.parametrize("at", range(5))
def test_every_row_is_a_place_to_go_on_from(store: Store, at: int) -> None:
    for number, outcome in enumerate((DONE, FAILED, HELD, FAILED, DUPLICATE), 1):
        a_file(store, an_id(str(number)), outcome)
    rows = read_page(store, account=None, outcome=None, cursor="").rows

    following = read_page(store, account=None, outcome=None, cursor=position(rows[at])).rows

    assert following == rows[at + 1 :]


def test_pages_follow_one_another(store: Store) -> None:
    for number in range(PAGE_SIZE + 1):
        a_file(store, f"{number:024x}", FAILED if number % 2 else HELD)
    first = read_page(store, account=None, outcome=None, cursor="")
    assert first.next_cursor == position(first.rows[-1])
    second = read_page(store, account=None, outcome=None, cursor=first.next_cursor)
    assert (len(first.rows), len(second.rows)) == (PAGE_SIZE, 1)
    assert second.next_cursor is None


def test_files_of_one_account_or_outcome_alone(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), account="zoe")
    a_file(store, an_id("3"), HELD)
    assert (listed(store), listed(store, "ana"), listed(store, "zoe")) == ("213", "13", "2")
    assert listed(store, outcome=HELD) == "3"
    with pytest.raises(NotFound):
        listed(store, "nobody")


def test_what_is_asked_for_is_told(store: Store) -> None:
    failed = a_file(store, an_id("1"))
    held = a_file(store, an_id("2"), HELD, reason="quota_reached")
    a_file(store, an_id("3"), DONE)
    asking.ask(store, [failed, held], Action.RETRY)

    rows = read_page(store, account=None, outcome=None, cursor="").rows

    told = [(outcome_content(row.file, row.request).plain, reason_cell(row).plain) for row in rows]
    assert told == [
        ("↻ failed", "retry asked"),
        ("↻ held", "release asked"),
        ("✓ done", "—"),
    ]


def test_a_row_says_why_in_plain_words(store: Store) -> None:
    row = Row(a_file(store, reason="invalid_resume"))
    assert [column.cell(row).plain for column in COLUMNS] == [
        "✗ failed",
        "not a valid resume",
        "2027-01-15 08:00",
        "ana",
        "      1 B",
        "ana/cv-1.json",
    ]


def test_a_file_whose_resumes_are_being_imported_is_no_failure(store: Store) -> None:
    file = a_file(store, reason=SO_FAR.reason, message=SO_FAR.message)
    assert outcome_content(file).plain == "… importing"
    assert reason_cell(Row(file)).plain == "It is being imported"


def test_every_outcome_has_a_sign_of_its_own() -> None:
    assert set(SIGNS) == set(FileOutcome)
    assert len({sign for sign, _ in SIGNS.values()}) == len(SIGNS)
