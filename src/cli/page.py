"""A stored resume as people read it in a terminal: a page of plain text."""

import calendar
import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from cli.output import instant
from cli.text import safe_text

if TYPE_CHECKING:
    from resumes.analyzer import Format, ShownSection
    from resumes.store.listing import StoredResume

WIDTH = 78
INDENT = "  "
CONTACTS = ("email", "phone", "location", "website")
HEADLINE_CHARS = 60
PROSE = frozenset({"text", "description", "quote"})
"""Fields that read as a paragraph, without their name."""
NAMELESS = frozenset({"position", "degree", "location", "role", "author", "issuer", "contact"})
"""Fields that need no name beside the item's first."""


def lines(resume: "StoredResume", format: "Format") -> Iterator[str]:  # noqa: A002  (as in resumes.analyzer)
    """The resume's lines, escaped: what it is called, whose it is, its sections in order."""
    from resumes.analyzer import iter_sections, list_title

    entry = resume.entry
    document = json.loads(resume.document)
    yield click.style(safe_text(list_title(entry.title, entry.name)), bold=True)
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


def _section(section: "ShownSection") -> Iterator[str]:
    for item in section.items:
        yield from _item(item)
    if not section.items:
        yield f"{INDENT}(nothing to show)"


def _item(item: Mapping[str, Any]) -> Iterator[str]:
    rest = dict(item)
    yield from _wrapped(_take_headline(rest))
    for field, value in rest.items():
        if isinstance(value, list) and field != "tags":
            for entry in value:
                yield from _wrapped(f"- {_plain(entry)}", deeper=True)
        elif field in PROSE or field == "tags":
            yield from _wrapped(_plain(value), deeper=True)
        else:
            yield from _wrapped(f"{_words(field)}: {_plain(value)}", deeper=True)


def _take_headline(rest: dict[str, Any]) -> str:
    """The item's first line, made of fields that are taken out of `rest`."""
    parts: list[str] = []
    for field in list(rest):
        value = rest[field]
        is_short = isinstance(value, str) and len(value) <= HEADLINE_CHARS
        if is_short and field not in PROSE and (not parts or field in NAMELESS):
            parts.append(_plain(rest.pop(field)))
    if isinstance(rest.get("dateRange"), dict):
        dates = _dates(rest.pop("dateRange"))
        if dates:
            parts.append(dates)
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


def _dates(dates: Mapping[str, Any]) -> str:
    """`Jan 2020 to Mar 2021`; months count from 0 (interface.md, DateRange object)."""
    start = _month(dates.get("fromYear"), dates.get("fromMonth"))
    end = "now" if dates.get("isOngoing") else _month(dates.get("toYear"), dates.get("toMonth"))
    if start and end:
        return start if start == end else f"{start} to {end}"
    if start:
        return f"from {start}"
    return f"until {end}" if end else ""


def _month(year: Any, month: Any) -> str:
    if year is None:
        return ""
    is_month = isinstance(month, int) and 0 <= month <= 11
    return f"{calendar.month_abbr[month + 1]} {year}" if is_month else str(year)
