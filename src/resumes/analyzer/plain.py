"""The fast path, for documents without problems or warnings.

msgspec decodes into structs that are made from the one table in `schema.py`. What it refuses,
and whatever is not plain to see, goes the precise way through `resume.py`, which alone makes
messages: this module never says why. A document that is taken here has no problem and no warning,
and the precise way finds the same title and name in it.
"""

import re
from collections.abc import Iterable, Mapping
from types import GenericAlias
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from resumes.analyzer.fields import (
    MAX_LIST_ENTRIES,
    MAX_TEXT_CHARS,
    Choice,
    Colour,
    ColumnNumber,
    Flag,
    Group,
    Kind,
    KnownText,
    Listing,
    Number,
    Text,
)
from resumes.analyzer.schema import (
    HEADER,
    MAX_ITEMS,
    SECTION_FIELDS_NOT_NULL,
    SECTION_TYPES,
    STYLE,
    TITLE,
    SectionType,
)
from resumes.analyzer.strict_json import MAX_INTEGER, MIN_INTEGER
from resumes.analyzer.view import Names

MAX_BYTES: Final = 64 * 1024
"""In so few there is no room for too many values, fields or warnings."""

# A text of nothing but white space, of which there is a warning, begins with a blank: a space, an
# escaped one, or one beyond ASCII. Other texts that begin so are left to the precise way as well.
_MAYBE_BLANK: Final = re.compile(
    rb'"(?=[ \\\xc2\xe1\xe2\xe3])(?<!\\")'
    rb"(?: |\\(?:[tnrf]|u(?:00(?:[01]|20|85|[aA]0)|1680|20|3000))"
    rb"|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80)"
)
# U+0000 is refused; an escaped colon would hide that a key comes twice.
_HIDING: Final = re.compile(rb"\\u00(?:00|3[aA])")


def parse_plain(body: bytes) -> Names | None:
    """Return what the resume that the bytes hold is called; None when the precise way has to
    look at it."""
    if len(body) > MAX_BYTES or _MAYBE_BLANK.search(body):
        return None
    if b"\\" in body and _HIDING.search(body):
        return None
    try:
        resume = _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    # Of a key that comes twice the structs have the last, and so one colon less.
    if body.count(b":") != _ENCODER.encode(resume).count(b":"):
        return None
    return Names(resume.title or None, resume.header.name or None)


def without_line_breaks(body: bytes) -> bytes:
    """Return JSON text without white space between its tokens, if it has several lines."""
    has_several = b"\n" in body or b"\r" in body
    return msgspec.json.format(body, indent=-1) if has_several else body


def _type_of(kind: Kind) -> Any:
    """Return the type of the values of a kind that are neither refused nor warned about, null aside."""
    match kind:
        case KnownText():
            return Literal["", *sorted(kind.known)]
        case Text():
            return Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
        case Choice():
            return Literal[*kind.choices]
        case Colour():
            return Annotated[str, Meta(pattern=r"^#(?:[0-9A-Fa-f]{3}){1,2}\Z")]
        case ColumnNumber():
            return Literal[0, 1]
        case Number():
            return _number(kind)
        case Flag():
            return bool
        case Listing():
            most = min(kind.usual_entries, MAX_LIST_ENTRIES)
            return _at_most(most, _type_of(kind.entry) | None)
        case Group():
            return _struct("Group", _optional(kind.fields))
        case _:  # anything at all, of which this much is plain
            return bool | str


def _at_most(most: int, of: Any) -> Any:
    return Annotated[GenericAlias(list, of), Meta(max_length=most)]


def _number(kind: Number) -> Any:
    whole = Annotated[int, Meta(ge=kind.lowest, le=kind.highest)]
    if kind.lowest == MIN_INTEGER:
        # Whole numbers out of range are read as such, not as fractions.
        return whole | Annotated[float, Meta(gt=MIN_INTEGER, lt=MAX_INTEGER)]
    return whole | Annotated[float, Meta(ge=kind.lowest, le=kind.highest)]


Field = tuple[str, Any, Any]


def _optional(fields: Mapping[str, Kind], not_null: Iterable[str] = ()) -> list[Field]:
    return [
        (name, _type_of(kind) | UnsetType | (UnsetType if name in not_null else None), UNSET)
        for name, kind in fields.items()
    ]


def _struct(name: str, fields: Iterable[tuple[Any, ...]]) -> Any:
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True, gc=False)


def _section(section_type: SectionType) -> Any:
    own = {name: kind for name, kind in section_type.own_fields.items() if name != "column"}
    item = _struct("Item", _optional(section_type.fields))
    return _struct(
        "Section",
        [
            ("column", _type_of(section_type.own_fields["column"])),
            *_optional(own, SECTION_FIELDS_NOT_NULL),
            ("items", _at_most(MAX_ITEMS, item) | UnsetType | None, UNSET),
        ],
    )


_RESUME: Final = _struct(
    "Resume",
    [
        ("header", _type_of(HEADER)),
        (
            "sections",
            _struct(
                "Sections",
                [(one.name, _section(one) | UnsetType, UNSET) for one in SECTION_TYPES.values()],
            ),
        ),
        ("title", _type_of(TITLE) | None | UnsetType, UNSET),
        ("style", _type_of(STYLE) | None | UnsetType, UNSET),
    ],
)
_DECODER: Final = msgspec.json.Decoder(_RESUME)
_ENCODER: Final = msgspec.json.Encoder()
