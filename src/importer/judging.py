"""From bytes to a resume or a refusal: the verdict that the API gives for the same bytes."""

import logging
import secrets

from importer import reading
from importer.outcomes import Refusal, treat
from resumes import analyzer
from resumes.analyzer import Format, Resume
from resumes.errors import InvalidJson, InvalidResume, ResumesError
from resumes.reasons import Reason

logger = logging.getLogger("resumes.importer")


def judge(body: bytes, format: Format) -> Resume | Refusal:  # noqa: A002  (as in analyzer.parse)
    """The resume that the bytes hold, or why they hold none. Never raises."""
    try:
        return analyzer.parse_imported(body, format)
    except ResumesError as error:
        return refusal(error)
    except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
        return internal_error()


def unreadable(error: OSError) -> Refusal:
    """A refusal for what cannot be opened."""
    is_file = not isinstance(error, reading.NotAFile)
    why = f"Cannot read it: {error.strerror}" if is_file else "Not a regular file"
    return Refusal(Reason.UNREADABLE, why)


CRASHED = Refusal(
    Reason.CRASHED, "The importer ended unexpectedly each time that it read this file"
)


def refusal(error: ResumesError) -> Refusal:
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
