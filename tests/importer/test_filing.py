import json
from pathlib import Path

import pytest

from importer import claims
from importer.claims import Claim
from importer.filing import Filing, report_path
from importer.outcomes import Conclusion
from importer.steps import Step
from tests.importer.builders import (
    A_REFUSAL,
    DONE,
    DUPLICATE,
    FAILED,
    HELD,
    a_work_claim,
    judged,
    names_below,
)
from tests.resumes.store.conftest import SteppingClock


@pytest.fixture
def steps() -> list[Step]:
    return []


@pytest.fixture
def filing(root: Path, clock: SteppingClock, steps: list[Step]) -> Filing:
    return Filing(root, clock, steps.append)


@pytest.fixture
def claim(root: Path) -> Claim:
    return claimed(root)


def claimed(root: Path, claim_id: str = "0" * 16 + "abcdef01") -> Claim:
    claim = a_work_claim(root / ".work" / "i" / ("f" * 16), claim_id)
    claims.rewrite(claim)
    claim.path.write_bytes(b"{")
    return claim


@pytest.mark.parametrize(
    ("conclusion", "place"),
    [
        (DONE, "_done/2027-01-15/cv-abcdef01.json"),
        (FAILED, "_failed/invalid_json/cv-abcdef01.json"),
        (DUPLICATE, "_duplicate/cv-abcdef01.json"),
        (HELD, "_held/ana/0000000000000000abcdef01-ffffffffffffffff-cv.json"),
    ],
)
def test_each_outcome_has_its_folder(
    root: Path, filing: Filing, claim: Claim, conclusion: Conclusion, place: str
) -> None:
    target = filing.file_away(claim, judged(b"{", A_REFUSAL), conclusion)
    assert target == root / place
    assert target.read_bytes() == b"{"
    assert report_path(target).exists() == conclusion.needs_report
    assert names_below(root / ".work") == []


def test_the_report_is_there_before_the_file(
    filing: Filing, claim: Claim, steps: list[Step]
) -> None:
    filing.file_away(claim, judged(b"{", A_REFUSAL), FAILED)
    assert steps == [
        Step.REPORT_PLANNED,
        Step.REPORT_WRITTEN,
        Step.MOVED,
        Step.REPORTS_TIDIED,
        Step.JOURNAL_DROPPED,
    ]


def test_nothing_that_lies_there_is_overwritten(root: Path, filing: Filing, claim: Claim) -> None:
    folder = root / "_failed" / "invalid_json"
    folder.mkdir(parents=True)
    (folder / "cv-abcdef01.report.json").write_bytes(b"somebody's own")
    target = filing.file_away(claim, judged(b"{", A_REFUSAL), FAILED)
    assert target.name == "cv-0000000000000000abcdef01.json"
    assert (folder / "cv-abcdef01.report.json").read_bytes() == b"somebody's own"
    other = claimed(root, "1" * 16 + "abcdef01")
    (folder / "cv-abcdef01.json").write_bytes(b"mine")
    assert filing.file_away(other, judged(b"{", A_REFUSAL), FAILED).name.startswith("cv-1111")
    assert (folder / "cv-abcdef01.json").read_bytes() == b"mine"


def test_what_cannot_be_filed_stays_where_it_was_claimed(
    root: Path, filing: Filing, claim: Claim
) -> None:
    (root / "_done").write_bytes(b"in the way")
    with pytest.raises(OSError, match="_done"):
        filing.file_away(claim, judged(b"{", A_REFUSAL), DONE)
    assert claim.path.read_bytes() == b"{"
    assert claim.journal.exists()


def test_a_claim_that_comes_to_another_end_after_all_leaves_one_report(
    root: Path, filing: Filing, claim: Claim, steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(step: Step) -> None:
        if step is Step.REPORT_WRITTEN:
            raise Killed

    with pytest.raises(Killed):
        Filing(root, SteppingClock(), kill).file_away(claim, judged(b"{", A_REFUSAL), HELD)
    (again,) = claims.iter_claims(claim.folder)
    filing.file_away(again, judged(b"{", A_REFUSAL), DUPLICATE)
    assert names_below(root) == [
        "_duplicate/cv-abcdef01.json",
        "_duplicate/cv-abcdef01.report.json",
    ]
    assert json.loads((root / "_duplicate/cv-abcdef01.report.json").read_bytes())["reason"] == (
        "duplicate"
    )
