"""Instants as they are shown."""

from tui.times import day, minute


def test_an_instant_is_shown_to_the_minute() -> None:
    assert minute("2026-01-31T09:05:59.999Z") == "2026-01-31 09:05"


def test_or_to_the_day() -> None:
    assert day("2026-01-31T09:05:59.999Z") == "2026-01-31"


def test_none_is_a_dash() -> None:
    assert minute(None) == day(None) == "—"
