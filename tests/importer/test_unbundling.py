import json
from collections.abc import Callable
from pathlib import Path

import pytest

from importer.claims import Claim
from importer.committing import Committer, Ended, Work
from importer.hands import Hand
from importer.options import Options
from importer.parts import Limits
from importer.reading import find_signature
from importer.steps import unobserved
from importer.taking import ATTEMPTS, Candidate, Taken
from importer.trying import Trial
from importer.unbundling import Unbundler
from importer.workspaces import Workspace
from resumes.analyzer import DEFAULT_FORMAT
from resumes.errors import StoreUnavailable
from resumes.reasons import Reason
from resumes.store import Store, accounts, ledger
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from tests.importer.builders import drop, resume_names
from tests.resumes.builders import a_document
from tests.resumes.store.builders import Busy

MakeAccount = Callable[..., AccountInfo]
MakeWork = Callable[..., Work]


@pytest.fixture
def hand(store: Store, root: Path, workspace: Workspace) -> Hand:
    return Hand(workspace, root, Trial(DEFAULT_FORMAT, 0), store.clock, unobserved)


@pytest.fixture
def unbundler(store: Store, root: Path, monkeypatch: pytest.MonkeyPatch) -> Unbundler:
    monkeypatch.setattr("importer.bundles.SLICE_ITEMS", 2)
    return Unbundler(store, Committer(store, root=root, observe=unobserved), Options())


@pytest.fixture
def a_work(root: Path, workspace: Workspace, hand: Hand) -> MakeWork:
    """A claimed file of several resumes: `a_work(account, lines)`."""

    def make(account: AccountInfo, lines: list[bytes], *, attempt: int = 0) -> Work:
        path = drop(root, "ana/many.ndjson", b"\n".join(lines))
        folder = workspace.account_folder(account.id)
        claim = Claim("1" * 24, folder, "ana", "ana/many.ndjson", path.name.encode().hex())
        (taken,) = hand.take([Candidate(claim, str(path))])
        assert isinstance(taken, Taken)
        return Work(hand.id, claim._replace(attempt=attempt), taken)

    return make


def people(count: int) -> list[bytes]:
    return [a_document(str(number)) for number in range(count)]


def to_the_end(unbundler: Unbundler, hand: Hand) -> tuple[int, Ended]:
    """How many turns it took, and the end."""
    for turn in range(1, 100):
        outcome = unbundler.go_on(hand)
        if isinstance(outcome, Ended):
            return turn, outcome
    raise AssertionError("it came to no end")


