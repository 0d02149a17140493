from collections.abc import Sequence

import pytest

from importer import conclusions
from importer.outcomes import Conclusion, Reason, Refusal
from resumes.errors import Issue, NotFound, QuotaReached, ResumesError
from resumes.store.creating import Created, Creation, Duplicate, Outcome
from resumes.store.ledger import FileOutcome, Item, Verdict
from tests.importer.builders import A_REFUSAL, judged
from tests.resumes.builders import a_document

CREATION = Creation("a" * 16, (), 0)


@pytest.mark.parametrize(
    ("result", "outcome", "reason", "resume_id"),
    [
        ([Created("1" * 24)], FileOutcome.DONE, None, "1" * 24),
        ([Created("1" * 24, replayed=True)], FileOutcome.DONE, None, "1" * 24),
        ([Duplicate("1" * 24)], FileOutcome.DUPLICATE, Reason.DUPLICATE, "1" * 24),
        ([QuotaReached(max_resumes=5)], FileOutcome.HELD, Reason.QUOTA_REACHED, None),
        (NotFound("Account not found"), FileOutcome.FAILED, Reason.ACCOUNT_DELETED, None),
    ],
)
def test_the_stores_answer_decides(
    result: Sequence[Outcome] | ResumesError,
    outcome: FileOutcome,
    reason: Reason | None,
    resume_id: str | None,
) -> None:
    conclusion = conclusions.conclude(judged(a_document()), CREATION, result)
    assert (conclusion.outcome, conclusion.resume_id) == (outcome, resume_id)
    assert (conclusion.refusal.reason if conclusion.refusal else None) == reason


def test_a_file_that_held_no_resume_failed() -> None:
    conclusion = conclusions.conclude(judged(b"{", A_REFUSAL), CREATION, [])
    assert conclusion == Conclusion(FileOutcome.FAILED, refusal=A_REFUSAL)


def test_a_file_that_queues_behind_others_is_held() -> None:
    creation = Creation("a" * 16, (), 0, failed=Verdict(FileOutcome.HELD, message="Full"))
    conclusion = conclusions.conclude(judged(a_document()), creation, [])
    assert conclusion.refusal == Refusal(Reason.QUOTA_REACHED, "Full")
    assert conclusion.outcome is FileOutcome.HELD


def test_warnings_come_with_the_resume() -> None:
    one = judged(a_document(nickname="Ada"))
    made = conclusions.conclude(one, CREATION, [Created("1" * 24)])
    recalled = conclusions.recall(Item(0, FileOutcome.DONE, "1" * 24), one)
    assert made == recalled
    assert [warning.path for warning in made.warnings] == ["nickname"]


def test_the_ledger_recalls_a_duplicate() -> None:
    recalled = conclusions.recall(Item(0, FileOutcome.DUPLICATE, "1" * 24), judged(a_document()))
    assert (recalled.outcome, recalled.resume_id) == (FileOutcome.DUPLICATE, "1" * 24)


def test_the_ledger_keeps_where_a_refusal_points() -> None:
    refusal = Refusal(Reason.INVALID_RESUME, "no", path="title", issues=(Issue("title", "no"),))
    verdict = conclusions.verdict_of(refusal)
    assert verdict == Verdict(FileOutcome.FAILED, "invalid_resume", "no", "title", None)
