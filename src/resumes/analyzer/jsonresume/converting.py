"""From a JSON Resume to an analyzer document, and from what is said of it back to the JSON Resume.

Converting never fails. What has no place, or is of a type that cannot be used, is left out and
told; limits are for the analyzer format's own validation.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from resumes.analyzer.findings import Findings, dotted
from resumes.analyzer.jsonresume.entries import Entry, find_text, is_blank, opened
from resumes.analyzer.jsonresume.mapping import (
    ALIKE,
    HEADER,
    LISTS,
    PROFILES,
    SPARE,
    SUMMARIES,
    SUMMARY,
    Row,
)
from resumes.analyzer.jsonresume.parts import Part
from resumes.analyzer.sections import MAX_ITEMS
from resumes.errors import Issue

MAX_TITLE_CHARS: Final = 200

_LAST_STEP = re.compile(r"(?:\[[0-9]+\]|\.?[^.\[\]]+)\Z")


@dataclass(frozen=True, slots=True)
class Conversion:
    """An analyzer document, and where its parts come from."""

    document: dict[str, Any] = field(default_factory=lambda: {"header": {}, "sections": {}})

    findings: Findings = field(default_factory=Findings)
    """What has no place in it, with paths in the JSON Resume."""

    origins: dict[str, str] = field(default_factory=dict)
    """Paths in the JSON Resume by paths in the document."""

    def traced(self, issue: Issue) -> Issue:
        """What is said of the document, with the path in the JSON Resume that it comes from."""
        path = issue.path
        while path and path not in self.origins:
            path = _LAST_STEP.sub("", path)
        origin = self.origins.get(path)
        return issue if origin is None else Issue(origin, f"{origin}: {issue.message}")


def convert(source: dict[str, Any]) -> Conversion:
    """The analyzer document that a JSON Resume makes, whatever its fields hold."""
    conversion = Conversion()
    items: dict[str, list[dict[str, Any]]] = {}
    with opened(source, conversion.findings) as resume:
        resume.pass_over("$schema", "meta")
        with resume.inner("basics") as basics:
            _read_header(basics, conversion)
            _read_summary(basics, items, conversion)
            _read_list(basics, [PROFILES], items, conversion)
        for key in dict.fromkeys(row.key for row in LISTS):
            _read_list(resume, [row for row in LISTS if row.key == key], items, conversion)
    _add_sections(items, conversion)
    return conversion


def _read_header(basics: Entry, conversion: Conversion) -> None:
    header = conversion.document["header"]
    for part in HEADER:
        header.update(part.read(basics))
        _note_origins("header", "basics", part, basics, conversion)
    title = " - ".join(header[name] for name in ("name", "title") if name in header)
    if title:
        conversion.document["title"] = title[:MAX_TITLE_CHARS].rstrip()


def _read_summary(
    basics: Entry, items: dict[str, list[dict[str, Any]]], conversion: Conversion
) -> None:
    for position, item in enumerate(SUMMARIES.divide(SUMMARIES.read(basics))):
        items.setdefault(SUMMARY.section, []).append(dict(item))
        place = f"sections.{SUMMARY.section}.items[{position}]"
        _note_origins(place, "basics", SUMMARIES, basics, conversion)


def _read_list(
    parent: Entry,
    rows: Sequence[Row],
    items: dict[str, list[dict[str, Any]]],
    conversion: Conversion,
) -> None:
    """The entries of a list are items, each of the first row that takes it."""
    key = rows[0].key
    origin = dotted([*conversion.findings.scope, key])
    for row in (*rows, *_spare_rows(key)):
        conversion.origins[f"sections.{row.section}"] = origin
    for position, entry in parent.iter_objects(key, rows[0].sole_field):
        row = _row_for(entry, rows, items)
        item = {name: value for part in row.parts for name, value in part.read(entry).items()}
        if not item:
            continue
        listed = items.setdefault(row.section, [])
        place = f"sections.{row.section}.items[{len(listed)}]"
        for part in row.parts:
            _note_origins(place, f"{origin}[{position}]", part, entry, conversion)
        listed.append(item)


def _row_for(
    entry: Entry, rows: Sequence[Row], items: Mapping[str, Sequence[dict[str, Any]]]
) -> Row:
    """Return the first row that takes the entry, or a spare one when that is full."""

    def is_full(row: Row) -> bool:
        return len(items.get(row.section, ())) >= MAX_ITEMS

    row = next(row for row in rows if _takes(row, entry))
    if is_full(row):
        for spare in _spare_rows(row.key):
            if entry.has_only(spare.names) and not is_full(spare):
                return spare
    return row


def _spare_rows(key: str) -> list[Row]:
    return [row for row in SPARE if row.key == key]


def _takes(row: Row, entry: Entry) -> bool:
    return row.needs is None or entry.holds(row.needs, _is_text)


def _is_text(value: Any) -> bool:
    return not is_blank(value) and find_text(value) is not None


def _note_origins(
    place: str, origin: str, part: Part, entry: Entry, conversion: Conversion
) -> None:
    if name := entry.find_name(*part.names):
        for written in part.fields:
            conversion.origins[f"{place}.{written}"] = (
                origin if entry.is_mere_text else f"{origin}.{name}"
            )


def _add_sections(items: dict[str, list[dict[str, Any]]], conversion: Conversion) -> None:
    sections = conversion.document["sections"]
    for row in (SUMMARY, PROFILES, *LISTS, *ALIKE):
        if row.section in items:
            sections[row.section] = {
                "name": row.heading,
                "column": row.column,
                "order": len(sections),
                "items": items[row.section],
            }
