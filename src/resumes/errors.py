"""Define all errors that are shown to people or programs, each with a code.

    ResumesError
        InvalidInput            the input is wrong
            InvalidJson         it is not JSON, or a store could not keep it unchanged
            InvalidResume       it is JSON, but not a resume; `issues` lists the problems
            CoverLetter         it is a cover letter, which cannot be created
            TooLarge            it exceeds the size limit
            InvalidArgument     a limit, cursor, name, flag or setting is invalid
        InvalidKey              there is no valid API key
        QuotaReached            the account has as many resumes as its plan allows
        PersonErased            the person was erased, and must not be stored again
        BusinessPlanRequired    the plan does not include listing and reading over the API
        NotFound                the object does not exist, or belongs to another account
        Conflict                the object already exists, or is still in use
            IdempotencyMismatch the same Idempotency-Key was used with another body
            ResumeChanged       the resume was changed after the client read it
        StoreError
            StoreUnavailable    nothing was done; the same call may succeed later
            OutcomeUnknown      it may have been done; check before doing it again
            StatementRefused    the database rejects this request each time
            StoreIncompatible   it is not our store, it is damaged, or its version is newer

These errors are independent of HTTP. The API, the command line and other users of this module each
map every `ErrorCode` to a status, an exit code, a file outcome or a notice; a test checks that each
table contains all codes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class ErrorCode(StrEnum):
    """Stable names of errors, which appear in reports and in the ledger."""

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
    """A problem or warning, and its position in the document.

    `path` contains dots, and list positions in brackets (`sections.skills.items[2].tags`). It is
    empty if the issue concerns the entire document. `message` names the field.
    """

    path: str
    message: str


class ResumesError(Exception):
    """The base class of all shown errors. `message` names the problem, the value and the remedy."""

    code: ClassVar[ErrorCode]
    default: ClassVar[str]
    """The message of an error that is raised without one."""

    def __init__(self, message: str | None = None) -> None:
        self.message = self.default if message is None else message
        super().__init__(self.message)


class InvalidInput(ResumesError):
    """The input is wrong, so a retry would fail again."""


class InvalidJson(InvalidInput):
    """The bytes are not JSON, or are JSON that a store could not keep unchanged.

    `offset` is the byte at which parsing failed, counted from 0, or None if it is unknown.
    """

    code = ErrorCode.INVALID_JSON

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class InvalidResume(InvalidInput):
    """The JSON is not a resume. `issues` has at most 50 problems; the message is the first."""

    code = ErrorCode.INVALID_RESUME

    def __init__(self, issues: Sequence[Issue]) -> None:
        super().__init__(issues[0].message)
        self.issues = tuple(issues)


class CoverLetter(InvalidInput):
    code = ErrorCode.COVER_LETTER
    default = "Cover letters cannot be created"


class TooLarge(InvalidInput):
    """The resume exceeds the size limit, which is in bytes."""

    code = ErrorCode.TOO_LARGE

    def __init__(self, *, limit_bytes: int) -> None:
        super().__init__(f"Resume too large: the limit is {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class InvalidArgument(InvalidInput):
    code = ErrorCode.INVALID_ARGUMENT


class InvalidKey(ResumesError):
    """A missing, malformed, unknown, revoked or expired API key. Clients are not told which."""

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
    """The resume belongs to a person who was erased (docs/erasing.md)."""

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
    """The store failed, although the request may be valid."""


class StoreUnavailable(StoreError):
    code = ErrorCode.STORE_UNAVAILABLE


class OutcomeUnknown(StoreError):
    code = ErrorCode.OUTCOME_UNKNOWN
    default = "Outcome unknown: it may have succeeded. Check before you try again"


class StatementRefused(StoreError):
    """The database works, but rejects this request's values, and would reject a retry. Other
    requests are not affected."""

    code = ErrorCode.STATEMENT_REFUSED


class StoreIncompatible(StoreError):
    code = ErrorCode.STORE_INCOMPATIBLE
