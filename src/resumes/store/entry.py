"""A resume in a list. Needs no SQLAlchemy, unlike the modules that read it from a store in use."""

from typing import NamedTuple

from resumes.analyzer import list_title

MAX_VERSIONS = 100
"""How many of a person's resumes are counted or listed at most."""


class Entry(NamedTuple):
    """A resume in a list. `title`, `name` and `label` are None where the resume has none."""

    id: str
    title: str | None
    name: str | None
    filename: str
    created_at: str
    updated_at: str
    label: str | None = None

    @property
    def shown_title(self) -> str:
        """The title that a list shows; never empty."""
        return list_title(self.title, self.name)
