"""From the bytes of a request or a file to a resume that can be stored."""

from typing import Any, NamedTuple

import orjson

from resumes.analyzer.findings import Findings
from resumes.analyzer.jsonresume import Conversion, is_json_resume
from resumes.analyzer.plain import parse_plain, without_line_breaks
from resumes.analyzer.schema import DEFAULT_FORMAT, Format
from resumes.analyzer.strict_json import is_faithful, read_json, read_long_json, refuse_unfaithful
from resumes.analyzer.validation import is_cover_letter, validate
from resumes.analyzer.view import Names, filename, take_out
from resumes.errors import CoverLetter, InvalidJson, InvalidResume, Issue, TooLarge


class Resume(NamedTuple):
    """A valid resume, ready to be stored. Cheap to hand to another process."""

    title: str | None
    """As sent; None when absent or blank."""

    name: str | None
    """`header.name` as sent; None when absent or blank."""

    filename: str
    """Suggested for downloads; safe on every file system."""

    document: bytes
    """JSON text in UTF-8: what was sent, but for white space between tokens; or what a JSON Resume
    was converted to. What the service sets is not in it: see `whole_view`."""

    warnings: tuple[Issue, ...]
    """At most 50, in document order, and then one that counts the rest."""


def parse(body: bytes, format: Format = DEFAULT_FORMAT) -> Resume:  # noqa: A002  (reads best at the caller)
    """Return the resume that the bytes hold.

    Raises TooLarge, InvalidJson, CoverLetter or InvalidResume, in this order of precedence and
    nothing else for any bytes (docs/format.md).
    """
    return _plain(body, format) or _checked(body, _read(body, format), format)


def parse_imported(body: bytes, format: Format = DEFAULT_FORMAT) -> Resume:  # noqa: A002  (reads best at the caller)
    """Return the resume that the bytes hold, be they an analyzer document or a JSON Resume.

    An analyzer document gives what `parse` gives. A JSON Resume is converted first: its warnings
    begin with those of the conversion, and paths are paths in the JSON Resume. Raises what
    `parse` raises (docs/format.md, JSON Resume).
    """
    if plain := _plain(body, format):
        return plain
    document = _read(body, format)
    if is_json_resume(document):
        return _converted(body, document, format)
    return _checked(body, document, format)


def check_stored(document: bytes) -> Names:
    """Return what a stored document is called, checked as strictly as one that is sent.

    Section types beyond the table are taken as admitted, and its size is not looked at: stores of
    an earlier version added what the service sets. Raises InvalidJson, CoverLetter or InvalidResume for a
    document that the service cannot have stored.
    """
    stored = read_long_json(document)
    # Also of fields that the service sets, which are taken out before the others are checked.
    _check_faithful(document, stored)
    sections = take_out(stored).get("sections") if type(stored) is dict else None
    present = frozenset(sections if type(sections) is dict else ())
    _check(document, stored, Format(extra_section_types=present))
    return _names(stored)


def _plain(body: bytes, accepted: Format) -> Resume | None:
    """Return the resume, if it is plain to see that there is nothing to say about it."""
    if len(body) > accepted.max_bytes or (names := parse_plain(body)) is None:
        return None
    return _resume(names, without_line_breaks(body), ())


def _read(body: bytes, accepted: Format) -> Any:
    if len(body) > accepted.max_bytes:
        raise TooLarge(limit_bytes=accepted.max_bytes)
    return read_json(body)


def _checked(body: bytes, document: Any, accepted: Format) -> Resume:
    warnings = _check(body, document, accepted).all_warnings()
    return _resume(_names(document), without_line_breaks(body), warnings)


def _check(body: bytes, document: Any, accepted: Format) -> Findings:
    if type(document) is not dict:
        _check_faithful(body, document)
        raise InvalidResume([Issue("", "The resume must be a JSON object")])
    if is_cover_letter(document):
        _check_faithful(body, document)
        raise CoverLetter
    findings = validate(document, accepted)
    if findings.is_doubtful or findings.issues:
        # Values of a wrong type were not looked into, so bad JSON may hide behind a bad resume.
        _check_faithful(body, document)
        raise InvalidResume(findings.issues)
    return findings


def _converted(body: bytes, document: dict[str, Any], accepted: Format) -> Resume:
    _check_faithful(body, document)
    if is_cover_letter(document):
        raise CoverLetter
    conversion = Conversion(document)
    findings = validate(conversion.document, accepted)
    if findings.issues:
        raise InvalidResume([conversion.traced(issue) for issue in findings.issues])
    warnings = map(conversion.traced, findings.all_warnings())
    text = orjson.dumps(conversion.document)
    return _resume(
        _names(conversion.document), text, (*conversion.findings.all_warnings(), *warnings)
    )


def _resume(names: Names, text: bytes, warnings: tuple[Issue, ...]) -> Resume:
    title, name = names
    return Resume(title, name, filename(title, name), text, warnings)


def _names(document: dict[str, Any]) -> Names:
    title, name = document.get("title"), document["header"].get("name")
    return Names(_unless_blank(title), _unless_blank(name))


def _check_faithful(body: bytes, document: Any) -> None:
    if not is_faithful(document):
        refuse_unfaithful(body)
        raise InvalidJson("Invalid JSON: a number or a nesting depth that cannot be kept")


def _unless_blank(text: str | None) -> str | None:
    return text if text and not text.isspace() else None
