"""Answers that are kept for a multiple of what they cost."""

import pytest

from resumes.health.slow import Kept, SlowAnswers
from resumes.store import Store
from resumes.store.accounts import AccountInfo
from resumes.store.ledger import FileOutcome
from tests.resumes.store.builders import a_file


class Question:
    """Takes a second, and answers how often it was asked."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.times = 0

    def ask(self, _: Store) -> int:
        self.now_s += 1
        self.times += 1
        return self.times


def test_an_answer_counts_for_fifty_times_as_long_as_it_took(store: Store) -> None:
    question = Question()
    kept = Kept(question.ask, lambda: question.now_s)

    assert kept.get(store) == 1
    question.now_s += 49.9
    assert kept.get(store) == 1
    question.now_s += 0.2
    assert kept.get(store) == 2


def test_one_that_is_forgotten_is_asked_anew(store: Store) -> None:
    question = Question()
    kept = Kept(question.ask, lambda: question.now_s)
    kept.get(store)

    kept.forget()

    assert kept.get(store) == 2


def test_one_that_failed_is_asked_anew(store: Store) -> None:
    answers = iter([0, 1])

    def ask(_: Store) -> int:
        return 1 // next(answers)

    kept = Kept(ask, lambda: 0.0)
    with pytest.raises(ZeroDivisionError):
        kept.get(store)

    assert kept.get(store) == 1


def test_all_are_forgotten_together(store: Store, account: AccountInfo) -> None:
    times = iter(float(second) for second in range(100))
    slow = SlowAnswers(lambda: next(times))
    assert not slow.wrong_counters.get(store)
    before = slow.file_tallies.get(store)
    a_file(store, account)
    assert slow.file_tallies.get(store) is before

    slow.forget()

    assert [one.outcome for one in slow.file_tallies.get(store) if one.files] == [
        FileOutcome.FAILED
    ]
