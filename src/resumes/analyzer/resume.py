"""Parsing of the bytes of a request or a file to a resume that can be stored.

One pass over the document, in its order, finds problems and warnings. docs/format.md has the rules
for users.
"""

import re
from typing import Any, NamedTuple

import orjson

from resumes.analyzer.findings import Findings
from resumes.analyzer.jsonresume.conversion import (
    Conversion,
    find_foreign_format,
    is_json_resume,
)
from resumes.analyzer.person import person_of
from resumes.analyzer.plain import parse_plain, without_line_breaks
from resumes.analyzer.schema import (
    DEFAULT_FORMAT,
    DOCUMENT,
    EXTRA_SECTION,
    MULTICOLUMN,
    SECTION_TYPES,
    Format,
    nearest_section_type,
)
from resumes.analyzer.strict_json import (
    is_faithful,
    read_json,
    read_long_json,
    refuse_unfaithful,
    without_mark,
)
from resumes.analyzer.view import Names, filename, load_stored, take_out
from resumes.errors import CoverLetter, InvalidJson, InvalidResume, Issue, TooLarge


class Resume(NamedTuple):
    """A valid resume, ready to be stored. Cheap to send to another process."""

    title: str | None
    """As sent; None when absent or blank."""

    name: str | None
    """`header.name` as sent; None when absent or blank."""

    filename: str
    """Suggested for downloads; safe on every file system."""

    document: bytes
    """JSON text in UTF-8: the document as it was sent, except for white space between tokens; or the
    converted JSON Resume. Without the fields that the service sets (see `whole_json`)."""

    warnings: tuple[Issue, ...]
    """At most 50 warnings, in document order, and then one that counts the rest."""

    person: bytes | None = None
    """The digest of whose it is (`person_of`)."""

    first_month: int | None = None
    """The number of January in its dates; None if only they tell."""


FOREIGN_FORMAT = "This looks like {}. Convert it to JSON Resume or to the analyzer format"


def parse(body: bytes, accepted: Format = DEFAULT_FORMAT) -> Resume:
    """Return the resume in the bytes.

    Raises TooLarge, InvalidJson, CoverLetter or InvalidResume, in this order of precedence, and no
    other error for any bytes (docs/format.md).
    """
    return _parse(body, accepted, converts=False)


def parse_imported(body: bytes, accepted: Format = DEFAULT_FORMAT) -> Resume:
    """Return the resume in the bytes, which are an analyzer document or a JSON Resume.

    An analyzer document is handled as by `parse`. A JSON Resume is converted first: its warnings begin
    with those of the conversion, and paths are paths in the JSON Resume. Raises what `parse` raises
    (docs/format.md, JSON Resume).
    """
    return _parse(body, accepted, converts=True)


def check_stored(document: bytes) -> Names:
    """Return the title, name and email address of a stored document, checked as strictly as a new one.

    Section types beyond the table count as admitted, and its size is not checked, since an earlier
    version added the fields that the service sets. Raises InvalidJson, CoverLetter or InvalidResume for
    a document that the service cannot have stored.
    """
    stored = read_long_json(document)
    # This includes the fields that the service sets, which are removed before the others are checked.
    _check_faithful(document, stored)
    sections = take_out(stored).get("sections") if type(stored) is dict else None
    present = frozenset(sections if type(sections) is dict else ())
    _check(document, stored, Format(extra_section_types=present), is_stored=True)
    return _names(stored)


def stored_warnings(document: str | bytes, first_month: int | None) -> tuple[Issue, ...]:
    """Return the warnings about a stored document, except those about fields that the service sets.

    `first_month` is the number of January that was recorded, if any. At most 50, in document order, and then one that counts the rest. All section types of the document
    count as admitted.
    """
    stored = take_out(load_stored(document))
    accepted = Format(frozenset(stored["sections"]), first_month=first_month)
    return validate(stored, accepted, is_stored=True).all_warnings()


def _parse(body: bytes, accepted: Format, *, converts: bool) -> Resume:
    if len(body) > accepted.max_bytes:
        raise TooLarge(limit_bytes=accepted.max_bytes)
    if names := parse_plain(body, accepted.first_month):
        return _resume(names, without_line_breaks(body), (), accepted.first_month)
    body = bytes(without_mark(body))
    document = read_json(body)
    if converts:
        if foreign := find_foreign_format(document):
            _check_faithful(body, document)
            raise InvalidResume([Issue("", FOREIGN_FORMAT.format(foreign))])
        if is_json_resume(document):
            return _converted(body, document, accepted)
    warnings = _check(body, document, accepted).all_warnings()
    text = without_line_breaks(body.lstrip())
    return _resume(_names(document), text, warnings, accepted.first_month)


