"""What of a stored resume is seen: by a client that asks for it, and by people.

Hidden fields, `show*`, `record` and unknown fields never leave the store this way
(docs/format.md, What the service sets; docs/api.md, One resume).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from resumes.analyzer.kinds import shown_fields
from resumes.analyzer.sections import (
    DEFAULT_FORMAT,
    HEADER,
    SECTION_FIELDS,
    SECTION_TYPES,
    STYLE,
    Format,
)


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section as people read it."""

    type: str
    heading: str
    """The section's name, else the default heading of its type."""

    column: int
    """0 left, 1 right, 2 third."""

    items: tuple[Mapping[str, Any], ...]
    """Of each item the fields that are shown, in the order of the table; items of extra section
    types in the order sent. Blank list entries and items without anything to show are left out."""


def public_view(
    document: str | bytes,
    format: Format = DEFAULT_FORMAT,  # noqa: A002  (reads best at the caller)
) -> dict[str, Any]:
    """Exactly `{header, sections, title?, style?}` of a stored document, in the shape that create
    takes: created again, it gives the same view.

    An item hidden whole stays `{}`, and a shown list keeps its entries as sent. Sections of types
    that are not (or no longer) admitted are left out.
    """
    stored = orjson.loads(document)
    view: dict[str, Any] = {
        "header": shown_fields(stored["header"], HEADER.fields),
        "sections": {
            name: _public_section(name, section)
            for name, section in stored["sections"].items()
            if name in SECTION_TYPES or name in format.extra_section_types
        },
    }
    title = stored.get("title")
    if title and not title.isspace():
        view["title"] = title
    if style := shown_fields(stored.get("style") or {}, STYLE.fields):
        view["style"] = style
    return view


def _public_section(name: str, section: Mapping[str, Any]) -> dict[str, Any]:
    section_type = SECTION_TYPES.get(name)
    items = section.get("items") or []
    if section_type is None:
        return {**shown_fields(section, SECTION_FIELDS), "items": items}
    return {
        **shown_fields(section, section_type.own_fields),
        "items": [shown_fields(item, section_type.fields) for item in items],
    }


def iter_sections(
    document: Mapping[str, Any],
    format: Format = DEFAULT_FORMAT,  # noqa: A002  (reads best at the caller)
) -> Iterator[ShownSection]:
    """The sections of a document, stored or public, in reading order.

    That is by ascending `order`, those without one last, and otherwise as they were sent
    (docs/format.md, Sections).
    """
    sections = [
        (name, section)
        for name, section in document["sections"].items()
        if name in SECTION_TYPES or name in format.extra_section_types
    ]
    sections.sort(key=_reading_order)
    for name, section in sections:
        yield _shown_section(name, section)


def _reading_order(named_section: tuple[str, Mapping[str, Any]]) -> tuple[bool, float]:
    order = named_section[1].get("order")
    return order is None, order or 0


def _shown_section(name: str, section: Mapping[str, Any]) -> ShownSection:
    section_type = SECTION_TYPES.get(name)
    heading = section.get("name") or ""
    if not heading.strip():
        heading = section_type.heading if section_type else name
    items: list[Mapping[str, Any]] = []
    for item in section.get("items") or []:
        if section_type is None:
            fields = item if isinstance(item, dict) else {"": item}
        else:
            shown = shown_fields(item, section_type.fields)
            fields = {field: shown[field] for field in section_type.fields if field in shown}
        if readable := _without_blanks(fields):
            items.append(readable)
    return ShownSection(name, heading, int(section["column"]), tuple(items))


def _without_blanks(value: Any) -> Any:
    """A value without the nulls, empty strings, empty lists and empty objects inside it."""
    if isinstance(value, dict):
        kept = {key: _without_blanks(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if not _is_blank(each)}
    if isinstance(value, list):
        return [each for each in map(_without_blanks, value) if not _is_blank(each)]
    return value


def _is_blank(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}
