"""Spans of time as people type them: `30d`, `12h`, `90m`, and dates as the end of one."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

SPAN: Final = re.compile(r"([0-9]{1,6})([dhm])")
UNITS: Final = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_span(text: str) -> timedelta | None:
    """The span that the text names, `0` included; None when it names none."""
    if text == "0":
        return timedelta(0)
    match = SPAN.fullmatch(text)
    return None if match is None else int(match[1]) * UNITS[match[2]]


def parse_expiry(text: str) -> timedelta | datetime | None:
    """A span from now, or the first moment of a date in UTC; None when the text names neither."""
    span = parse_span(text)
    if span is not None:
        return span
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def until(expiry: timedelta | datetime, *, now_us: int) -> timedelta:
    """How long from now until the expiry; negative when it has passed."""
    if isinstance(expiry, timedelta):
        return expiry
    return expiry - EPOCH - timedelta(microseconds=now_us)
