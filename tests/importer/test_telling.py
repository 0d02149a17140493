from pathlib import Path

from importer.outcomes import Conclusion
from importer.telling import FileReport, Remarks, Summary, as_report, unowned
from resumes.errors import Issue
from resumes.store.ledger import FileOutcome
from tests.importer.builders import FAILED, a_work_claim


def test_a_thing_is_told_once_until_it_is_over() -> None:
    told: list[str] = []
    remarks = Remarks(told.append)
    remarks("a", "first")
    remarks("a", "again")
    assert remarks.has_told("a")
    assert remarks.over("a")
    assert not remarks.over("a")
    remarks("a", "anew")
    remarks.tell("whatever")
    assert told == ["first", "anew", "whatever"]


def test_a_summary_begins_at_nothing() -> None:
    assert Summary() == Summary(done=0, failed=0, duplicate=0, held=0, ignored=0, waiting=0)


def test_people_are_told_what_became_of_a_file(tmp_path: Path) -> None:
    claim = a_work_claim(tmp_path)
    assert as_report(claim, FAILED, "/inbox/_failed/x.json") == FileReport(
        account="ana",
        name="ana/cv.json",
        outcome=FileOutcome.FAILED,
        reason="invalid_json",
        message="Invalid JSON: cut short",
        filed_as="/inbox/_failed/x.json",
        resume_id=None,
        warnings=0,
        claim_id=claim.id,
    )


def test_people_are_told_of_warnings(tmp_path: Path) -> None:
    warned = Conclusion(FileOutcome.DONE, "2" * 24, warnings=(Issue("nickname", "is unknown"),))
    report = as_report(a_work_claim(tmp_path), warned, "/inbox/_done/x.json")
    assert (report.reason, report.message) == (None, "Imported, with 1 warning")
    assert (report.resume_id, report.warnings) == ("2" * 24, 1)


def test_people_are_told_what_nobody_owns_and_what_to_do() -> None:
    assert '"bo\\x0a" names no account' in unowned("bo\n", None)
    assert 'no account "ana"' in unowned("", "ana")
    assert "--account" in unowned("", None)
