"""What the terminal UI says about each error: its one table from `ErrorCode` to a notice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from resumes.errors import ErrorCode, ResumesError
from tui.text import safe


@dataclass(frozen=True, slots=True)
class Notice:
    """What is said to do about an error, behind its own message."""

    remedy: str


_RETRY: Final = "r tries again."
_DATA: Final = "r reads again; `resumes doctor` checks the store."

NOTICES: Final[Mapping[ErrorCode, Notice]] = {
    ErrorCode.INVALID_JSON: Notice(_DATA),
    ErrorCode.INVALID_RESUME: Notice(_DATA),
    ErrorCode.COVER_LETTER: Notice("Only resumes are kept here."),
    ErrorCode.TOO_LARGE: Notice("Make it smaller."),
    ErrorCode.INVALID_ARGUMENT: Notice("Correct it and try again."),
    ErrorCode.INVALID_KEY: Notice("n in Keys makes a new one."),
    ErrorCode.QUOTA_REACHED: Notice("p in Accounts gives it a larger plan."),
    ErrorCode.BUSINESS_PLAN_REQUIRED: Notice("p in Accounts changes the plan."),
    ErrorCode.NOT_FOUND: Notice("It may have been deleted meanwhile; r reads again."),
    ErrorCode.CONFLICT: Notice("Nothing was changed; r reads again."),
    ErrorCode.IDEMPOTENCY_MISMATCH: Notice("Nothing was changed; r reads again."),
    ErrorCode.STORE_UNAVAILABLE: Notice(_RETRY),
    ErrorCode.OUTCOME_UNKNOWN: Notice("r reads again."),
    ErrorCode.STORE_INCOMPATIBLE: Notice("Quit with q; r tries again."),
}


@dataclass(eq=False)
class Failure(Exception):
    """A store call that did not work, in words for the reader."""

    message: str
    remedy: str
    is_passing: bool = False
    """Whether the store is away, so that the same call may work in a while."""

    is_gone: bool = False
    """Whether what was asked for is not there any more."""

    @property
    def content(self) -> Content:
        """As one line."""
        end = "" if self.message.endswith((".", "!", "?")) else "."
        return safe(f"! {self.message}{end} {self.remedy}")


def failure(error: ResumesError) -> Failure:
    """What is said about an error that was foreseen."""
    is_passing = error.code is ErrorCode.STORE_UNAVAILABLE
    is_gone = error.code is ErrorCode.NOT_FOUND
    return Failure(error.message, NOTICES[error.code].remedy, is_passing, is_gone)


def internal_failure(reference: str) -> Failure:
    """What is said about an error that nobody foresaw; the log has it under `reference`."""
    return Failure(f"Internal error {reference}", f"The log has the details; {_RETRY}")
