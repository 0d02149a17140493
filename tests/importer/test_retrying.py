from pathlib import Path

import pytest

from importer import holding, reports, retrying
from importer.filing import report_path
from importer.holding import HeldFiles
from importer.reading import Signature
from importer.taking import Candidate
from resumes.store.requests import Action, Request
from tests.importer.builders import FAILED, a_work_claim, drop

ANA = "a" * 16
CLAIM_ID = "1" * 16 + "89abcdef"


def a_request(claim_id: str = CLAIM_ID, action: Action = Action.RETRY) -> Request:
    return Request(ANA, claim_id, action, "2027-01-15T08:00:00.000Z", None)


def fail(
    root: Path, name: str = "cv-89abcdef.json", *, claim_id: str = CLAIM_ID, of: str = "ana/cv.json"
) -> Path:
    """A file in `_failed`, with the report on the claim beside it."""
    path = drop(root, f"_failed/invalid_json/{name}", b"{")
    claim = a_work_claim(root / ".work" / "i" / ANA, claim_id, name=of)
    report = reports.compose(claim, Signature(1, 1, 1), FAILED, sha256=None, now_us=1)
    report_path(path).write_bytes(report)
    return path


def find(root: Path, *requests: Request) -> dict[str, Candidate]:
    return retrying.find_candidates(root, requests, HeldFiles(root).find(), now_us=7)


def test_a_failed_file_is_found_by_its_claim_and_taken_up_under_its_first_name(root: Path) -> None:
    path = fail(root)
    fail(root, "other-00000000.json", claim_id="1" * 16 + "00000000")
    (one,) = find(root, a_request()).values()
    assert (one.path, one.is_return) == (str(path), True)
    claim = one.claim
    assert (claim.id, claim.account_id, claim.account) == (CLAIM_ID, ANA, "ana")
    assert (claim.name, claim.attempt) == ("ana/cv.json", 0)
    assert claim.reports == (str(report_path(path).relative_to(root)),)


@pytest.mark.parametrize(
    "name", ["cv-89abcdef.ndjson", "cv-89abcdef.json.gz", f"cv-{CLAIM_ID}.zip"]
)
def test_files_of_every_kind_and_under_either_name_are_found(root: Path, name: str) -> None:
    path = fail(root, name)
    (one,) = find(root, a_request()).values()
    assert one.path == str(path)


def test_a_file_without_its_report_is_not_taken_for_the_one_that_is_asked_for(root: Path) -> None:
    path = fail(root)
    report_path(path).unlink()
    assert find(root, a_request()) == {}


def test_a_file_of_another_claim_with_the_same_end_is_not_taken_for_it(root: Path) -> None:
    fail(root, claim_id="2" * 16 + "89abcdef")
    assert find(root, a_request()) == {}


def test_another_accounts_file_is_not_taken_for_the_one_that_is_asked_for(root: Path) -> None:
    fail(root)
    request = Request("b" * 16, CLAIM_ID, Action.RETRY, "2027-01-15T08:00:00.000Z", None)
    assert find(root, request) == {}


def test_a_held_file_is_found_by_its_name(root: Path) -> None:
    path = drop(root, f"_held/ana/{CLAIM_ID}-{ANA}-cv.json")
    drop(root, f"_held/ana/{'2' * 24}-{ANA}-cv.json")
    found = find(root, a_request(action=Action.RELEASE))
    assert found == {CLAIM_ID: holding.as_return(held_at(path), root, now_us=7)}


def held_at(path: Path) -> holding.Held:
    return holding.Held(CLAIM_ID, ANA, str(path))


def test_what_is_not_there_is_not_found(root: Path) -> None:
    assert find(root, a_request(), a_request("3" * 24, Action.RELEASE)) == {}


def test_nothing_is_followed_out_of_the_folder(root: Path, tmp_path: Path) -> None:
    path = fail(root)
    away = path.parent.rename(tmp_path / "away")
    (root / "_failed" / "invalid_json").symlink_to(away)
    assert find(root, a_request()) == {}
