"""Convert times to the store's representation.

A time is UTC text of fixed width, such as `2026-01-31T09:00:00.000Z` (docs/api.md, List): all tools
can read it, and times can be compared as text. Only resume IDs contain microseconds.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache

Clock = Callable[[], int]
"""A function that returns microseconds since 1970-01-01 UTC, such as `system_clock`."""


def system_clock() -> int:
    """Return the system's time in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000


def timestamp(now_us: int) -> str:
    """Return the time as UTC text of fixed width, rounded down to milliseconds."""
    return _of_milliseconds(now_us // 1_000)


# Every request formats the current time, and many requests arrive in the same millisecond.
@lru_cache(maxsize=8)
def _of_milliseconds(now_ms: int) -> str:
    seconds, millis = divmod(now_ms, 1_000)
    return f"{_of_seconds(seconds)}.{millis:03d}Z"


@lru_cache(maxsize=8)
def _of_seconds(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def later(now_us: int, by: timedelta) -> str:
    """Return the time `by` after now, in the form of `timestamp`."""
    return timestamp(now_us + by // timedelta(microseconds=1))


def timestamp_after(before: str, now_us: int) -> str:
    """Return the current time, or the millisecond after `before` if the clock has not passed it."""
    first = datetime.fromisoformat(before) + timedelta(milliseconds=1)
    return max(timestamp(now_us), f"{first:%Y-%m-%dT%H:%M:%S}.{first.microsecond // 1_000:03d}Z")


def minute(instant: str) -> str:
    """Format a timestamp for people, in UTC without seconds: `2026-01-31 09:00`."""
    return f"{instant[:10]} {instant[11:16]}"
