"""Convert a JSON Resume to an analyzer document, and a public view to a JSON Resume.

Reading never fails. Values of an unusable type or without a counterpart are omitted with a warning;
limits are checked later, when the analyzer document is validated. Version 1.0.0 of JSON Resume is
written. It contains only sections with the same meaning: a favorite book is not a publication, and
a strength is not a skill. `sections_left_out` returns the types of the other sections.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from resumes.analyzer.findings import Findings, dotted
from resumes.analyzer.jsonresume.entries import EntryReader, find_text, opened
from resumes.analyzer.jsonresume.mapping import (
    ALIKE,
    HEADER,
    KEYS,
    LISTS,
    PROFILES,
    SECTIONS,
    SPARE,
    SUMMARIES,
    SUMMARY,
    SectionMapping,
)
from resumes.analyzer.jsonresume.properties import Fields, Property
from resumes.analyzer.schema import MAX_ITEMS
from resumes.errors import Issue

MAX_TITLE_CHARS: Final = 200

_CONTENT: Final = frozenset(KEYS) - {"$schema", "meta"}
# Lists of JSON Resume whose names do not exist in the analyzer format.
_TELLING: Final = {row.key: row.names for row in LISTS if row.key in ("work", "education")}
_LAST_STEP: Final = re.compile(r"(?:\[[0-9]+\]|\.?[^.\[\]]+)\Z")


def is_json_resume(document: Any) -> bool:
    """Return whether a JSON value is a JSON Resume (docs/format.md, JSON Resume).

    A value whose `basics` is an object is one, unless `header` and `sections` are objects too.
    Otherwise, a value with `header` or `sections` is an analyzer document, even if it is invalid.
    Any other object is a JSON Resume if `$schema` names the schema, or if it has only known fields
    and `work` or `education` has entries.
    """
    if type(document) is not dict:
        return False
    if _has_objects(document, "basics"):
        return not _has_objects(document, "header", "sections")
    if "header" in document or "sections" in document:
        return False
    if document.keys().isdisjoint(_CONTENT):
        return False
    return _names_the_schema(document.get("$schema")) or (
        document.keys() <= set(KEYS)
        and any(_has_entries(document.get(key), fields) for key, fields in _TELLING.items())
    )


def find_foreign_format(document: Any) -> str | None:
    """Return the name of an unsupported resume format if a JSON value seems to have it."""
    if type(document) is not dict or _has_objects(document, "header"):
        return None
    keys = document.keys()
    if _has_objects(document, "metadata") and (
        _has_objects(document, "profile")
        or (_has_objects(document, "basics", "sections") and document["sections"])
    ):
        return "a Reactive Resume document"
    if _has_objects(document, "sections") or is_json_resume(document):
        return None
    meta = document.get("meta")
    if _has_objects(document, "employment") or (
        type(meta) is dict and str(meta.get("format")).upper().startswith("FRESH")
    ):
        return "a FRESH resume"
    if _has_objects(document, "cv"):
        return "a RenderCV document"
    if "SkillsPassport" in keys:
        return "a Europass document"
    if not (keys.isdisjoint(_LINKEDIN_NAMES) or keys.isdisjoint(_LINKEDIN_CONTENT)):
        return "a LinkedIn profile"
    return None


_LINKEDIN_NAMES: Final = {"firstName", "first_name", "localizedFirstName"}
_LINKEDIN_CONTENT: Final = {
    "educations", "experiences", "headline", "localizedHeadline", "positions",
}  # fmt: skip


def _has_objects(document: Mapping[str, Any], *names: str) -> bool:
    return all(type(document.get(name)) is dict for name in names)


def _names_the_schema(schema: Any) -> bool:
    if type(schema) is not str:
        return False
    address = schema.lower()
    # The schema for job descriptions has a similar address.
    return ("jsonresume" in address or "resume-schema" in address) and "job" not in address


def _has_entries(listed: Any, fields: frozenset[str]) -> bool:
    if type(listed) is not list or not listed:
        return False
    return all(type(entry) is dict and not entry.keys().isdisjoint(fields) for entry in listed)


class Conversion:
    """The analyzer document for a JSON Resume, and the origins of its parts."""

    def __init__(self, source: dict[str, Any]) -> None:
        self.document: dict[str, Any] = {"header": {}, "sections": {}}
        self.findings = Findings()
        """Warnings about values without a counterpart, with paths in the JSON Resume."""

        self._origins: dict[str, str] = {}
        """The path in the JSON Resume for each path in the document."""

        self._items: dict[str, list[Fields]] = defaultdict(list)
        """The items of each section type."""

        with opened(source, self.findings) as resume:
            for name in ("$schema", "meta"):
                resume.left.pop(name, None)
            with resume.inner("basics") as basics:
                header = self._read(HEADER, basics, place="header", origin="basics")
                self.document["header"] = header
                summary = basics.find_text(*SUMMARIES.names) or ""
                self._items[SUMMARY.section] += SUMMARIES.divide(summary)
                self._origins[f"sections.{SUMMARY.section}"] = "basics.summary"
                self._read_list(basics, [PROFILES])
            if title := " - ".join(header[name] for name in ("name", "title") if name in header):
                self.document["title"] = title[:MAX_TITLE_CHARS].rstrip()
            for key in dict.fromkeys(row.key for row in LISTS):
                self._read_list(resume, [row for row in LISTS if row.key == key])
        sections = self.document["sections"]
        for row in SECTIONS:
            if items := self._items[row.section]:
                sections[row.section] = {
                    "name": row.heading,
                    "column": row.column,
                    "order": len(sections),
                    "items": items,
                }

    def traced(self, issue: Issue) -> Issue:
        """Replace the path of a finding about the document with its origin in the JSON Resume."""
        path = issue.path
        while path and path not in self._origins:
            path = _LAST_STEP.sub("", path)
        origin = self._origins.get(path)
        return issue if origin is None else Issue(origin, f"{origin}: {issue.message}")

    def _read(
        self, parts: Iterable[Property], entry: EntryReader, *, place: str, origin: str
    ) -> dict[str, Any]:
        """Return the fields that the parts read from the entry, and record their origins."""
        item: dict[str, Any] = {}
        for part in parts:
            name = next((name for name in part.names if name in entry.left), None)
            item.update(part.read(entry))
            if name is not None:
                source = origin if entry.is_mere_text else f"{origin}.{name}"
                self._origins |= {f"{place}.{field}": source for field in part.fields}
        return {field: value for field, value in item.items() if value}

    def _read_list(self, parent: EntryReader, rows: Sequence[SectionMapping]) -> None:
        """Convert the entries of a list to items. `_row_for` selects the row for each."""
        key = rows[0].key
        origin = dotted([*self.findings.scope, key])
        for row in (*rows, *_spare_rows(key)):
            self._origins[f"sections.{row.section}"] = origin
        for position, entry in parent.iter_objects(key, rows[0].sole_field):
            row = self._row_for(entry, rows)
            items = self._items[row.section]
            place = f"sections.{row.section}.items[{len(items)}]"
            if item := self._read(row.parts, entry, place=place, origin=f"{origin}[{position}]"):
                items.append(item)

    def _row_for(self, entry: EntryReader, rows: Sequence[SectionMapping]) -> SectionMapping:
        """Return the first row that can read the entry, or a spare row if the section is full."""
        row = next(
            row
            for row in rows
            if row.needs is None or (find_text(entry.left.get(row.needs)) or "").strip()
        )
        if len(self._items[row.section]) >= MAX_ITEMS:
            for spare in _spare_rows(row.key):
                if entry.left.keys() <= spare.names and len(self._items[spare.section]) < MAX_ITEMS:
                    return spare
        return row


def _spare_rows(key: str) -> list[SectionMapping]:
    return [row for row in SPARE if row.key == key]


VERSION: Final = "v1.0.0"
SCHEMA: Final = f"https://raw.githubusercontent.com/jsonresume/resume-schema/{VERSION}/schema.json"


def to_jsonresume(view: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a public view to a JSON Resume (docs/format.md, JSON Resume).

    The result conforms to the schema of version 1.0.0, except for the `format` of web and email
    addresses, which are written unchanged.
    """
    sections = view["sections"]
    basics = _written(HEADER, view["header"])
    if summary := SUMMARIES.join(_items(SUMMARY, sections)):
        basics["summary"] = summary
    if profiles := _entries(PROFILES, sections):
        basics["profiles"] = profiles
    resume: dict[str, Any] = {"$schema": SCHEMA, "basics": basics, "meta": {"version": VERSION}}
    for row in (*LISTS, *ALIKE):
        if entries := _entries(row, sections):
            resume.setdefault(row.key, []).extend(entries)
    return {key: resume[key] for key in KEYS if key in resume}


def sections_left_out(view: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types of the nonempty sections that a JSON Resume cannot contain."""
    sections = view["sections"]
    written = {row.section for row in SECTIONS if any(_items(row, sections))}
    return tuple(
        name for name, section in sections.items() if name not in written and any(section["items"])
    )


def _items(row: SectionMapping, sections: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    section = sections.get(row.section)
    if section is None or (row.needs and section.get("name") != row.heading):
        return ()
    items: Sequence[Mapping[str, Any]] = section["items"]
    return items


def _entries(row: SectionMapping, sections: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries = (_written(row.parts, item) for item in _items(row, sections))
    return [entry for entry in entries if entry]


def _written(parts: Iterable[Property], item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: text for part in parts for name, text in part.write(item).items() if text}
