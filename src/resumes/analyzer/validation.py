"""The one pass over a document, in its order: problems and warnings.

The rules for people are in docs/format.md.
"""

import re
from typing import Any

from resumes.analyzer.findings import Findings
from resumes.analyzer.format import Format
from resumes.analyzer.kinds import MAX_TEXT_CHARS, OPAQUE, check_unknown
from resumes.analyzer.sections import (
    HEADER,
    MAX_ITEMS,
    MULTICOLUMN,
    SECTION_CHECKS,
    SECTION_FIELDS_NOT_NULL,
    SECTION_TYPES,
    STYLE,
    TITLE,
    SectionType,
    nearest_section_type,
)

IS_SET_BY_SERVICE = "is set by the service: the value sent was dropped"

_DOCUMENT_FIELDS = frozenset({"header", "sections", "title", "style"})
_KIND_MARKS = ("type", "kind", "documentType")
_COVER_LETTER = re.compile(
    r"[\W\d_]*{}[\W\d_]*(?:s[\W\d_]*)?".format(r"[\W\d_]*".join("coverletter"))
)


def is_cover_letter(document: dict[str, Any]) -> bool:
    """Whether a document says that it is a cover letter (docs/format.md, Cover letters)."""
    # All marks are unknown fields, which most documents do not have.
    unknown = document.keys() - _DOCUMENT_FIELDS
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
    # There may be as many names as a body holds, and nearly all are told by their length.
    return len(name) >= len("coverletter") and bool(_COVER_LETTER.fullmatch(name.lower()))


def validate(document: dict[str, Any], accepted: Format) -> Findings:
    """Check a document against the format."""
    findings = Findings(has_third_column=_is_multicolumn(document))
    for required in ("header", "sections"):
        if required not in document:
            findings.missing(required)
    for name, value in document.items():
        if name == "header":
            if type(value) is dict:
                HEADER.check(value, name, findings)
            else:
                findings.missing(name)
        elif name == "sections":
            if type(value) is dict:
                _check_sections(value, accepted, findings)
            else:
                findings.missing(name)
        elif name == "title":
            if value is not None:
                TITLE.check(value, name, findings)
        elif name == "style":
            if value is not None:
                STYLE.check(value, name, findings)
        elif name == "isImported":
            _check_dropped(value, name, findings)
        else:
            check_unknown(value, name, findings)
    return findings


def _is_multicolumn(document: dict[str, Any]) -> bool:
    style = document.get("style")
    return type(style) is dict and style.get("layout") == MULTICOLUMN


def _check_sections(sections: dict[str, Any], accepted: Format, findings: Findings) -> None:
    findings.scope.append("sections")
    for name, section in sections.items():
        if findings.are_full:
            break  # it is refused, and what is in the rest is not told
        section_type = SECTION_TYPES.get(name)
        if section_type is None and name not in accepted.extra_section_types:
            findings.problem(name, _unknown_section_type(name, accepted))
        elif type(section) is not dict:
            findings.problem(name, "must be an object")
        else:
            findings.scope.append(name)
            _check_section(section, section_type, findings)
            findings.scope.pop()
    findings.scope.pop()


def _unknown_section_type(name: str, accepted: Format) -> str:
    nearest = nearest_section_type(name)
    if nearest:
        return f"unknown section type (did you mean {nearest}?)"
    known = ", ".join([*SECTION_TYPES, *sorted(accepted.extra_section_types)])
    return f"unknown section type (must be one of {known})"


def _check_section(
    section: dict[str, Any], section_type: SectionType | None, findings: Findings
) -> None:
    checks = SECTION_CHECKS if section_type is None else section_type.own_checks
    if "column" not in section:
        findings.problem("column", "is required and must be a number: 0, 1 or 2")
    for name, value in section.items():
        check = checks.get(name)
        if check is not None:
            if value is not None or name in SECTION_FIELDS_NOT_NULL:
                check(value, name, findings)
        elif name != "items":
            check_unknown(value, name, findings)
        elif value is not None:
            _check_items(value, section_type, findings)


def _check_items(items: Any, section_type: SectionType | None, findings: Findings) -> None:
    if type(items) is not list:
        findings.problem("items", "must be an array of objects")
        return
    if len(items) > MAX_ITEMS:
        findings.problem("items", f"must be an array of at most {MAX_ITEMS} items")
        return
    if section_type is None:
        OPAQUE.check(items, "items", findings)
        return
    scope = findings.scope
    scope.append("items")
    scope.append(0)
    for position, item in enumerate(items):
        scope[-1] = position
        if type(item) is dict:
            _check_item(item, section_type, findings)
        else:
            findings.problem_here("must be an object")
    scope.pop()
    scope.pop()


def _check_item(item: dict[str, Any], section_type: SectionType, findings: Findings) -> None:
    checks = section_type.checks
    texts = section_type.texts
    for name, value in item.items():
        # Nearly every value is an ordinary text, and this sees it without a call: what begins with
        # a sign of ASCII, or beyond U+3000, where China, Japan and Korea write, is not all white
        # space.
        if (
            name in texts
            and type(value) is str
            and ("!" <= value < "\x7f" or value >= "\u3001")
            and len(value) <= MAX_TEXT_CHARS
        ):
            continue
        check = checks.get(name)
        if check is not None:
            if value is not None:
                check(value, name, findings)
        elif name in section_type.set_by_service:
            _check_dropped(value, name, findings)
        else:
            check_unknown(value, name, findings)


def _check_dropped(value: Any, name: str, findings: Findings) -> None:
    findings.warn(name, IS_SET_BY_SERVICE)
    OPAQUE.check(value, name, findings)
