from pathlib import Path

import pytest

from importer import claims
from importer.claims import Claim
from importer.filing import Filing
from importer.recovery import Recovery
from importer.steps import unobserved
from tests.importer.builders import a_work_claim, drop, names_below
from tests.resumes.store.conftest import SteppingClock

ANA = "a" * 16


@pytest.fixture
def recovery(root: Path, clock: SteppingClock) -> Recovery:
    return Recovery(root / ".work", Filing(root, clock, unobserved), unobserved)


def recovered(recovery: Recovery) -> list[Claim]:
    found: list[Claim] = []
    for workspace in recovery.take_over():
        found += recovery.iter_claims(workspace, {ANA: "ana"})
        workspace.leave()
    return found


def test_a_journal_and_its_file_are_a_claim_begun_once_more(root: Path, recovery: Recovery) -> None:
    claim = a_work_claim(root / ".work" / "dead" / ANA)
    claims.rewrite(claim)
    claim.path.touch()
    (found,) = recovered(recovery)
    assert (found.id, found.name, found.attempt) == (claim.id, claim.name, 2)
    (again,) = recovered(recovery)
    assert again.attempt == 3


def test_a_journal_alone_is_dropped(root: Path, recovery: Recovery) -> None:
    drop(root, "ana/cv.json")
    claims.rewrite(a_work_claim(root / ".work" / "dead" / ANA))
    assert recovered(recovery) == []
    assert names_below(root) == ["ana/cv.json"]


def test_a_file_alone_is_never_lost(root: Path, recovery: Recovery) -> None:
    claim = a_work_claim(root / ".work" / "dead" / ANA)
    claim.path.write_bytes(b"{}")
    (found,) = recovered(recovery)
    assert (found.path, found.account, found.account_id) == (claim.path, "ana", ANA)


def test_what_is_none_of_ours_stays(root: Path, recovery: Recovery) -> None:
    drop(root, ".work/dead/notes.txt")
    drop(root, f".work/dead/{ANA}/notes.txt")
    assert recovered(recovery) == []
    assert f".work/dead/{ANA}/notes.txt" in names_below(root)
