"""What settings may change about the analyzer format."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """The analyzer format as one installation accepts it."""

    extra_section_types: frozenset[str] = frozenset()
    """Section types beyond the 26 of the table; their items are kept as they are."""

    max_bytes: int = 2 * 1024 * 1024
    """The size of a request body, in bytes, over which it is refused unread."""


DEFAULT_FORMAT = Format()
