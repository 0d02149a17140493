from collections.abc import Callable
from pathlib import Path

import pytest

from importer.claims import Claim
from importer.committing import Committer, Queue, Work
from importer.reading import Signature
from importer.steps import unobserved
from importer.taking import Taken
from resumes import analyzer
from resumes.errors import StoreUnavailable
from resumes.store import Store, ledger, listing
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from tests.importer.builders import A_REFUSAL
from tests.resumes.builders import a_document
from tests.resumes.store.builders import Busy

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]
HAND = "h" * 24


@pytest.fixture
def committer(store: Store, root: Path) -> Committer:
    return Committer(store, root=root, observe=unobserved)


def a_work(account: AccountInfo, number: int, *, body: bytes = b"", refused: bool = False) -> Work:
    """A claimed file with a resume of its own, or one that was refused."""
    body = body or a_document(str(number))
    claim = Claim(
        f"{number:024x}", f"/inbox/.work/{HAND}/{account.id}", account.name, f"ana/{number}.json"
    )
    verdict = A_REFUSAL if refused else analyzer.parse(body)
    signature = Signature(number, len(body), 0)
    return Work(HAND, claim, Taken(claim.id, signature, verdict, body[:32], is_final=True))


def outcomes(store: Store, committer: Committer) -> list[str]:
    return [ended.conclusion.outcome.value for ended in committer.commit()]


def test_a_batch_is_in_the_store_and_the_ledger_in_the_order_of_arrival(
    store: Store, committer: Committer, an_account: MakeAccount
) -> None:
    account = an_account()
    for number in range(3):
        committer.add(a_work(account, number))
    committer.add(a_work(account, 3, refused=True))
    assert committer.hand_ids == {HAND}
    assert outcomes(store, committer) == ["done", "done", "done", "failed"]
    assert [entry.name for entry in listing.list_page(store, account.id).entries] == list("012")
    row = ledger.get_file(store, f"{3:024x}")
    assert (row.outcome, row.reason) == (FileOutcome.FAILED, "invalid_json")
    assert len(committer) == 0
    assert committer.commit() == []


def test_a_batch_is_bounded_by_files_and_by_bytes(
    store: Store,
    committer: Committer,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
) -> None:
    account = an_account()
    for number in range(5):
        committer.add(a_work(account, number))
    monkeypatch.setattr("importer.committing.BATCH_FILES", 2)
    assert len(committer.commit()) == 2
    monkeypatch.setattr("importer.committing.BATCH_BYTES", 1)
    assert len(committer.commit()) == 1
    assert len(committer) == 2


def test_what_the_store_refuses_for_now_goes_into_the_next_batch(
    store: Store, committer: Committer, busy: Busy, an_account: MakeAccount
) -> None:
    committer.add(a_work(an_account(), 1))
    with busy.held(), pytest.raises(StoreUnavailable):
        committer.commit()
    assert len(committer) == 1
    assert outcomes(store, committer) == ["done"]


def test_a_file_that_was_committed_before_gets_its_first_end_again(
    store: Store, committer: Committer, an_account: MakeAccount
) -> None:
    account = an_account()
    committer.add(a_work(account, 1))
    (first,) = committer.commit()
    committer.add(a_work(account, 1))
    (again,) = committer.commit()
    assert again.conclusion.resume_id == first.conclusion.resume_id
    assert len(listing.list_page(store, account.id).entries) == 1


def test_a_file_that_came_later_queues_behind_held_ones_unless_it_is_stored_already(
    store: Store, committer: Committer, an_account: MakeAccount
) -> None:
    account = an_account()
    committer.add(a_work(account, 1))
    committer.commit()
    committer.queues = {account.id: Queue(f"{5:024x}", "Full")}
    committer.add(a_work(account, 4))
    committer.add(a_work(account, 6))
    committer.add(a_work(account, 7, body=a_document("1")))
    ends = committer.commit()
    assert [end.conclusion.outcome.value for end in ends] == ["done", "held", "duplicate"]
    assert ends[1].conclusion.refusal is not None
    assert ends[1].conclusion.refusal.message == "Full"


def test_the_first_file_that_finds_no_place_opens_the_queue(
    store: Store, committer: Committer, an_account: MakeAccount
) -> None:
    account = an_account(plan="free")
    for number in range(7):
        committer.add(a_work(account, number))
    assert outcomes(store, committer) == ["done"] * 5 + ["held"] * 2
    assert committer.queues[account.id].first_claim_id == f"{5:024x}"
    later = Claim(f"{9:024x}", f"/w/{account.id}", "ana", "x")
    assert committer.find_queue(later) is not None
    assert committer.find_queue(later._replace(id=f"{4:024x}")) is None


def test_files_of_a_workspace_that_is_gone_are_not_committed(
    committer: Committer, an_account: MakeAccount
) -> None:
    committer.add(a_work(an_account(), 1))
    committer.drop(HAND)
    assert committer.commit() == []


def test_one_file_that_cannot_be_stored_does_not_fail_its_batch(
    store: Store, committer: Committer, an_account: MakeAccount
) -> None:
    account = an_account()
    strange = a_work(account, 2)
    bad = analyzer.parse(a_document("2"))._replace(title="\ud800")
    committer.add(a_work(account, 1))
    committer.add(strange._replace(taken=strange.taken._replace(verdict=bad)))
    committer.add(a_work(account, 3))
    assert outcomes(store, committer) == ["done", "failed", "done"]
    assert ledger.get_file(store, f"{2:024x}").reason == "internal_error"
