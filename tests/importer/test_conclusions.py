from collections.abc import Sequence

import pytest

from importer import conclusions
from importer.outcomes import Conclusion, ItemConclusion, Refusal
from resumes import analyzer
from resumes.errors import Issue, NotFound, QuotaReached, ResumesError, StoreUnavailable
from resumes.reasons import Reason
from resumes.store.creating import Created, Creation, Duplicate, Outcome
from resumes.store.ledger import FileOutcome, Item, Verdict
from tests.importer.builders import A_REFUSAL, DONE, DUPLICATE, FAILED
from tests.resumes.builders import a_document

CREATION = Creation("a" * 16, (), 0)
A_RESUME = analyzer.parse(a_document())


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
    conclusion = conclusions.conclude(A_RESUME, CREATION, result)
    assert (conclusion.outcome, conclusion.resume_id) == (outcome, resume_id)
    assert (conclusion.refusal.reason if conclusion.refusal else None) == reason
    one = result if isinstance(result, ResumesError) else result[0]
    assert conclusions.conclude_one(A_RESUME, one) == conclusion


def test_s14_a_file_of_an_account_that_is_gone_says_so_whatever_it_holds() -> None:
    gone = conclusions.conclude(A_REFUSAL, CREATION, NotFound("Account not found"))
    assert gone.refusal == Refusal(Reason.ACCOUNT_DELETED, "The account was deleted")


def test_an_error_that_is_asked_about_again_is_never_a_success() -> None:
    conclusion = conclusions.conclude_one(A_RESUME, StoreUnavailable("The disk is full"))
    assert conclusion.outcome is FileOutcome.FAILED
    assert conclusion.refusal == Refusal(Reason.INTERNAL_ERROR, "The disk is full")


def test_a_file_that_held_no_resume_failed() -> None:
    conclusion = conclusions.conclude(A_REFUSAL, CREATION, [])
    assert conclusion == Conclusion(FileOutcome.FAILED, refusal=A_REFUSAL)


def test_a_file_that_queues_behind_others_is_held() -> None:
    creation = Creation("a" * 16, (), 0, failed=Verdict(FileOutcome.HELD, message="Full"))
    conclusion = conclusions.conclude(A_RESUME, creation, [])
    assert conclusion.refusal == Refusal(Reason.QUOTA_REACHED, "Full")
    assert conclusion.outcome is FileOutcome.HELD
    assert conclusion == conclusions.held("Full")


def test_warnings_come_with_the_resume() -> None:
    resume = analyzer.parse(a_document(nickname="Ada"))
    made = conclusions.conclude(resume, CREATION, [Created("1" * 24)])
    recalled = conclusions.recall(Item(0, FileOutcome.DONE, "1" * 24), resume)
    assert made == recalled
    assert [warning.path for warning in made.warnings] == ["nickname"]


def test_the_ledger_recalls_what_was_made_of_a_file_that_is_a_resume_no_more() -> None:
    for verdict in (A_REFUSAL, None):
        recalled = conclusions.recall(Item(0, FileOutcome.DONE, "1" * 24), verdict)
        assert recalled == Conclusion(FileOutcome.DONE, "1" * 24)


def test_the_ledger_recalls_a_duplicate() -> None:
    recalled = conclusions.recall(Item(0, FileOutcome.DUPLICATE, "1" * 24), A_RESUME)
    assert (recalled.outcome, recalled.resume_id) == (FileOutcome.DUPLICATE, "1" * 24)
    assert recalled == conclusions.conclude(A_RESUME, CREATION, [Duplicate("1" * 24)])


def test_the_ledger_keeps_where_a_refusal_points() -> None:
    refusal = Refusal(Reason.INVALID_RESUME, "no", path="title", issues=(Issue("title", "no"),))
    verdict = conclusions.verdict_of(conclusions.failed(refusal))
    assert verdict == Verdict(FileOutcome.FAILED, "invalid_resume", "no", "title", None)
    verdict = conclusions.verdict_of(FAILED)
    assert (verdict.path, verdict.byte_offset) == (None, 1)
    assert conclusions.verdict_of(DONE) == Verdict(FileOutcome.DONE)
    assert conclusions.verdict_of(DUPLICATE).outcome is FileOutcome.DUPLICATE


# Files of several resumes


def items(*outcomes: FileOutcome) -> list[ItemConclusion]:
    """Items that came to these ends, in this order."""
    return [
        ItemConclusion(
            number,
            f"line {number}",
            outcome,
            refusal=None if outcome is FileOutcome.DONE else Refusal(Reason.DUPLICATE, "no"),
        )
        for number, outcome in enumerate(outcomes, 1)
    ]


HELD_ITEM, FAILED_ITEM = FileOutcome.HELD, FileOutcome.FAILED
DUPLICATE_ITEM, DONE_ITEM = FileOutcome.DUPLICATE, FileOutcome.DONE


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([DONE_ITEM], DONE_ITEM),
        ([DUPLICATE_ITEM, DUPLICATE_ITEM], DUPLICATE_ITEM),
        ([DUPLICATE_ITEM, DONE_ITEM], DONE_ITEM),
        ([DONE_ITEM, FAILED_ITEM, DUPLICATE_ITEM], FAILED_ITEM),
        ([DUPLICATE_ITEM, FAILED_ITEM], FAILED_ITEM),
        ([DONE_ITEM, FAILED_ITEM, HELD_ITEM], HELD_ITEM),
    ],
)
def test_a_file_of_several_comes_to_the_worst_end_and_is_a_duplicate_only_when_all_are(
    outcomes: list[FileOutcome], expected: FileOutcome
) -> None:
    conclusion = conclusions.sum_up(items(*outcomes))
    assert conclusion.outcome is expected
    assert (conclusion.refusal is None) == (expected is FileOutcome.DONE)
    assert [item.outcome for item in conclusion.items] == outcomes


def test_a_file_of_several_is_refused_with_the_first_of_the_worst() -> None:
    several = [
        *items(DONE_ITEM, DUPLICATE_ITEM),
        ItemConclusion(3, "line 3", FAILED_ITEM, refusal=A_REFUSAL),
        ItemConclusion(4, "line 4", FAILED_ITEM, refusal=Refusal(Reason.TOO_LARGE, "large")),
    ]
    refusal = conclusions.sum_up(several).refusal
    assert refusal is not None
    assert (refusal.reason, refusal.byte_offset) == (A_REFUSAL.reason, A_REFUSAL.byte_offset)
    assert refusal.message == (f"1 done, 1 duplicate, 2 failed. line 3: {A_REFUSAL.message}")


def test_a_file_that_turns_out_to_hold_one_is_refused_in_the_words_of_one() -> None:
    alone = ItemConclusion(1, "", FAILED_ITEM, refusal=A_REFUSAL)
    assert conclusions.sum_up([alone]).refusal == A_REFUSAL
