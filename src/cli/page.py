"""A stored resume as people read it in a terminal: a page of plain text."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.output import instant
from cli.text import safe_text
from resumes.analyzer import (
    Format,
    ShownSection,
    date_range,
    iter_sections,
    plain_number,
)
from resumes.analyzer.schema import SECTION_TYPES
from resumes.analyzer.view import CONTACTS, LEADS, PLACES, PROSE, SECONDS
from resumes.store.stored_resumes import StoredResume

WIDTH = 78
INDENT = "  "


def lines(resume: StoredResume, format: Format) -> Iterator[str]:  # noqa: A002  (as in resumes.analyzer)
    """The resume's lines, escaped: what it is called, whose it is, its sections in order."""
    entry = resume.entry
    document = json.loads(resume.document)
    yield click.style(safe_text(entry.shown_title), bold=True)
    updated = (
        "" if entry.updated_at == entry.created_at else f", changed {instant(entry.updated_at)}"
    )
    yield f"{entry.id}, created {instant(entry.created_at)} UTC{updated}"
    yield ""
    yield from _header(document["header"])
    for section in iter_sections(document, format):
        yield ""
        yield click.style(safe_text(section.heading).upper(), bold=True)
        yield from _section(section)


def _header(header: Mapping[str, Any]) -> Iterator[str]:
    for field in ("name", "title"):
        if header.get(field):
            yield safe_text(header[field])
    contacts = [safe_text(header[field]) for field in CONTACTS if header.get(field)]
    if contacts:
        yield from textwrap.wrap(" · ".join(contacts), WIDTH, break_on_hyphens=False)


def _section(section: ShownSection) -> Iterator[str]:
    for item in section.items:
        yield from _item(section.type, item)
    if not section.items:
        yield f"{INDENT}(nothing to show)"


def _item(section_type: str, item: Mapping[str, Any]) -> Iterator[str]:
    rest = dict(item)
    # What fields of extra section types mean is not known: they are shown by name.
    if section_type in SECTION_TYPES:
        yield from _wrapped(_take_headline(rest))
    for field, value in rest.items():
        if isinstance(value, list) and field != "tags":
            for entry in value:
                yield from _wrapped(f"- {_plain(entry)}", deeper=True)
        elif field in PROSE or field in ("tags", ""):
            yield from _wrapped(_plain(value), deeper=True)
        else:
            yield from _wrapped(f"{_words(field)}: {_plain(value)}", deeper=True)


def _take_headline(rest: dict[str, Any]) -> str:
    """The item's first line, made of fields that are taken out of `rest`."""
    parts = [_plain(rest.pop(field)) for field in (*LEADS, *SECONDS) if field in rest]
    if dates := date_range(rest.pop("dateRange", {})):
        parts.append(dates)
    parts += [_plain(rest.pop(field)) for field in PLACES if field in rest]
    return " · ".join(parts)


def _wrapped(text: str, *, deeper: bool = False) -> list[str]:
    margin = INDENT * (2 if deeper else 1)
    hanging = margin + ("  " if text.startswith("- ") else "")
    return textwrap.wrap(
        text, WIDTH, initial_indent=margin, subsequent_indent=hanging, break_on_hyphens=False
    )


def _plain(value: Any) -> str:
    match value:
        case str():
            return safe_text(" ".join(value.split()))
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return plain_number(value)
        case dict():
            return " ".join(_plain(part) for part in value.values())
        case list():
            return ", ".join(_plain(part) for part in value)
        case _:
            return safe_text(str(value))


def _words(field: str) -> str:
    """A field's name as words: `levelText` is `level text`."""
    spaced = "".join(f" {char.lower()}" if char.isupper() else char for char in field)
    return safe_text(spaced.strip())
