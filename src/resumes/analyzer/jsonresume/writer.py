"""From what is shown of a resume to a JSON Resume of version 1.0.0.

Only what means the same is written: a book somebody likes is no publication, and a strength no
skill. What is left out, `sections_left_out` names.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from resumes.analyzer.jsonresume.mapping import (
    ALIKE,
    HEADER,
    KEYS,
    LISTS,
    PROFILES,
    SECTIONS,
    SUMMARIES,
    SUMMARY,
    Row,
)
from resumes.analyzer.jsonresume.parts import Part

VERSION: Final = "v1.0.0"
SCHEMA: Final = f"https://raw.githubusercontent.com/jsonresume/resume-schema/{VERSION}/schema.json"


def to_jsonresume(view: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Resume that a public view makes (docs/format.md, JSON Resume).

    Valid by the schema of version 1.0.0, whose `format` of addresses and emails aside: they are
    written as they are.
    """
    sections = view["sections"]
    basics = _written(HEADER, view["header"])
    basics |= SUMMARIES.join(_items(SUMMARY, sections))
    if profiles := _entries(PROFILES, sections):
        basics["profiles"] = profiles
    resume: dict[str, Any] = {"$schema": SCHEMA, "basics": basics, "meta": {"version": VERSION}}
    for row in (*LISTS, *ALIKE):
        if entries := _entries(row, sections):
            resume.setdefault(row.key, []).extend(entries)
    return {key: resume[key] for key in KEYS if key in resume}


def sections_left_out(view: Mapping[str, Any]) -> tuple[str, ...]:
    """The types of the sections with something to show of which a JSON Resume says nothing."""
    sections = view["sections"]
    written = {row.section for row in SECTIONS if any(_items(row, sections))}
    return tuple(
        name for name, section in sections.items() if name not in written and any(section["items"])
    )


def _items(row: Row, sections: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    section = sections.get(row.section)
    if section is None or (row.needs and section.get("name") != row.heading):
        return ()
    items: Sequence[Mapping[str, Any]] = section["items"]
    return items


def _entries(row: Row, sections: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries = (_written(row.parts, item) for item in _items(row, sections))
    return [entry for entry in entries if entry]


def _written(parts: Iterable[Part], item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.write(item).items()}
