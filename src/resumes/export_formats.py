"""What a resume can be exported as."""

from enum import StrEnum


class Kind(StrEnum):
    """The format that an exported resume is in."""

    ANALYZER = "analyzer"
    """Can be created again as it is."""

    JSON_RESUME = "jsonresume"
    """Does not hold everything."""

    PDF = "pdf"
    """For people."""

    @property
    def suffix(self) -> str:
        """What names of such files end in: one folder may hold the exports of each kind."""
        return _SUFFIXES[self]


_SUFFIXES = {Kind.ANALYZER: ".json", Kind.JSON_RESUME: ".jsonresume.json", Kind.PDF: ".pdf"}
