"""Exit codes: what each means, and which error ends with which."""

from collections.abc import Mapping
from enum import IntEnum

from resumes.errors import ErrorCode


class ExitCode(IntEnum):
    """How a command ended, for scripts."""

    DONE = 0
    """Everything was done; files that were held or are duplicates count as done."""

    FAILED = 1
    """Something failed: a file, an item, the one thing that was asked for."""

    USAGE = 2
    """The command line or a setting cannot be used; a path given to a command cannot be found, read or
    written."""

    UNAVAILABLE = 3
    """The store or the network cannot be had now."""

    INTERRUPTED = 130
    """Ctrl-C, as a shell reports it: 128 + SIGINT."""

    READER_GONE = 141
    """Nobody reads standard output any more, as a shell reports it: 128 + SIGPIPE."""


EXIT_CODES: Mapping[ErrorCode, ExitCode] = {
    ErrorCode.INVALID_JSON: ExitCode.FAILED,
    ErrorCode.INVALID_RESUME: ExitCode.FAILED,
    ErrorCode.COVER_LETTER: ExitCode.FAILED,
    ErrorCode.TOO_LARGE: ExitCode.FAILED,
    ErrorCode.INVALID_ARGUMENT: ExitCode.USAGE,
    ErrorCode.INVALID_KEY: ExitCode.FAILED,
    ErrorCode.QUOTA_REACHED: ExitCode.FAILED,
    ErrorCode.BUSINESS_PLAN_REQUIRED: ExitCode.FAILED,
    ErrorCode.NOT_FOUND: ExitCode.FAILED,
    ErrorCode.CONFLICT: ExitCode.FAILED,
    ErrorCode.IDEMPOTENCY_MISMATCH: ExitCode.FAILED,
    ErrorCode.STORE_UNAVAILABLE: ExitCode.UNAVAILABLE,
    ErrorCode.OUTCOME_UNKNOWN: ExitCode.UNAVAILABLE,
    ErrorCode.STORE_INCOMPATIBLE: ExitCode.UNAVAILABLE,
}
"""One for every code; a test walks them all."""
