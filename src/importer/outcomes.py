"""What becomes of a file for each error there is, and what its owner can do about it.

One table from error codes to treatments, one from reasons to hints. Tests walk every code.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from resumes.errors import ErrorCode, Issue
from resumes.store.ledger import FileOutcome
from resumes.text import counted, escaped


class Reason(StrEnum):
    """Why a file is not simply done: folder names under `_failed`, and `reason` in reports.

    The same words as the error codes where the API would refuse the same bytes with that code.
    """

    INVALID_JSON = "invalid_json"
    INVALID_RESUME = "invalid_resume"
    COVER_LETTER = "cover_letter"
    INVALID_ARCHIVE = "invalid_archive"
    TOO_LARGE = "too_large"
    QUOTA_REACHED = "quota_reached"
    DUPLICATE = "duplicate"
    ACCOUNT_DELETED = "account_deleted"
    UNREADABLE = "unreadable"
    CRASHED = "crashed"
    INTERNAL_ERROR = "internal_error"


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

HINTS: Mapping[Reason, str] = {
    Reason.INVALID_JSON: (
        "Have the analyzer write the file again, as UTF-8 JSON, and drop it into the inbox. "
        "The byte offset says where reading failed."
    ),
    Reason.INVALID_RESUME: (
        "Mend the fields that the issues name, then move the file back into the inbox."
    ),
    Reason.COVER_LETTER: "Only resumes are imported. Keep cover letters out of the inbox.",
    Reason.INVALID_ARCHIVE: (
        "Make the archive again: gzip, or zip with deflate, without a password, of .json, .ndjson "
        "or .jsonl files. Then drop it into the inbox."
    ),
    Reason.TOO_LARGE: (
        "Make the file smaller, for example by leaving out embedded pictures, or raise "
        "max_body_bytes in the settings; then move it back into the inbox."
    ),
    Reason.QUOTA_REACHED: (
        "Nothing needs to be done to the file: it is imported, in order of arrival, as soon as "
        "the plan allows more resumes or one is deleted."
    ),
    Reason.DUPLICATE: "The content is stored already. The file can be deleted.",
    Reason.ACCOUNT_DELETED: (
        "The account was deleted after the file was taken. To import it elsewhere, move it into "
        "the folder of another account."
    ),
    Reason.UNREADABLE: (
        "Let the user that runs the importer read the file, then move it back into the inbox."
    ),
    Reason.CRASHED: (
        "Look into the file with other tools, and report it: no file should end the importer. "
        "`resumes imports retry` tries it once more."
    ),
    Reason.INTERNAL_ERROR: (
        "This is a fault of the importer. Look for the id in its log, report it, and move the "
        "file back into the inbox when it is mended."
    ),
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