def _check(body: bytes, document: Any, accepted: Format, *, is_stored: bool = False) -> Findings:
    if type(document) is not dict:
        _check_faithful(body, document)
        raise InvalidResume([Issue("", "The resume must be a JSON object")])
    if is_cover_letter(document):
        _check_faithful(body, document)
        raise CoverLetter
    findings = validate(document, accepted, is_stored=is_stored)
    if findings.is_doubtful or findings.issues:
        # Values of a wrong type were not examined, so bad JSON takes precedence over a bad resume.
        _check_faithful(body, document)
        raise InvalidResume(findings.issues)
    return findings


def _converted(body: bytes, document: dict[str, Any], accepted: Format) -> Resume:
    _check_faithful(body, document)
    if is_cover_letter(document):
        raise CoverLetter
    conversion = Conversion(document)
    findings = validate(conversion.document, accepted.for_account(0))
    if findings.issues:
        raise InvalidResume([conversion.traced(issue) for issue in findings.issues])
    warnings = map(conversion.traced, findings.all_warnings())
    text = orjson.dumps(conversion.document)
    all_warnings = *conversion.findings.all_warnings(), *warnings
    return _resume(_names(conversion.document), text, all_warnings, 0)


def _resume(
    names: Names, text: bytes, warnings: tuple[Issue, ...], first_month: int | None
) -> Resume:
    title, name, email = names
    person = person_of(email, name)
    return Resume(title, name, filename(title, name), text, warnings, person, first_month)


def _names(document: dict[str, Any]) -> Names:
    header = document["header"]
    title, name = document.get("title"), header.get("name")
    return Names(_unless_blank(title), _unless_blank(name), header.get("email"))


def _check_faithful(body: bytes, document: Any) -> None:
    if not is_faithful(document):
        refuse_unfaithful(body)
        raise InvalidJson("Invalid JSON: a number or a nesting depth that cannot be stored")


def _unless_blank(text: str | None) -> str | None:
    return text if text and not text.isspace() else None


# The slow path: problems and warnings

_KIND_MARKS = ("type", "kind", "documentType")
_COVER_LETTER = re.compile(
    r"[\W\d_]*{}[\W\d_]*(?:s[\W\d_]*)?".format(r"[\W\d_]*".join("coverletter"))
)


def is_cover_letter(document: dict[str, Any]) -> bool:
    """Return whether a document says that it is a cover letter (docs/format.md, Cover letters)."""
    # All marks of cover letters are unknown fields, which most documents do not have.
    unknown = document.keys() - DOCUMENT.fields.keys()
    if unknown:
        marks = [mark for kind in _KIND_MARKS if type(mark := document.get(kind)) is str]
        if document.get("isCoverLetter") is True or any(
            map(_names_cover_letter, [*marks, *unknown])
        ):
            return True
    sections = document.get("sections")
    return type(sections) is dict and any(
        map(_names_cover_letter, sections.keys() - SECTION_TYPES.keys())
    )


def _names_cover_letter(name: str) -> bool:
    # A body may have very many names, and nearly all differ in length.
    return len(name) >= len("coverletter") and bool(_COVER_LETTER.fullmatch(name.lower()))


def validate(document: dict[str, Any], accepted: Format, *, is_stored: bool = False) -> Findings:
    """Check a document against the format."""
    style = document.get("style")
    is_multicolumn = type(style) is dict and style.get("layout") == MULTICOLUMN
    findings = Findings(
        has_third_column=is_multicolumn,
        is_stored=is_stored,
        document=document,
        first_month=accepted.first_month,
        is_first_month_set=accepted.first_month is not None,
    )
    for required in DOCUMENT.required:
        if required not in document:
            findings.missing(required)
    for name, value in document.items():
        if name in DOCUMENT.required and type(value) is not dict:
            findings.missing(name)
        elif name == "sections":
            _check_sections(value, accepted, findings)
        elif (kind := DOCUMENT.fields.get(name)) is None:
            DOCUMENT.check_other(value, name, findings)
        elif value is not None:
            kind.check(value, name, findings)
    return findings


def _check_sections(sections: dict[str, Any], accepted: Format, findings: Findings) -> None:
    findings.scope.append("sections")
    for name, section in sections.items():
        if findings.are_full:
            break  # the document is refused, and no more problems are reported
        if name in SECTION_TYPES:
            SECTION_TYPES[name].kind.check(section, name, findings)
        elif name in accepted.extra_section_types:
            EXTRA_SECTION.check(section, name, findings)
        else:
            nearest = nearest_section_type(name)
            known = ", ".join([*SECTION_TYPES, *sorted(accepted.extra_section_types)])
            hint = f"did you mean {nearest}?" if nearest else f"must be one of {known}"
            findings.problem(name, f"unknown section type ({hint})")
    findings.scope.pop()
