"""What is seen of a stored resume: by a client that asks for it, by people, and by who owns it all.

`isImported`, `record` and `show*` are set here, where somebody reads a resume whole, and count for
nothing where they are stored: an earlier version wrote them into the document, and a client may
send them (docs/format.md, What the service sets; docs/api.md, One resume).
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
    SectionType,
)
from resumes.analyzer.validation import validate
from resumes.errors import Issue


def public_view(
    document: str | bytes,
    format: Format = DEFAULT_FORMAT,  # noqa: A002  (reads best at the caller)
) -> dict[str, Any]:
    """Exactly `{header, sections, title?, style?}` of a stored document, in the shape that create
    takes: created again, it gives the same view.

    Hidden fields, unknown ones and those that the service sets are left out. An item hidden whole
    stays `{}`, and a shown list keeps its entries as sent. Sections of types that are not (or no
    longer) admitted are left out.
    """
    stored = orjson.loads(document)
    view: dict[str, Any] = {
        "header": shown_fields(stored["header"], HEADER.fields),
        "sections": {
            name: _public_section(section, section_type)
            for name, section, section_type in _iter_admitted(stored, format)
        },
    }
    title = stored.get("title")
    if title and not title.isspace():
        view["title"] = title
    if style := shown_fields(stored.get("style") or {}, STYLE.fields):
        view["style"] = style
    return view


def _public_section(section: Mapping[str, Any], section_type: SectionType | None) -> dict[str, Any]:
    items = section.get("items") or []
    if section_type is None:
        return {**shown_fields(section, SECTION_FIELDS), "items": items}
    return {
        **shown_fields(section, section_type.own_fields),
        "items": [shown_fields(item, section_type.fields) for item in items],
    }


def _iter_admitted(
    document: Mapping[str, Any], admitted: Format
) -> Iterator[tuple[str, Mapping[str, Any], SectionType | None]]:
    """The sections of admitted types, each with the row of the table, None if it has none."""
    for name, section in document["sections"].items():
        if name in SECTION_TYPES or name in admitted.extra_section_types:
            yield name, section, SECTION_TYPES.get(name)


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


def iter_sections(
    document: Mapping[str, Any],
    format: Format = DEFAULT_FORMAT,  # noqa: A002  (reads best at the caller)
) -> Iterator[ShownSection]:
    """The sections of a document, stored or public, in reading order.

    That is by ascending `order`, those without one last, and otherwise as they were sent
    (docs/format.md, Sections).
    """
    for name, section, section_type in sorted(_iter_admitted(document, format), key=_reading_order):
        heading = section.get("name") or ""
        if not heading.strip():
            heading = section_type.heading if section_type else name
        items = (_shown_item(item, section_type) for item in section.get("items") or ())
        yield ShownSection(name, heading, int(section["column"]), tuple(filter(None, items)))


def _reading_order(
    admitted: tuple[str, Mapping[str, Any], SectionType | None],
) -> tuple[bool, float]:
    order = admitted[1].get("order")
    return order is None, order or 0


def _shown_item(item: Any, section_type: SectionType | None) -> Mapping[str, Any]:
    if section_type is None:
        fields = item if isinstance(item, dict) else {"": item}
    else:
        shown = shown_fields(item, section_type.fields)
        fields = {field: shown[field] for field in section_type.fields if field in shown}
    readable: Mapping[str, Any] = _without_blanks(fields)
    return readable


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


def whole_view(document: str | bytes) -> dict[str, Any]:
    """Everything of a stored document, hidden and unknown fields too, with the fields that the
    service sets at the end of each item and of the document."""
    stored = take_out(orjson.loads(document))
    for section_type, item in _iter_items(stored):
        shown = shown_fields(item, section_type.fields)
        item["record"] = section_type.name
        item.update((flag, field in shown) for field, flag in section_type.show_flags.items())
    stored["isImported"] = True
    return stored


def take_out(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the document, without the fields that the service sets. It is changed in place;
    where it has not the shape of a resume, it is left as it is."""
    stored.pop("isImported", None)
    for section_type, item in _iter_items(stored):
        for field in section_type.item.set_by_service:
            item.pop(field, None)
    return stored


def _iter_items(stored: Mapping[str, Any]) -> Iterator[tuple[SectionType, dict[str, Any]]]:
    sections = stored.get("sections")
    for name, section in sections.items() if type(sections) is dict else ():
        items = section.get("items") if type(section) is dict else None
        if name in SECTION_TYPES and type(items) is list:
            for item in items:
                if type(item) is dict:
                    yield SECTION_TYPES[name], item


def stored_warnings(document: str | bytes) -> tuple[Issue, ...]:
    """The warnings about a stored document, but for those about what the service sets itself.

    At most 50, in document order, and then one that counts the rest. Section types that were
    admitted when it was stored are taken as admitted.
    """
    stored = take_out(orjson.loads(document))
    accepted = Format(extra_section_types=frozenset(stored["sections"]))
    return validate(stored, accepted).all_warnings()
