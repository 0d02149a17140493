"""A hand at work, and what it finds where another was cut off (pitfalls I6)."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from importer import journals, reading, workspaces
from importer.claims import Claim
from importer.filing import State
from importer.hands import Hand, Remains
from importer.names import WORK
from importer.outcomes import Conclusion
from importer.steps import Observer, Step, unobserved
from importer.taking import Again, Taken
from importer.trying import Known, Trial
from importer.workspaces import LEASE, Workspace
from resumes.analyzer import DEFAULT_FORMAT
from tests.importer.builders import (
    AN_ID,
    DONE,
    FAILED,
    HELD,
    Killed,
    a_candidate,
    a_filing,
    a_report,
    a_work_claim,
    drop,
    filed,
    killing_at,
    names_below,
)
from tests.resumes.store.conftest import SteppingClock

CLAIM_ID = "000660c648eecba68fb746f2"

TakeOver = Callable[..., tuple[Hand, Remains]]


def a_hand(workspace: Workspace, root: Path, observe: Observer = unobserved) -> Hand:
    return Hand(workspace, root, Trial(DEFAULT_FORMAT, 5), SteppingClock(), observe)


@pytest.fixture
def take_over(root: Path, workspace: Workspace) -> Iterator[TakeOver]:
    """The importer at work is gone, and a hand takes over what it left; what that is."""
    hands: list[Hand] = []

    def take_over(observe: Observer = unobserved) -> tuple[Hand, Remains]:
        workspace.leave()
        for hand in hands:
            hand.leave()
        taken = workspaces.take_over(root / WORK / "i")
        assert taken is not None
        hands.append(a_hand(taken, root, observe))
        return hands[-1], hands[-1].take_over()

    yield take_over
    for hand in hands:
        hand.leave()


def claimed(workspace: Workspace, claim_id: str = CLAIM_ID, **fields: Any) -> Claim:
    """A claim with its file, which holds `{`, and with its journal, whose batch was read."""
    claim = a_work_claim(workspace.path / AN_ID, claim_id, **fields)
    Path(claim.path).write_bytes(b"{")
    journals.write(workspace.path, [claim]).end_reading()
    return claim


def put_away(hand: Hand, claim: Claim, conclusion: Conclusion) -> None:
    (answer,) = hand.file_away([a_filing(claim, conclusion)])
    assert answer.state is State.FILED


def journal_names(root: Path) -> list[str]:
    return [name for name in names_below(root / WORK) if name.endswith(journals.SUFFIX)]


# At work


def test_a_hand_takes_a_file_and_files_it_away_and_leaves_nothing(
    root: Path, workspace: Workspace
) -> None:
    drop(root, "ana/cv.json")
    hand = a_hand(workspace, root)
    assert hand.id == "i"
    one = a_candidate(root, workspace)
    (taken,) = hand.take([one])
    assert isinstance(taken, Taken)
    put_away(hand, one.claim, DONE)
    hand.leave()
    assert names_below(root) == ["_done/2027-01-15/ana/cv-11111111.json"]
    assert not (root / WORK / "i").exists()


def test_a_claimed_file_is_tried_again_and_gets_a_claim_of_its_own_when_it_changes(
    root: Path, workspace: Workspace
) -> None:
    drop(root, "ana/cv.json")
    hand = a_hand(workspace, root)
    one = a_candidate(root, workspace)
    hand.take([one])
    Path(one.claim.path).write_bytes(b"{")
    (answer,) = hand.file_away([a_filing(one.claim, DONE)])
    assert answer.state is State.CHANGED
    renewed = hand.renew(one.claim.id, "2" * 24)
    signature = reading.find_signature(renewed.path)
    assert signature is not None
    (taken,) = hand.judge([Again(renewed, Known(signature, 5))])
    assert isinstance(taken, Taken)
    assert taken.is_final
    put_away(hand, renewed, FAILED)


# A journal and its file


def test_i6_a_journal_and_its_file_are_gone_on_with(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    claim = claimed(workspace)
    steps: list[Step] = []
    hand, remains = take_over(steps.append)
    assert (remains.claims, remains.suspects) == ([claim], [])
    assert steps == [Step.TAKEN_OVER]
    (taken,) = hand.judge([Again(claim)])
    assert isinstance(taken, Taken)
    put_away(hand, claim, FAILED)
    hand.leave()
    assert not (root / WORK / "i").exists()


def test_claims_are_gone_on_with_in_the_order_of_arrival(
    workspace: Workspace, take_over: TakeOver
) -> None:
    made = [claimed(workspace, f"{7 * number % 20:024x}") for number in range(20)]
    assert take_over()[1].claims == sorted(made)


def test_a_claim_that_was_only_interrupted_is_no_suspect_however_often(
    workspace: Workspace, take_over: TakeOver
) -> None:
    claim = claimed(workspace)
    for _ in range(3):
        assert take_over()[1].claims == [claim]


def test_i10_each_time_that_a_file_ended_the_importer_is_counted(
    workspace: Workspace, take_over: TakeOver
) -> None:
    claim = claimed(workspace)
    for attempt in (1, 2):
        (entry,) = journals.load(workspace.path)[0].values()
        entry.journal.begin(claim)
        (claim,) = take_over()[1].claims
        assert claim.attempt == attempt


def test_i10_a_claim_is_deadly_from_when_it_is_about_to_be_unpacked(
    workspace: Workspace, take_over: TakeOver
) -> None:
    claim = claimed(workspace)
    hand, _ = take_over()
    hand.begin(claim._replace(items=7))
    assert take_over()[1].claims == [claim._replace(items=7, attempt=1)]


def test_s14_a_claim_belongs_to_the_account_whose_folder_it_lies_in(
    workspace: Workspace, take_over: TakeOver
) -> None:
    claim = claimed(workspace)
    other = workspace.path / ("b" * 16)
    other.mkdir()
    Path(claim.path).rename(other / claim.id)
    (found,) = take_over()[1].claims
    assert (found.account_id, found.account, found.name) == ("b" * 16, "", claim.id)
    assert found.path == str(other / claim.id)


# A journal alone


def test_a_journal_of_a_file_that_was_filed_is_dropped(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    Path(claimed(workspace).path).unlink()
    hand, remains = take_over()
    assert remains == Remains()
    hand.leave()
    assert names_below(root) == []


def test_a_journal_of_a_file_still_in_the_inbox_is_dropped_and_the_file_left(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    drop(root, "ana/cv.json")
    journals.write(workspace.path, [a_work_claim(workspace.path / AN_ID)]).end_reading()
    hand, remains = take_over()
    assert remains == Remains()
    hand.leave()
    assert names_below(root) == ["ana/cv.json"]


def test_a_report_that_speaks_of_an_end_that_never_came_goes_with_its_journal(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    places = ("_failed/invalid_json/cv.report.json", "_held/ana/cv.report.json")
    claim = claimed(workspace, reports=places)
    for place in places:
        drop(root, place, a_report(claim, FAILED))
    Path(claim.path).rename(root / "_held/ana/cv.json")
    take_over()
    assert names_below(root / "_failed") == []
    assert names_below(root / "_held") == ["ana/cv.json", "ana/cv.report.json"]


@pytest.mark.parametrize("conclusion", [DONE, FAILED, HELD])
@pytest.mark.parametrize(
    "step", [Step.REPORT_PLANNED, Step.REPORT_WRITTEN, Step.MOVED, Step.REPORTS_TIDIED]
)
def test_i6_filing_that_was_cut_off_anywhere_comes_to_the_same_end(
    root: Path, workspace: Workspace, take_over: TakeOver, conclusion: Conclusion, step: Step
) -> None:
    drop(root, "ana/cv.json")
    hand = a_hand(workspace, root, killing_at(step))
    one = a_candidate(root, workspace)
    hand.take([one])
    try:
        hand.file_away([a_filing(one.claim, conclusion)])
    except Killed:
        hand, remains = take_over()
        for claim in remains.claims:
            put_away(hand, claim, conclusion)
    hand.leave()
    (file,) = [path for folder in ("_done", "_failed", "_held") for path in filed(root, folder)]
    report = [str(file.relative_to(root))[:-5] + ".report.json"] if conclusion != DONE else []
    assert names_below(root) == [str(file.relative_to(root)), *report]


# Files that may have ended the importer


def unread(workspace: Workspace, *claims: Claim) -> journals.Journal:
    """The journal of a batch during whose reading the importer ended."""
    return journals.write(workspace.path, list(claims))


def test_i10_files_of_a_batch_that_was_being_read_are_suspects_if_they_are_still_there(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    name = os.fsdecode(b"ana/bad\xff\n.json")
    drop(root, name)
    there = a_candidate(root, workspace, name, "1" * 24).claim
    gone = a_candidate(root, workspace, "ana/gone.json", "2" * 24).claim
    unread(workspace, there, gone)
    hand, remains = take_over()
    assert (remains.claims, remains.suspects) == ([], [there])
    hand.leave()
    assert not (root / WORK / "i").exists()


def test_i10_files_of_such_a_batch_that_were_claimed_before_are_claims(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    for name in ("1", "2"):
        drop(root, f"ana/{name}.json")
    some = [a_candidate(root, workspace, f"ana/{n}.json", n * 24) for n in ("1", "2")]
    with pytest.raises(Killed):
        a_hand(workspace, root, killing_at(Step.CLAIMED)).take(some)
    _, remains = take_over()
    assert remains.claims == [some[0].claim]
    assert remains.suspects == [some[1].claim]


def test_i10_a_suspect_that_was_read_alone_is_counted(
    root: Path, workspace: Workspace, take_over: TakeOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(descriptor: int, max_bytes: int) -> None:
        raise Killed

    drop(root, "ana/cv.json")
    one = a_candidate(root, workspace, attempt=1, is_alone=True)
    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_file", kill)
        with pytest.raises(Killed):
            a_hand(workspace, root).take([one])
    assert take_over()[1].suspects == [one.claim._replace(attempt=2)]


def test_i10_suspects_are_kept_for_the_next_importer(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    drop(root, "ana/cv.json")
    hand = a_hand(workspace, root)
    hand.keep_suspects([])
    assert journal_names(root) == []
    suspect = a_candidate(root, workspace, attempt=1).claim
    elsewhere = suspect._replace(folder=f"{root}/{WORK}/other/{AN_ID}")
    hand.keep_suspects([elsewhere])
    assert take_over()[1].suspects == [suspect]


def test_i10_a_suspect_that_was_tried_alone_is_none_any_more(
    root: Path, workspace: Workspace
) -> None:
    hand = a_hand(workspace, root)
    suspects = [a_candidate(root, workspace, f"ana/{n}.json", n * 24).claim for n in ("1", "2")]
    for suspect in suspects:
        drop(root, suspect.name)
    hand.keep_suspects(suspects)
    hand.keep_suspects([suspects[0]._replace(id="3" * 24, attempt=1)])
    hand.end_suspect(suspects[0].name_hex)
    hand.end_suspect(suspects[0].name_hex)
    assert len(journal_names(root)) == 1
    hand.end_suspect(suspects[1].name_hex)
    assert journal_names(root) == []


def test_i10_a_suspect_of_two_journals_is_one_with_the_most_attempts(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    drop(root, "ana/cv.json")
    first = a_candidate(root, workspace, claim_id="1" * 24, attempt=1).claim
    a_hand(workspace, root).keep_suspects([first])
    then = a_candidate(root, workspace, claim_id="2" * 24, attempt=1).claim
    unread(workspace, then).begin(then)
    assert [suspect.attempt for suspect in take_over()[1].suspects] == [2]


# A file alone


def test_i6_a_file_alone_is_never_lost(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    path = drop(root, f"{WORK}/i/{AN_ID}/{CLAIM_ID}", b"{")
    hand, remains = take_over()
    (claim,) = remains.claims
    assert (claim.path, claim.account, claim.account_id) == (str(path), "", AN_ID)
    assert (claim.name, claim.name_hex) == (CLAIM_ID, "")
    assert claim.claimed_at.startswith("2026-")
    assert take_over()[1].claims == [claim]
    assert len(journal_names(root)) == 1
    hand, _ = take_over()
    put_away(hand, claim, FAILED)
    assert [path.read_bytes() for path in filed(root, "_failed")] == [b"{"]


@pytest.mark.parametrize("journal", [b"", b'{"id": "0006', b"[]", b"\xff", b'{"read":true}'])
def test_i6_without_a_journal_that_can_be_read_the_account_is_still_known(
    root: Path, workspace: Workspace, take_over: TakeOver, journal: bytes
) -> None:
    drop(root, f"{WORK}/i/{AN_ID}/{CLAIM_ID}", b"{")
    (workspace.path / "x.journal").write_bytes(journal)
    (claim,) = take_over()[1].claims
    assert (claim.account_id, claim.account, claim.name) == (AN_ID, "", CLAIM_ID)


def test_a_journal_that_says_nothing_goes_with_the_workspace(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    claim = a_work_claim(workspace.path / AN_ID)
    path = Path(journals.write(workspace.path, [claim]).path)
    path.write_bytes(path.read_bytes()[:50])
    hand, remains = take_over()
    assert remains == Remains()
    hand.leave()
    assert not (root / WORK / "i").exists()


# Anything else


def test_what_is_none_of_ours_stays(root: Path, workspace: Workspace, take_over: TakeOver) -> None:
    strays = [f"{AN_ID}/notes.txt", f"{AN_ID}/notes.tmp", f"{AN_ID}/{'g' * 24}", "notes.txt"]
    for name in strays:
        drop(workspace.path, name)
    assert take_over()[1] == Remains()
    assert sorted([*strays, LEASE]) == names_below(workspace.path)


def test_a_report_that_was_being_written_goes(
    root: Path, workspace: Workspace, take_over: TakeOver
) -> None:
    claim = claimed(workspace)
    drop(workspace.path, f"{AN_ID}/{claim.id}.tmp", b"half")
    drop(workspace.path, f"{AN_ID}/{'2' * 24}.tmp", b"half")
    take_over()
    assert [name for name in names_below(workspace.path) if name.endswith(".tmp")] == []


@pytest.mark.parametrize("reports", [["/"], [""], [".."], ["\0"], ["/etc/passwd"], ["x" * 5_000]])
def test_places_of_reports_that_somebody_wrote_into_a_journal_are_not_in_the_way(
    root: Path, workspace: Workspace, take_over: TakeOver, reports: list[str]
) -> None:
    Path(claimed(workspace, reports=tuple(reports)).path).unlink()
    assert take_over()[1] == Remains()
    assert journal_names(root) == []
