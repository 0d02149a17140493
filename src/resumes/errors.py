"""Every error that is shown to a person or a program, by code.

    ResumesError
        InvalidInput            the input is wrong
            InvalidJson         not JSON, or JSON that a store cannot keep as it is
            InvalidResume       JSON, but not a resume; carries all issues
            CoverLetter         a cover letter, which cannot be created
            TooLarge            over the size limit
            InvalidArgument     a limit, cursor, name, flag or setting
        InvalidKey              no valid API key
        QuotaReached            the plan's number of resumes is reached
        PersonErased            the person was erased, and may not come back
        BusinessPlanRequired    the plan does not include listing and reading over the API
        NotFound                no such thing, or none that the account may know of
        Conflict                it exists already, or is still in use
            IdempotencyMismatch the same Idempotency-Key with another body
            ResumeChanged       the resume is no longer what the client has read
        StoreError
            StoreUnavailable    nothing was done; the same call may work later
            OutcomeUnknown      it may have been done; ask before doing it again
            StatementRefused    the database refuses what this request writes or asks, each time
            StoreIncompatible   not our store, damaged, or made by a newer version

Domain errors are independent of HTTP. Each surface has a table from `ErrorCode` to its reaction: a
status, an exit code, a file outcome, a notice. A test checks every code in every table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class ErrorCode(StrEnum):
    """Stable names of errors, as in reports and the ledger."""

    INVALID_JSON = "invalid_json"
    INVALID_RESUME = "invalid_resume"
    COVER_LETTER = "cover_letter"
    TOO_LARGE = "too_large"
    INVALID_ARGUMENT = "invalid_argument"
    INVALID_KEY = "invalid_key"
    QUOTA_REACHED = "quota_reached"
    FORGOTTEN = "forgotten"
    BUSINESS_PLAN_REQUIRED = "business_plan_required"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    IDEMPOTENCY_MISMATCH = "idempotency_mismatch"
    RESUME_CHANGED = "resume_changed"
    STORE_UNAVAILABLE = "store_unavailable"
    OUTCOME_UNKNOWN = "outcome_unknown"
    STATEMENT_REFUSED = "statement_refused"
    STORE_INCOMPATIBLE = "store_incompatible"


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem or warning, and where in the document it is.

    `path` is dotted, with list positions in brackets (`sections.skills.items[2].tags`); empty
    means the document as a whole. `message` names the field.
    """

    path: str
    message: str


class ResumesError(Exception):
    """Base of all errors that are shown. `message` names the problem, the value and the remedy."""

    code: ClassVar[ErrorCode]
    default: ClassVar[str]
    """The message of an error without an explicit one."""

    def __init__(self, message: str | None = None) -> None:
        self.message = self.default if message is None else message
        super().__init__(self.message)


class InvalidInput(ResumesError):
    """The input is wrong, so that a retry fails again."""


class InvalidJson(InvalidInput):
    """The bytes are not JSON, or JSON that a store cannot keep as it is.

    `offset` is the byte at which parsing failed, counted from 0; None if unknown.
    """

    code = ErrorCode.INVALID_JSON

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class InvalidResume(InvalidInput):
    """JSON, but not a resume. `issues` holds at most 50, in document order; the message is the first."""

    code = ErrorCode.INVALID_RESUME

    def __init__(self, issues: Sequence[Issue]) -> None:
        super().__init__(issues[0].message)
        self.issues = tuple(issues)


class CoverLetter(InvalidInput):
    code = ErrorCode.COVER_LETTER
    default = "Cover letters cannot be created"


class TooLarge(InvalidInput):
    """Over the size limit, in bytes."""

    code = ErrorCode.TOO_LARGE

    def __init__(self, *, limit_bytes: int) -> None:
        super().__init__(f"Resume too large: the limit is {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class InvalidArgument(InvalidInput):
    code = ErrorCode.INVALID_ARGUMENT


class InvalidKey(ResumesError):
    """A missing, malformed, unknown, revoked or expired API key; which of these is not disclosed."""

    code = ErrorCode.INVALID_KEY
    default = "Invalid API key"


class QuotaReached(ResumesError):
    code = ErrorCode.QUOTA_REACHED

    def __init__(self, *, max_resumes: int, message: str | None = None) -> None:
        noun = "resume" if max_resumes == 1 else "resumes"
        limit = f"Maximum resume limit reached. Your plan allows {max_resumes} {noun}"
        super().__init__(message or limit)
        self.max_resumes = max_resumes


class PersonErased(ResumesError):
    """The resume is of a person who was erased (docs/erasing.md)."""

    code = ErrorCode.FORGOTTEN
    default = "This person was erased"


class BusinessPlanRequired(ResumesError):
    code = ErrorCode.BUSINESS_PLAN_REQUIRED
    default = "API access requires a business plan"


class NotFound(ResumesError):
    code = ErrorCode.NOT_FOUND


class Conflict(ResumesError):
    code = ErrorCode.CONFLICT


class IdempotencyMismatch(Conflict):
    code = ErrorCode.IDEMPOTENCY_MISMATCH
    default = "Idempotency-Key was already used with a different body"


class ResumeChanged(Conflict):
    code = ErrorCode.RESUME_CHANGED
    default = "The resume was changed in the meantime, so nothing was stored. Read it again"


class StoreError(ResumesError):
    """The store failed, not the request."""


class StoreUnavailable(StoreError):
    code = ErrorCode.STORE_UNAVAILABLE


class OutcomeUnknown(StoreError):
    code = ErrorCode.OUTCOME_UNKNOWN
    default = "Outcome unknown: it may have succeeded. Check before you try again"


class StatementRefused(StoreError):
    """The database works, but refuses this request's values, and would refuse a retry. Other requests
    are not affected."""

    code = ErrorCode.STATEMENT_REFUSED


class StoreIncompatible(StoreError):
    code = ErrorCode.STORE_INCOMPATIBLE
