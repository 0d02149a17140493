"""What happens to a file for each error: one table, of which tests walk every code.

What a file's owner can do about a reason, `resumes.import_reasons` says.
"""

import itertools
import json
import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from resumes import analyzer
from resumes.analyzer import Format, Resume
from resumes.errors import ErrorCode, InvalidJson, InvalidResume, Issue, NotFound, ResumesError
from resumes.import_reasons import Reason
from resumes.store.creation import Created, Creation, Duplicate, Outcome
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import MAX_PROBLEMS, FileOutcome, Items, Problem, Verdict
from resumes.text import counted, escaped

logger = logging.getLogger("resumes.importer")


REASONS: Mapping[ErrorCode, Reason | None] = {
    ErrorCode.INVALID_JSON: Reason.INVALID_JSON,
    ErrorCode.INVALID_RESUME: Reason.INVALID_RESUME,
    ErrorCode.COVER_LETTER: Reason.COVER_LETTER,
    ErrorCode.TOO_LARGE: Reason.TOO_LARGE,
    ErrorCode.QUOTA_REACHED: Reason.QUOTA_REACHED,
    # The create path knows one thing that can be missing: the account.
    ErrorCode.NOT_FOUND: Reason.ACCOUNT_DELETED,
    ErrorCode.STORE_UNAVAILABLE: None,
    ErrorCode.OUTCOME_UNKNOWN: None,
    ErrorCode.STORE_INCOMPATIBLE: None,
    # No file can cause these: they concern requests, keys and names.
    ErrorCode.INVALID_ARGUMENT: Reason.INTERNAL_ERROR,
    ErrorCode.INVALID_KEY: Reason.INTERNAL_ERROR,
    ErrorCode.BUSINESS_PLAN_REQUIRED: Reason.INTERNAL_ERROR,
    ErrorCode.CONFLICT: Reason.INTERNAL_ERROR,
    ErrorCode.IDEMPOTENCY_MISMATCH: Reason.INTERNAL_ERROR,
}
"""Why a file failed, or is held at a full quota. With None the store is asked again later."""


