"""The one table of the analyzer format: which fields there are and what each may hold.

The rule for a field is found here and nowhere else; docs/format.md names the same fields to people,
and a test compares the two. Ranges, fonts and icons are known from the public documentation of the
service that the format belongs to; they give warnings and refuse nothing.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from resumes.analyzer.icons import ICONS
from resumes.analyzer.kinds import (
    OPAQUE,
    Check,
    Choice,
    Colour,
    Column,
    Flag,
    Group,
    Kind,
    KnownText,
    Listing,
    Number,
    Text,
    Texts,
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
"""Template names by the value of `style.layout`."""

MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
"""Month names by the value of `fromMonth` and `toMonth`, which count from 0."""

COLUMNS: Final = {0: "left", 1: "right", 2: "third"}
"""Column names by the value of a section's `column`; the third only in `MULTICOLUMN`."""

MULTICOLUMN: Final = "multicolumn"

BODY_FONTS: Final = frozenset({"opensans", "roboto", "ptsans", "interui"})

# fmt: off
HEADING_FONTS: Final = frozenset(
    {
        "rubik", "arimo", "lato", "raleway", "bitter", "exo", "exolocked", "chivo",
        "chivolocked", "montserrat", "tinos", "montserratlocked", "oswald", "oswaldlocked",
        "volkhov", "robotoslab", "playfair", "abril", "gelasio",
    }
)
# fmt: on

_TEXT = Text()
_TEXTS = Texts()
_NUMBER = Number()
_FLAG = Flag()
_ICON = KnownText(ICONS, "icon")
_MONTH = Number(0, 11, "months are 0-based, 0 is January and 11 is December")

DATE_RANGE: Final = Group(
    {
        "fromYear": _NUMBER,
        "fromMonth": _MONTH,
        "toYear": _NUMBER,
        "toMonth": _MONTH,
        "isOngoing": _FLAG,
    }
)

_SLICES = Listing(Group({"title": _TEXT, "value": _NUMBER}), "objects")

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
        "colors": Listing(Colour(), "hex colours", usual_entries=2),
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

SECTION_FIELDS: Final[Mapping[str, Kind]] = {"column": Column(), "order": _NUMBER, "name": _TEXT}
"""The fields of a section of any type, `items` aside."""

SECTION_CHECKS: Final[Mapping[str, Check]] = {
    name: kind.check for name, kind in SECTION_FIELDS.items()
}

SECTION_FIELDS_NOT_NULL: Final = frozenset({"column", "name"})


class SectionType:
    """One row of the table: what a section of this type is called and what its items hold.

    `heading` is shown for a section without a name. `fields` are those of its items, `own_fields`
    those of the section itself, `items` aside. `show_flags` are by field.
    """

    __slots__ = (
        "checks",
        "fields",
        "heading",
        "name",
        "own_checks",
        "own_fields",
        "set_by_service",
        "show_flags",
        "texts",
    )

    def __init__(
        self, name: str, heading: str, fields: Mapping[str, Kind], extras: Mapping[str, Kind]
    ) -> None:
        self.name = name
        self.heading = heading
        self.fields = fields
        self.own_fields: dict[str, Kind] = {**SECTION_FIELDS, **extras}
        self.own_checks = {name: kind.check for name, kind in self.own_fields.items()}
        self.checks: dict[str, Check] = {field: kind.check for field, kind in fields.items()}
        self.texts = frozenset(field for field, kind in fields.items() if type(kind) is Text)
        self.show_flags = {field: show_flag(field) for field in fields}
        self.set_by_service = frozenset({"record", *self.show_flags.values()})


def show_flag(field: str) -> str:
    """The name of the flag that says whether a field is shown: showDescription for description."""
    return f"show{field[0].upper()}{field[1:]}"


_TAG_EXTRAS: Final[Mapping[str, Kind]] = {"layoutMode": OPAQUE, "showBulletMarker": OPAQUE}
_TITLED: Final[Mapping[str, Kind]] = {"title": _TEXT, "description": _TEXT}
_TITLED_WITH_ICON: Final[Mapping[str, Kind]] = {**_TITLED, "icon": _ICON}


