import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from importer import journals, moves, reports
from importer.claims import Claim
from importer.filing import DONE as DONE_FOLDER
from importer.filing import Filed, Filer, State, folder_of, report_path
from importer.outcomes import Conclusion, ItemConclusion
from importer.steps import Observer, Step
from importer.taking import Taker
from importer.trying import Trial
from importer.workspaces import LEASE, Workspace
from resumes.analyzer import DEFAULT_FORMAT
from resumes.errors import Issue
from resumes.store.ledger import FileOutcome
from tests.importer.builders import (
    AN_ID,
    DONE,
    DUPLICATE,
    FAILED,
    HELD,
    Killed,
    a_filing,
    a_full_disk,
    a_report,
    a_work_claim,
    drop,
    filed,
    killing_at,
    names_below,
    the_report,
)
from tests.resumes.store.conftest import SteppingClock

CLAIM_ID = "0" * 16 + "abcdef01"


@pytest.fixture
def steps() -> list[Step]:
    return []


@pytest.fixture
def taker(workspace: Workspace, steps: list[Step]) -> Taker:
    return Taker(workspace, Trial(DEFAULT_FORMAT, 5), steps.append)


@pytest.fixture
def filer(root: Path, taker: Taker, steps: list[Step]) -> Filer:
    return a_filer(root, taker, steps.append)


def a_filer(root: Path, taker: Taker, observe: Observer) -> Filer:
    return Filer(root, taker, SteppingClock(), observe)


@pytest.fixture
def claim(taker: Taker) -> Claim:
    return claimed(taker)


def claimed(taker: Taker, claim_id: str = CLAIM_ID, **fields: Any) -> Claim:
    """A claim whose file holds `{`, in a journal of its own."""
    claim = a_work_claim(taker.workspace.path / AN_ID, claim_id, **fields)
    Path(claim.path).write_bytes(b"{")
    taker.adopt(claim, journals.write(taker.workspace.path, [claim]))
    return claim


def put_away(filer: Filer, claim: Claim, conclusion: Conclusion) -> Path:
    """Where the file lies now."""
    (answer,) = filer.file_away([a_filing(claim, conclusion)])
    assert (answer.claim_id, answer.state) == (claim.id, State.FILED), answer
    return Path(answer.target)


def stuck(filer: Filer, claim: Claim, conclusion: Conclusion) -> str:
    """Why the file could not be put away."""
    (answer,) = filer.file_away([a_filing(claim, conclusion)])
    assert (answer.claim_id, answer.state) == (claim.id, State.STUCK)
    assert answer.problem
    return answer.problem


def journaled(workspace: Workspace) -> list[Claim]:
    return [entry.claim for entry in journals.load(workspace.path)[0].values()]


@pytest.mark.parametrize(
    ("conclusion", "place"),
    [
        (DONE, "_done/2027-01-15/ana/cv-abcdef01.json"),
        (FAILED, "_failed/invalid_json/cv-abcdef01.json"),
        (DUPLICATE, "_duplicate/cv-abcdef01.json"),
        (HELD, f"_held/ana/{CLAIM_ID}-{AN_ID}-cv.json"),
    ],
)
def test_each_outcome_has_its_folder(
    root: Path,
    workspace: Workspace,
    filer: Filer,
    claim: Claim,
    conclusion: Conclusion,
    place: str,
) -> None:
    target = put_away(filer, claim, conclusion)
    assert target == root / place
    assert target.read_bytes() == b"{"
    assert report_path(target).exists() == conclusion.needs_report
    assert names_below(workspace.path) == [LEASE]


def test_the_folder_of_an_outcome_is_known_without_a_claim() -> None:
    assert folder_of(DONE, "ana", "2027-01-15T08:00:00.000Z") == f"{DONE_FOLDER}/2027-01-15/ana"
    assert folder_of(HELD, "ana", "") == "_held/ana"
    unexplained = Conclusion(FileOutcome.FAILED)
    assert folder_of(unexplained, "ana", "") == "_failed/internal_error"


