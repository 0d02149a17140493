from collections.abc import Callable

import pytest

from resumes.store import Store, asking, creating, importers, ledger, requests
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from resumes.store.requests import Action
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import a_file, an_importer
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def asked(store: Store, *, root: str | None = None) -> list[str]:
    """The first digit of the files that something is asked for."""
    return [one.claim_id[0] for one in requests.list_requests(store, root=root)]


def test_nothing_is_asked_at_first(store: Store) -> None:
    assert requests.list_requests(store) == []
    assert requests.list_unwatched_roots(store) == []


def test_a_request_says_what_whose_when_and_where(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    asking.ask(store, [a_file(store, account, "1" * 24)], Action.RETRY)
    (request,) = requests.list_requests(store)
    assert request == requests.Request(
        account.id, "1" * 24, Action.RETRY, "2027-01-15T08:00:00.000Z", "/srv/inbox"
    )


def test_the_request_that_waits_longest_is_dated(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    assert requests.find_oldest(store) is None
    account = an_account()
    asking.ask(store, [a_file(store, account, "2" * 24)], Action.RETRY)
    clock.advance(60)
    asking.ask(store, [a_file(store, account, "1" * 24)], Action.RETRY)
    assert requests.find_oldest(store) == "2027-01-15T08:00:00.000Z"


def test_an_importer_sees_what_is_asked_for_its_own_folder_and_for_unknown_ones(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    a_file(store, account, "1" * 24, root="/srv/inbox")
    a_file(store, account, "2" * 24, root="/srv/other")
    a_file(store, account, "3" * 24, root=None)
    asking.ask_all(store, Action.RETRY)
    assert asked(store, root="/srv/inbox") == ["1", "3"]
    assert asked(store) == ["1", "2", "3"]
    assert len(requests.list_requests(store, limit=2)) == 2


def test_what_was_taken_up_is_asked_for_no_more(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    for claim_id in ("1" * 24, "2" * 24, "3" * 24):
        a_file(store, account, claim_id)
    asking.ask_all(store, Action.RETRY)
    second = requests.list_requests(store)[1]
    requests.drop_requests(store, [second])
    assert asked(store) == ["1", "3"]
    requests.drop_requests(store, [second])
    requests.drop_requests(store, requests.list_requests(store))
    assert asked(store) == []


def test_a_request_that_cannot_be_met_is_gone_and_the_file_says_why(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    asking.ask(store, [a_file(store, account, "1" * 24)], Action.RETRY)
    clock.advance(60)
    requests.refuse_request(store, account.id, "1" * 24, "The file is gone")
    assert asked(store) == []
    file = ledger.get_file(store, "1" * 24)
    assert (file.outcome, file.reason) == (FileOutcome.FAILED, "invalid_json")
    assert (file.message, file.finished_at) == ("The file is gone", "2027-01-15T08:01:00.000Z")


def test_refusing_for_a_file_that_is_done_by_now_leaves_its_row(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    asking.ask(store, [a_file(store, account, "1" * 24)], Action.RETRY)
    creating.create(store, account.id, [a_resume()], claim=a_claim("1" * 24))
    requests.refuse_request(store, account.id, "1" * 24, "The file is gone")
    assert asked(store) == []
    assert ledger.get_file(store, "1" * 24).message is None


def test_what_is_asked_for_one_file_is_found(store: Store, an_account: MakeAccount) -> None:
    account = an_account()
    file = a_file(store, account, "1" * 24)
    assert requests.find_request(store, account.id, file.claim_id) is None
    asking.ask(store, [file], Action.RETRY)
    found = requests.find_request(store, account.id, file.claim_id)
    assert found is not None
    assert [found] == requests.list_requests(store)


def test_folders_that_no_live_importer_watches_are_known(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    a_file(store, account, "1" * 24, root="/srv/inbox")
    a_file(store, account, "2" * 24, root="/srv/other")
    a_file(store, account, "3" * 24, root=None)
    asking.ask_all(store, Action.RETRY)
    assert requests.list_unwatched_roots(store) == [None, "/srv/inbox", "/srv/other"]
    importers.announce(store, an_importer(root="/srv/inbox"))
    assert requests.list_unwatched_roots(store) == ["/srv/other"]
    clock.advance(60)
    assert requests.list_unwatched_roots(store) == [None, "/srv/inbox", "/srv/other"]


def test_strays_are_of_folders_that_nobody_watches(
    store: Store, an_account: MakeAccount, clock: SteppingClock
) -> None:
    account = an_account()
    for digit, root in (("1", "/srv/inbox"), ("2", "/srv/moved"), ("3", None), ("4", "/srv/live")):
        a_file(store, account, digit * 24, root=root)
    asking.ask_all(store, Action.RETRY)
    importers.announce(store, an_importer("a" * 24, root="/srv/live"))

    def strays(**more: int) -> list[str]:
        found = requests.list_strays(store, root="/srv/inbox", **more)
        return [one.claim_id[0] for one in found]

    assert strays() == ["2"]
    assert strays(limit=0) == []
    clock.advance(60)
    assert strays() == ["4", "2"]
