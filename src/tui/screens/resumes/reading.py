"""A resume laid out for a reader: header, then the sections in reading order."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson
from textual.content import Content

from resumes.analyzer import (
    Format,
    ShownSection,
    date_range,
    iter_sections,
    plain_number,
    stored_warnings,
)
from resumes.analyzer.fields import Number
from resumes.analyzer.schema import LAYOUTS, SECTION_TYPES
from resumes.analyzer.view import CONTACTS, LEADS, PLACES, PROSE, SECONDS
from resumes.rendering.page import DEFAULT_LAYOUT
from resumes.store.stored_resumes import Entry
from resumes.text import counted
from tui.text import joined, safe, safe_lines
from tui.times import minute
from tui.widgets.text_pane import Paragraph

BLANK: Final = Paragraph(safe(""))
BULLET: Final = "  • "
COLUMNS: Final = ("left", "right", "third")
"""Where on the page a section stands, by its column."""


def resume_paragraphs(stored: str, entry: Entry) -> list[Paragraph]:
    """The whole resume, fields that are not shown left out; first how many warnings there are."""
    document = orjson.loads(stored)
    # Whatever was admitted when it was stored is read, also when settings have changed since.
    every_type = Format(extra_section_types=frozenset(document["sections"]))
    paragraphs = [*_header(document["header"]), *_about(document, entry), *_warned(stored)]
    sections = [section for section in iter_sections(document, every_type) if section.items]
    has_columns = any(section.column for section in sections)
    for section in sections:
        paragraphs += _section(section, column=COLUMNS[section.column] if has_columns else "")
    return paragraphs


def _header(header: Mapping[str, Any]) -> Iterator[Paragraph]:
    name, title = header.get("name"), header.get("title")
    if name:
        yield Paragraph(safe(name, "bold $text-primary"))
    if title:
        yield Paragraph(safe(title, "italic"))
    contact = [header[key] for key in CONTACTS if header.get(key)]
    if contact:
        yield Paragraph(_dotted(contact))


def _about(document: Mapping[str, Any], entry: Entry) -> Iterator[Paragraph]:
    layout = (document.get("style") or {}).get("layout") or DEFAULT_LAYOUT
    facts = [entry.id, f"created {minute(entry.created_at)} UTC", entry.filename]
    yield Paragraph(_dotted(facts, "dim"))
    yield Paragraph(safe(f"layout {LAYOUTS.get(layout, layout)}", "dim"))


def _warned(stored: str) -> Iterator[Paragraph]:
    if warnings := stored_warnings(stored):
        count = counted(len(warnings), "warning")
        yield Paragraph(safe(f"! {count}; the view History lists them", "$text-warning"))


def _section(section: ShownSection, *, column: str) -> Iterator[Paragraph]:
    yield BLANK
    heading = safe(section.heading.upper(), "bold $text-accent")
    yield Paragraph(joined([heading, safe(column, "dim")], by="  ") if column else heading)
    for number, item in enumerate(section.items):
        paragraphs = list(_item(section.type, item))
        # Items of several lines stand apart, short ones together.
        if number and len(paragraphs) > 1:
            yield BLANK
        yield from paragraphs


def _item(section_type: str, item: Mapping[str, Any]) -> Iterator[Paragraph]:
    if section_type not in SECTION_TYPES:
        yield from _unknown_item(item)
        return
    if first := _first_line(section_type, item):
        yield Paragraph(first)
    if second := [*_dates(item), *(item[key] for key in PLACES if key in item)]:
        yield Paragraph(_dotted(second, "dim"))
    for key in PROSE:
        # A quote stands at the end, above its author.
        if key != "quote":
            yield from _text(item.get(key), "")
    yield from _grades(item)
    for bullet in item.get("bullets", ()):
        yield from _text(bullet, BULLET)
    if tags := item.get("tags"):
        yield Paragraph(_dotted(tags))
    yield from _quote(item)
    yield from _slices(item)


def _first_line(section_type: str, item: Mapping[str, Any]) -> Content | None:
    leads = [item[key] for key in LEADS if key in item]
    # A quote's author stands below it.
    seconds = [item[key] for key in SECONDS if key in item and "quote" not in item]
    parts = [safe(text, "bold" if at == 0 else "") for at, text in enumerate([*leads, *seconds])]
    parts += [safe(level) for level in _level(section_type, item)]
    return joined(parts, by=" · ") if parts else None


def _level(section_type: str, item: Mapping[str, Any]) -> Iterator[str]:
    level = item.get("level")
    kind = SECTION_TYPES[section_type].fields.get("level")
    if level is not None and isinstance(kind, Number):
        highest = int(kind.highest)
        filled = max(0, min(int(level), highest))
        dots = "●" * filled + "○" * (highest - filled)
        yield f"{dots} {plain_number(level)}/{highest}"
    if "levelText" in item:
        yield item["levelText"]


def _dates(item: Mapping[str, Any]) -> Iterator[str]:
    if dates := date_range(item.get("dateRange") or {}):
        yield dates


def _grades(item: Mapping[str, Any]) -> Iterator[Paragraph]:
    grade = "/".join(item[key] for key in ("gpa", "maxGpa") if key in item)
    grades = [*([f"Grade {grade}"] if grade else ()), *_present(item, "gpaText")]
    if grades:
        yield Paragraph(_dotted(grades))


def _quote(item: Mapping[str, Any]) -> Iterator[Paragraph]:
    yield from _text(item.get("quote"), "  ", "italic")
    if "quote" in item:
        yield from (Paragraph(safe(name), "  — ") for name in _present(item, "author"))


def _slices(item: Mapping[str, Any]) -> Iterator[Paragraph]:
    """A pie of one's time, as a list."""
    if "pieces" in item and not item.get("data"):
        yield Paragraph(safe(f"{plain_number(item['pieces'])} pieces"))
    for piece in item.get("data", ()):
        value = [plain_number(piece["value"])] if "value" in piece else []
        yield Paragraph(_dotted([*_present(piece, "title"), *value]), BULLET)


def _unknown_item(item: Mapping[str, Any]) -> Iterator[Paragraph]:
    """An item of a section type that the table does not know: its fields, one by one."""
    for key, value in item.items():
        text = value if isinstance(value, str) else str(value)
        yield from _text(f"{key}: {text}" if key else text, "")


def _text(text: str | None, mark: str, style: str = "") -> Iterator[Paragraph]:
    if text is None:
        return
    for at, line in enumerate(safe_lines(text)):
        yield Paragraph(safe(line, style), mark if at == 0 else " " * len(mark))


def _present(item: Mapping[str, Any], key: str) -> list[str]:
    return [item[key]] if key in item else []


def _dotted(texts: Iterable[str], style: str = "") -> Content:
    return joined([safe(text, style) for text in texts], by=" · ")
