import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from importer import journals, judging, leases, reading
from importer.claims import Claim
from importer.outcomes import Refusal
from importer.steps import Step
from importer.taking import Again, Candidate, Left, Taken, Taker, Why, is_last_attempt
from importer.trying import Known, Trial
from importer.workspaces import LEASE, Workspace
from resumes.analyzer import DEFAULT_FORMAT, Resume
from resumes.reasons import Reason
from tests.importer.builders import (
    AN_ID,
    FAILED,
    Killed,
    a_candidate,
    a_full_disk,
    a_report,
    a_work_claim,
    drop,
    killing_at,
    names_below,
)
from tests.resumes.builders import a_document

SETTLE_S = 5.0
TRIAL = Trial(DEFAULT_FORMAT, SETTLE_S)


@pytest.fixture
def steps() -> list[Step]:
    return []


@pytest.fixture
def taker(workspace: Workspace, steps: list[Step]) -> Taker:
    return Taker(workspace, TRIAL, steps.append)


@pytest.fixture
def candidate(root: Path, workspace: Workspace) -> Candidate:
    """A whole resume in the inbox of ana."""
    drop(root, "ana/cv.json")
    return a_candidate(root, workspace)


def quiet(one: Candidate, for_s: float = SETTLE_S) -> Candidate:
    """The file after it was quiet for so long."""
    signature = reading.find_signature(one.path)
    assert signature is not None
    return one._replace(known=Known(signature, for_s))


def the_taken(answers: list[Taken | Left]) -> Taken:
    (answer,) = answers
    assert isinstance(answer, Taken)
    return answer


def the_left(answers: list[Taken | Left]) -> Left:
    (answer,) = answers
    assert isinstance(answer, Left)
    return answer


def entries(workspace: Workspace) -> dict[str, journals.Entry]:
    """What the journals say, by claim."""
    return journals.load(workspace.path)[0]


def journal_names(workspace: Workspace) -> list[str]:
    return [name for name in names_below(workspace.path) if name.endswith(journals.SUFFIX)]


# Taking


def test_a_whole_resume_is_ours_at_once(
    root: Path, workspace: Workspace, taker: Taker, candidate: Candidate
) -> None:
    signature = reading.find_signature(candidate.path)
    taken = the_taken(taker.take([candidate]))
    assert isinstance(taken.verdict, Resume)
    assert (taken.claim_id, taken.signature, taken.is_final) == ("1" * 24, signature, True)
    assert taken.digest == reading.digest(Path(candidate.claim.path).read_bytes())
    assert names_below(root / "ana") == []
    found, unread = journals.load(workspace.path)
    assert (found[candidate.claim.id].claim, unread) == (candidate.claim, [])
    mine = taker.find(candidate.claim.id)
    assert mine is not None
    assert (mine.claim, mine.signature) == (candidate.claim, signature)


def test_i6_the_journal_is_written_before_the_file_is_taken(
    root: Path, workspace: Workspace, candidate: Candidate
) -> None:
    seen: list[tuple[Step, list[Claim], bool]] = []

    def observe(step: Step) -> None:
        known = [entry.claim for entry in entries(workspace).values()]
        seen.append((step, known, os.path.lexists(candidate.path)))

    Taker(workspace, TRIAL, observe).take([candidate])
    assert seen == [
        (Step.JOURNAL_WRITTEN, [candidate.claim], True),
        (Step.CLAIMED, [candidate.claim], False),
        (Step.READ, [candidate.claim], False),
    ]
    assert bytes.fromhex(candidate.claim.name_hex) == b"ana/cv.json"


