"""What the campaign holds against a store notices what is wrong."""

import json
from pathlib import Path

import pytest

from tests.chaos import checker, stores
from tests.chaos.checker import Found
from tests.support.api.load import Answer, Attempt

STORED = [("1", "one"), ("2", "two"), ("3", "three")]
TOLD = dict(STORED)


def an_attempt(resume_id: str, began_s: float, ended_s: float) -> Attempt:
    """A create that was acknowledged."""
    answer = Answer(201, {}, json.dumps({"id": resume_id}).encode())
    return Attempt("", b"", began_s, was_known=True, answer=answer, ended_s=ended_s)


def test_what_is_as_it_was_told_has_nothing_wrong() -> None:
    assert checker.compare(STORED, TOLD) == Found(3, lost=0, doubled=0, uninvited=0)


def test_what_is_not_there_is_lost() -> None:
    assert checker.compare(STORED[:2], TOLD) == Found(2, lost=1, doubled=0, uninvited=0)


def test_what_has_another_id_is_lost() -> None:
    stored = [*STORED[:2], ("4", "three")]
    assert checker.compare(stored, TOLD) == Found(3, lost=1, doubled=0, uninvited=0)


def test_what_is_there_twice_is_doubled() -> None:
    stored = [*STORED, ("4", "three")]
    assert checker.compare(stored, TOLD) == Found(4, lost=0, doubled=1, uninvited=0)


def test_what_was_refused_and_is_there_is_uninvited() -> None:
    found = checker.compare([*STORED, ("4", "four"), ("5", "five")], TOLD, unknown={"four"})
    assert found == Found(5, lost=0, doubled=0, uninvited=1)


def test_a_store_that_lacks_something_fails_the_check(tmp_path: Path) -> None:
    told = stores.a_full_store(tmp_path / "resumes.db", 3)
    assert checker.check(tmp_path / "resumes.db", told).stored == 3

    with pytest.raises(AssertionError):
        checker.check(tmp_path / "resumes.db", told | {"f" * 24: "number 3"})


def test_a_lower_id_for_what_was_sent_later_is_out_of_order() -> None:
    attempts = [an_attempt("2", 0, 1), an_attempt("1", 2, 3), an_attempt("3", 4, 5)]
    assert checker.count_out_of_order(attempts) == 1


def test_ids_of_what_was_sent_at_the_same_time_are_in_any_order() -> None:
    attempts = [an_attempt("2", 0, 3), an_attempt("1", 1, 2), an_attempt("3", 2, 4)]
    assert checker.count_out_of_order(attempts) == 0


def test_an_id_that_was_given_twice_is_noticed() -> None:
    with pytest.raises(AssertionError, match="twice"):
        checker.told_of([an_attempt("1", 0, 1), an_attempt("1", 2, 3)])


def test_names_that_are_missing_or_too_many_are_counted() -> None:
    assert checker.count_differences(["a", "b", "c"], ["a", "b", "b"]) == (1, 1)
