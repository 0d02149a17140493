"""Spans and expiries, as people type them."""

from datetime import UTC, datetime, timedelta

import pytest

from resumes.spans import parse_expiry, parse_span, until

NOW_US = 1_800_000_000_000_000  # 2027-01-15 08:00 UTC


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("90m", timedelta(minutes=90)),
        ("0", timedelta(0)),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert parse_span(text) == span
    assert parse_expiry(text) == span


@pytest.mark.parametrize("text", ["", "3", "d", "3 d", "3w", "-3d", "1234567d", "٣d"])
def test_nothing_else_is_one(text: str) -> None:
    assert parse_span(text) is None
    assert parse_expiry(text) is None


def test_an_expiry_may_be_a_date() -> None:
    assert parse_expiry("2027-01-31") == datetime(2027, 1, 31, tzinfo=UTC)
    assert parse_expiry("2027-02-29") is None


def test_it_is_told_how_long_it_takes_until_then() -> None:
    assert until(timedelta(days=1), now_us=NOW_US) == timedelta(days=1)
    assert until(datetime(2027, 1, 16, tzinfo=UTC), now_us=NOW_US) == timedelta(hours=16)
    assert until(datetime(2027, 1, 15, tzinfo=UTC), now_us=NOW_US) == timedelta(hours=-8)