@pytest.mark.parametrize(
    "conclusion",
    [
        Conclusion(FileOutcome.DONE, items=(ItemConclusion(1, "line 1", FileOutcome.DONE),)),
        Conclusion(FileOutcome.DONE, "2" * 24, warnings=(Issue("nickname", "is unknown"),)),
    ],
)
def test_a_done_file_of_which_there_is_more_to_say_has_a_report(
    filer: Filer, claim: Claim, conclusion: Conclusion
) -> None:
    assert report_path(put_away(filer, claim, conclusion)).exists()


@pytest.mark.parametrize("extension", [".json.gz", ".ndjson", ".zip", ".gz"])
def test_a_file_keeps_its_extension_and_has_its_report_under_the_same_name(
    root: Path, taker: Taker, filer: Filer, extension: str
) -> None:
    claim = claimed(taker, name=f"ana/cv{extension.upper()}")
    target = put_away(filer, claim, FAILED)
    assert target.name == f"cv-abcdef01{extension}"
    assert report_path(target).name == "cv-abcdef01.report.json"
    assert the_report(root, "_failed")["file"] == f"ana/cv{extension.upper()}"


def test_a_file_whose_name_is_lost_is_put_away_all_the_same(root: Path, taker: Taker) -> None:
    claim = claimed(taker, name=CLAIM_ID, name_hex="", account="")
    filer = a_filer(root, taker, lambda step: None)
    assert put_away(filer, claim, HELD).parent == root / "_held" / AN_ID
    again = claimed(taker, name=CLAIM_ID, name_hex="", account="")
    assert put_away(filer, again, DONE).name == f"{CLAIM_ID}-abcdef01.json"


@pytest.mark.parametrize(
    "account", ["../../elsewhere", "..", ".", "\\x0a", "/tmp", "Ana", "a" * 300]
)
def test_an_account_that_somebody_wrote_into_a_journal_leads_into_no_other_folder(
    root: Path, taker: Taker, filer: Filer, account: str
) -> None:
    target = put_away(filer, claimed(taker, account=account), HELD)
    assert target.parent == root / "_held" / AN_ID
    assert report_path(target).exists()


def test_a_report_has_the_digest_of_all_of_the_file(root: Path, filer: Filer, claim: Claim) -> None:
    put_away(filer, claim, FAILED)
    report = the_report(root, "_failed")
    assert report["sha256"] == "021fb596db81e6d02bf3d2586ee3981fe519f275c0ac9ca76bbcf2ebb4097d96"
    assert (report["size_bytes"], report["claim_id"]) == (1, claim.id)


def test_each_of_many_has_an_answer_in_order(root: Path, taker: Taker, filer: Filer) -> None:
    first, second = claimed(taker, "1" * 24), claimed(taker, "2" * 24)
    gone = a_work_claim(taker.workspace.path / AN_ID, "3" * 24)
    answers = filer.file_away(
        [a_filing(second, DONE), a_filing(gone, FAILED), a_filing(first, FAILED)]
    )
    assert [(answer.claim_id, answer.state) for answer in answers] == [
        (second.id, State.FILED),
        (gone.id, State.GONE),
        (first.id, State.FILED),
    ]
    assert len(filed(root, "_done")) == len(filed(root, "_failed")) == 1


# Reports


def test_the_report_is_there_before_the_file(filer: Filer, claim: Claim, steps: list[Step]) -> None:
    put_away(filer, claim, FAILED)
    assert steps == [
        Step.REPORT_PLANNED,
        Step.REPORT_WRITTEN,
        Step.MOVED,
        Step.REPORTS_TIDIED,
        Step.JOURNAL_DROPPED,
    ]


def test_a_file_that_is_simply_done_is_only_moved(
    filer: Filer, claim: Claim, steps: list[Step]
) -> None:
    put_away(filer, claim, DONE)
    assert steps == [Step.MOVED, Step.JOURNAL_DROPPED]


