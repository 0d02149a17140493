"""The table of how sections are drawn: their shapes, and which field plays which part."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Shape(StrEnum):
    """The shapes that the template can draw (resume.typ, Shapes)."""

    ENTRY = "entry"
    """A title, a company or school (`sub`) or author (`by`), dates, a place, a link, text and bullets."""
    LEVEL = "level"
    """A title and its level."""
    TAGS = "tags"
    TEXT = "text"
    QUOTE = "quote"
    SLICES = "slices"
    """Shares of a whole."""


@dataclass(frozen=True, slots=True)
class SectionShape:
    """How a section type is drawn: the field for each part."""

    shape: Shape
    parts: dict[str, str] = field(default_factory=dict)
    full_level: float = 1.0
    """The level that is drawn as full."""


def _row(shape: Shape, parts: str = "", full_level: float = 1.0) -> SectionShape:
    """Parse `title=position sub=workplace`; a part without a field is played by the field of its name."""
    pairs = (word.partition("=") for word in parts.split())
    return SectionShape(shape, {part: name or part for part, _, name in pairs}, full_level)


_TITLE_TEXT: Final = _row(Shape.ENTRY, "title text=description")
_CUSTOM: Final = _row(Shape.ENTRY, "title dates=dateRange text=description")
_EXPERIENCE: Final = _row(
    Shape.ENTRY,
    "title=position sub=workplace place=location link dates=dateRange text=description bullets",
)
_PUBLICATION: Final = _row(
    Shape.ENTRY, "title by=author place=edition link dates=dateRange text=description"
)
_SKILL: Final = _row(Shape.TAGS, "title text=description tags")

ROWS: Final = {
    "summaries": _row(Shape.TEXT, "text"),
    "experiences": _EXPERIENCE,
    "educations": _row(
        Shape.ENTRY,
        "title=degree sub=institution place=location dates=dateRange grade=gpa max_grade=maxGpa "
        "text=gpaText bullets",
    ),
    "industryExperiences": _row(Shape.LEVEL, "title=name level", full_level=10),
    "volunteering": _row(
        Shape.ENTRY,
        "title=role sub=institution place=location dates=dateRange text=description bullets",
    ),
    "publications": _PUBLICATION,
    "projects": _row(
        Shape.ENTRY, "title place=location link dates=dateRange text=description bullets"
    ),
    "achievements": _TITLE_TEXT,
    "awards": _TITLE_TEXT,
    "certificates": _row(Shape.ENTRY, "title by=issuer"),
    "courses": _TITLE_TEXT,
    "languages": _row(Shape.LEVEL, "title=name level note=levelText", full_level=5),
    "interests": _TITLE_TEXT,
    "books": _row(Shape.ENTRY, "title by=author"),
    "quotes": _row(Shape.QUOTE, "text=quote by=author"),
    "references": _row(Shape.ENTRY, "title=name text=contact"),
    "findMeOnline": _row(Shape.ENTRY, "title link"),
    "strengths": _TITLE_TEXT,
    "skills": _SKILL,
    "mytime": _row(Shape.SLICES, "data"),
    "customs": _CUSTOM,
    "customs2": _CUSTOM,
    "customs3": _CUSTOM,
    "additionalExperiences": _EXPERIENCE,
    "additionalPublications": _PUBLICATION,
    "additionalTechnologies": _SKILL,
}

NOT_DRAWN: Final = frozenset({"companyLogo", "image", "icon", "pieces"})
"""Addresses of pictures, which are never fetched; names of icons, which are not ours; and a number that
the shares show."""
