"""The one pass over a document, in its order: problems and warnings.

The rules for people are in docs/format.md.
"""

import re
from typing import Any

from resumes.analyzer.fields import IS_SET_BY_SERVICE, OPAQUE, check_other
from resumes.analyzer.findings import Findings
from resumes.analyzer.schema import (
    HEADER,
    MAX_ITEMS,
    MULTICOLUMN,
    SECTION_FIELDS,
    SECTION_FIELDS_NOT_NULL,
    SECTION_TYPES,
    STYLE,
    TITLE,
    Format,
    SectionType,
    nearest_section_type,
)

_DOCUMENT_FIELDS = frozenset({"header", "sections", "title", "style"})
_KIND_MARKS = ("type", "kind", "documentType")
_COVER_LETTER = re.compile(
    r"[\W\d_]*{}[\W\d_]*(?:s[\W\d_]*)?".format(r"[\W\d_]*".join("coverletter"))
)


def is_cover_letter(document: dict[str, Any]) -> bool:
    """Return whether a document says that it is a cover letter (docs/format.md, Cover letters)."""
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
        match name:
            case "header" | "sections" if type(value) is not dict:
                findings.missing(name)
            case "header":
                HEADER.check(value, name, findings)
            case "sections":
                _check_sections(value, accepted, findings)
            case "title" | "style" if value is None:
                pass
            case "title":
                TITLE.check(value, name, findings)
            case "style":
                STYLE.check(value, name, findings)
            case "isImported":
                check_other(value, name, findings, IS_SET_BY_SERVICE)
            case _:
                check_other(value, name, findings)
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
    fields = SECTION_FIELDS if section_type is None else section_type.own_fields
    if "column" not in section:
        findings.problem("column", "is required and must be a number: 0, 1 or 2")
    for name, value in section.items():
        if name == "items":
            if value is not None:
                _check_items(value, section_type, findings)
        elif (kind := fields.get(name)) is None:
            check_other(value, name, findings)
        elif value is not None or name in SECTION_FIELDS_NOT_NULL:
            kind.check(value, name, findings)


def _check_items(items: Any, section_type: SectionType | None, findings: Findings) -> None:
    if type(items) is not list:
        findings.problem("items", "must be an array of objects")
    elif len(items) > MAX_ITEMS:
        findings.problem("items", f"must be an array of at most {MAX_ITEMS} items")
    elif section_type is None:
        OPAQUE.check(items, "items", findings)
    else:
        findings.scope.append("items")
        for position, item in enumerate(items):
            section_type.item.check(item, position, findings)
        findings.scope.pop()
