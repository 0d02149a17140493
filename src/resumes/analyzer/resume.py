"""Parse the bytes of a request or file into a resume that can be stored.

One pass finds problems and warnings in document order. The rules for users are in docs/format.md.
"""

import re
from typing import Any, NamedTuple

import orjson

from resumes.analyzer.findings import Findings
from resumes.analyzer.jsonresume.conversion import Conversion, find_foreign_format, is_json_resume
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
    """A valid resume that can be stored. It can be sent to another process at little cost."""

    title: str | None
    """The title as it was sent, or None if it is missing or blank."""

    name: str | None
    """`header.name` as it was sent, or None if it is missing or blank."""

    filename: str
    """The suggested name for downloads, which is valid on every file system."""

    document: bytes
    """The document as it was sent, or the converted JSON Resume, as JSON text in UTF-8. White space
    between tokens may be removed. Fields that `whole_json` sets are not added."""

    warnings: tuple[Issue, ...]
    """At most 50 warnings in document order. If there are more, another warning counts the rest."""

    person: bytes | None = None
    """The digest that identifies the person (`person_of`)."""

    first_month: int | None = None
    """The number of January in the dates, or None if it must be determined from the dates."""


FOREIGN_FORMAT = "This looks like {}. Convert it to JSON Resume or to the analyzer format"


def parse(body: bytes, accepted: Format = DEFAULT_FORMAT) -> Resume:
    """Parse the bytes into a resume.

    Raises TooLarge, InvalidJson, CoverLetter or InvalidResume, in this order of precedence, and
    never another error (docs/format.md).
    """
    return _parse(body, accepted, converts=False)


def parse_imported(body: bytes, accepted: Format = DEFAULT_FORMAT) -> Resume:
    """Parse the bytes of an analyzer document or a JSON Resume into a resume.

    A JSON Resume is converted first. Its warnings begin with the warnings of the conversion, and
    paths refer to the JSON Resume (docs/format.md, JSON Resume). Raises the same errors as `parse`.
    """
    return _parse(body, accepted, converts=True)


def check_stored(document: bytes) -> Names:
    """Check a stored document as strictly as a new one, and return its names.

    All section types are allowed. The size is not checked, since an earlier version also stored the
    fields that the service sets. Raises InvalidJson, CoverLetter or InvalidResume for a document
    that the service cannot have stored.
    """
    stored = read_long_json(document)
    # Check this before the fields that the service sets are removed.
    _check_faithful(document, stored)
    sections = take_out(stored).get("sections") if type(stored) is dict else None
    present = frozenset(sections if type(sections) is dict else ())
    _check(document, stored, Format(extra_section_types=present), is_stored=True)
    return _names(stored)


def stored_warnings(document: str | bytes, first_month: int | None) -> tuple[Issue, ...]:
    """Return the warnings about a stored document, except about fields that the service sets.

    Return at most 50 warnings in document order; if there are more, another warning counts the
    rest. All section types are allowed. `first_month` is the recorded number of January, if any.
    """
    stored = take_out(load_stored(document))
    accepted = Format(frozenset(stored["sections"]), first_month=first_month)
    return validate(stored, accepted, is_stored=True).all_warnings()


def _parse(body: bytes, accepted: Format, *, converts: bool) -> Resume:
    if len(body) > accepted.max_bytes:
        raise TooLarge(limit_bytes=accepted.max_bytes)
    if plain := parse_plain(body, accepted.first_month):
        return _resume(*plain, (), accepted.first_month)
    body = without_mark(body)
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
        # Invalid JSON takes precedence, and may be in values of a wrong type, which were skipped.
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
    """Return whether a document is marked as a cover letter (docs/format.md, Cover letters)."""
    # The marks of cover letters are unknown fields, which most documents do not contain.
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
    # Compare the length first: a document can contain very many names, and most are too short.
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
            break  # the document is rejected, and further problems are not reported
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
