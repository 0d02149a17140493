"""A resume in a list. This module does not import SQLAlchemy, so `sqlite.first_rows` can use it."""

from typing import NamedTuple

from resumes.analyzer import list_title

MAX_VERSIONS = 100
"""The maximum number of a person's resumes that are counted or listed."""


class Entry(NamedTuple):
    """A resume in a list. `title`, `name` and `label` are None if the resume has none."""

    id: str
    title: str | None
    name: str | None
    filename: str
    created_at: str
    updated_at: str
    label: str | None = None

    @property
    def shown_title(self) -> str:
        """Return the title that a list shows, which is never empty."""
        return list_title(self.title, self.name)
