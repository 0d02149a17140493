"""Spans and dates."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from cli.durations import Expiry, Span, until


@pytest.mark.parametrize("text", ["", "12", "-1d", "1.5h", "d", "9999999d", "1w", "\u0661d"])
def test_anything_else_is_no_span(text: str) -> None:
    with pytest.raises(click.BadParameter, match="use 7d, 12h"):
        Span().convert(text, None, None)


def test_an_expiry_may_be_a_date() -> None:
    assert Expiry().convert("2027-01-31", None, None) == datetime(2027, 1, 31, tzinfo=UTC)
    assert Expiry().convert("7d", None, None) == timedelta(days=7)
    with pytest.raises(click.BadParameter, match="2027-01-31"):
        Expiry().convert("31.1.2027", None, None)


def test_until_counts_from_now() -> None:
    now_us = 1_000_000
    assert until(None, now_us=now_us) is None
    assert until(timedelta(days=1), now_us=now_us) == timedelta(days=1)
    assert until(datetime(1970, 1, 2, tzinfo=UTC), now_us=now_us) == timedelta(hours=24, seconds=-1)
