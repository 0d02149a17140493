"""From a file's bytes to a resume or a refusal: the verdict that the API gives for the same bytes."""

import logging
import secrets
from dataclasses import dataclass

from importer import reading
from importer.outcomes import Reason, Refusal, treat
from importer.reading import Content, Signature
from resumes import analyzer
from resumes.analyzer import Format, Resume
from resumes.errors import InvalidJson, InvalidResume, ResumesError, TooLarge

logger = logging.getLogger("resumes.importer")


@dataclass(frozen=True, slots=True)
class Judged:
    """A file's content and what it is."""

    content: Content
    verdict: Resume | Refusal

    @property
    def is_whole(self) -> bool:
        """A complete JSON object is its own end marker: whoever writes a resume is done."""
        return isinstance(self.verdict, Resume) and self.content.is_steady


def judge(path: str, format: Format) -> Judged | None:  # noqa: A002  (as in analyzer.parse)
    """What lies at the path now; None when nothing does any more."""
    try:
        content = reading.load(path, format.max_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _unreadable(path, error)
    if content.is_over_limit:
        return Judged(content, refusal(TooLarge(limit_bytes=format.max_bytes)))
    return Judged(content, _verdict(content.body, format))


def _verdict(body: bytes, format: Format) -> Resume | Refusal:  # noqa: A002  (as in analyzer.parse)
    try:
        return analyzer.parse(body, format)
    except ResumesError as error:
        return refusal(error)
    except Exception:  # noqa: BLE001 - logged whole; one file must not stop the others
        return internal_error()


def _unreadable(path: str, error: OSError) -> Judged | None:
    signature: Signature | None = reading.find_signature(path)
    if signature is None:
        return None
    is_file = not isinstance(error, reading.NotAFile)
    why = f"Cannot read it: {error.strerror}" if is_file else "Not a regular file"
    return Judged(Content(b"", signature), Refusal(Reason.UNREADABLE, why))


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
