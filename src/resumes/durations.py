"""Spans of time as people type them: `30d`, `12h`, `90m`, and dates as the end of one."""

import re
from collections import deque
from datetime import UTC, date, datetime, timedelta
from typing import Final

from resumes.text import counted

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


WINDOW_S = 10.0
"""The pace is that of the last seconds, so that a pause or a slow beginning is forgotten."""

SHORTEST_S = 1.0
"""A pace is known after so long; less would be a guess."""


class Pace:
    """The pace of a count that rises. Times are seconds on one clock, and never go back.

    `window_s` should hold several counts.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now_s: float, done: int) -> None:
        """So many were done by now, in all."""
        self._forget_before(now_s - self._window_s)
        self._samples.append((now_s, done))

    def per_s(self, now_s: float) -> float | None:
        """How many are done in a second now; None when it is not known, as after a pause, or when
        nothing happens."""
        self._forget_before(now_s - self._window_s)
        if not self._samples:
            return None
        (began_s, before), (_, done) = self._samples[0], self._samples[-1]
        if now_s - began_s < SHORTEST_S or done <= before:
            return None
        return (done - before) / (now_s - began_s)

    def _forget_before(self, oldest_s: float) -> None:
        while self._samples and self._samples[0][0] < oldest_s:
            self._samples.popleft()


def time_left(seconds: float) -> str:
    """`about 2 min left`: as exact as such a guess can be."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 55:
        return f"about {round(seconds / 10) * 10} s left"
    if seconds < 90 * 60:
        return f"about {max(1, round(seconds / 60))} min left"
    return f"about {round(seconds / 3_600):,} h left"


def rate(files_per_s: float) -> str:
    """`3,400 files/s`; slow ones with a decimal."""
    digits = 0 if files_per_s >= 10 else 1
    return f"{files_per_s:,.{digits}f} files/s"


def span(seconds: float) -> str:
    """`40 seconds`, `5 minutes`, `3 hours`: the largest unit of which there are two."""
    for unit, unit_s in (("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * unit_s:
            return counted(int(seconds // unit_s), unit)
    return counted(int(seconds), "second")
