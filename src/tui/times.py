"""Instants as the terminal UI writes them: UTC, to the minute."""

from tui.text import NONE


def minute(timestamp: str | None) -> str:
    """`2026-01-31 09:00` for the store's timestamp; a dash for none."""
    return NONE if timestamp is None else timestamp[:16].replace("T", " ")


def day(timestamp: str | None) -> str:
    """`2026-01-31` for the store's timestamp; a dash for none."""
    return NONE if timestamp is None else timestamp[:10]
