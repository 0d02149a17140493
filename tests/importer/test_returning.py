from collections.abc import Callable
from pathlib import Path

import pytest

from importer.returning import QUEUED, Returns
from resumes.store import Store, accounts, importers, ledger, plans, requests
from resumes.store.accounts import AccountInfo
from resumes.store.asking import ask
from resumes.store.ledger import FileOutcome
from resumes.store.plans import PlanChange
from resumes.store.requests import Action
from tests.importer.builders import MakeImporter, drop, filed
from tests.resumes.builders import a_document
from tests.resumes.store.builders import an_importer as a_row

MakeAccount = Callable[..., AccountInfo]


@pytest.fixture
def account(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> AccountInfo:
    """An account that holds three files and has one resume too many."""
    plans.set_plan_limits(store, PlanChange("none", max_resumes=0))
    account = an_account(plan="none")
    importer = an_importer(settle_s=0)
    for number in range(3):
        drop(root, f"ana/{number}.json", a_document(str(number)))
        importer.round()
    importer.close()
    assert len(filed(root, "_held")) == 3
    return account


def by_id(store: Store) -> dict[str, AccountInfo]:
    return {one.id: one for one in accounts.list_accounts(store)}


def names(returns: Returns) -> list[str]:
    return [one.claim.name for one in returns.next_batch("h" * 24, at_most=100)]


def test_while_there_is_no_place_nothing_returns_and_new_files_queue_behind(
    store: Store, root: Path, account: AccountInfo
) -> None:
    returns = Returns(store, root)
    returns.look()
    queues = returns.release(by_id(store))
    assert not returns.are_due
    assert returns.holds_files
    (first, *_) = sorted(path.name[:24] for path in filed(root, "_held"))
    assert queues[account.id].first_claim_id == first
    assert "allows 0 resumes" in queues[account.id].message


def test_as_many_return_as_there_are_places_in_the_order_they_came(
    store: Store, root: Path, account: AccountInfo
) -> None:
    plans.set_plan_limits(store, PlanChange("none", max_resumes=2))
    returns = Returns(store, root)
    returns.look()
    queues = returns.release(by_id(store))
    assert names(returns) == ["ana/0.json", "ana/1.json"]
    last = max(path.name[:24] for path in filed(root, "_held"))
    assert queues[account.id].first_claim_id == last
    assert returns.last_ids() == [last]


def test_what_is_under_way_does_not_return_twice(
    store: Store, root: Path, account: AccountInfo
) -> None:
    plans.set_plan_limits(store, PlanChange("none", max_resumes=2))
    returns = Returns(store, root)
    returns.look()
    returns.release(by_id(store))
    batch = returns.next_batch("h" * 24, at_most=100)
    assert batch[0].claim.folder == f"{root}/.work/{'h' * 24}/{account.id}"
    returns.release(by_id(store))
    assert not returns.are_due
    for one in batch:
        returns.end(one.claim.id)
    returns.release(by_id(store))
    assert returns.are_due


def test_files_of_an_account_that_is_gone_all_return(
    store: Store, root: Path, account: AccountInfo
) -> None:
    accounts.delete_account(store, "ana")
    returns = Returns(store, root)
    returns.look()
    assert returns.release(by_id(store)) == {}
    assert len(names(returns)) == 3


def test_with_an_unlimited_plan_those_left_for_later_are_told_why(
    store: Store, root: Path, account: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importer.holding.RELEASE_FILES", 1)
    plans.set_plan_limits(store, PlanChange("none", max_resumes=None))
    returns = Returns(store, root)
    returns.look()
    assert returns.release(by_id(store))[account.id].message == QUEUED
    assert len(names(returns)) == 1


def test_a_file_that_was_asked_for_returns_and_the_request_is_gone(
    store: Store, root: Path, account: AccountInfo
) -> None:
    file = ledger.list_files(store, outcome=FileOutcome.HELD)[0]
    ask(store, [file], Action.RELEASE)
    returns = Returns(store, root)
    returns.look()
    returns.take_requests()
    (one,) = returns.next_batch("h" * 24, at_most=100)
    assert one.claim.name == file.name
    returns.answer()
    assert len(requests.list_requests(store)) == 1  # for the next importer, should this one end
    returns.end(one.claim.id)
    returns.answer()
    assert requests.list_requests(store) == []


def test_a_request_for_a_file_that_is_gone_is_answered(
    store: Store, root: Path, account: AccountInfo
) -> None:
    file = ledger.list_files(store, outcome=FileOutcome.HELD)[0]
    ask(store, [file], Action.RELEASE)
    for path in filed(root, "_held"):
        path.unlink()
    returns = Returns(store, root)
    returns.look()
    returns.take_requests()
    assert not returns.are_due
    assert requests.list_requests(store) == []
    assert "no longer in" in (ledger.get_file(store, file.claim_id).message or "")


def move(root: Path) -> Path:
    """The whole folder has another path from now on."""
    return root.rename(root.with_name("moved"))


def test_a_held_file_is_released_where_its_folder_was_moved_to(
    store: Store, root: Path, account: AccountInfo
) -> None:
    file = ledger.list_files(store, outcome=FileOutcome.HELD)[0]
    ask(store, [file], Action.RELEASE)
    returns = Returns(store, move(root))
    returns.look()

    returns.take_requests()

    (one,) = returns.next_batch("h" * 24, at_most=100)
    assert one.claim.id == file.claim_id
    returns.end(one.claim.id)
    returns.answer()
    assert requests.list_requests(store) == []


def test_a_failed_file_is_retried_where_its_folder_was_moved_to(
    store: Store, root: Path, an_account: MakeAccount, an_importer: MakeImporter
) -> None:
    an_account()
    importer = an_importer(settle_s=0)
    drop(root, "ana/a.json", b"{}")
    importer.round()
    importer.close()
    [failed] = ledger.list_files(store, outcome=FileOutcome.FAILED)
    moved = move(root)
    [path] = [one for one in filed(moved, "_failed") if not one.name.endswith(".report.json")]
    path.write_bytes(a_document("Ada"))
    ask(store, [failed], Action.RETRY)

    importer = an_importer(settle_s=0, at=moved)
    importer.round()
    importer.close()

    again = ledger.get_file(store, failed.claim_id)
    assert (again.outcome, again.root) == (FileOutcome.DONE, str(moved))
    assert requests.list_requests(store) == []


def test_of_another_folder_s_files_those_that_are_not_here_are_left_to_their_importer(
    store: Store, root: Path, account: AccountInfo
) -> None:
    file = ledger.list_files(store, outcome=FileOutcome.HELD)[0]
    ask(store, [file], Action.RELEASE)
    other = root.with_name("other")
    other.mkdir()
    returns = Returns(store, other)
    returns.look()

    returns.take_requests()
    returns.take_requests()

    assert not returns.are_due
    assert len(requests.list_requests(store)) == 1
    assert ledger.get_file(store, file.claim_id) == file


def test_a_file_whose_folder_somebody_watches_is_left_to_that_one(
    store: Store, root: Path, account: AccountInfo
) -> None:
    ask(store, [ledger.list_files(store, outcome=FileOutcome.HELD)[0]], Action.RELEASE)
    importers.announce(store, a_row(root=str(root)))
    returns = Returns(store, move(root))
    returns.look()

    returns.take_requests()

    assert not returns.are_due
