"""Define the mapping between JSON Resume and the analyzer format, in both directions.

Fields of JSON Resume are named as in version 1; the names that follow are older and only read. The
table for users, and the list of what a round trip changes, are in docs/format.md (JSON Resume).
"""

from collections.abc import Sequence
from typing import Final

from resumes.analyzer.jsonresume.properties import (
    Award,
    DateSpan,
    Fluency,
    Highlights,
    Home,
    Issuer,
    Joined,
    Keywords,
    Link,
    Location,
    Network,
    Paragraphs,
    Property,
    Release,
    Score,
    Texts,
)
from resumes.analyzer.schema import SECTION_TYPES


class SectionMapping:
    """A list in a JSON Resume, and the section whose items its entries become.

    `key` is the list's name at the top level of a JSON Resume or in `basics`. `section` is the
    section's type, and `heading` its name. Only the `parts` whose fields exist in this section type
    are used. An entry that is a text is read as the field `sole_field`, by default the first. With
    `needs`, the row reads only entries with a text in this field, and writes only a section with
    this heading.
    """

    def __init__(
        self,
        key: str,
        section: str,
        column: int,
        *parts: Property,
        sole_field: str | None = None,
        heading: str | None = None,
        needs: str | None = None,
    ) -> None:
        self.key = key
        self.section = section
        self.column = column
        fields = SECTION_TYPES[section].fields
        self.parts = [part for part in parts if fields.keys() >= set(part.fields)]
        self.sole_field = sole_field or parts[0].names[0]
        self.heading = heading or SECTION_TYPES[section].heading
        self.needs = needs
        self.names = frozenset(name for part in self.parts for name in part.names)
        """The fields of an entry that the row reads."""


HEADER: Final[Sequence[Property]] = (
    Property("name", "name"),
    Property("title", "label"),
    Property("email", "email"),
    Property("phone", "phone"),
    Home("location", "location"),
    Property("website", "url website"),
)
"""The fields of `basics` that correspond to fields of the header."""

SUMMARIES: Final = Paragraphs("text", "summary")
SUMMARY: Final = SectionMapping("summary", "summaries", 0, SUMMARIES)
"""The text in `basics`. It becomes a section with one item, or with several if it is long."""

PROFILES: Final = SectionMapping(
    "profiles",
    "findMeOnline",
    1,
    Network("title icon", "network"),
    Link("link", "url website username"),
    sole_field="url",
)
"""The list of profiles in `basics`."""

_DATES: Final = DateSpan("dateRange", "startDate endDate")
_RELEASED: Final = Release("dateRange", "releaseDate")
_WORK: Final = (
    Property("workplace", "name company"),
    Property("position", "position"),
    Location("location", "location"),
    Property("link", "url website"),
    _DATES,
    Property("description", "summary description"),
    Texts("bullets", "highlights"),
)
_PUBLICATION: Final = (
    Property("title", "name"),
    Property("edition", "publisher"),
    Property("link", "url website"),
    _RELEASED,
    Property("description", "summary"),
)
_SKILL: Final = (
    Property("title", "name"),
    Property("description", "level"),
    Texts("tags", "keywords"),
)
_TESTIMONIALS: Final = "References"

LISTS: Final = (
    SectionMapping("work", "experiences", 0, *_WORK),
    SectionMapping(
        "education",
        "educations",
        0,
        Property("institution", "institution"),
        Joined("degree", "studyType area"),
        Location("location", "location"),
        _DATES,
        Score("gpa maxGpa", "score gpa"),
        Texts("bullets", "courses"),
    ),
    SectionMapping(
        "projects",
        "projects",
        0,
        Property("title", "name"),
        Property("link", "url website"),
        _DATES,
        Property("description", "description summary"),
        Highlights("bullets", "highlights keywords"),
    ),
    SectionMapping(
        "volunteer",
        "volunteering",
        0,
        Property("institution", "organization"),
        Property("role", "position"),
        _DATES,
        Property("description", "summary"),
        Texts("bullets", "highlights"),
    ),
    SectionMapping("publications", "publications", 0, *_PUBLICATION),
    SectionMapping("skills", "skills", 1, *_SKILL),
    SectionMapping(
        "languages",
        "languages",
        1,
        Property("name", "language"),
        Fluency("levelText level", "fluency"),
    ),
    SectionMapping(
        "awards",
        "awards",
        1,
        Property("title", "title"),
        Award("description", "awarder date summary"),
    ),
    SectionMapping(
        "certificates",
        "certificates",
        1,
        Property("title", "name"),
        Issuer("issuer", "issuer date"),
    ),
    SectionMapping(
        "interests", "interests", 1, Property("title", "name"), Keywords("description", "keywords")
    ),
    # A reference in JSON Resume is a testimonial, but the section `references` contains contacts.
    SectionMapping(
        "references",
        "quotes",
        1,
        Property("quote", "reference"),
        Property("author", "name"),
        heading=_TESTIMONIALS,
        needs="reference",
    ),
    SectionMapping("references", "references", 1, Property("name", "name")),
)
"""The lists at the top level, in the order of the sections that they become."""

ALIKE: Final = (
    SectionMapping("work", "additionalExperiences", 0, *_WORK),
    SectionMapping("publications", "additionalPublications", 0, *_PUBLICATION),
    SectionMapping("skills", "additionalTechnologies", 1, *_SKILL),
)
"""Sections that each have the same meaning as another section. They are written and read back as that section."""

SPARE: Final = (
    *ALIKE,
    SectionMapping("references", "quotes", 1, Property("author", "name"), heading=_TESTIMONIALS),
)
"""The rows for additional entries when the section of a list is full."""

SECTIONS: Final = (SUMMARY, PROFILES, *LISTS, *ALIKE)
"""The rows for all sections of an analyzer document, in the order of the sections."""

KEYS: Final = (
    "$schema", "basics", "work", "volunteer", "education", "awards", "certificates",
    "publications", "skills", "languages", "interests", "references", "projects", "meta",
)  # fmt: skip
"""The top-level names of a JSON Resume, in the order of the schema."""
