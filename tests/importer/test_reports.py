import dataclasses
import json
from pathlib import Path
from typing import Any

from importer import reports
from importer.outcomes import Conclusion, Reason, Refusal
from resumes.errors import Issue
from resumes.store.ledger import FileOutcome
from tests.importer.builders import A_REFUSAL, DUPLICATE, FAILED, a_work_claim, judged
from tests.resumes.builders import a_document

NOW_US = 1_800_000_000_500_000


def composed(tmp_path: Path, conclusion: Conclusion, **claim: Any) -> dict[str, Any]:
    body = reports.compose(
        a_work_claim(tmp_path / ("f" * 16), **claim),
        judged(b'{"a', A_REFUSAL),
        conclusion,
        now_us=NOW_US,
    )
    assert reports.is_report(body)
    report: dict[str, Any] = json.loads(body)
    return report


def test_a_report_says_what_it_was_and_what_to_do(tmp_path: Path) -> None:
    report = composed(tmp_path, FAILED)
    assert (report["file"], report["account"]) == ("ana/cv.json", "ana")
    assert (report["outcome"], report["reason"]) == ("failed", "invalid_json")
    assert (report["message"], report["byte_offset"]) == ("Invalid JSON: cut short", 1)
    assert "UTF-8" in report["hint"]
    assert report["size_bytes"] == 3
    assert len(report["sha256"]) == 64
    assert report["modified_at"] == "2023-11-14T22:13:20.000Z"
    assert report["finished_at"] == "2027-01-15T08:00:00.500Z"


def test_all_issues_and_warnings_are_listed(tmp_path: Path) -> None:
    issues = (Issue("title", "must be text"), Issue("style", "must be an object"))
    refusal = Refusal(Reason.INVALID_RESUME, "title must be text", path="title", issues=issues)
    report = composed(tmp_path, Conclusion(FileOutcome.FAILED, refusal=refusal))
    assert report["path"] == "title"
    assert [issue["path"] for issue in report["issues"]] == ["title", "style"]
    warned = composed(tmp_path, Conclusion(FileOutcome.DONE, "2" * 24, warnings=issues))
    assert warned["message"] == "Imported, with 2 warnings"
    assert warned["resume_id"] == "2" * 24
    assert len(warned["warnings"]) == 2


def test_a_duplicate_names_what_it_duplicates(tmp_path: Path) -> None:
    report = composed(tmp_path, DUPLICATE)
    assert (report["duplicate_of"], report["resume_id"]) == ("2" * 24, None)


def test_no_control_character_and_no_surrogate_gets_into_a_report(tmp_path: Path) -> None:
    refusal = dataclasses.replace(A_REFUSAL, message="a\x1b[31m\udcff", path="x\ny")
    report = composed(tmp_path, Conclusion(FileOutcome.FAILED, refusal=refusal))
    assert report["message"] == "a\\x1b[31m\\udcff"
    assert report["path"] == "x\\ny"


def test_a_time_that_no_calendar_holds_is_left_out(tmp_path: Path) -> None:
    one = judged(b"{", A_REFUSAL)
    signature = one.content.signature._replace(mtime_ns=2**100)
    one = dataclasses.replace(one, content=dataclasses.replace(one.content, signature=signature))
    body = reports.compose(a_work_claim(tmp_path), one, FAILED, now_us=NOW_US)
    assert json.loads(body)["modified_at"] is None


def test_what_only_looks_like_a_report_is_none() -> None:
    assert not reports.is_report(a_document())
    assert not reports.is_report(b'{"resumes_import_report": 1')
    assert not reports.is_report(b'["resumes_import_report"]')


def test_only_the_report_on_the_same_claim_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.report.json"
    claim = a_work_claim(tmp_path / "work")
    path.write_bytes(reports.compose(claim, judged(b"{", A_REFUSAL), FAILED, now_us=NOW_US))
    reports.remove_report(path, "9" * 24)
    assert reports.is_foreign(path, "9" * 24)
    assert not reports.is_foreign(path, claim.id)
    assert path.exists()
    reports.remove_report(path, claim.id)
    assert not path.exists()
    path.write_bytes(b"somebody's own")
    reports.remove_report(path, claim.id)
    assert path.exists()