def test_the_journal_knows_of_every_place_before_a_report_lies_there(
    root: Path, workspace: Workspace, taker: Taker, claim: Claim
) -> None:
    filer = a_filer(root, taker, killing_at(Step.REPORT_PLANNED))
    with pytest.raises(Killed):
        filer.file_away([a_filing(claim, FAILED)])
    (known,) = journaled(workspace)
    assert known.reports == (
        "_failed/invalid_json/cv-abcdef01.report.json",
        f"_failed/invalid_json/cv-{CLAIM_ID}.report.json",
    )
    assert names_below(root / "_failed") == []


def test_a_place_that_the_disk_had_no_room_for_is_planned_again(
    root: Path, workspace: Workspace, filer: Filer, claim: Claim, steps: list[Step]
) -> None:
    with a_full_disk(), pytest.raises(OSError, match="too large"):
        filer.file_away([a_filing(claim, FAILED)])
    assert names_below(root / "_failed") == []
    put_away(filer, claim, FAILED)
    assert steps[0] is Step.REPORT_PLANNED


def test_places_are_planned_once(filer: Filer, claim: Claim, root: Path, steps: list[Step]) -> None:
    (root / "_failed").touch()
    stuck(filer, claim, FAILED)
    stuck(filer, claim, FAILED)
    assert steps == [Step.REPORT_PLANNED]


def test_a_claim_that_comes_to_another_end_after_all_leaves_one_report(
    root: Path, workspace: Workspace, taker: Taker, claim: Claim
) -> None:
    with pytest.raises(Killed):
        a_filer(root, taker, killing_at(Step.REPORT_WRITTEN)).file_away([a_filing(claim, HELD)])
    (known,) = journals.load(workspace.path)[0].values()
    next_taker = Taker(workspace, Trial(DEFAULT_FORMAT, 5), lambda step: None)
    next_taker.adopt(known.claim, known.journal)
    put_away(a_filer(root, next_taker, lambda step: None), known.claim, DUPLICATE)
    assert names_below(root) == [
        f".work/i/{LEASE}",
        "_duplicate/cv-abcdef01.json",
        "_duplicate/cv-abcdef01.report.json",
    ]
    assert the_report(root, "_duplicate")["reason"] == "duplicate"


def test_a_report_that_speaks_of_an_earlier_end_goes_when_the_file_is_done(
    root: Path, taker: Taker, filer: Filer
) -> None:
    place = f"_held/ana/{CLAIM_ID}-{AN_ID}-cv.report.json"
    claim = claimed(taker, reports=(place,))
    drop(root, place, a_report(claim, HELD))
    Path(claim.temporary).write_bytes(b"half a report")
    put_away(filer, claim, DONE)
    assert names_below(root / "_held") == []
    assert names_below(taker.workspace.path) == [LEASE]


def test_a_report_stays_when_somebody_takes_its_file_away_at_once(
    root: Path, taker: Taker, claim: Claim
) -> None:
    def take_away(step: Step) -> None:
        if step is Step.MOVED:
            for path in filed(root, "_failed"):
                path.unlink()

    put_away(a_filer(root, taker, take_away), claim, FAILED)
    assert the_report(root, "_failed")["claim_id"] == claim.id


def test_reports_beside_files_of_this_claim_and_those_on_other_claims_stay(
    root: Path, taker: Taker, filer: Filer
) -> None:
    places = ("_failed/beside.report.json", "_failed/other.report.json", "_failed/gone.report.json")
    claim = claimed(taker, reports=places)
    drop(root, places[0], a_report(claim, FAILED))
    drop(root, "_failed/beside.json")
    drop(root, places[1], a_report(claim._replace(id="9" * 24), FAILED))
    put_away(filer, claim, DONE)
    assert names_below(root / "_failed") == [
        "beside.json",
        "beside.report.json",
        "other.report.json",
    ]


# What is in the way


