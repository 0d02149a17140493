import json

import pytest

from importer import outcomes
from importer.outcomes import TREATMENTS, Conclusion, ItemConclusion, Refusal, told_items, treat
from resumes.errors import ErrorCode, Issue
from resumes.reasons import HINTS, Reason
from resumes.store.ledger import FileOutcome
from tests.importer.builders import DONE, DUPLICATE, FAILED, HELD


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


def test_a_refused_file_has_the_code_that_the_api_answers_with() -> None:
    for code in ("invalid_json", "invalid_resume", "cover_letter", "too_large"):
        assert treat(ErrorCode(code)).reason == code


AN_ITEM = ItemConclusion(1, "line 1", FileOutcome.DONE, "2" * 24)


def test_a_report_is_needed_for_all_that_is_not_simply_done() -> None:
    assert not DONE.needs_report
    assert FAILED.needs_report
    assert FAILED.hint == HINTS[Reason.INVALID_JSON]
    warned = Conclusion(FileOutcome.DONE, "2" * 24, warnings=(Issue("nickname", "is unknown"),))
    assert warned.needs_report
    assert warned.hint.startswith("The resume is stored")
    assert HELD.needs_report
    assert DUPLICATE.needs_report
    assert Conclusion(FileOutcome.DONE, items=(AN_ITEM,)).needs_report


def test_a_file_that_is_simply_done_needs_no_remark() -> None:
    assert DONE.remark is None
    issue = Issue("nickname", "is unknown")
    warned = Conclusion(FileOutcome.DONE, warnings=(issue,))
    assert warned.remark == "Imported, with 1 warning"
    several = Conclusion(FileOutcome.DONE, warnings=(issue,), items=(AN_ITEM, AN_ITEM))
    assert several.remark == "Imported: 2 done"


def test_items_are_told_by_their_ends() -> None:
    ends = [FileOutcome.FAILED] * 3 + [FileOutcome.DONE] * 997 + [FileOutcome.HELD]
    items = [ItemConclusion(number, "", end) for number, end in enumerate(ends)]
    assert told_items(items) == "997 done, 1 held, 3 failed"
    assert told_items([]) == ""


def test_an_item_stands_in_a_report_as_what_became_of_it() -> None:
    assert AN_ITEM.as_dict() == {
        "item": 1,
        "place": "line 1",
        "outcome": "done",
        "resume_id": "2" * 24,
    }
    refusal = Refusal(Reason.INVALID_JSON, "no", path="a", byte_offset=0)
    refused = ItemConclusion(2, "line 2", FileOutcome.FAILED, refusal=refusal).as_dict()
    assert (refused["reason"], refused["message"]) == ("invalid_json", "no")
    assert (refused["path"], refused["byte_offset"]) == ("a", 0)
    warnings = (Issue("nickname", "is\nunknown"),)
    warned = ItemConclusion(3, "line 3", FileOutcome.DONE, warnings=warnings).as_dict()
    assert warned["warnings"] == [{"path": "nickname", "message": "is\\nunknown"}]


def test_an_item_that_is_a_duplicate_names_what_it_duplicates() -> None:
    refusal = Refusal(Reason.DUPLICATE, "The same content is stored")
    item = ItemConclusion(1, "item 1", FileOutcome.DUPLICATE, "2" * 24, refusal).as_dict()
    assert (item["resume_id"], item["duplicate_of"]) == (None, "2" * 24)
    assert item["reason"] == "duplicate"


def test_no_surrogate_of_a_place_or_message_is_in_the_way_of_writing_it() -> None:
    refusal = Refusal(Reason.INVALID_JSON, "\udcff", path="\udcff")
    item = outcomes.ItemConclusion(1, "member \udcff", FileOutcome.FAILED, refusal=refusal)
    json.dumps(item.as_dict(), ensure_ascii=False).encode()
