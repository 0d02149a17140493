"""Define the shape of each section type, and which field is shown as which part of the shape."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Shape(StrEnum):
    """The shapes that the template can render (resume.typ, Shapes)."""

    ENTRY = "entry"
    """A title, a company or school (`sub`) or author (`by`), dates, a place, a link, text and bullets."""
    LEVEL = "level"
    """A title and its level."""
    TAGS = "tags"
    TEXT = "text"
    QUOTE = "quote"
    SLICES = "slices"
    """Titles with their share of the total."""


@dataclass(frozen=True, slots=True)
class SectionShape:
    """How a section type is rendered. `parts` maps each part of the shape to a field."""

    shape: Shape
    parts: dict[str, str] = field(default_factory=dict)
    full_level: float = 1.0
    """The level that is shown as a full bar."""


def _row(shape: Shape, parts: str = "", full_level: float = 1.0) -> SectionShape:
    """Parse `title=position sub=workplace`. A part without `=` shows the field of the same name."""
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
"""Fields that are not shown: addresses of pictures, which are never fetched; names of icons, which
the service does not have; and a number that the shares already express."""
