"""The mapping between JSON Resume and the analyzer format, in both directions.

Fields of JSON Resume are named as in version 1, followed by older names that are read too. The table
for users, with what does not survive a round trip, is in docs/format.md (JSON Resume).
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
    """A list of a JSON Resume and the section that its entries become items of.

    `key` is the list's name, at the top of a JSON Resume or in its `basics`; `section` the section's
    type, `heading` its name. Of `parts` only those count whose fields such an item has. An entry that
    is a text stands for `sole_field`, by default the first. With `needs` the row only reads entries
    with a text in this field, and only writes a section with this heading.
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
"""The fields of `basics` that are fields of the header."""

SUMMARIES: Final = Paragraphs("text", "summary")
SUMMARY: Final = SectionMapping("summary", "summaries", 0, SUMMARIES)
"""The text in `basics`, which becomes a section of one item, or of more if it is long."""

PROFILES: Final = SectionMapping(
    "profiles",
    "findMeOnline",
    1,
    Network("title icon", "network"),
    Link("link", "url website username"),
    sole_field="url",
)
"""The list in `basics`."""

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
        "interests",
        "interests",
        1,
        Property("title", "name"),
        Keywords("description", "keywords"),
    ),
    # A reference in JSON Resume is a testimonial; the section of that name holds contacts.
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
"""The lists at the top, in the order of the sections made of them."""

ALIKE: Final = (
    SectionMapping("work", "additionalExperiences", 0, *_WORK),
    SectionMapping("publications", "additionalPublications", 0, *_PUBLICATION),
    SectionMapping("skills", "additionalTechnologies", 1, *_SKILL),
)
"""Sections that mean the same as another: they are written like it, and read back as that section."""

SPARE: Final = (
    *ALIKE,
    SectionMapping("references", "quotes", 1, Property("author", "name"), heading=_TESTIMONIALS),
)
"""The rows that read the entries for which their own section is full."""

SECTIONS: Final = (SUMMARY, PROFILES, *LISTS, *ALIKE)
"""The rows for the sections of an analyzer document, in their order."""

KEYS: Final = (
    "$schema", "basics", "work", "volunteer", "education", "awards", "certificates",
    "publications", "skills", "languages", "interests", "references", "projects", "meta",
)  # fmt: skip
"""The top-level names of a JSON Resume, in the order of its schema."""
