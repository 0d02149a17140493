"""The ledger with what asks for something first."""

from collections.abc import Callable
from typing import Any

import pytest

from resumes.errors import InvalidArgument
from resumes.store import Store
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from resumes.store.triage import Place, list_by_outcome, parse_place, place_of
from tests.resumes.store.builders import a_file

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]

FAILED, HELD, DUPLICATE, DONE = (
    FileOutcome.FAILED,
    FileOutcome.HELD,
    FileOutcome.DUPLICATE,
    FileOutcome.DONE,
)


def listed(store: Store, **filters: Any) -> str:
    """The first digits of the ids of listed files."""
    return "".join(file.claim_id[0] for file in list_by_outcome(store, **filters).files)


def some_of_each(store: Store, account: AccountInfo) -> None:
    """Eight files, two of each outcome, mixed as they come."""
    outcomes = (DONE, FAILED, DUPLICATE, HELD, FAILED, DONE, HELD, DUPLICATE)
    for number, outcome in enumerate(outcomes, 1):
        a_file(store, account, f"{number}" * 24, outcome)


def test_what_failed_comes_first_then_held_then_duplicates_then_done(
    store: Store, an_account: MakeAccount
) -> None:
    some_of_each(store, an_account())
    assert listed(store) == "52748361"


def test_an_empty_ledger_has_an_empty_page(store: Store) -> None:
    page = list_by_outcome(store)
    assert (page.files, page.next) == ([], None)


@pytest.mark.parametrize("size", range(1, 9))
def test_page_after_page_shows_every_file_once(
    store: Store, an_account: MakeAccount, size: int
) -> None:
    some_of_each(store, an_account())
    seen: list[str] = []
    after: Place | None = None
    for _ in range(8 // size + 1):
        page = list_by_outcome(store, after=after, limit=size)
        seen += [file.claim_id[0] for file in page.files]
        after = page.next
        if after is None:
            break
    assert "".join(seen) == "52748361"
    assert after is None


def test_the_newest_of_each_outcome_come_first_over_all_accounts(
    store: Store, an_account: MakeAccount
) -> None:
    ana, ben = an_account("ana"), an_account("ben")
    for number, (account, outcome) in enumerate(
        [(ana, FAILED), (ben, FAILED), (ana, HELD), (ben, DONE), (ana, DONE), (ben, HELD)], 1
    ):
        a_file(store, account, f"{number}" * 24, outcome)
    assert listed(store) == "216354"
    assert listed(store, account_id=ben.id) == "264"


def test_files_of_one_outcome_or_reason_alone(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    a_file(store, account, "1" * 24, FAILED, reason="too_large")
    a_file(store, account, "2" * 24, FAILED)
    a_file(store, account, "3" * 24, HELD, reason="too_large")
    a_file(store, account, "4" * 24, DONE, reason=None)
    assert listed(store, outcome=FAILED) == "21"
    assert listed(store, outcome=DONE) == "4"
    assert listed(store, reason="too_large") == "13"
    assert listed(store, reason="too_large", outcome=HELD) == "3"
    assert listed(store, outcome=FAILED, after=Place(FAILED, "2" * 24)) == "1"
    assert listed(store, outcome=FAILED, after=Place(HELD, "2" * 24)) == ""


def test_going_on_after_a_file_that_came_to_another_end_loses_none(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    for digit in "123":
        a_file(store, account, digit * 24)
    page = list_by_outcome(store, limit=2)
    a_file(store, account, "2" * 24, DONE)
    assert listed(store, after=page.next) == "12"


def test_a_place_is_read_back_from_its_text(store: Store, an_account: MakeAccount) -> None:
    place = place_of(a_file(store, an_account(), "1" * 24))
    assert str(place) == "failed:" + "1" * 24
    assert parse_place(str(place)) == place


@pytest.mark.parametrize("text", ["", "failed", "failed:", "lost:" + "1" * 24, "1" * 24])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="Invalid place"):
        parse_place(text)
