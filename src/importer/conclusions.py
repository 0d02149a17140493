"""From the create path's answer, or the ledger's, to what becomes of a file."""

import dataclasses
from collections.abc import Sequence

from importer import judging, outcomes
from importer.judging import Judged
from importer.outcomes import Conclusion, Reason, Refusal
from resumes.analyzer import Resume
from resumes.errors import Issue, ResumesError
from resumes.store.creating import Created, Creation, Duplicate, Outcome
from resumes.store.ledger import FileOutcome, Item, Verdict


def verdict_of(refusal: Refusal) -> Verdict:
    """The refusal as the ledger keeps it."""
    return Verdict(
        FileOutcome.FAILED,
        refusal.reason.value,
        refusal.message,
        refusal.path,
        refusal.byte_offset,
    )


def conclude(
    judged: Judged, creation: Creation, result: Sequence[Outcome] | ResumesError
) -> Conclusion:
    """What the create path's answer makes of the file."""
    if isinstance(result, ResumesError):
        return _refused(result)
    if not result:
        return _unasked(judged, creation)
    outcome = result[0]
    if isinstance(outcome, Created):
        return Conclusion(FileOutcome.DONE, outcome.id, warnings=_warnings(judged))
    if isinstance(outcome, Duplicate):
        return _duplicate(outcome)
    return _refused(outcome)


def _unasked(judged: Judged, creation: Creation) -> Conclusion:
    """Of a file that held nothing to create, or that queues behind others."""
    if isinstance(judged.verdict, Refusal):
        return failed(judged.verdict)
    message = creation.failed.message if creation.failed else None
    return Conclusion(FileOutcome.HELD, refusal=Refusal(Reason.QUOTA_REACHED, message or ""))


def _refused(error: ResumesError) -> Conclusion:
    treatment = outcomes.treat(error.code)
    refusal = judging.refusal(error)
    if refusal.reason is Reason.ACCOUNT_DELETED:
        refusal = dataclasses.replace(refusal, message="The account was deleted")
    return Conclusion(treatment.outcome or FileOutcome.FAILED, refusal=refusal)


def failed(refusal: Refusal) -> Conclusion:
    """The file failed for this reason."""
    return Conclusion(FileOutcome.FAILED, refusal=refusal)


def _duplicate(outcome: Duplicate) -> Conclusion:
    refusal = Refusal(Reason.DUPLICATE, outcome.message)
    return Conclusion(FileOutcome.DUPLICATE, outcome.id, refusal)


def recall(item: Item, judged: Judged) -> Conclusion:
    """What the ledger says of a claim that was committed before."""
    if item.outcome is FileOutcome.DUPLICATE:
        return _duplicate(Duplicate(item.resume_id))
    return Conclusion(FileOutcome.DONE, item.resume_id, warnings=_warnings(judged))


def _warnings(judged: Judged) -> tuple[Issue, ...]:
    return judged.verdict.warnings if isinstance(judged.verdict, Resume) else ()
