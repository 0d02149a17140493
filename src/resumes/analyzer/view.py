"""Create the views of a stored resume for API clients and for people, and the complete document.

This module sets `isImported`, `record` and `show*` when a client reads a whole resume. In stored
documents, it ignores these fields: an earlier version stored them, and clients can send them
(docs/format.md, What the service sets; docs/api.md, One resume).
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from unicodedata import normalize
from urllib.parse import quote

import orjson
from msgspec import Raw

from resumes.analyzer.kinds import shown_fields
from resumes.analyzer.schema import (
    DEFAULT_FORMAT,
    DOCUMENT,
    HEADER,
    MONTHS,
    SECTION_FIELDS,
    SECTION_TYPES,
    STYLE,
    Format,
    SectionType,
    first_month,
)
from resumes.errors import StoreIncompatible


def load_stored(document: str | bytes) -> dict[str, Any]:
    """Parse a stored document. Raises StoreIncompatible if it is damaged."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        stored: dict[str, Any] = orjson.loads(document)
        if type(stored["header"]) is type(stored["sections"]) is dict:
            return stored
    raise StoreIncompatible(
        "A stored resume is damaged. `resumes db check` names it, and what to do about it"
    )


def public_json(document: str | bytes, accepted: Format = DEFAULT_FORMAT) -> bytes:
    """Return `{header, sections, title?, style?}` and the unknown fields of a document as JSON.

    A resume that is created from this JSON has the same public JSON. Hidden fields, fields that the
    service sets, and sections of types that are not (or no longer) allowed are omitted. A
    completely hidden item becomes `{}`. A shown list keeps its entries as they were sent, and
    unknown fields keep their exact notation at all levels.
    """
    unknown: list[str] = []
    view = _view(load_stored(document), accepted, unknown)
    return orjson.dumps(_exact(view, document) if unknown else view)


def shown_view(
    document: str | bytes, accepted: Format = DEFAULT_FORMAT, recorded: int | None = None
) -> dict[str, Any]:
    """Return the document of `public_json` without unknown fields. Its months count from 0.

    `recorded` has the same meaning as in `first_month`.
    """
    stored = load_stored(document)
    view = _view(stored, accepted)
    if first_month(stored, recorded):
        for _, item in _iter_items(view):
            _count_from_0(item)
    return view


def _count_from_0(item: dict[str, Any]) -> None:
    """Renumber the months of an item's dates from 0 instead of 1.

    A month 0 is removed; other invalid months are not changed."""
    if dates := item.get("dateRange"):
        item["dateRange"] = {
            name: value - 1 if name in _MONTHS and value in range(1, 13) else value
            for name, value in dates.items()
            if name not in _MONTHS or value != 0
        }


_MONTHS: Final = ("fromMonth", "toMonth")


def _exact(view: dict[str, Any], document: str | bytes) -> dict[str, Any]:
    """Return the view for orjson, with unknown fields exactly as in the document's text."""
    text = document if isinstance(document, bytes) else document.encode()
    exact: dict[str, Any] = DOCUMENT.exact(view, Raw(text))
    return exact


def _view(
    stored: Mapping[str, Any], accepted: Format, unknown: list[str] | None = None
) -> dict[str, Any]:
    view: dict[str, Any] = {
        "header": shown_fields(stored["header"], HEADER.fields, unknown),
        "sections": {
            name: _public_section(section, section_type, unknown)
            for name, section, section_type in _iter_admitted(stored, accepted)
        },
    }
    title = stored.get("title")
    if title and not title.isspace():
        view["title"] = title
    if style := shown_fields(stored.get("style") or {}, STYLE.fields, unknown):
        view["style"] = style
    if unknown is not None:
        view |= shown_fields(stored, {}, unknown, _SET_OR_SHOWN)
    return view


_SET_OR_SHOWN: Final = DOCUMENT.set_by_service | DOCUMENT.fields.keys()


def _public_section(
    section: Mapping[str, Any], section_type: SectionType | None, unknown: list[str] | None
) -> dict[str, Any]:
    items = section.get("items") or []
    own_fields = SECTION_FIELDS
    if section_type is not None:
        own_fields = section_type.own_fields
        fields, left_out = section_type.fields, section_type.item.set_by_service
        items = [shown_fields(item, fields, unknown, left_out) for item in items]
    return {**shown_fields(section, own_fields, unknown, ("items",)), "items": items}


def _iter_admitted(
    document: Mapping[str, Any], admitted: Format
) -> Iterator[tuple[str, Mapping[str, Any], SectionType | None]]:
    """Yield the sections of allowed types. The section type is None for extra types."""
    for name, section in document["sections"].items():
        if name in SECTION_TYPES or name in admitted.extra_section_types:
            yield name, section, SECTION_TYPES.get(name)


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section as it is shown to people."""

    type: str
    heading: str
    """The section's name, or the default heading of its type if it has no name."""

    column: int
    """0 is the left, 1 the right and 2 the third column."""

    items: tuple[Mapping[str, Any], ...]
    """The shown fields of each item in the order of the table, or for extra section types as they
    were sent. Blank list entries and items without a shown field are omitted."""


def iter_sections(
    document: Mapping[str, Any], accepted: Format = DEFAULT_FORMAT, recorded: int | None = None
) -> Iterator[ShownSection]:
    """Yield the sections of a stored or public document in reading order. Months count from 0.

    Sections are sorted by `order`, and sections without `order` come last. Otherwise, they are in
    the order in which they were sent (docs/format.md, Sections). `recorded` has the same meaning as
    in `first_month`.
    """
    admitted = sorted(
        _iter_admitted(document, accepted),
        key=lambda pair: (pair[1].get("order") is None, pair[1].get("order") or 0),
    )
    counts_from_1 = first_month(document, recorded) == 1
    for name, section, section_type in admitted:
        heading = section.get("name") or ""
        if not heading.strip():
            heading = section_type.heading if section_type else name
        items = [_shown_item(item, section_type) for item in section.get("items") or ()]
        if counts_from_1 and section_type is not None:
            for item in items:
                _count_from_0(item)
        yield ShownSection(name, heading, int(section["column"]), tuple(filter(None, items)))


