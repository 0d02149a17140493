"""Every error has its words."""

import pytest

from resumes.errors import ErrorCode, NotFound, OutcomeUnknown, StoreUnavailable
from tui.notices import NOTICES, failure, internal_failure


def test_every_error_code_has_a_notice() -> None:
    assert set(NOTICES) == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_a_notice_says_what_to_do(code: ErrorCode) -> None:
    assert NOTICES[code].remedy.endswith(".")


def test_a_failure_is_the_errors_message_and_the_remedy() -> None:
    told = failure(StoreUnavailable("The store is busy")).content

    assert told.plain == "! The store is busy. r tries again."


def test_a_message_from_data_is_made_safe() -> None:
    assert "\x1b" not in failure(NotFound("no \x1b]52;c;AAAA\x07")).content.plain


def test_an_unknown_outcome_does_not_talk_of_idempotency_keys() -> None:
    assert "Idempotency" not in failure(OutcomeUnknown()).content.plain


def test_an_internal_error_names_its_reference() -> None:
    assert "1a2b3c4d" in internal_failure("1a2b3c4d").content.plain
