from collections.abc import Callable

import pytest

from resumes.errors import Conflict
from resumes.store import Store, asking, creating, requests
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from resumes.store.requests import Action
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import a_file

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def asked(store: Store) -> list[tuple[str, Action]]:
    """The first digit of the files that something is asked for, and what."""
    return [(one.claim_id[0], one.action) for one in requests.list_requests(store)]


def test_to_ask_twice_is_to_ask_once(store: Store, an_account: MakeAccount) -> None:
    file = a_file(store, an_account(), "1" * 24)
    asking.ask(store, [file, file], Action.RETRY)
    asking.ask(store, [file], Action.RETRY)
    assert asked(store) == [("1", Action.RETRY)]


def test_to_retry_a_held_file_is_to_release_it(store: Store, an_account: MakeAccount) -> None:
    file = a_file(store, an_account(), "1" * 24, FileOutcome.HELD)
    asking.ask(store, [file], Action.RETRY)
    assert asked(store) == [("1", Action.RELEASE)]


@pytest.mark.parametrize(
    ("action", "outcome", "message"),
    [
        (Action.RELEASE, FileOutcome.FAILED, "it failed. `resumes imports retry"),
        (Action.RELEASE, FileOutcome.DONE, "it is done. Only files that failed or are held"),
        (Action.RETRY, FileOutcome.DONE, "it is done. Only files that failed or are held"),
        (Action.RETRY, FileOutcome.DUPLICATE, "it is a duplicate. Only files that failed"),
    ],
)
def test_a_file_that_the_action_does_not_fit_is_refused_and_so_are_those_with_it(
    store: Store, an_account: MakeAccount, action: Action, outcome: FileOutcome, message: str
) -> None:
    account = an_account()
    held = a_file(store, account, "1" * 24, FileOutcome.HELD)
    other = a_file(store, account, "2" * 24, outcome)
    with pytest.raises(Conflict, match=f"Cannot {action} {other.claim_id}: {message}"):
        asking.ask(store, [held, other], action)
    assert asked(store) == []


def test_a_file_that_comes_to_another_end_meanwhile_is_not_asked_for(
    store: Store, an_account: MakeAccount
) -> None:
    account = an_account()
    still = a_file(store, account, "1" * 24)
    seen_failed = a_file(store, account, "2" * 24)
    creating.create(store, account.id, [a_resume()], claim=a_claim("2" * 24))
    with pytest.raises(Conflict, match="another end just now"):
        asking.ask(store, [still, seen_failed], Action.RETRY)
    assert asked(store) == []


def test_all_that_failed_or_are_held_can_be_asked_for(
    store: Store, an_account: MakeAccount
) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    a_file(store, ana, "1" * 24)
    a_file(store, bo, "2" * 24, FileOutcome.HELD)
    a_file(store, bo, "3" * 24, reason="too_large")
    a_file(store, ana, "4" * 24, FileOutcome.DUPLICATE)
    creating.create(store, ana.id, [a_resume()], claim=a_claim("5" * 24))

    assert asking.ask_all(store, Action.RETRY) == 2
    assert asking.ask_all(store, Action.RELEASE) == 1

    assert sorted(asked(store)) == [
        ("1", Action.RETRY),
        ("2", Action.RELEASE),
        ("3", Action.RETRY),
    ]


def test_all_of_an_account_or_a_reason_alone(store: Store, an_account: MakeAccount) -> None:
    ana, bo = an_account("ana"), an_account("bo")
    a_file(store, ana, "1" * 24)
    a_file(store, bo, "2" * 24)
    a_file(store, bo, "3" * 24, reason="too_large")
    assert asking.ask_all(store, Action.RETRY, reason="too_large") == 1
    assert asked(store) == [("3", Action.RETRY)]
    assert asking.ask_all(store, Action.RETRY, account_id=ana.id) == 1
    assert sorted(asked(store)) == [("1", Action.RETRY), ("3", Action.RETRY)]
    assert asking.ask_all(store, Action.RETRY, account_id=ana.id, reason="too_large") == 0


def test_more_than_fit_into_one_transaction_are_asked_for(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "SLICE_REQUESTS", 2)
    account = an_account()
    for number in range(5):
        a_file(store, account, f"{number}" * 24)
    assert asking.ask_all(store, Action.RETRY) == 5
    assert [claim for claim, _ in asked(store)] == ["0", "1", "2", "3", "4"]
