"""From the bytes of a request or a file to a resume that can be stored."""

from dataclasses import dataclass
from typing import Any

import orjson

from resumes.analyzer.findings import Findings
from resumes.analyzer.format import DEFAULT_FORMAT, Format
from resumes.analyzer.json_text import is_faithful, read_json, refuse_unfaithful
from resumes.analyzer.naming import filename
from resumes.analyzer.validation import is_cover_letter, validate
from resumes.errors import CoverLetter, InvalidJson, InvalidResume, Issue, TooLarge


@dataclass(frozen=True, slots=True)
class Resume:
    """A valid resume, ready to be stored."""

    title: str | None
    """As sent; None when absent or blank."""

    name: str | None
    """`header.name` as sent; None when absent or blank."""

    filename: str
    """Suggested for downloads; safe on every file system."""

    document: str
    """JSON text: what was sent, in its order, with `isImported`, `record` and `show*` as the
    service sets them."""

    warnings: tuple[Issue, ...]
    """At most 50, in document order, and then one that counts the rest."""


def parse(body: bytes, format: Format = DEFAULT_FORMAT) -> Resume:  # noqa: A002  (reads best at the caller)
    """The resume that the bytes hold.

    Raises TooLarge, InvalidJson, CoverLetter or InvalidResume, in this order of precedence and
    nothing else for any bytes (docs/format.md).
    """
    if len(body) > format.max_bytes:
        raise TooLarge(limit_bytes=format.max_bytes)
    document = read_json(body)
    if type(document) is not dict:
        _check_faithful(body, document)
        raise InvalidResume([Issue("", "The resume must be a JSON object")])
    if is_cover_letter(document):
        _check_faithful(body, document)
        raise CoverLetter
    findings = validate(document, format)
    if findings.is_doubtful or findings.issues:
        _refuse(body, document, findings)
    title = _unless_blank(document.get("title"))
    name = _unless_blank(document["header"].get("name"))
    return Resume(
        title=title,
        name=name,
        filename=filename(title, name),
        document=orjson.dumps(document).decode(),
        warnings=findings.all_warnings(),
    )


def _refuse(body: bytes, document: dict[str, Any], findings: Findings) -> None:
    # Values of a wrong type were not looked into, so bad JSON may hide behind a bad resume.
    if findings.is_doubtful:
        refuse_unfaithful(body)
    _check_faithful(body, document)
    raise InvalidResume(findings.issues)


def _check_faithful(body: bytes, document: Any) -> None:
    if not is_faithful(document):
        refuse_unfaithful(body)
        raise InvalidJson("Invalid JSON: a number or a nesting depth that cannot be kept")


def _unless_blank(text: str | None) -> str | None:
    return None if text is None or not text or text.isspace() else text
