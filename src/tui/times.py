"""Instants as the terminal UI writes them, with a dash where there is none."""

from resumes import clock
from tui.text import NONE


def minute(timestamp: str | None) -> str:
    """`2026-01-31 09:00` for the store's timestamp; a dash for none."""
    return NONE if timestamp is None else clock.minute(timestamp)


def day(timestamp: str | None) -> str:
    """`2026-01-31` for the store's timestamp; a dash for none."""
    return NONE if timestamp is None else timestamp[:10]
