"""Date ranges of a resume as people write them. Months count from 0: 0 is January."""

from collections.abc import Mapping
from typing import Any, Final

from resumes.analyzer.sections import MONTHS

TO: Final = " \N{EN DASH} "


def date_range(fields: Mapping[str, Any]) -> str:
    """`Jan 2015 to present`, with an en dash for "to"; empty when nothing is known."""
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
