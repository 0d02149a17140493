"""From the create path's answer, or the ledger's, to what becomes of a file or an item of one."""

import dataclasses
from collections.abc import Sequence

from importer import judging, outcomes
from importer.outcomes import Conclusion, ItemConclusion, Refusal
from resumes.analyzer import Resume
from resumes.errors import Issue, ResumesError
from resumes.reasons import Reason
from resumes.store.creating import Created, Creation, Duplicate, Outcome
from resumes.store.ledger import FileOutcome, Item, Verdict


def verdict_of(conclusion: Conclusion) -> Verdict:
    """The conclusion as the ledger keeps it."""
    refusal = conclusion.refusal
    if refusal is None:
        return Verdict(conclusion.outcome)
    return Verdict(
        conclusion.outcome,
        refusal.reason.value,
        refusal.message,
        refusal.path,
        refusal.byte_offset,
    )


def conclude(
    verdict: Resume | Refusal, creation: Creation, result: Sequence[Outcome] | ResumesError
) -> Conclusion:
    """What the create path's answer makes of a file with one resume at most."""
    if isinstance(result, ResumesError):
        return _refused(result)
    if not result:
        return _unasked(verdict, creation)
    return conclude_one(verdict, result[0])


def conclude_one(verdict: Resume | Refusal, outcome: Outcome | ResumesError) -> Conclusion:
    """What the create path's answer makes of one resume."""
    if isinstance(outcome, Created):
        return Conclusion(FileOutcome.DONE, outcome.id, warnings=_warnings(verdict))
    if isinstance(outcome, Duplicate):
        return _duplicate(outcome)
    return _refused(outcome)


def _unasked(verdict: Resume | Refusal, creation: Creation) -> Conclusion:
    """Of a file that held nothing to create, or that queues behind others."""
    if isinstance(verdict, Refusal):
        return failed(verdict)
    return held(creation.failed.message if creation.failed else None)


def held(message: str | None) -> Conclusion:
    """The file waits for a place."""
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


def recall(item: Item, verdict: Resume | Refusal | None) -> Conclusion:
    """What the ledger says of a claim that was committed before."""
    if item.outcome is FileOutcome.DUPLICATE:
        return _duplicate(Duplicate(item.resume_id))
    return Conclusion(FileOutcome.DONE, item.resume_id, warnings=_warnings(verdict))


def sum_up(items: Sequence[ItemConclusion]) -> Conclusion:
    """What becomes of a file of several resumes: the worst that became of one, and a duplicate
    only when all are."""
    order = list(FileOutcome)
    worst = min((item.outcome for item in items), key=order.index)
    if worst is FileOutcome.DUPLICATE and any(i.outcome is FileOutcome.DONE for i in items):
        worst = FileOutcome.DONE
    if worst is FileOutcome.DONE:
        return Conclusion(worst, items=tuple(items))
    first = next(item for item in items if item.outcome is worst)
    return Conclusion(worst, refusal=_of_several(first, items), items=tuple(items))


def _of_several(first: ItemConclusion, items: Sequence[ItemConclusion]) -> Refusal:
    refusal = first.refusal or Refusal(Reason.INTERNAL_ERROR, "")
    where = f"{first.place}: " if first.place else ""
    count = f"{outcomes.told_items(items)}. " if len(items) > 1 else ""
    return dataclasses.replace(refusal, message=f"{count}{where}{refusal.message}")


def _warnings(verdict: Resume | Refusal | None) -> tuple[Issue, ...]:
    return verdict.warnings if isinstance(verdict, Resume) else ()
