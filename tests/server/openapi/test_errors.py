import pytest

from server.openapi.errors import ANYWHERE, ERRORS, ErrorAnswer, error_responses, responses
from server.rate_limits import REFUSAL
from server.responses import STATUSES


def test_every_status_of_a_domain_error_is_described() -> None:
    assert set(STATUSES.values()) <= {each.status for each in ERRORS}


def test_names_are_unique() -> None:
    assert len(error_responses()) == len(ERRORS)


@pytest.mark.parametrize("answer", ERRORS, ids=lambda each: each.name)
def test_an_example_tells_its_status_and_message(answer: ErrorAnswer) -> None:
    content = error_responses()[answer.name]["content"]["application/json"]
    assert content["example"]["status"] == answer.status
    assert content["example"]["error"] == answer.message
    fixed = content["schema"]["properties"]
    assert fixed["status"] == {"const": answer.status}
    assert ("error" in fixed) == answer.is_exact


def test_answers_are_named_by_their_status_in_ascending_order() -> None:
    named = responses("Unavailable", "NotFound", *ANYWHERE)
    assert list(named) == sorted(named)
    assert named["404"] == {"$ref": "#/components/responses/NotFound"}


def test_too_many_requests_are_told_in_the_words_of_the_limit() -> None:
    assert REFUSAL in {each.message for each in ERRORS if each.status == 429}
