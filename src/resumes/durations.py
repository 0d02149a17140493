"""Parse and format durations as people write them."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from resumes.text import counted

SPAN: Final = re.compile(r"([0-9]{1,6})([dhm])")
UNITS: Final = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_span(text: str) -> timedelta | None:
    """Parse a duration such as `30d`, `12h`, `90m` or `0`. Return None for any other text."""
    if text == "0":
        return timedelta(0)
    match = SPAN.fullmatch(text)
    return None if match is None else int(match[1]) * UNITS[match[2]]


def parse_duration(text: str) -> timedelta:
    """Return the duration. Raises ValueError if the text is invalid."""
    span = parse_span(text)
    if span is None:
        raise ValueError(f'"{text}" is not a valid duration: use 7d, 12h, 30m or 0')
    return span


def parse_expiry(text: str) -> timedelta | datetime:
    """Parse a duration from now, or a date, which means its beginning in UTC. Raises ValueError."""
    span = parse_span(text)
    if span is not None:
        return span
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        raise ValueError(f'"{text}" is not a valid expiry: use 30d, 12h or 2027-01-31') from None


def until(expiry: timedelta | datetime, *, now_us: int) -> timedelta:
    """Return the duration from now until the expiry, which is negative if the expiry has passed."""
    if isinstance(expiry, timedelta):
        return expiry
    return expiry - EPOCH - timedelta(microseconds=now_us)


def span(seconds: float) -> str:
    """Format a duration as `40 seconds`, `5 minutes` or `3 hours`.

    Use the largest unit with a value of at least two."""
    for unit, unit_s in (("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * unit_s:
            return counted(int(seconds // unit_s), unit)
    return counted(int(seconds), "second")