def test_nothing_that_lies_there_is_overwritten(
    root: Path, taker: Taker, filer: Filer, claim: Claim
) -> None:
    folder = root / "_failed" / "invalid_json"
    drop(folder, "cv-abcdef01.report.json", b"somebody's own")
    target = put_away(filer, claim, FAILED)
    assert target.name == f"cv-{CLAIM_ID}.json"
    assert (folder / "cv-abcdef01.report.json").read_bytes() == b"somebody's own"
    other = claimed(taker, "1" * 16 + "abcdef01")
    drop(folder, "cv-abcdef01.json", b"mine")
    assert put_away(filer, other, FAILED).name == f"cv-{other.id}.json"
    assert (folder / "cv-abcdef01.json").read_bytes() == b"mine"


def test_no_report_is_put_beside_a_file_of_somebody_else(
    root: Path, filer: Filer, claim: Claim
) -> None:
    drop(root, "_failed/invalid_json/cv-abcdef01.json", b"mine")
    put_away(filer, claim, FAILED)
    assert names_below(root / "_failed/invalid_json") == [
        f"cv-{CLAIM_ID}.json",
        f"cv-{CLAIM_ID}.report.json",
        "cv-abcdef01.json",
    ]


def test_a_done_file_whose_name_is_taken_has_its_longer_name(
    root: Path, filer: Filer, claim: Claim
) -> None:
    drop(root, "_done/2027-01-15/ana/cv-abcdef01.json", b"mine")
    assert put_away(filer, claim, DONE).name == f"cv-{CLAIM_ID}.json"
    assert (root / "_done/2027-01-15/ana/cv-abcdef01.json").read_bytes() == b"mine"


def test_a_file_with_every_name_taken_waits_for_one(root: Path, filer: Filer, claim: Claim) -> None:
    name = f"{CLAIM_ID}-{AN_ID}-cv.json"
    drop(root, f"_held/ana/{name}", b"mine")
    assert "taken" in stuck(filer, claim, HELD)
    assert (root / "_held/ana" / name).read_bytes() == b"mine"
    (root / "_held/ana" / name).unlink()
    assert put_away(filer, claim, HELD).name == name


@pytest.mark.parametrize("conclusion", [DONE, FAILED])
def test_what_cannot_be_filed_stays_where_it_was_claimed(
    root: Path, workspace: Workspace, filer: Filer, claim: Claim, conclusion: Conclusion
) -> None:
    for folder in ("_done", "_failed"):
        (root / folder).write_bytes(b"in the way")
    stuck(filer, claim, conclusion)
    assert Path(claim.path).read_bytes() == b"{"
    assert journaled(workspace)
    for folder in ("_done", "_failed"):
        (root / folder).unlink()
    put_away(filer, claim, conclusion)
    assert names_below(workspace.path) == [LEASE]


@pytest.mark.parametrize("conclusion", [DONE, FAILED, HELD])
def test_a_folder_of_outcomes_that_somebody_removed_is_made_again(
    root: Path, taker: Taker, filer: Filer, conclusion: Conclusion
) -> None:
    target = put_away(filer, claimed(taker, "1" * 24), conclusion)
    shutil.rmtree(target.parent)
    claim = claimed(taker, "2" * 24)
    stuck(filer, claim, conclusion)
    assert Path(claim.path).exists()
    assert put_away(filer, claim, conclusion).exists()


def test_i11_a_report_that_the_disk_has_no_room_for_keeps_the_file_where_it_is(
    root: Path, workspace: Workspace, taker: Taker, claim: Claim
) -> None:
    disk = a_full_disk(100)

    def fill(step: Step) -> None:
        if step is Step.REPORT_PLANNED:
            disk.__enter__()

    filer = a_filer(root, taker, fill)
    try:
        stuck(filer, claim, FAILED)
    finally:
        disk.__exit__(None, None, None)
    assert names_below(root / "_failed") == []
    assert Path(claim.path).exists()
    target = put_away(filer, claim, FAILED)
    assert json.loads(report_path(target).read_bytes())["claim_id"] == claim.id


# Cut off, changed, filed by another


