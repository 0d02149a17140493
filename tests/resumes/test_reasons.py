"""Reasons in plain words."""

import pytest

from resumes.reasons import HINTS, WORDS, Reason, find_hint, plain_words

LONGEST = 20


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words_that_fit_into_a_column(reason: Reason) -> None:
    assert plain_words(reason.value) == WORDS[reason]
    assert len(WORDS[reason]) <= LONGEST


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_hint(reason: Reason) -> None:
    assert find_hint(reason.value) == HINTS[reason]
    assert HINTS[reason].endswith(".")


def test_no_two_reasons_have_the_same_words() -> None:
    assert len(set(WORDS.values())) == len(Reason)


def test_a_reason_that_is_not_known_is_said_as_it_is() -> None:
    assert plain_words("eaten_by_a_dog") == "eaten_by_a_dog"
    assert find_hint("eaten_by_a_dog") is None
