"""The one table of what goes where between JSON Resume and the analyzer format, both ways.

Fields of JSON Resume are named as in version 1, followed by older names that are read too. People
find the table, and what does not come back, on a page (docs/format.md, JSON Resume).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from resumes.analyzer.jsonresume.parts import (
    DateSpan,
    Fluency,
    Home,
    Joined,
    Keywords,
    Link,
    Location,
    Network,
    Paragraphs,
    PlainText,
    PropertyMapping,
    Release,
    Score,
    Texts,
    award_parts,
    issuer_and_date,
    study_and_area,
)
from resumes.analyzer.schema import SECTION_TYPES


@dataclass(frozen=True, slots=True)
class SectionMapping:
    """A list of a JSON Resume and the section that its entries are items of."""

    key: str
    """The list's name, at the top of a JSON Resume or in its `basics`."""

    section: str
    """The section type."""

    column: int

    parts: Sequence[PropertyMapping]

    sole_field: str
    """What an entry that is a mere text means."""

    heading: str
    """The section's name."""

    needs: str | None = None
    """Only entries with a text in this field, and in return only a section with this heading."""

    @property
    def names(self) -> frozenset[str]:
        """The fields of an entry that have a place here."""
        return frozenset(name for part in self.parts for name in part.names)


def _row(
    key: str,
    section: str,
    column: int,
    *parts: PropertyMapping,
    sole_field: str = "name",
    heading: str | None = None,
    needs: str | None = None,
) -> SectionMapping:
    heading = heading or SECTION_TYPES[section].heading
    return SectionMapping(key, section, column, parts, sole_field, heading, needs)


HEADER: Final[Sequence[PropertyMapping]] = (
    PlainText("name", "name"),
    PlainText("title", "label"),
    PlainText("email", "email"),
    PlainText("phone", "phone"),
    Home(),
    PlainText("website", "url", "website"),
)
"""The fields of `basics` that are fields of the header."""

SUMMARIES: Final = Paragraphs("text", "summary")
SUMMARY: Final = _row("summary", "summaries", 0, SUMMARIES, sole_field="summary")
"""The text in `basics`, which is a section of one item, or of several if it is long."""

PROFILES: Final = _row("profiles", "findMeOnline", 1, Network(), Link(), sole_field="url")
"""The list in `basics`."""

_WORKPLACE: Final = PlainText("workplace", "name", "company")
_POSITION: Final = PlainText("position", "position")
_WORK: Final = (
    _WORKPLACE,
    _POSITION,
    Location(),
    PlainText("link", "url", "website"),
    DateSpan(),
    PlainText("description", "summary", "description"),
    Texts("bullets", "highlights"),
)
_PUBLICATION: Final = (
    PlainText("title", "name"),
    PlainText("edition", "publisher"),
    PlainText("link", "url", "website"),
    Release(),
    PlainText("description", "summary"),
)
_SKILL: Final = (
    PlainText("title", "name"),
    PlainText("description", "level"),
    Texts("tags", "keywords"),
)
_TESTIMONIALS: Final = "References"

LISTS: Final = (
    _row("work", "experiences", 0, *_WORK),
    _row(
        "education",
        "educations",
        0,
        PlainText("institution", "institution"),
        Joined("degree", ("studyType", "area"), ", ", study_and_area),
        DateSpan(),
        Score(),
        Texts("bullets", "courses"),
        sole_field="institution",
    ),
    _row(
        "projects",
        "projects",
        0,
        PlainText("title", "name"),
        PlainText("link", "url", "website"),
        DateSpan(),
        PlainText("description", "description", "summary"),
        Texts("bullets", "highlights"),
    ),
    _row(
        "volunteer",
        "volunteering",
        0,
        PlainText("institution", "organization"),
        PlainText("role", "position"),
        DateSpan(),
        PlainText("description", "summary"),
        Texts("bullets", "highlights"),
        sole_field="organization",
    ),
    _row("publications", "publications", 0, *_PUBLICATION),
    _row("skills", "skills", 1, *_SKILL),
    _row(
        "languages", "languages", 1, PlainText("name", "language"), Fluency(), sole_field="language"
    ),
    _row(
        "awards",
        "awards",
        1,
        PlainText("title", "title"),
        Joined("description", ("awarder", "date", "summary"), " - ", award_parts),
        sole_field="title",
    ),
    _row(
        "certificates",
        "certificates",
        1,
        PlainText("title", "name"),
        Joined("issuer", ("issuer", "date"), ", ", issuer_and_date),
    ),
    _row(
        "interests",
        "interests",
        1,
        PlainText("title", "name"),
        Keywords("description", "keywords"),
    ),
    # A reference of JSON Resume is what somebody says; the section of that name holds contacts.
    _row(
        "references",
        "quotes",
        1,
        PlainText("quote", "reference"),
        PlainText("author", "name"),
        sole_field="reference",
        heading=_TESTIMONIALS,
        needs="reference",
    ),
    _row("references", "references", 1, PlainText("name", "name")),
)
"""The lists at the top, in the order of the sections made of them."""

ALIKE: Final = (
    _row("work", "additionalExperiences", 0, _WORKPLACE, _POSITION, DateSpan()),
    _row("publications", "additionalPublications", 0, PlainText("title", "name"), Release()),
    _row(
        "skills", "additionalTechnologies", 1, PlainText("title", "name"), Texts("tags", "keywords")
    ),
)
"""Sections that say the same as another one: written like it, and read back as that one."""

SPARE: Final = (
    *ALIKE,
    _row("references", "quotes", 1, PlainText("author", "name"), heading=_TESTIMONIALS),
)
"""What entries are read as that have a place there and none any more in a section that is full."""

SECTIONS: Final = (SUMMARY, PROFILES, *LISTS, *ALIKE)
"""What sections of an analyzer document go with, in their order."""

KEYS: Final = (
    "$schema", "basics", "work", "volunteer", "education", "awards", "certificates",
    "publications", "skills", "languages", "interests", "references", "projects", "meta",
)  # fmt: skip
"""What a JSON Resume has at the top, in the order of its schema."""
