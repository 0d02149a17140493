"""Convert resumes to rows of a spreadsheet, as CSV in UTF-8 (RFC 4180).

A spreadsheet program runs a cell that begins like a formula, and strangers write the texts of
resumes. An apostrophe before such a text prevents this (OWASP, CSV Injection). A spreadsheet program
also drops leading zeros of numbers: without an apostrophe, the phone number 07700900123 would lose one.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from resumes.analyzer import DEFAULT_FORMAT, Format, iter_sections, load_stored
from resumes.analyzer.view import ShownSection
from resumes.rendering.page import clean
from resumes.rendering.shapes import ROWS, SectionShape
from resumes.store.stored_resumes import StoredResume

_HEADER: Final = ("name", "title", "email", "phone", "location")
COLUMNS: Final = (
    "id", *_HEADER, "label", "skills", "position", "employer", "school", "degree", "created", "updated",
)  # fmt: skip
MAX_CELL_CHARS: Final = 32_000
"""Excel accepts at most 32,767 characters, and puts the rest of a longer text into other cells."""

_UNSAFE: Final = re.compile(r"(^|;[\s\"]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=0[0-9]{1,22}$)")
"""The position of a possible formula or a leading zero: at the beginning of a cell, or for a formula
also after a semicolon, which separates cells in locales with a decimal comma. Quotes may follow it:
they begin the next cell. An ID, which has 24 digits, never matches: programs read that column, too."""


def _line(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def csv_line(cells: Iterable[object]) -> bytes:
    """Return a line with these texts, made harmless, including the line break."""
    return _line(map(_cell, cells))


CSV_START: Final = codecs.BOM_UTF8 + _line(COLUMNS)
CANDIDATES_START: Final = codecs.BOM_UTF8 + _line(("candidate", "id", "name"))
"""The beginnings of CSV files. Without the byte order mark, Excel assumes another encoding."""


def csv_row(resume: StoredResume, accepted: Format = DEFAULT_FORMAT) -> bytes:
    """Return the row for a resume with a line break. Raises StoreIncompatible for a damaged
    document.

    Hidden fields are omitted, and line breaks in texts are replaced with spaces.
    """
    document = load_stored(resume.document)
    sections = [*iter_sections(document, accepted, resume.first_month)]
    job, education = (_latest(sections, ROWS[name]) for name in ("experiences", "educations"))
    entry, header = resume.entry, document["header"]
    cells = (
        entry.id,
        *(header.get(field) for field in _HEADER),
        entry.label,
        ", ".join(dict.fromkeys(_iter_skills(sections))),
        *(job.get(part) for part in ("title", "sub")),
        *(education.get(part) for part in ("sub", "title")),
        entry.created_at,
        entry.updated_at,
    )
    return csv_line(cells)


def _cell(value: object) -> str:
    return _UNSAFE.sub(r"\1'", " ".join((clean(value) or "").split())[:MAX_CELL_CHARS])


def _iter_parts(
    sections: Iterable[ShownSection], shape: SectionShape
) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of each item in the sections with this shape, named as on a page."""
    for section in sections:
        if ROWS.get(section.type) is shape:
            for item in section.items:
                yield {part: item[field] for part, field in shape.parts.items() if field in item}


def _iter_skills(sections: Iterable[ShownSection]) -> Iterator[str]:
    for parts in _iter_parts(sections, ROWS["skills"]):
        texts = parts.get("tags") or [parts.get("title") or parts.get("text")]
        yield from filter(None, map(clean, texts))


def _latest(sections: Iterable[ShownSection], shape: SectionShape) -> Mapping[str, Any]:
    """Return the parts of the item with the latest end, or no parts if there is no item."""
    return max(_iter_parts(sections, shape), key=_end_and_begin, default={})


def _end_and_begin(parts: Mapping[str, Any]) -> tuple[float, ...]:
    """Return an item's end (by default, its beginning) and its beginning, for comparison."""
    dates = parts.get("dates") or {}
    begin, end = (
        (dates.get(f"{side}Year") or 0, dates.get(f"{side}Month") or 0) for side in ("from", "to")
    )
    if dates.get("isOngoing"):
        end = (float("inf"), 0)
    return *(end if any(end) else begin), *begin
