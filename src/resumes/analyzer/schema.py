"""Define the table of the analyzer format: all fields and the kinds of their values.

This module alone defines the rule for each field. docs/format.md lists the same fields for users; a
test compares the two. Ranges, fonts and icons come from the public documentation of the service
that the format belongs to; values outside them only cause warnings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from resumes.analyzer.kinds import (
    OPAQUE,
    Added,
    Choice,
    Colour,
    ColumnNumber,
    Flag,
    Group,
    Kind,
    KnownText,
    Listing,
    Month,
    Number,
    Text,
)

MAX_ITEMS: Final = 500

LAYOUTS: Final = {
    "double": "Double Column",
    "ivyleague": "Ivy League",
    "elegant": "Elegant",
    "newcondensed": "Modern",
    "polished": "Polished",
    "stockholm": "Contemporary",
    "double_colored": "Creative",
    "timeline": "Timeline",
    "flipped_modern": "Stylish",
    "single": "Single Column",
    "condensed": "Compact",
    "multicolumn": "Multicolumn",
    "classic": "Classic",
    "high_performer": "High Performer",
    "minimal": "Minimal",
}
"""The names of the templates by the value of `style.layout`."""

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
"""The names of the months by number, counted from 0."""

COLUMNS: Final = {0: "left", 1: "right", 2: "third"}
"""The names of the columns by the value of `column`. Only `MULTICOLUMN` has a third column."""

MULTICOLUMN: Final = "multicolumn"

BODY_FONTS: Final = frozenset({"opensans", "roboto", "ptsans", "interui"})

HEADING_FONTS: Final = frozenset({
    "rubik", "arimo", "lato", "raleway", "bitter", "exo", "exolocked", "chivo", "chivolocked",
    "montserrat", "tinos", "montserratlocked", "oswald", "oswaldlocked", "volkhov", "robotoslab",
    "playfair", "abril", "gelasio",
})  # fmt: skip

ICONS: Final = frozenset(Path(__file__).with_name("icons.txt").read_text("ascii").split())
"""The known values of the field `icon` (docs/format.md, Sections)."""

_TEXT = Text()
_TEXTS = Listing(Text(), "strings")
_NUMBER = Number()
_FLAG = Flag()


def first_month(document: Any, recorded: int | None = None) -> int:
    """Return the number of January in the dates of a document, which need not be valid: 0 or 1.

    `recorded` is returned if the number was known when the resume was created. Otherwise, the
    result is 1 only if the document contains a month 12 but no month 0 (docs/format.md, Dates).
    """
    if recorded is not None:
        return recorded
    months = {month for month in _iter_months(document) if type(month) in (int, float)}
    return int(12 in months and 0 not in months)


def _iter_months(document: Any) -> Iterator[Any]:
    sections = document.get("sections") if type(document) is dict else None
    for name, section in sections.items() if type(sections) is dict else ():
        if name not in SECTION_TYPES or "dateRange" not in SECTION_TYPES[name].fields:
            continue
        items = section.get("items") if type(section) is dict else None
        for item in items if type(items) is list else ():
            dates = item.get("dateRange") if type(item) is dict else None
            if type(dates) is dict:
                yield dates.get("fromMonth")
                yield dates.get("toMonth")


_MONTH = Month(0, 11, "months are 0-based (0 is January, 11 is December)", first_month)

DATE_RANGE: Final = Group(
    {
        "fromYear": _NUMBER,
        "fromMonth": _MONTH,
        "toYear": _NUMBER,
        "toMonth": _MONTH,
        "isOngoing": _FLAG,
    }
)

TITLE: Final = _TEXT

HEADER: Final = Group(
    {
        "name": _TEXT,
        "title": _TEXT,
        "email": _TEXT,
        "phone": _TEXT,
        "location": _TEXT,
        "website": _TEXT,
    }
)

STYLE: Final = Group(
    {
        "layout": Choice(LAYOUTS),
        "colors": Listing(Colour(), "hex colors", usual_entries=2),
        "fontBody": KnownText(BODY_FONTS, "body font"),
        "fontHeading": KnownText(HEADING_FONTS, "heading font"),
        "fontSize": Number(0, 4),
        "hideBranding": _FLAG,
        "isLetterSize": _FLAG,
        "marginOption": Number(0, 4),
        "pageMarginOption": Number(0, 5),
        "columnLayoutOption": Number(0, 3),
        "lineHeightOption": Number(0, 2),
        "headerExtraSpacing": Number(0, 4),
    }
)

SECTION_FIELDS: Final[Mapping[str, Kind]] = {
    "column": ColumnNumber(),
    "order": _NUMBER,
    "name": _TEXT,
}
"""The fields that sections of all types have, except `items`."""


def _section(own_fields: Mapping[str, Kind], item: Kind) -> Group:
    items = Listing(item, "objects", MAX_ITEMS, MAX_ITEMS, "items", not_null=True)
    return Group(
        {**own_fields, "items": items},
        not_null=frozenset({"column", "name"}),
        required={"column": ColumnNumber.EXPECTED},
    )


EXTRA_SECTION: Final = _section(SECTION_FIELDS, OPAQUE)
"""A section of an extra type, which the settings allow."""


class SectionType:
    """A row of the table: a section type and its fields.

    `heading` is shown for a section without a name. `fields` are the fields of an item, and
    `own_fields` are the fields of the section itself, except `items`. `added` lists the item fields
    that release 1.0.0 did not know. `show_flags` maps each field to its show flag, for example
    description to showDescription. `kind` checks a section.
    """

    def __init__(
        self,
        name: str,
        heading: str,
        fields: str,
        *,
        level: Kind | None = None,
        extras: Mapping[str, Kind] | None = None,
        added: str = "",
    ) -> None:
        self.name = name
        self.heading = heading
        kinds = _NOT_TEXT if level is None else {**_NOT_TEXT, "level": level}
        self.fields = {field: kinds.get(field, _TEXT) for field in fields.split()}
        self.fields |= {field: Added(self.fields[field]) for field in added.split()}
        self.own_fields = {**SECTION_FIELDS, **(extras or {})}
        self.show_flags = {field: f"show{field[0].upper()}{field[1:]}" for field in self.fields}
        service = frozenset({"record", *self.show_flags.values()})
        self.item = Group(self.fields, set_by_service=service)
        self.kind = _section(self.own_fields, self.item)


_NOT_TEXT: Final[Mapping[str, Kind]] = {
    "bullets": _TEXTS,
    "data": Listing(Group({"title": _TEXT, "value": _NUMBER}), "objects"),
    "dateRange": DATE_RANGE,
    "icon": KnownText(ICONS, "icon"),
    "pieces": _NUMBER,
    "tags": _TEXTS,
}
"""The kinds of the item fields that are not texts."""

_TAG_EXTRAS: Final[Mapping[str, Kind]] = {"layoutMode": OPAQUE, "showBulletMarker": OPAQUE}


SECTION_TYPES: Final = {
    section_type.name: section_type
    for section_type in (
        SectionType("summaries", "Summary", "text"),
        SectionType(
            "experiences",
            "Experience",
            "workplace position location link companyLogo dateRange description bullets",
        ),
        SectionType(
            "educations",
            "Education",
            "institution degree location companyLogo dateRange gpa maxGpa gpaText bullets",
        ),
        SectionType(
            "industryExperiences", "Industry Expertise", "name level icon", level=Number(0, 10)
        ),
        SectionType(
            "volunteering",
            "Volunteering",
            "institution role location companyLogo dateRange description bullets",
        ),
        SectionType(
            "publications", "Publications", "title author edition link dateRange description"
        ),
        SectionType("projects", "Projects", "title location link dateRange description bullets"),
        SectionType("achievements", "Achievements", "title description icon"),
        SectionType("awards", "Awards", "title description icon"),
        SectionType("certificates", "Certificates", "title issuer"),
        SectionType("courses", "Courses", "title description"),
        SectionType("languages", "Languages", "name level levelText", level=Number(0, 5)),
        SectionType("interests", "Interests", "title description icon"),
        SectionType("books", "Books", "title author image"),
        SectionType("quotes", "Quotes", "quote author"),
        SectionType("references", "References", "name contact"),
        SectionType("findMeOnline", "Find Me Online", "title link icon"),
        SectionType("strengths", "Strengths", "title description icon"),
        SectionType("skills", "Skills", "title description tags", extras=_TAG_EXTRAS),
        SectionType("mytime", "My Time", "pieces data"),
        SectionType("customs", "Custom", "title description icon dateRange"),
        SectionType(
            "customs2", "Custom 2", "title description icon dateRange", added="icon dateRange"
        ),
        SectionType(
            "customs3", "Custom 3", "title description icon dateRange", added="icon dateRange"
        ),
        SectionType(
            "additionalExperiences",
            "Additional Experience",
            "workplace position location link companyLogo dateRange description bullets",
            added="location link companyLogo description bullets",
        ),
        SectionType(
            "additionalPublications",
            "Additional Publications",
            "title author edition link dateRange description",
            added="edition link description",
        ),
        SectionType(
            "additionalTechnologies",
            "Technologies",
            "title description tags",
            extras=_TAG_EXTRAS,
            added="description",
        ),
    )
}
"""The 26 built-in section types by name, in the order of docs/format.md."""

DOCUMENT: Final = Group(
    {
        "header": HEADER,
        "sections": Group(
            {name: section_type.kind for name, section_type in SECTION_TYPES.items()},
            not_null=frozenset(SECTION_TYPES),
            other=EXTRA_SECTION,
        ),
        "title": TITLE,
        "style": STYLE,
    },
    set_by_service=frozenset({"isImported"}),
    not_null=frozenset({"header", "sections"}),
    required=dict.fromkeys(("header", "sections"), "must be an object"),
)
"""A resume without sections of extra types."""

_BY_LOWERED_NAME: Final = {name.lower(): name for name in SECTION_TYPES}
_LONGEST_NAME_CHARS: Final = max(map(len, SECTION_TYPES))


def nearest_section_type(name: str) -> str | None:
    """Return the most similar section type, ignoring case, or None if none is similar."""
    # Skip long names: they are not similar to any type, and comparing them is slow.
    if len(name) > 2 * _LONGEST_NAME_CHARS:
        return None
    near = get_close_matches(name.lower(), _BY_LOWERED_NAME, n=1)
    return _BY_LOWERED_NAME[near[0]] if near else None


@dataclass(frozen=True, slots=True)
class Format:
    """The analyzer format as the settings define it."""

    extra_section_types: frozenset[str] = frozenset()
    """Section types in addition to the 26 built-in types. Their items are kept unchanged."""

    max_bytes: int = 2 * 1024 * 1024
    """The maximum size of a request body. A larger body is rejected without being read."""

    first_month: int | None = None
    """The analyzer's number for January (0 or 1). If None, it is determined for each document."""

    def for_account(self, first_month: int | None) -> "Format":
        """Return the format for an account. None means that it does not set `first_month`."""
        if first_month in (None, self.first_month):
            return self
        return replace(self, first_month=first_month)


DEFAULT_FORMAT: Final = Format()