@pytest.mark.parametrize(
    "step", [Step.REPORT_PLANNED, Step.REPORT_WRITTEN, Step.MOVED, Step.REPORTS_TIDIED]
)
def test_cut_off_anywhere_and_begun_again_it_comes_to_the_same_end(
    root: Path, workspace: Workspace, taker: Taker, claim: Claim, step: Step
) -> None:
    with pytest.raises(Killed):
        a_filer(root, taker, killing_at(step)).file_away([a_filing(claim, FAILED)])
    (entry,) = journals.load(workspace.path)[0].values()
    next_taker = Taker(workspace, Trial(DEFAULT_FORMAT, 5), lambda step: None)
    next_taker.adopt(entry.claim, entry.journal)
    filer = a_filer(root, next_taker, lambda step: None)
    (answer,) = filer.file_away([a_filing(entry.claim, FAILED)])
    assert answer.state in (State.FILED, State.GONE)
    assert names_below(root) == [
        f".work/i/{LEASE}",
        "_failed/invalid_json/cv-abcdef01.json",
        "_failed/invalid_json/cv-abcdef01.report.json",
    ]


def test_i4_a_file_that_was_written_to_after_it_was_judged_is_not_put_away(
    root: Path, workspace: Workspace, filer: Filer, claim: Claim, steps: list[Step]
) -> None:
    with Path(claim.path).open("ab") as file:
        file.write(b"}")
    assert filer.file_away([a_filing(claim, DONE)]) == [Filed(claim.id, State.CHANGED)]
    assert Path(claim.path).read_bytes() == b"{}"
    assert journaled(workspace) == [claim]
    assert steps == []


def test_i4_a_file_that_was_replaced_after_it_was_judged_is_not_put_away(
    filer: Filer, claim: Claim
) -> None:
    path = Path(claim.path)
    time_ns = path.stat().st_mtime_ns
    path.rename(path.with_name("elsewhere"))
    path.write_bytes(b"[")
    os.utime(path, ns=(0, time_ns))
    assert filer.file_away([a_filing(claim, FAILED)]) == [Filed(claim.id, State.CHANGED)]
    assert path.read_bytes() == b"["


def test_a_file_that_another_importer_filed_is_forgotten(
    root: Path, workspace: Workspace, filer: Filer, claim: Claim
) -> None:
    Path(claim.path).unlink()
    assert filer.file_away([a_filing(claim, FAILED)]) == [Filed(claim.id, State.GONE)]
    assert names_below(root) == [f".work/i/{LEASE}"]
    assert filer.file_away([a_filing(claim, FAILED)]) == [Filed(claim.id, State.GONE)]


# Outcomes on another disk


@pytest.fixture
def _outcomes_on_another_disk(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
    """What leaves the workspace by a rename comes to a file system of its own."""
    rename, move = os.rename, moves.move
    work = str(workspace.path)

    def is_across(source: Any, target: Any) -> bool:
        return str(source).startswith(work) and not str(target).startswith(work)

    def rename_within(source: Any, target: Any) -> None:
        if is_across(source, target):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, target)

    def move_within(source: Any, target: Any) -> None:
        if is_across(source, target):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        move(source, target)

    monkeypatch.setattr(os, "rename", rename_within)
    monkeypatch.setattr(os, "replace", rename_within)
    monkeypatch.setattr(moves, "move", move_within)


@pytest.mark.usefixtures("_outcomes_on_another_disk")
@pytest.mark.parametrize("conclusion", [DONE, FAILED])
def test_outcomes_may_lie_on_another_disk(
    root: Path, workspace: Workspace, filer: Filer, claim: Claim, conclusion: Conclusion
) -> None:
    target = put_away(filer, claim, conclusion)
    assert target.read_bytes() == b"{"
    assert report_path(target).exists() == conclusion.needs_report
    assert names_below(workspace.path) == [LEASE]
    assert [path for path in target.parent.iterdir() if path.name.startswith(".")] == []


def test_where_the_report_on_a_file_lies() -> None:
    assert report_path(Path("_failed/x/cv-1.json.gz")) == Path(f"_failed/x/cv-1{reports.SUFFIX}")
    assert report_path(Path("_failed/x/cv")) == Path(f"_failed/x/cv{reports.SUFFIX}")
