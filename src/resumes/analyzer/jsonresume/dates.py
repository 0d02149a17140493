"""Dates as JSON Resumes have them: a year, and perhaps a month and a day.

The analyzer format knows years and months, and months count from 0; a day has no place there.
"""

import re
from typing import Any, NamedTuple

from resumes.analyzer.sections import MONTHS

# Years as the schema of JSON Resume knows them, so that what was read can be written again.
_YEAR_FIRST = re.compile(
    r"([12][0-9]{3})(?:[-/.](0?[1-9]|1[0-2])(?:[-/.][0-3]?[0-9](?:T.*)?)?)?", re.ASCII
)
_MONTH_FIRST = re.compile(r"(0?[1-9]|1[0-2])[-/.]([12][0-9]{3})", re.ASCII)
_MONTH_NAMED = re.compile(r"([A-Za-z]{3,9})\.?,? ([12][0-9]{3})", re.ASCII)
_MONTHS_BY_BEGINNING = {month[:3].lower(): number for number, month in enumerate(MONTHS)}
_ONGOING = frozenset({"present", "current", "now", "today", "ongoing"})

WRITTEN = re.compile(r"[12][0-9]{3}(?:-[01][0-9](?:-[0-3][0-9])?)?", re.ASCII)
"""A date as JSON Resume writes it, and text that is nothing else."""


class Moment(NamedTuple):
    """A month of a year; `month` counts from 0, None when only the year is known."""

    year: int
    month: int | None


def find_moment(text: str) -> Moment | None:
    """The month that a text names; None when it cannot be read.

    Read are `2020`, `2020-01`, `2020-01-31`, the same with `/` or `.`, a time of day after it,
    `01/2020` and `January 2020`.
    """
    text = text.strip()
    if dated := _YEAR_FIRST.fullmatch(text):
        return Moment(int(dated[1]), int(dated[2]) - 1 if dated[2] else None)
    if dated := _MONTH_FIRST.fullmatch(text):
        return Moment(int(dated[2]), int(dated[1]) - 1)
    if dated := _MONTH_NAMED.fullmatch(text):
        month = _MONTHS_BY_BEGINNING.get(dated[1][:3].lower())
        if month is not None and MONTHS[month].lower().startswith(dated[1].lower()):
            return Moment(int(dated[2]), month)
    return None


def is_ongoing(end: Any) -> bool:
    """Whether an end says that there is none yet: `Present`, `current`."""
    return type(end) is str and end.strip().lower() in _ONGOING


def find_written(year: Any, month: Any) -> str | None:
    """The month as JSON Resume writes it, `2020-01`; None without a year that it can write.

    Both are numbers or None; `month` counts from 0, and what is no month is left out.
    """
    if year is None or year != int(year) or not 1000 <= year <= 2999:
        return None
    if month not in range(len(MONTHS)):
        return str(int(year))
    return f"{int(year)}-{int(month) + 1:02}"
