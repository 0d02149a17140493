"""What becomes of a file for each error there is: one table, of which tests walk every code.

What a file's owner can do about a reason, `resumes.reasons` says.
"""

import dataclasses
import itertools
import json
import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from resumes import analyzer
from resumes.analyzer import Format, Resume
from resumes.errors import ErrorCode, InvalidJson, InvalidResume, Issue, ResumesError
from resumes.reasons import HINTS, Reason
from resumes.store.creating import Created, Creation, Duplicate, Outcome
from resumes.store.items import MOST_PROBLEMS, Items, Problem
from resumes.store.ledger import FileOutcome, FileRow, Item, Verdict
from resumes.text import counted, escaped


@dataclass(frozen=True, slots=True)
class Treatment:
    """What an error makes of a file. Without an outcome it stays claimed and is asked about again."""

    outcome: FileOutcome | None
    reason: Reason | None = None


_FAILED_INSIDE = Treatment(FileOutcome.FAILED, Reason.INTERNAL_ERROR)
_ASK_AGAIN = Treatment(None)

TREATMENTS: Mapping[ErrorCode, Treatment] = {
    ErrorCode.INVALID_JSON: Treatment(FileOutcome.FAILED, Reason.INVALID_JSON),
    ErrorCode.INVALID_RESUME: Treatment(FileOutcome.FAILED, Reason.INVALID_RESUME),
    ErrorCode.COVER_LETTER: Treatment(FileOutcome.FAILED, Reason.COVER_LETTER),
    ErrorCode.TOO_LARGE: Treatment(FileOutcome.FAILED, Reason.TOO_LARGE),
    ErrorCode.QUOTA_REACHED: Treatment(FileOutcome.HELD, Reason.QUOTA_REACHED),
    # The create path knows one thing that can be missing: the account.
    ErrorCode.NOT_FOUND: Treatment(FileOutcome.FAILED, Reason.ACCOUNT_DELETED),
    ErrorCode.STORE_UNAVAILABLE: _ASK_AGAIN,
    ErrorCode.OUTCOME_UNKNOWN: _ASK_AGAIN,
    ErrorCode.STORE_INCOMPATIBLE: _ASK_AGAIN,
    # No file can cause these: they concern requests, keys and names.
    ErrorCode.INVALID_ARGUMENT: _FAILED_INSIDE,
    ErrorCode.INVALID_KEY: _FAILED_INSIDE,
    ErrorCode.BUSINESS_PLAN_REQUIRED: _FAILED_INSIDE,
    ErrorCode.CONFLICT: _FAILED_INSIDE,
    ErrorCode.IDEMPOTENCY_MISMATCH: _FAILED_INSIDE,
}

WARNINGS_HINT = "The resume is stored. The warnings name what it holds that may not be meant."


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no resume could be made of a file. `byte_offset` counts from 0."""

    reason: Reason
    message: str
    path: str | None = None
    byte_offset: int | None = None
    issues: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemConclusion:
    """What became of one resume of a file of several. `place` is where it is, for people."""

    item: int
    place: str
    outcome: FileOutcome
    resume_id: str | None = None
    refusal: Refusal | None = None
    warnings: tuple[Issue, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The item as it stands in a report."""
        refusal = self.refusal
        is_duplicate = self.outcome is FileOutcome.DUPLICATE
        fields: dict[str, object] = {
            "item": self.item,
            "place": escaped(self.place),
            "outcome": self.outcome.value,
            "resume_id": None if is_duplicate else self.resume_id,
        }
        if is_duplicate:
            fields["duplicate_of"] = self.resume_id
        if refusal is not None:
            fields |= {
                "reason": refusal.reason.value,
                "message": escaped(refusal.message),
                "path": None if refusal.path is None else escaped(refusal.path),
                "byte_offset": refusal.byte_offset,
            }
        if self.warnings:
            fields["warnings"] = [
                {"path": escaped(issue.path), "message": escaped(issue.message)}
                for issue in self.warnings
            ]
        return fields


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What became of a claimed file. `resume_id` is the one made, or the one it duplicates; None
    for a file of several, whose `items` say it of each."""

    outcome: FileOutcome
    resume_id: str | None = None
    refusal: Refusal | None = None
    warnings: tuple[Issue, ...] = ()
    items: tuple[ItemConclusion, ...] = ()

    @property
    def hint(self) -> str:
        """What the file's owner can do."""
        return WARNINGS_HINT if self.refusal is None else HINTS[self.refusal.reason]

    @property
    def remark(self) -> str | None:
        """What is said of a file that is done and has a report; None without one."""
        if self.items:
            return f"Imported: {told_items(self.items)}"
        if self.warnings:
            return f"Imported, with {counted(len(self.warnings), 'warning')}"
        return None

    @property
    def needs_report(self) -> bool:
        """Whether there is more to say than that the file is done."""
        return self.outcome is not FileOutcome.DONE or bool(self.warnings or self.items)


