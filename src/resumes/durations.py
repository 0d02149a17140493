"""Durations as people type and read them, and how fast a count rises."""

import re
from collections import deque
from datetime import UTC, date, datetime, timedelta
from typing import Final

from resumes.text import counted

SPAN: Final = re.compile(r"([0-9]{1,6})([dhm])")
UNITS: Final = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_span(text: str) -> timedelta | None:
    """Return the duration of `30d`, `12h`, `90m` or `0`; None for any other text."""
    if text == "0":
        return timedelta(0)
    match = SPAN.fullmatch(text)
    return None if match is None else int(match[1]) * UNITS[match[2]]


def parse_expiry(text: str) -> timedelta | datetime | None:
    """Return a duration from now, or the first moment of a date in UTC; None for any other text."""
    span = parse_span(text)
    if span is not None:
        return span
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
    except ValueError:
        return None


def until(expiry: timedelta | datetime, *, now_us: int) -> timedelta:
    """Return the duration from now until the expiry; negative if it has passed."""
    if isinstance(expiry, timedelta):
        return expiry
    return expiry - EPOCH - timedelta(microseconds=now_us)


def span(seconds: float) -> str:
    """Return `40 seconds`, `5 minutes` or `3 hours`: in the largest unit of which there are two."""
    for unit, unit_s in (("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * unit_s:
            return counted(int(seconds // unit_s), unit)
    return counted(int(seconds), "second")


def time_left(seconds: float) -> str:
    """Return `about 2 min left`, as exact as an estimate can be."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 55:
        return f"about {round(seconds / 10) * 10} s left"
    if seconds < 90 * 60:
        return f"about {max(1, round(seconds / 60))} min left"
    return f"about {round(seconds / 3_600):,} h left"


def rate(files_per_s: float) -> str:
    """Return `3,400 files/s`; with a decimal below 10."""
    digits = 0 if files_per_s >= 10 else 1
    return f"{files_per_s:,.{digits}f} files/s"


WINDOW_S = 10.0
"""Seconds over which a pace is measured, so that a pause or a slow start is forgotten."""

MIN_MEASURED_S = 1.0
"""Seconds before which a pace would be a guess."""


class Pace:
    """How fast a count rises. Times are seconds on one clock, and never go back.

    `window_s` should hold several counts.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now_s: float, done: int) -> None:
        """Record how many are done by now, in all."""
        self._forget_before(now_s - self._window_s)
        self._samples.append((now_s, done))

    def per_s(self, now_s: float) -> float | None:
        """Return how many are done per second; None if unknown, as after a pause, or if none are."""
        self._forget_before(now_s - self._window_s)
        if not self._samples:
            return None
        (began_s, before), (_, done) = self._samples[0], self._samples[-1]
        if now_s - began_s < MIN_MEASURED_S or done <= before:
            return None
        return (done - before) / (now_s - began_s)

    def _forget_before(self, oldest_s: float) -> None:
        while self._samples and self._samples[0][0] < oldest_s:
            self._samples.popleft()
