"""What becomes of a file for each error there is: one table, of which tests walk every code.

What a file's owner can do about a reason, `resumes.reasons` says.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from resumes.errors import ErrorCode, Issue
from resumes.reasons import HINTS, Reason
from resumes.store.ledger import FileOutcome
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