def _shown_item(item: Any, section_type: SectionType | None) -> dict[str, Any]:
    if section_type is None:
        fields = item if isinstance(item, dict) else {"": item}
    else:
        shown = shown_fields(item, section_type.fields)
        fields = {field: shown[field] for field in section_type.fields if field in shown}
    readable: dict[str, Any] = _without_blanks(fields)
    return readable


def _without_blanks(value: Any) -> Any:
    """Remove nulls, empty strings, empty lists and empty objects inside a value."""
    if isinstance(value, dict):
        kept = {key: _without_blanks(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if not _is_blank(each)}
    if isinstance(value, list):
        return [each for each in map(_without_blanks, value) if not _is_blank(each)]
    return value


def _is_blank(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}


def sent_json(document: str | bytes) -> bytes:
    """Return the stored document as it was sent, but without the fields that the service sets."""
    return orjson.dumps(_exact(take_out(load_stored(document)), document))


def whole_json(document: str | bytes) -> bytes:
    """Return the complete stored document as JSON, with hidden and unknown fields. The fields that
    the service sets are at the end of each item and of the document."""
    view = _exact(take_out(load_stored(document)), document)
    for section_type, item in _iter_items(view):
        shown = shown_fields(item, section_type.fields)
        item["record"] = section_type.name
        item.update((flag, field in shown) for field, flag in section_type.show_flags.items())
    view["isImported"] = True
    return orjson.dumps(view)


def take_out(stored: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields that the service sets from the document, and return it.

    Parts of the document that do not have the form of a resume are not changed."""
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


MAX_FILENAME_BYTES = 120

# Control, bidirectional and other invisible characters, and characters that have a special meaning
# in paths or on common file systems.
_UNSAFE_CHARS = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r'\U000e0000-\U000e007f<>:"/\\|?*'
)
_UNSAFE = re.compile(f"[{_UNSAFE_CHARS}]")
_UNSAFE_OR_BLANK = re.compile(rf"[{_UNSAFE_CHARS}\s]")


class Names(NamedTuple):
    """The title, name and email address in a resume. Each is None if it is missing."""

    title: str | None
    name: str | None
    """`header.name`. Neither this nor the title is blank."""

    email: str | None
    """`header.email`, which may be empty."""


def list_title(title: str | None, name: str | None) -> str:
    """Return the title that lists show. Ignore a blank title or name (docs/format.md, Names)."""
    if title and not title.isspace():
        return title
    if name and not name.isspace():
        return f"{name} Resume"
    return "New Resume"


def filename(title: str | None, name: str | None) -> str:
    """Return a file name for downloads that is valid everywhere, such as `AdaLovelaceResume.pdf`.

    It is created from the name or, if there is none, from the title; without both, it is
    `Resume.pdf`. It is in NFC and at most 120 bytes of UTF-8 long (docs/format.md, Names).
    """
    if name and (stem := _without(_UNSAFE_OR_BLANK, name)):
        return _cut(stem, "Resume.pdf")
    if title and (stem := _without(_UNSAFE, " ".join(title.split()))):
        return _cut(stem, ".pdf")
    return "Resume.pdf"


def attachment(name: str) -> str:
    """Return the Content-Disposition header for a download with this name (RFC 6266)."""
    suffix = name.rpartition(".")[2]
    plain = (
        name if name.isascii() and name.isprintable() and '"' not in name else f"Resume.{suffix}"
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def is_filename(text: str) -> bool:
    """Return whether the text can be a result of `filename`, so that it is valid everywhere."""
    return (
        text.endswith(".pdf")
        and not text.startswith((".", " "))
        and len(text.encode()) <= MAX_FILENAME_BYTES
        and not _UNSAFE.search(text)
    )


def _without(unwanted: re.Pattern[str], text: str) -> str:
    # Normalize again: removing characters can join a letter with its accent.
    return normalize("NFC", unwanted.sub("", normalize("NFC", text))).strip(" ").lstrip(". ")


def _cut(stem: str, suffix: str) -> str:
    room_bytes = MAX_FILENAME_BYTES - len(suffix)
    return stem.encode()[:room_bytes].decode(errors="ignore").rstrip(" ") + suffix


TO: Final = " \N{EN DASH} "


def date_range(fields: Mapping[str, Any]) -> str:
    """Return a text like `Jan 2015 to present`, but with an en dash instead of "to".

    The text is empty if both dates are unknown. Months count from 0 (docs/format.md, Dates). The
    text is always English, so that a resume looks the same on every machine.
    """
    start = _instant(fields.get("fromYear"), fields.get("fromMonth"))
    end = _instant(fields.get("toYear"), fields.get("toMonth"))
    if fields.get("isOngoing"):
        return f"{start}{TO}present" if start else "present"
    if start and end and start != end:
        return f"{start}{TO}{end}"
    return start or (f"until {end}" if end else "")


def _instant(year: float | None, month: float | None) -> str:
    parts = []
    if month is not None:
        is_known = month in range(len(MONTHS))
        parts.append(MONTHS[int(month)][:3] if is_known else f"month {plain_number(month)}")
    if year is not None:
        parts.append(plain_number(year))
    return " ".join(parts)


def plain_number(number: float) -> str:
    """Format the number without a zero fraction: 2015.0 as `2015`."""
    return str(int(number)) if number == int(number) else str(number)
