import pytest

from importer.outcomes import HINTS, TREATMENTS, Conclusion, Reason, treat
from resumes.errors import ErrorCode
from resumes.store.ledger import FileOutcome
from tests.importer.builders import DONE, FAILED


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_has_a_treatment(code: ErrorCode) -> None:
    treatment = treat(code)
    assert (treatment.outcome is None) == (treatment.reason is None)


def test_only_what_concerns_the_store_is_asked_again() -> None:
    again = {code for code, treatment in TREATMENTS.items() if treatment.outcome is None}
    assert again == {
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.STORE_INCOMPATIBLE,
    }


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_hint(reason: Reason) -> None:
    assert HINTS[reason].endswith(".")


def test_a_refused_file_has_the_code_that_the_api_answers_with() -> None:
    for code in ("invalid_json", "invalid_resume", "cover_letter", "too_large"):
        assert treat(ErrorCode(code)).reason == code


def test_a_report_is_needed_for_all_that_is_not_simply_done() -> None:
    assert not DONE.needs_report
    assert FAILED.needs_report
    assert FAILED.hint == HINTS[Reason.INVALID_JSON]
    warned = Conclusion(FileOutcome.DONE, "2" * 24, warnings=FAILED.warnings)
    assert warned.hint.startswith("The resume is stored")