def test_a_file_is_imported_slice_by_slice_and_its_end_says_what_became_of_each(
    store: Store, unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    account = an_account()
    unbundler.add(a_work(account, [*people(4), b"no JSON"]))
    turns, ended = to_the_end(unbundler, hand)
    assert turns == 4
    assert resume_names(store, account.id) == list("0123")
    assert ended.conclusion.outcome is FileOutcome.FAILED
    assert [item.outcome.value for item in ended.conclusion.items] == ["done"] * 4 + ["failed"]
    row = ledger.get_file(store, "1" * 24)
    assert row.items is not None
    assert (row.items.done, row.items.failed) == (4, 1)
    assert not unbundler.works


def test_between_two_slices_others_get_their_turn_and_the_ledger_has_what_is_done(
    store: Store, unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    account = an_account()
    unbundler.add(a_work(account, people(4)))
    assert unbundler.go_on(hand) is None
    assert resume_names(store, account.id) == ["0", "1"]
    assert len(ledger.find_items(store, account.id, "1" * 24)) == 2


def test_begun_again_it_imports_only_what_is_missing(
    store: Store,
    root: Path,
    unbundler: Unbundler,
    hand: Hand,
    an_account: MakeAccount,
    a_work: MakeWork,
) -> None:
    account = an_account()
    work = a_work(account, people(4))
    unbundler.add(work)
    unbundler.go_on(hand)
    unbundler.drop()
    unbundler.add(work)
    _, ended = to_the_end(unbundler, hand)
    assert ended.conclusion.outcome is FileOutcome.DONE
    assert resume_names(store, account.id) == list("0123")


def test_when_the_store_is_out_of_reach_it_goes_on_there_later(
    store: Store,
    busy: Busy,
    unbundler: Unbundler,
    hand: Hand,
    an_account: MakeAccount,
    a_work: MakeWork,
) -> None:
    account = an_account()
    unbundler.add(a_work(account, people(3)))
    with busy.held(), pytest.raises(StoreUnavailable):
        unbundler.go_on(hand)
    to_the_end(unbundler, hand)
    assert resume_names(store, account.id) == list("012")


def test_what_does_not_fit_the_plan_is_held_and_the_rest_is_done(
    store: Store, unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    account = an_account(plan="free")
    unbundler.add(a_work(account, people(7)))
    _, ended = to_the_end(unbundler, hand)
    assert ended.conclusion.outcome is FileOutcome.HELD
    assert len(resume_names(store, account.id)) == 5


def test_a_file_whose_account_is_gone_fails(
    store: Store, unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    unbundler.add(a_work(an_account(), people(3)))
    accounts.delete_account(store, "ana")
    _, ended = to_the_end(unbundler, hand)
    assert ended.conclusion.refusal is not None
    assert ended.conclusion.refusal.reason is Reason.ACCOUNT_DELETED


def test_a_file_that_changed_settles_again(
    unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    work = a_work(an_account(), people(2))
    Path(work.claim.path).write_bytes(a_document("rewritten"))
    unbundler.add(work)
    assert unbundler.go_on(hand) == work
    assert not unbundler.works


def test_a_file_that_is_gone_is_left(
    unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    work = a_work(an_account(), people(2))
    Path(work.claim.path).unlink()
    unbundler.add(work)
    assert unbundler.go_on(hand) is None
    assert not unbundler.works


def test_i10_a_file_that_got_no_further_twice_is_not_read_again(
    unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    unbundler.add(a_work(an_account(), people(2), attempt=ATTEMPTS - 1))
    _, ended = to_the_end(unbundler, hand)
    assert ended.conclusion.refusal is not None
    assert ended.conclusion.refusal.reason is Reason.CRASHED


def test_i10_an_attempt_that_got_further_does_not_count(
    store: Store, unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    account = an_account()
    work = a_work(account, people(4), attempt=ATTEMPTS - 1)
    unbundler.add(work._replace(claim=work.claim._replace(attempt=0)))
    unbundler.go_on(hand)
    unbundler.drop()
    unbundler.add(work)
    _, ended = to_the_end(unbundler, hand)
    assert ended.conclusion.outcome is FileOutcome.DONE


def test_one_value_after_all_is_judged_as_one(
    store: Store, root: Path, workspace: Workspace, hand: Hand, an_account: MakeAccount
) -> None:
    account = an_account()
    small = Options(max_file_bytes=DEFAULT_FORMAT.max_bytes * 2)
    unbundler = Unbundler(store, Committer(store, root=root, observe=unobserved), small)
    body = json.dumps({"header": {}, "sections": {}, "x": "y" * DEFAULT_FORMAT.max_bytes}).encode()
    path = drop(root, "ana/large.json", body)
    claim = Claim("1" * 24, workspace.account_folder(account.id), "ana", "ana/large.json")
    (taken,) = hand.take([Candidate(claim, str(path))])
    assert isinstance(taken, Taken)
    assert find_signature(claim.path) == taken.signature
    assert small.limits == Limits(DEFAULT_FORMAT.max_bytes, DEFAULT_FORMAT.max_bytes * 2)
    unbundler.add(Work(hand.id, claim, taken))
    _, ended = to_the_end(unbundler, hand)
    assert ended.conclusion.refusal is not None
    assert ended.conclusion.refusal.reason is Reason.TOO_LARGE


def test_those_who_queue_behind_a_file_of_several_are_told_why_and_not_of_its_items(
    unbundler: Unbundler, hand: Hand, an_account: MakeAccount, a_work: MakeWork
) -> None:
    account = an_account(plan="free")
    unbundler.add(a_work(account, people(7)))
    to_the_end(unbundler, hand)
    queue = unbundler._committer.queues[account.id]
    assert queue.message == "Maximum resume limit reached. Your plan allows 5 resumes"
