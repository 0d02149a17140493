import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from importer import reports
from importer.outcomes import Conclusion, ItemConclusion, Refusal
from importer.reading import Signature
from resumes.errors import Issue
from resumes.reasons import Reason
from resumes.store.ledger import FileOutcome
from tests.importer.builders import A_REFUSAL, DUPLICATE, FAILED, a_report, a_work_claim
from tests.resumes.builders import a_document


def composed(tmp_path: Path, conclusion: Conclusion, **claim: Any) -> dict[str, Any]:
    body = a_report(a_work_claim(tmp_path / ("f" * 16), **claim), conclusion)
    assert reports.is_report(body)
    report: dict[str, Any] = json.loads(body)
    return report


def test_a_report_says_what_it_was_and_what_to_do(tmp_path: Path) -> None:
    report = composed(tmp_path, FAILED)
    assert (report["file"], report["account"]) == ("ana/cv.json", "ana")
    assert (report["account_id"], report["claim_id"]) == ("f" * 16, "1" * 24)
    assert (report["outcome"], report["reason"]) == ("failed", "invalid_json")
    assert (report["message"], report["byte_offset"]) == ("Invalid JSON: cut short", 1)
    assert "UTF-8" in report["hint"]
    assert report["size_bytes"] == 3
    assert report["sha256"] == "ab" * 32
    assert report["modified_at"] == "2023-11-14T22:13:20.000Z"
    assert report["claimed_at"] == "2027-01-15T08:00:00.000Z"
    assert report["finished_at"] == "2027-01-15T08:00:00.500Z"
    assert report["items"] == []


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


def test_of_a_file_of_several_each_item_is_told(tmp_path: Path) -> None:
    items = (
        ItemConclusion(1, "line 1", FileOutcome.DONE, "2" * 24),
        ItemConclusion(2, "line 2", FileOutcome.DUPLICATE, "3" * 24),
    )
    report = composed(tmp_path, Conclusion(FileOutcome.DONE, items=items))
    assert report["message"] == "Imported: 1 done, 1 duplicate"
    assert [item["place"] for item in report["items"]] == ["line 1", "line 2"]
    assert report["items"][1]["duplicate_of"] == "3" * 24


def test_no_control_character_and_no_surrogate_gets_into_a_report(tmp_path: Path) -> None:
    refusal = dataclasses.replace(A_REFUSAL, message="a\x1b[31m\udcff", path="x\ny")
    item = ItemConclusion(1, "member \u202e", FileOutcome.FAILED, refusal=refusal)
    report = composed(tmp_path, Conclusion(FileOutcome.FAILED, refusal=refusal, items=(item,)))
    for told in (report, report["items"][0]):
        assert told["message"] == "a\\x1b[31m\\udcff"
        assert told["path"] == "x\\ny"
    assert report["items"][0]["place"] == "member \\u202e"


def test_a_time_that_no_calendar_holds_is_left_out(tmp_path: Path) -> None:
    body = a_report(a_work_claim(tmp_path), FAILED, Signature(1, 3, 2**100))
    assert json.loads(body)["modified_at"] is None


@pytest.mark.parametrize(
    "body",
    [
        a_document(),
        b'{"resumes_import_report": 1',
        b'["resumes_import_report"]',
        b'{"resumes_import_report": 2}',
        b'{"resumes_import_report": 1, "a": ' + b"[" * 100_000,
        b" " * 300 + b'{"resumes_import_report": 1}',
    ],
)
def test_what_only_looks_like_a_report_is_none(body: bytes) -> None:
    assert not reports.is_report(body)


def test_only_the_report_on_the_same_claim_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.report.json"
    claim = a_work_claim(tmp_path / "work")
    path.write_bytes(a_report(claim, FAILED))
    reports.remove_report(path, "9" * 24)
    assert reports.is_foreign(path, "9" * 24)
    assert not reports.is_foreign(path, claim.id)
    assert path.exists()
    reports.remove_report(path, claim.id)
    assert not path.exists()
    assert not reports.is_foreign(path, claim.id)
    path.write_bytes(b"somebody's own")
    reports.remove_report(path, claim.id)
    assert path.exists()


def test_what_is_larger_than_any_report_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = a_work_claim(tmp_path / "work")
    path = tmp_path / "a.report.json"
    path.write_bytes(a_report(claim, FAILED))
    assert reports.find_report(path) is not None
    monkeypatch.setattr(reports, "MAX_REPORT_BYTES", path.stat().st_size - 1)
    assert reports.find_report(path) is None
    assert reports.is_foreign(path, claim.id)


def test_what_is_no_file_is_no_report_and_stays(tmp_path: Path) -> None:
    claim = a_work_claim(tmp_path / "work")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "dangling", "pipe"):
        path = tmp_path / name
        assert reports.find_report(path) is None
        assert reports.is_foreign(path, claim.id)
        reports.remove_report(path, claim.id)
        assert os.path.lexists(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_no_report(tmp_path: Path) -> None:
    path = tmp_path / "a.report.json"
    path.touch(mode=0)
    assert reports.find_report(path) is None
