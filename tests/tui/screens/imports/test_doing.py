"""Asking for files: what is asked of the store, and what the reader is told."""

import pytest

from resumes.errors import Conflict
from resumes.store import importers, requests
from resumes.store.engine import Store
from resumes.store.ledger import FileOutcome
from resumes.store.requests import Action
from resumes.store.tallies import FileTally
from tests.resumes.store.builders import an_importer
from tests.tui.builders import an_account
from tests.tui.screens.imports.builders import ROOT, a_file, an_id
from tui.screens.imports.doing import (
    MOST_REASONS,
    Asked,
    ask_for,
    ask_for_all,
    count_fitting,
    facts,
)
from tui.session import Session

FAILED, HELD, DONE = FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DONE


def asked(store: Store) -> dict[str, str]:
    """What is asked for each file, by the first digit of its id."""
    return {one.claim_id[0]: one.action.value for one in requests.list_requests(store)}


def test_one_file_is_asked_for(store: Store) -> None:
    file = a_file(store)
    importers.announce(store, an_importer(root=ROOT))
    assert ask_for(store, session=Session(store), file=file, action=Action.RETRY) == Asked(1, None)
    assert asked(store) == {"1": "retry"}


def test_what_nobody_takes_up_is_told_with_how_to_start_an_importer(store: Store) -> None:
    other = a_file(store, an_id("2"), root="/srv/other")
    session = Session(store, program="res")
    answer = ask_for(store, session=session, file=other, action=Action.RETRY)
    assert answer.files == 1
    assert (answer.start or "").startswith("start the one of /srv/other again, or `res up` if ")

    importers.announce(store, an_importer(root=ROOT))

    here = ask_for(store, session=session, file=a_file(store), action=Action.RETRY)
    assert here == Asked(1, None)


def test_a_file_that_came_to_another_end_is_not_asked_for(store: Store) -> None:
    before = a_file(store)
    a_file(store, outcome=DONE)
    with pytest.raises(Conflict):
        ask_for(store, session=Session(store), file=before, action=Action.RETRY)


def test_all_that_an_action_is_for_are_asked_for(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), account="zoe")
    a_file(store, an_id("3"), HELD)
    a_file(store, an_id("4"), DONE)
    session = Session(store)

    assert ask_for_all(store, session=session, account="zoe", action=Action.RETRY).files == 1
    assert asked(store) == {"2": "retry"}
    assert ask_for_all(store, session=session, account=None, action=Action.RETRY).files == 2
    assert ask_for_all(store, session=session, account=None, action=Action.RELEASE).files == 1
    assert asked(store) == {"1": "retry", "2": "retry", "3": "release"}


def test_what_it_is_about_is_counted_by_reason(store: Store) -> None:
    an_account(store, "zoe")
    a_file(store, an_id("1"))
    a_file(store, an_id("2"), reason="too_large")
    a_file(store, an_id("3"), account="zoe")
    a_file(store, an_id("4"), HELD, reason="quota_reached")

    def count(account: str | None, action: Action) -> int:
        return sum(one.files for one in count_fitting(store, account=account, action=action))

    assert count(None, Action.RETRY) == 3
    assert count("ana", Action.RETRY) == 2
    assert count(None, Action.RELEASE) == 1
    assert count("zoe", Action.RELEASE) == 0


def test_the_question_says_how_many_whose_and_why() -> None:
    found = [FileTally(FAILED, "too_large", 2), FileTally(FAILED, "invalid_json", 1_000)]
    assert facts(None, found) == [
        ("Files", "1,002"),
        ("Whose", "all accounts"),
        ("Reasons", "1,000 not readable as JSON"),
        ("", "2 too large"),
    ]
    many = [FileTally(FAILED, f"reason {number}", 1) for number in range(20)]
    assert len(facts("ana", many)) == 2 + MOST_REASONS
