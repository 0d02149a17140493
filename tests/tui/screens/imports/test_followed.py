"""What became of files that were asked for."""

from resumes.store import accounts
from resumes.store.engine import Store
from resumes.store.ledger import SO_FAR, FileOutcome
from tests.tui.screens.imports.builders import WaitingClient, a_file, an_id
from tui.notices import Failure
from tui.screens.imports.followed import FOLLOWED, Followed, ending, read_ended


def test_files_are_not_looked_for_twice_at_once(store: Store) -> None:
    told: list[str] = []
    client = WaitingClient()
    followed = Followed(client, told.append)
    for digit in "12":
        followed.add(a_file(store, an_id(digit)))
    followed.look()
    then, failed = client.waiting.pop(FOLLOWED)
    followed.look()
    assert FOLLOWED not in client.waiting

    then([a_file(store, an_id("1"), FileOutcome.DONE)])
    assert told == ["Done: ana/cv-1.json"]
    followed.look()
    assert client.waiting.pop(FOLLOWED)
    failed(Failure("no", "r"))
    followed.look()
    assert FOLLOWED in client.waiting


def test_a_file_that_came_to_an_end_since_is_told(store: Store) -> None:
    files = [a_file(store, an_id(digit)) for digit in "123"]
    assert read_ended(store, files=files) == []

    done = a_file(store, an_id("2"), FileOutcome.DONE)

    assert read_ended(store, files=files) == [done]


def test_a_file_that_fails_again_came_to_an_end_too(store: Store) -> None:
    file = a_file(store)
    again = a_file(store, reason="too_large")
    assert read_ended(store, files=[file]) == [again]
    assert ending(again) == "Failed, too large: ana/cv-1.json"


def test_a_file_on_its_way_did_not(store: Store) -> None:
    file = a_file(store)
    a_file(store, reason=SO_FAR.reason, message=SO_FAR.message)
    assert read_ended(store, files=[file]) == []


def test_a_file_whose_account_is_gone_is_told_nothing_of(store: Store) -> None:
    file = a_file(store)
    accounts.delete_account(store, "ana")
    assert read_ended(store, files=[file]) == []


def test_a_done_file_needs_no_reason(store: Store) -> None:
    assert ending(a_file(store, outcome=FileOutcome.DONE)) == "Done: ana/cv-1.json"