class Refusal(NamedTuple):
    """Why no resume could be made of a file. `byte_offset` counts from 0."""

    reason: Reason
    message: str
    path: str | None = None
    byte_offset: int | None = None
    issues: tuple[Issue, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the reason as reports and the ledger's items have it."""
        return {
            "reason": self.reason.value,
            "message": escaped(self.message),
            "path": None if self.path is None else escaped(self.path),
            "byte_offset": self.byte_offset,
        }


def issues_as_dicts(issues: Iterable[Issue]) -> list[dict[str, str]]:
    """Return issues or warnings as reports have them."""
    return [{"path": escaped(issue.path), "message": escaped(issue.message)} for issue in issues]


class ItemConclusion(NamedTuple):
    """The outcome of one resume in a file of several. `place` is where it is, for people."""

    item: int
    place: str
    outcome: FileOutcome
    resume_id: str | None = None
    refusal: Refusal | None = None
    warnings: tuple[Issue, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the item as reports have it."""
        is_duplicate = self.outcome is FileOutcome.DUPLICATE
        return {
            "item": self.item,
            "place": escaped(self.place),
            "outcome": self.outcome.value,
            "resume_id": None if is_duplicate else self.resume_id,
            **({"duplicate_of": self.resume_id} if is_duplicate else {}),
            **(self.refusal.as_dict() if self.refusal else {}),
            **({"warnings": issues_as_dicts(self.warnings)} if self.warnings else {}),
        }


class Conclusion(NamedTuple):
    """The outcome of a claimed file.

    `resume_id` is the one made, or the one it duplicates; None for a file of several, whose
    `items` say it of each.
    """

    outcome: FileOutcome
    resume_id: str | None = None
    refusal: Refusal | None = None
    warnings: tuple[Issue, ...] = ()
    items: tuple[ItemConclusion, ...] = ()

    @property
    def remark(self) -> str | None:
        """The message about a file that is done and has a report; None without one."""
        if self.items:
            return f"Imported: {_count(self.items)}"
        if self.warnings:
            return f"Imported, with {counted(len(self.warnings), 'warning')}"
        return None

    @property
    def needs_report(self) -> bool:
        """Whether there is more to say than that the file is done."""
        return self.outcome is not FileOutcome.DONE or bool(self.warnings or self.items)


def _count(items: Iterable[ItemConclusion]) -> str:
    """Return how many items came to which end: `997 done, 3 failed`."""
    counts = Counter(item.outcome for item in items)
    order = (FileOutcome.DONE, FileOutcome.DUPLICATE, FileOutcome.HELD, FileOutcome.FAILED)
    return ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in order if counts[outcome])


def conclude(
    verdict: Resume | Refusal, creation: Creation, result: Sequence[Outcome] | ResumesError
) -> Conclusion:
    """Return what the create path's answer makes of a file with one resume at most."""
    if isinstance(result, ResumesError):
        return conclude_one(verdict, result)
    if result:
        return conclude_one(verdict, result[0])
    if isinstance(verdict, Refusal):
        return failed(verdict)
    return held(creation.failed.message if creation.failed else None)


def conclude_one(verdict: Resume | Refusal, outcome: Outcome | ResumesError) -> Conclusion:
    """Return what the create path's answer makes of one resume."""
    if isinstance(outcome, Created):
        warnings = verdict.warnings if isinstance(verdict, Resume) else ()
        return Conclusion(FileOutcome.DONE, outcome.id, warnings=warnings)
    if isinstance(outcome, Duplicate):
        refusal = Refusal(Reason.DUPLICATE, outcome.message)
        return Conclusion(FileOutcome.DUPLICATE, outcome.id, refusal)
    refusal = _refusal_of(outcome)
    is_held = refusal.reason is Reason.QUOTA_REACHED
    return Conclusion(FileOutcome.HELD if is_held else FileOutcome.FAILED, refusal=refusal)


def failed(refusal: Refusal) -> Conclusion:
    """Return the end of a file that failed for this reason."""
    return Conclusion(FileOutcome.FAILED, refusal=refusal)


def held(message: str | None) -> Conclusion:
    """Return the end of a file that waits for a place."""
    return Conclusion(FileOutcome.HELD, refusal=Refusal(Reason.QUOTA_REACHED, message or ""))


def sum_up(items: Sequence[ItemConclusion]) -> Conclusion:
    """Return the outcome of a file of several resumes.

    That is the worst of theirs; the file is a duplicate only when all of them are.
    """
    order = (FileOutcome.HELD, FileOutcome.FAILED, FileOutcome.DONE, FileOutcome.DUPLICATE)
    first = min(items, key=lambda item: order.index(item.outcome))
    if first.outcome is FileOutcome.DONE:
        return Conclusion(FileOutcome.DONE, items=tuple(items))
    refusal = first.refusal or Refusal(Reason.INTERNAL_ERROR, "")
    where = f"{first.place}: " if first.place else ""
    count = f"{_count(items)}. " if len(items) > 1 else ""
    refusal = refusal._replace(message=f"{count}{where}{refusal.message}")
    return Conclusion(first.outcome, refusal=refusal, items=tuple(items))


def conclusion_of(row: FileRow) -> Conclusion:
    """Return what the ledger says of a file, as far as its place depends on it."""
    if row.reason not in list(Reason):  # one of a later version
        return Conclusion(row.outcome)
    return Conclusion(row.outcome, refusal=Refusal(Reason(row.reason), row.message or ""))


def verdict_of(conclusion: Conclusion) -> Verdict:
    """Return the conclusion as the ledger keeps it."""
    refusal = conclusion.refusal
    if refusal is None:
        return Verdict(conclusion.outcome)
    reason, message, path, byte_offset, _ = refusal
    return Verdict(conclusion.outcome, reason.value, message, path, byte_offset)


def as_ledger_text(items: tuple[ItemConclusion, ...]) -> str | None:
    """Return the items as the ledger keeps them: counts, and the first that are not done."""
    if not items:
        return None
    counts = Counter(item.outcome for item in items)
    problems = (
        Problem(
            item.item,
            escaped(item.place),
            item.outcome.value,
            **(item.refusal.as_dict() if item.refusal else {}),
        )
        for item in items
        if item.outcome is not FileOutcome.DONE
    )
    short = Items(
        total=len(items),
        done=counts[FileOutcome.DONE],
        duplicate=counts[FileOutcome.DUPLICATE],
        held=counts[FileOutcome.HELD],
        failed=counts[FileOutcome.FAILED],
        problems=tuple(itertools.islice(problems, MAX_PROBLEMS)),
    )
    return json.dumps(short.as_json())


def parse(body: bytes, accepted: Format) -> Resume | Refusal:
    """Return the resume that the bytes hold, or why they hold none."""
    try:
        return analyzer.parse_imported(body, accepted)
    except ResumesError as error:
        return _refusal_of(error)


def judge(body: bytes, accepted: Format) -> Resume | Refusal:
    """Return what `parse` does. Never raises."""
    try:
        return parse(body, accepted)
    except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
        return internal_error()


CRASHED = Refusal(Reason.CRASHED, "The importer crashed each time it read this file")


def unreadable(error: OSError) -> Refusal:
    """Return a refusal for what cannot be opened."""
    # We refuse what is not a regular file, so the system has no message for it.
    why = f"Cannot read it: {error.strerror}" if error.strerror else "Not a regular file"
    return Refusal(Reason.UNREADABLE, why)


def internal_error() -> Refusal:
    """Log the exception being handled, and return a refusal that names it by an id."""
    error_id = secrets.token_hex(4)
    logger.exception("Internal error %s", error_id)
    return Refusal(Reason.INTERNAL_ERROR, f"Internal error {error_id}; see the log")


def _refusal_of(error: ResumesError) -> Refusal:
    reason = REASONS[error.code] or Reason.INTERNAL_ERROR
    match error:
        case InvalidJson():
            return Refusal(reason, error.message, byte_offset=error.offset)
        case InvalidResume():
            return Refusal(reason, error.message, error.issues[0].path, issues=error.issues)
        case NotFound():
            return Refusal(reason, "The account was deleted")
        case _:
            return Refusal(reason, error.message)