def test_there_is_one_answer_for_each_file_in_order(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    drop(root, "ana/good.json")
    drop(root, "ana/half.json", a_document()[:-1])
    drop(root, "ana/back.json", a_report(a_work_claim(root), FAILED))
    names = ["gone", "half", "good", "back"]
    answers = taker.take(
        [
            a_candidate(root, workspace, f"ana/{name}.json", str(number) * 24)
            for number, name in enumerate(names)
        ]
    )
    told = [answer.why if isinstance(answer, Left) else "taken" for answer in answers]
    assert told == [Why.GONE, Why.SETTLING, "taken", Why.REPORT]
    assert names_below(root / "ana") == ["back.json", "half.json"]
    assert set(entries(workspace)) == {"0" * 24, "1" * 24, "2" * 24, "3" * 24}
    assert [taker.find(str(number) * 24) is not None for number in range(4)] == [
        False,
        False,
        True,
        False,
    ]
    taker.settle("2" * 24)
    assert journal_names(workspace) == []


def test_what_is_left_is_told_with_its_signature(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    path = drop(root, "ana/half.json", b"{")
    left = the_left(taker.take([a_candidate(root, workspace, "ana/half.json")]))
    assert left == Left("1" * 24, str(path), Why.SETTLING, reading.find_signature(path))
    assert journal_names(workspace) == []


def test_i3_what_is_no_resume_is_ours_after_it_was_quiet(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    drop(root, "ana/half.json", b"{")
    one = a_candidate(root, workspace, "ana/half.json")
    assert the_left(taker.take([quiet(one, SETTLE_S - 0.1)])).why is Why.SETTLING
    taken = the_taken(taker.take([quiet(one)]))
    assert isinstance(taken.verdict, Refusal)
    assert (taken.digest, taken.is_final) == (None, True)


def test_of_two_who_take_a_file_one_finds_nothing(
    root: Path, workspace: Workspace, taker: Taker, candidate: Candidate
) -> None:
    the_taken(taker.take([candidate]))
    other = candidate._replace(claim=candidate.claim._replace(id="2" * 24))
    assert the_left(taker.take([other])).why is Why.GONE
    assert len(journal_names(workspace)) == 1


def test_any_bytes_but_nul_and_slash_can_be_taken(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    name = "ana/" + os.fsdecode(b"-\xff\n" + b"x" * 240 + b".json")
    drop(root, name)
    the_taken(taker.take([a_candidate(root, workspace, name)]))


def test_where_no_file_can_be_claimed_nothing_has_changed(
    root: Path, workspace: Workspace, taker: Taker, candidate: Candidate
) -> None:
    shutil.rmtree(workspace.path)
    with pytest.raises(FileNotFoundError):
        taker.take([candidate])
    assert names_below(root / "ana") == ["cv.json"]
    assert not workspace.path.exists()


def test_i11_where_the_disk_is_full_nothing_has_changed(
    root: Path, workspace: Workspace, taker: Taker, candidate: Candidate
) -> None:
    with a_full_disk(), pytest.raises(OSError, match="too large"):
        taker.take([candidate])
    assert names_below(root / "ana") == ["cv.json"]
    assert names_below(workspace.path) == [LEASE]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (errno.EACCES, Why.STUCK),
        (errno.EXDEV, Why.STUCK),
        (errno.EROFS, Why.STUCK),
        (errno.ENOSPC, Why.TROUBLE),
        (errno.EIO, Why.TROUBLE),
    ],
)
def test_a_file_that_cannot_be_renamed_stays_and_says_whether_it_is_the_only_one(
    root: Path,
    workspace: Workspace,
    taker: Taker,
    candidate: Candidate,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    why: Why,
) -> None:
    def refuse(source: str, target: str, **_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "rename", refuse)
    left = the_left(taker.take([candidate]))
    assert (left.why, left.error.errno if left.error else None) == (why, code)
    assert left.signature == reading.find_signature(candidate.path)
    assert journal_names(workspace) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_in_a_folder_that_may_not_be_changed_is_stuck(
    root: Path, taker: Taker, candidate: Candidate
) -> None:
    (root / "ana").chmod(0o555)
    assert the_left(taker.take([candidate])).why is Why.STUCK
    (root / "ana").chmod(0o755)


def test_a_folder_of_claims_that_somebody_removed_is_made_again(
    root: Path, taker: Taker, candidate: Candidate
) -> None:
    the_taken(taker.take([candidate]))
    shutil.rmtree(candidate.claim.folder)
    drop(root, "ana/cv.json")
    assert the_left(taker.take([candidate])).why is Why.TROUBLE
    assert the_taken(taker.take([candidate])).is_final


# Writers and changes


def test_i4_a_file_that_is_still_open_for_writing_settles(
    root: Path, taker: Taker, candidate: Candidate
) -> None:
    with Path(candidate.path).open("ab"):
        taken = the_taken(taker.take([candidate]))
    assert not taken.is_final
    assert names_below(root / "ana") == []


@pytest.mark.parametrize("change", ["append", "replace", "remove"])
def test_i5_a_file_that_changed_between_reading_and_claiming_settles(
    workspace: Workspace, candidate: Candidate, change: str
) -> None:
    path = Path(candidate.claim.path)

    def observe(step: Step) -> None:
        if step is Step.CLAIMED:
            if change == "append":
                path.write_bytes(path.read_bytes() + b" ")
                return
            path.rename(path.with_name("elsewhere"))
            if change == "replace":
                path.write_bytes(a_document())

    taker = Taker(workspace, TRIAL, observe)
    assert not the_taken(taker.take([candidate])).is_final


# Files that cannot be opened


def test_what_cannot_be_opened_is_ours_after_twelve_settling_times(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    (root / "ana").mkdir()
    (root / "ana/cv.json").symlink_to("/etc/passwd")
    one = a_candidate(root, workspace)
    for some in (one, quiet(one, 11.9 * SETTLE_S)):
        assert the_left(taker.take([some])).why is Why.SETTLING
    taken = the_taken(taker.take([quiet(one, 12 * SETTLE_S)]))
    assert taken.verdict == Refusal(Reason.UNREADABLE, "Not a regular file")
    assert (taken.digest, taken.is_final) == (None, True)
    assert Path(one.claim.path).is_symlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_ours_after_twelve_settling_times(
    taker: Taker, candidate: Candidate
) -> None:
    Path(candidate.path).chmod(0)
    taken = the_taken(taker.take([quiet(candidate, 12 * SETTLE_S)]))
    assert taken.verdict == Refusal(Reason.UNREADABLE, "Cannot read it: Permission denied")


# Files that were put away before


def test_what_is_taken_up_again_is_taken_as_it_is(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    drop(root, "_failed/invalid_json/cv-1.json", b"{")
    place = "_failed/invalid_json/cv-1.report.json"
    one = a_candidate(
        root, workspace, "_failed/invalid_json/cv-1.json", is_return=True, reports=(place,)
    )
    taken = the_taken(taker.take([one]))
    assert isinstance(taken.verdict, Refusal)
    assert taken.is_final
    assert entries(workspace)[one.claim.id].claim.reports == (place,)


def test_what_is_taken_up_again_was_quiet_before_whoever_has_it_open(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    path = drop(root, "_held/ana/cv.json")
    with path.open("ab"):
        one = a_candidate(root, workspace, "_held/ana/cv.json", is_return=True)
        assert the_taken(taker.take([one])).is_final


def test_what_cannot_be_opened_is_taken_up_again_all_the_same(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    (root / "_held").mkdir()
    (root / "_held/cv.json").symlink_to("nothing")
    one = a_candidate(root, workspace, "_held/cv.json", is_return=True)
    assert the_taken(taker.take([one])).is_final


# Files that may have ended an importer


def test_i10_a_file_that_is_read_alone_counts_as_deadly_while_it_is_read(
    workspace: Workspace, candidate: Candidate
) -> None:
    alone = candidate._replace(is_alone=True)
    with pytest.raises(Killed):
        Taker(workspace, TRIAL, killing_at(Step.CLAIMED)).take([alone])
    assert entries(workspace)[alone.claim.id].is_begun


def test_i10_a_file_that_was_read_alone_and_survived_does_not_count_as_deadly(
    workspace: Workspace, taker: Taker, candidate: Candidate
) -> None:
    the_taken(taker.take([candidate._replace(is_alone=True)]))
    assert not entries(workspace)[candidate.claim.id].is_begun


def test_i10_one_of_a_batch_does_not_count_as_deadly(
    workspace: Workspace, candidate: Candidate
) -> None:
    with pytest.raises(Killed):
        Taker(workspace, TRIAL, killing_at(Step.CLAIMED)).take([candidate])
    found, unread = journals.load(workspace.path)
    assert not found[candidate.claim.id].is_begun
    assert len(unread) == 1


@pytest.mark.parametrize("attempt", [0, 1])
def test_i10_a_file_is_read_twice_before_it_is_given_up(
    root: Path, workspace: Workspace, taker: Taker, attempt: int
) -> None:
    drop(root, "ana/cv.json")
    one = a_candidate(root, workspace, attempt=attempt, is_alone=True)
    assert not is_last_attempt(one.claim)
    assert isinstance(the_taken(taker.take([one])).verdict, Resume)


def test_i10_the_third_time_a_file_is_taken_unread(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    drop(root, "ana/cv.json")
    one = a_candidate(root, workspace, attempt=2, is_alone=True)
    taken = the_taken(taker.take([one]))
    assert isinstance(taken.verdict, Refusal)
    assert (taken.verdict.reason, taken.digest, taken.is_final) == (Reason.CRASHED, None, True)
    assert names_below(root / "ana") == []


def test_i10_a_file_that_is_to_be_taken_unread_may_be_gone(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    one = a_candidate(root, workspace, attempt=2, is_alone=True)
    assert the_left(taker.take([one])).why is Why.GONE
    assert journal_names(workspace) == []


# A disk that becomes full in the middle


def full_from(step: Step, taker_of: Workspace, candidate: Candidate) -> list[Taken | Left]:
    """What taking the file gives when nothing can be written any more from this step on."""
    disk = a_full_disk()

    def observe(announced: Step) -> None:
        if announced is step:
            disk.__enter__()

    try:
        return Taker(taker_of, TRIAL, observe).take([candidate])
    finally:
        disk.__exit__(None, None, None)


@pytest.mark.parametrize("is_alone", [False, True])
def test_i11_what_was_claimed_is_told_even_if_the_journal_cannot_be_ended(
    workspace: Workspace, candidate: Candidate, is_alone: bool
) -> None:
    alone = candidate._replace(is_alone=is_alone)
    the_taken(full_from(Step.CLAIMED, workspace, alone))


# Claims that are tried again where they lie


@pytest.fixture
def settling(root: Path, taker: Taker, candidate: Candidate) -> Claim:
    """A claim whose file was still written to, and is cut short now."""
    with Path(candidate.path).open("ab"):
        assert not the_taken(taker.take([candidate])).is_final
    Path(candidate.claim.path).write_bytes(b"{")
    return candidate.claim


def again(claim: Claim, for_s: float | None = None, **fields: Any) -> Again:
    """The claimed file after it was quiet for so long."""
    signature = reading.find_signature(claim.path)
    known = None if for_s is None or signature is None else Known(signature, for_s)
    return Again(claim, known, **fields)


def test_a_claimed_file_is_judged_once_it_was_quiet(taker: Taker, settling: Claim) -> None:
    assert not the_taken(taker.judge([again(settling)])).is_final
    assert not the_taken(taker.judge([again(settling, SETTLE_S - 0.1)])).is_final
    taken = the_taken(taker.judge([again(settling, SETTLE_S)]))
    assert isinstance(taken.verdict, Refusal)
    assert taken.is_final


def test_a_claimed_file_that_became_whole_is_judged_at_once(taker: Taker, settling: Claim) -> None:
    Path(settling.path).write_bytes(a_document())
    taken = the_taken(taker.judge([again(settling)]))
    assert isinstance(taken.verdict, Resume)
    assert taken.is_final


def test_i4_a_claimed_file_that_is_still_open_for_writing_settles_on(
    taker: Taker, settling: Claim
) -> None:
    Path(settling.path).write_bytes(a_document())
    with Path(settling.path).open("ab"):
        assert not the_taken(taker.judge([again(settling, SETTLE_S)])).is_final
        assert the_taken(taker.judge([again(settling, 12 * SETTLE_S)])).is_final


def test_what_was_last_read_of_a_claimed_file_is_known(taker: Taker, settling: Claim) -> None:
    taker.judge([again(settling)])
    mine = taker.find(settling.id)
    assert mine is not None
    assert mine.signature == reading.find_signature(settling.path)


def test_a_claimed_file_that_is_gone_is_forgotten(
    workspace: Workspace, taker: Taker, settling: Claim, steps: list[Step]
) -> None:
    Path(settling.path).unlink()
    assert the_left(taker.judge([again(settling)])).why is Why.GONE
    assert taker.find(settling.id) is None
    assert journal_names(workspace) == []
    assert steps[-1] is Step.JOURNAL_DROPPED


def test_a_claimed_file_that_cannot_be_opened_is_final_after_twelve_settling_times(
    taker: Taker, settling: Claim
) -> None:
    Path(settling.path).unlink()
    Path(settling.path).mkdir()
    assert not the_taken(taker.judge([again(settling, SETTLE_S)])).is_final
    taken = the_taken(taker.judge([again(settling, 12 * SETTLE_S)]))
    assert taken.verdict == Refusal(Reason.UNREADABLE, "Not a regular file")
    assert taken.is_final


def test_i10_a_claimed_file_that_is_read_alone_counts_as_deadly_while_it_is_read(
    workspace: Workspace, taker: Taker, settling: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(descriptor: int, max_bytes: int) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_file", kill)
        with pytest.raises(Killed):
            taker.judge([again(settling, is_alone=True)])
    assert entries(workspace)[settling.id].is_begun
    taker.judge([again(settling, is_alone=True)])
    assert not entries(workspace)[settling.id].is_begun


def test_i10_the_third_time_a_claimed_file_is_not_read(taker: Taker, settling: Claim) -> None:
    last = settling._replace(attempt=2)
    taken = the_taken(taker.judge([again(last, is_alone=True)]))
    assert isinstance(taken.verdict, Refusal)
    assert (taken.verdict.reason, taken.is_final) == (Reason.CRASHED, True)


def test_i10_a_file_of_several_is_not_read_and_so_not_given_up_here(
    taker: Taker, settling: Claim
) -> None:
    last = settling._replace(attempt=2, name="ana/cv.ndjson")
    taken = the_taken(taker.judge([again(last, SETTLE_S, is_alone=True)]))
    assert (taken.verdict, taken.is_final) == (None, True)


# What is known of claims


def test_a_claim_of_another_importer_is_adopted_as_it_lies_there(
    workspace: Workspace, taker: Taker
) -> None:
    claim = a_work_claim(workspace.path / AN_ID)
    Path(claim.path).write_bytes(b"{")
    taker.adopt(claim, journals.write(workspace.path, [claim]))
    mine = taker.find(claim.id)
    assert mine is not None
    assert (mine.claim, mine.signature) == (claim, reading.find_signature(claim.path))


def test_a_claim_that_changed_is_known_as_it_is_now(taker: Taker, settling: Claim) -> None:
    later = settling._replace(reports=("_held/a.report.json",))
    taker.replace(later)
    mine = taker.find(settling.id)
    assert mine is not None
    assert mine.claim == later


def test_i10_a_claim_that_is_about_to_be_unpacked_counts_as_deadly_until_it_is_put_away(
    workspace: Workspace, taker: Taker, settling: Claim
) -> None:
    begun = settling._replace(items=7)
    taker.begin(begun)
    entry = entries(workspace)[settling.id]
    assert (entry.claim, entry.is_begun) == (begun, True)
    taker.settle(settling.id)
    taker.settle(settling.id)
    assert entries(workspace) == {}


# Files that changed after they were committed


def test_i4_a_file_that_changed_after_it_was_committed_is_a_file_of_its_own(
    workspace: Workspace, taker: Taker, settling: Claim
) -> None:
    taker.replace(settling._replace(reports=("_failed/a.report.json",)))
    renewed = taker.renew(settling.id, "2" * 24)
    assert renewed == settling._replace(id="2" * 24, reports=())
    assert Path(renewed.path).read_bytes() == b"{"
    assert not os.path.lexists(settling.path)
    found, unread = journals.load(workspace.path)
    assert {claim_id: entry.claim for claim_id, entry in found.items()} == {renewed.id: renewed}
    assert unread == []
    assert taker.find(settling.id) is None
    assert not the_taken(taker.judge([again(renewed)])).is_final
    assert the_taken(taker.judge([again(renewed, SETTLE_S)])).is_final


def test_i4_a_file_that_cannot_be_renewed_keeps_its_claim(
    workspace: Workspace, taker: Taker, settling: Claim
) -> None:
    drop(Path(settling.folder), "2" * 24)
    with pytest.raises(FileExistsError):
        taker.renew(settling.id, "2" * 24)
    mine = taker.find(settling.id)
    assert mine is not None
    assert mine.claim == settling
    assert set(entries(workspace)) == {settling.id}
    with a_full_disk(), pytest.raises(OSError, match="too large"):
        taker.renew(settling.id, "3" * 24)
    assert set(entries(workspace)) == {settling.id}


# What is ours, and the journals that say so


def test_a_renewed_claim_is_known_and_its_journal_goes_when_it_is_settled(
    workspace: Workspace, taker: Taker, settling: Claim
) -> None:
    renewed = taker.renew(settling.id, "2" * 24)
    mine = taker.find("2" * 24)
    assert mine is not None
    assert mine.claim == renewed
    assert len(journal_names(workspace)) == 1
    taker.settle("2" * 24)
    assert journal_names(workspace) == []


def test_the_journal_of_an_adopted_claim_goes_when_it_is_settled(
    workspace: Workspace, taker: Taker, steps: list[Step]
) -> None:
    claim = a_work_claim(workspace.path / AN_ID)
    taker.adopt(claim, journals.write(workspace.path, [claim]))
    taker.settle(claim.id)
    assert taker.find(claim.id) is None
    assert journal_names(workspace) == []
    assert steps == [Step.JOURNAL_DROPPED]


def test_i10_what_is_being_unpacked_when_an_importer_ends_in_good_order_is_not_deadly(
    workspace: Workspace, taker: Taker, settling: Claim
) -> None:
    several = settling._replace(name="ana/cv.ndjson")
    gone = several._replace(id="2" * 24)
    one = settling._replace(id="3" * 24)
    Path(one.path).write_bytes(b"{")
    for claim in (several, gone, one):
        taker.adopt(claim, journals.write(workspace.path, [claim]))
        taker.begin(claim)

    taker.end_attempts()

    begun = {claim_id for claim_id, entry in entries(workspace).items() if entry.is_begun}
    assert begun == {gone.id, one.id}


# What is told of files, whole


def test_what_cannot_be_opened_is_told_with_its_signature(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    path = root / "ana/cv.json"
    path.parent.mkdir()
    path.symlink_to("/etc/passwd")
    left = the_left(taker.take([a_candidate(root, workspace)]))
    assert left == Left("1" * 24, str(path), Why.SETTLING, reading.find_signature(path))


def test_a_claimed_file_that_is_gone_is_told_by_its_claim_and_its_path(
    taker: Taker, settling: Claim
) -> None:
    Path(settling.path).unlink()
    assert the_left(taker.judge([again(settling)])) == Left(settling.id, settling.path, Why.GONE)


def test_a_claimed_file_that_cannot_be_read_is_trouble_and_stays_ours(
    taker: Taker, settling: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.EIO, os.strerror(errno.EIO))

    def refuse(descriptor: int, max_bytes: int) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_file", refuse)
        left = the_left(taker.judge([again(settling)]))
    assert left == Left(settling.id, settling.path, Why.TROUBLE, None, error)
    assert taker.find(settling.id) is not None


def test_i10_a_claimed_file_that_is_given_up_is_told_with_its_signature(
    taker: Taker, settling: Claim
) -> None:
    signature = reading.find_signature(settling.path)
    assert signature is not None
    taken = the_taken(taker.judge([again(settling._replace(attempt=2), is_alone=True)]))
    assert taken == Taken(settling.id, signature, judging.CRASHED, None, True)
    mine = taker.find(settling.id)
    assert mine is not None
    assert mine.signature == signature


def test_i10_a_claimed_file_that_is_read_among_others_does_not_count_as_deadly(
    workspace: Workspace, taker: Taker, settling: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(descriptor: int, max_bytes: int) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_file", kill)
        with pytest.raises(Killed):
            taker.judge([again(settling)])
    assert not entries(workspace)[settling.id].is_begun


# Links in the way, and what else keeps a file from being taken


@pytest.mark.parametrize("kind", ["a link", "below a link", "a file"])
def test_what_took_a_folders_place_after_the_look_is_not_followed(
    root: Path, workspace: Workspace, taker: Taker, tmp_path: Path, kind: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    theirs = drop(elsewhere, "sub/cv.json")
    one = a_candidate(root, workspace, "ana/sub/cv.json")
    (root / "ana").mkdir()
    if kind == "a link":
        (root / "ana/sub").symlink_to(elsewhere / "sub")
    elif kind == "a file":
        (root / "ana/sub").touch()
    else:
        (root / "ana").rmdir()
        (root / "ana").symlink_to(elsewhere)

    left = the_left(taker.take([one]))

    assert left.why is Why.GONE
    assert isinstance(left.error, FileNotFoundError)
    assert left.error.errno == errno.ENOENT
    assert left.error.strerror == "A link lies in its way"
    assert left.error.filename == f"{root}/ana/sub"
    assert theirs.exists()
    assert journal_names(workspace) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks the kernel")
def test_no_folder_stays_open_when_files_are_taken_or_left(
    root: Path, workspace: Workspace, taker: Taker, tmp_path: Path
) -> None:
    drop(tmp_path / "elsewhere", "sub/cv.json")
    drop(root, "bo/cv.json")
    drop(root, "bo/other.json")
    (root / "ana").symlink_to(tmp_path / "elsewhere")
    names = ["ana/sub/cv.json", "bo/cv.json", "bo/other.json"]
    batch = [a_candidate(root, workspace, name, str(n) * 24) for n, name in enumerate(names)]
    before = len(list(Path("/proc/self/fd").iterdir()))

    answers = taker.take(batch)

    assert [isinstance(answer, Taken) for answer in answers] == [False, True, True]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_of_which_nothing_can_be_read_is_stuck(
    taker: Taker, candidate: Candidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.EIO, os.strerror(errno.EIO))

    def refuse(descriptor: int, max_bytes: int) -> None:
        raise error

    signature = reading.find_signature(candidate.path)
    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_file", refuse)
        left = the_left(taker.take([candidate]))
    assert left == Left(candidate.claim.id, candidate.path, Why.STUCK, signature, error)


@pytest.mark.parametrize(("code", "why"), [(errno.EXDEV, Why.STUCK), (errno.EIO, Why.TROUBLE)])
def test_a_file_that_cannot_be_renamed_is_told_whole(
    taker: Taker,
    candidate: Candidate,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    why: Why,
) -> None:
    error = OSError(code, os.strerror(code))

    def refuse(source: str, target: str, **_: object) -> None:
        raise error

    signature = reading.find_signature(candidate.path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        left = the_left(taker.take([candidate]))
    assert left == Left(candidate.claim.id, candidate.path, why, signature, error)


def test_a_file_whose_folder_of_claims_is_gone_is_told_whole(
    taker: Taker, root: Path, candidate: Candidate
) -> None:
    the_taken(taker.take([candidate]))
    shutil.rmtree(candidate.claim.folder)
    drop(root, "ana/cv.json")
    signature = reading.find_signature(candidate.path)
    left = the_left(taker.take([candidate]))
    assert isinstance(left.error, FileNotFoundError)
    assert left == Left(candidate.claim.id, candidate.path, Why.TROUBLE, signature, left.error)


def test_what_comes_back_under_a_claim_that_lies_there_is_stuck(
    root: Path, workspace: Workspace, taker: Taker
) -> None:
    path = drop(root, "_held/cv.json")
    one = a_candidate(root, workspace, "_held/cv.json", is_return=True)
    mine = drop(Path(one.claim.folder), one.claim.id, b"mine")
    left = the_left(taker.take([one]))
    assert isinstance(left.error, FileExistsError)
    assert left == Left(one.claim.id, one.path, Why.STUCK, reading.find_signature(path), left.error)
    assert mine.read_bytes() == b"mine"


def test_a_file_of_which_nobody_can_say_whether_it_has_a_writer_settles(
    taker: Taker, candidate: Candidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(leases, "find_writer", refuse)
        taken = the_taken(taker.take([candidate]))
    assert taken.is_final is False
    assert isinstance(taken.verdict, Resume)


def test_a_folder_of_claims_that_is_there_already_is_used(
    workspace: Workspace, candidate: Candidate
) -> None:
    Path(candidate.claim.folder).mkdir()
    assert the_taken(Taker(workspace, TRIAL, lambda _: None).take([candidate])).is_final
