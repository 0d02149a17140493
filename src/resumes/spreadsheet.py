"""Resumes as rows of a spreadsheet: CSV in UTF-8 (RFC 4180), one row a resume.

A spreadsheet program takes a cell that begins like a formula for one, and the texts are those of
strangers. Such a cell begins with an apostrophe, so that it is text (OWASP, CSV Injection).
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
"""Excel accepts up to 32,767 characters, and puts the rest of a longer text into other cells."""

_FORMULA: Final = re.compile(r"(^|;\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""The place before what begins a formula: in a cell, and after a semicolon, which ends a cell where the
comma is the decimal sign."""


def _line(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def csv_line(cells: Iterable[object]) -> bytes:
    """Return a line of these texts, harmless, with its line end."""
    return _line(map(_cell, cells))


CSV_START: Final = codecs.BOM_UTF8 + _line(COLUMNS)
CANDIDATES_START: Final = codecs.BOM_UTF8 + _line(("candidate", "id", "name"))
"""The beginnings of CSV files. Without the byte order mark, Excel reads it in another encoding."""


def csv_row(resume: StoredResume, accepted: Format = DEFAULT_FORMAT) -> bytes:
    """Return the row of a resume, with its line end. Raises StoreIncompatible for a damaged document.

    Hidden fields are left out, and each text is on one line.
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
    return _FORMULA.sub(r"\1'", " ".join((clean(value) or "").split())[:MAX_CELL_CHARS])


def _iter_parts(
    sections: Iterable[ShownSection], shape: SectionShape
) -> Iterator[Mapping[str, Any]]:
    """Yield the items of the sections with this shape, each with its parts as a page has them."""
    for section in sections:
        if ROWS.get(section.type) is shape:
            for item in section.items:
                yield {part: item[field] for part, field in shape.parts.items() if field in item}


def _iter_skills(sections: Iterable[ShownSection]) -> Iterator[str]:
    for parts in _iter_parts(sections, ROWS["skills"]):
        texts = parts.get("tags") or [parts.get("title") or parts.get("text")]
        yield from filter(None, map(clean, texts))


def _latest(sections: Iterable[ShownSection], shape: SectionShape) -> Mapping[str, Any]:
    """Return the parts of the item that ends last, the first of several; empty if there is none."""
    return max(_iter_parts(sections, shape), key=_end_and_begin, default={})


def _end_and_begin(parts: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the end and begin of an item for comparison; one that has only a begin ends then."""
    dates = parts.get("dates") or {}
    begin, end = (
        (dates.get(f"{side}Year") or 0, dates.get(f"{side}Month") or 0) for side in ("from", "to")
    )
    if dates.get("isOngoing"):
        end = (float("inf"), 0)
    return *(end if any(end) else begin), *begin