def _table() -> dict[str, SectionType]:
    rows: list[SectionType] = []

    def row(
        name: str,
        heading: str,
        fields: Mapping[str, Kind],
        extras: Mapping[str, Kind] | None = None,
    ) -> None:
        rows.append(SectionType(name, heading, fields, extras or {}))

    row("summaries", "Summary", {"text": _TEXT})
    row(
        "experiences",
        "Experience",
        {
            "workplace": _TEXT,
            "position": _TEXT,
            "location": _TEXT,
            "link": _TEXT,
            "companyLogo": _TEXT,
            "dateRange": DATE_RANGE,
            "description": _TEXT,
            "bullets": _TEXTS,
        },
    )
    row(
        "educations",
        "Education",
        {
            "institution": _TEXT,
            "degree": _TEXT,
            "location": _TEXT,
            "companyLogo": _TEXT,
            "dateRange": DATE_RANGE,
            "gpa": _TEXT,
            "maxGpa": _TEXT,
            "gpaText": _TEXT,
            "bullets": _TEXTS,
        },
    )
    row(
        "industryExperiences",
        "Industry Expertise",
        {"name": _TEXT, "level": Number(0, 10), "icon": _ICON},
    )
    row(
        "volunteering",
        "Volunteering",
        {
            "institution": _TEXT,
            "role": _TEXT,
            "location": _TEXT,
            "companyLogo": _TEXT,
            "dateRange": DATE_RANGE,
            "description": _TEXT,
            "bullets": _TEXTS,
        },
    )
    row(
        "publications",
        "Publications",
        {
            "title": _TEXT,
            "author": _TEXT,
            "edition": _TEXT,
            "link": _TEXT,
            "dateRange": DATE_RANGE,
            "description": _TEXT,
        },
    )
    row(
        "projects",
        "Projects",
        {
            "title": _TEXT,
            "location": _TEXT,
            "link": _TEXT,
            "dateRange": DATE_RANGE,
            "description": _TEXT,
            "bullets": _TEXTS,
        },
    )
    row("achievements", "Achievements", _TITLED_WITH_ICON)
    row("awards", "Awards", _TITLED_WITH_ICON)
    row("certificates", "Certificates", {"title": _TEXT, "issuer": _TEXT})
    row("courses", "Courses", _TITLED)
    row("languages", "Languages", {"name": _TEXT, "level": Number(0, 5), "levelText": _TEXT})
    row("interests", "Interests", _TITLED_WITH_ICON)
    row("books", "Books", {"title": _TEXT, "author": _TEXT, "image": _TEXT})
    row("quotes", "Quotes", {"quote": _TEXT, "author": _TEXT})
    row("references", "References", {"name": _TEXT, "contact": _TEXT})
    row("findMeOnline", "Find Me Online", {"title": _TEXT, "link": _TEXT, "icon": _ICON})
    row("strengths", "Strengths", _TITLED_WITH_ICON)
    row("skills", "Skills", {**_TITLED, "tags": _TEXTS}, _TAG_EXTRAS)
    row("mytime", "My Time", {"pieces": _NUMBER, "data": _SLICES})
    row("customs", "Custom", {**_TITLED_WITH_ICON, "dateRange": DATE_RANGE})
    row("customs2", "Custom 2", _TITLED)
    row("customs3", "Custom 3", _TITLED)
    row(
        "additionalExperiences",
        "Additional Experience",
        {"workplace": _TEXT, "position": _TEXT, "dateRange": DATE_RANGE},
    )
    row(
        "additionalPublications",
        "Additional Publications",
        {"title": _TEXT, "author": _TEXT, "dateRange": DATE_RANGE},
    )
    row("additionalTechnologies", "Technologies", {"title": _TEXT, "tags": _TEXTS}, _TAG_EXTRAS)
    return {section_type.name: section_type for section_type in rows}


SECTION_TYPES: Final = _table()
"""The 26 section types by name, in the order of docs/format.md."""

_BY_LOWERED_NAME: Final = {name.lower(): name for name in SECTION_TYPES}
_LONGEST_NAME_CHARS: Final = max(map(len, SECTION_TYPES))


def nearest_section_type(name: str) -> str | None:
    """The known section type that was probably meant, in any case; None when none is close."""
    # No name of twice the length is close to any, and long ones take long to compare.
    if len(name) > 2 * _LONGEST_NAME_CHARS:
        return None
    near = get_close_matches(name.lower(), _BY_LOWERED_NAME, n=1)
    return _BY_LOWERED_NAME[near[0]] if near else None
