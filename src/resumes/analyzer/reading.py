"""How a resume reads: which fields lead an item, which are prose, and dates in words.

The terminal UI and the command line draw it; what they draw, and in which words, is here.
"""

from collections.abc import Mapping
from typing import Any, Final

from resumes.analyzer.sections import MONTHS

CONTACTS: Final = ("email", "phone", "location", "website")
"""Fields of the header by which its owner is reached."""

LEADS: Final = ("position", "degree", "role", "title", "name")
"""What an item is first of all; the first that there is leads."""

SECONDS: Final = ("workplace", "institution", "author", "issuer", "contact", "edition")
"""Whose, where or by whom, on the same line."""

PLACES: Final = ("location", "link")
"""Where more of it is; like leads and seconds these need no name."""

PROSE: Final = ("text", "description", "quote")
"""Paragraphs, without their name."""

TO: Final = " \N{EN DASH} "


def date_range(fields: Mapping[str, Any]) -> str:
    """`Jan 2015 to present`, with an en dash for "to"; empty when nothing is known.

    Months count from 0: 0 is January (docs/format.md, Dates). English everywhere, so
    that a resume reads the same on every machine.
    """
    start = _instant(fields.get("fromYear"), fields.get("fromMonth"))
    end = _instant(fields.get("toYear"), fields.get("toMonth"))
    if fields.get("isOngoing"):
        return f"{start}{TO}present" if start else "present"
    if start and end and start != end:
        return f"{start}{TO}{end}"
    return start or (f"until {end}" if end else "")


def _instant(year: float | None, month: float | None) -> str:
    parts = []
    if month is not None:
        is_known = month in range(len(MONTHS))
        parts.append(MONTHS[int(month)][:3] if is_known else f"month {plain_number(month)}")
    if year is not None:
        parts.append(plain_number(year))
    return " ".join(parts)


def plain_number(number: float) -> str:
    """The number without a fraction that is nought: `2015` for 2015.0."""
    return str(int(number)) if number == int(number) else str(number)