def told_items(items: Iterable[ItemConclusion]) -> str:
    """How many items came to which end: `997 done, 3 failed`."""
    counts = Counter(item.outcome for item in items)
    order = (FileOutcome.DONE, FileOutcome.DUPLICATE, FileOutcome.HELD, FileOutcome.FAILED)
    return ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in order if counts[outcome])


def treat(code: ErrorCode) -> Treatment:
    """What an error of this code makes of a file."""
    return TREATMENTS[code]


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
    treatment = treat(error.code)
    refusal = refusal_of(error)
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


def conclusion_of(row: FileRow) -> Conclusion:
    """What the ledger says of a file, as far as its place depends on it."""
    if row.reason not in list(Reason):  # one of a later version
        return Conclusion(row.outcome)
    return Conclusion(row.outcome, refusal=Refusal(Reason(row.reason), row.message or ""))


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
    count = f"{told_items(items)}. " if len(items) > 1 else ""
    return dataclasses.replace(refusal, message=f"{count}{where}{refusal.message}")


def _warnings(verdict: Resume | Refusal | None) -> tuple[Issue, ...]:
    return verdict.warnings if isinstance(verdict, Resume) else ()


logger = logging.getLogger("resumes.importer")


def judge(body: bytes, format: Format) -> Resume | Refusal:  # noqa: A002  (as in analyzer.parse)
    """The resume that the bytes hold, or why they hold none. Never raises."""
    try:
        return analyzer.parse_imported(body, format)
    except ResumesError as error:
        return refusal_of(error)
    except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
        return internal_error()


def unreadable(error: OSError) -> Refusal:
    """A refusal for what cannot be opened."""
    # What is no regular file is refused by us, and the system has no words for that.
    why = f"Cannot read it: {error.strerror}" if error.strerror else "Not a regular file"
    return Refusal(Reason.UNREADABLE, why)


CRASHED = Refusal(
    Reason.CRASHED, "The importer ended unexpectedly each time that it read this file"
)


def refusal_of(error: ResumesError) -> Refusal:
    """The error as it stands in a report and in the ledger."""
    reason = treat(error.code).reason or Reason.INTERNAL_ERROR
    if isinstance(error, InvalidJson):
        return Refusal(reason, error.message, byte_offset=error.offset)
    if isinstance(error, InvalidResume):
        return Refusal(reason, error.message, path=error.issues[0].path, issues=error.issues)
    return Refusal(reason, error.message)


def internal_error() -> Refusal:
    """A refusal for the exception being handled, which is in the log under the same id."""
    error_id = secrets.token_hex(4)
    logger.exception("Internal error %s", error_id)
    return Refusal(Reason.INTERNAL_ERROR, f"Internal error {error_id}; the log says more")


def as_ledger_text(items: tuple[ItemConclusion, ...]) -> str | None:
    """The items as the ledger keeps them: counts, and the first that are not done."""
    if not items:
        return None
    counts = Counter(item.outcome for item in items)
    problems = (_problem(item) for item in items if item.outcome is not FileOutcome.DONE)
    short = Items(
        total=len(items),
        done=counts[FileOutcome.DONE],
        duplicate=counts[FileOutcome.DUPLICATE],
        held=counts[FileOutcome.HELD],
        failed=counts[FileOutcome.FAILED],
        problems=tuple(itertools.islice(problems, MOST_PROBLEMS)),
    )
    return json.dumps(short.as_json())


def _problem(item: ItemConclusion) -> Problem:
    refusal = item.refusal
    return Problem(
        item.item,
        escaped(item.place),
        item.outcome.value,
        refusal.reason.value if refusal else None,
        escaped(refusal.message) if refusal else None,
        escaped(refusal.path) if refusal and refusal.path is not None else None,
        refusal.byte_offset if refusal else None,
    )
