"""Spans of time on the command line: `30d`, `12h`, `90m`, and dates as the end of one."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import click

SPAN = re.compile(r"([0-9]{1,6})([dhm])")
UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}


def parse_span(text: str) -> timedelta | None:
    """The span that the text names, `0` included; None when it names none."""
    if text == "0":
        return timedelta(0)
    match = SPAN.fullmatch(text)
    return None if match is None else int(match[1]) * UNITS[match[2]]


class Span(click.ParamType[timedelta]):
    """A length of time."""

    name = "span"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The span; a usage error for anything else."""
        span = parse_span(value) if isinstance(value, str) else value
        if not isinstance(span, timedelta):
            self.fail(f'"{value}" is no span: use 7d, 12h, 30m or 0', param, ctx)
        return span


class Expiry(click.ParamType[timedelta | datetime]):
    """A length of time from now, or a date, which stands for its first moment in UTC."""

    name = "expiry"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta | datetime:
        """The span or the moment; a usage error for anything else."""
        if not isinstance(value, str):
            assert isinstance(value, timedelta | datetime)
            return value
        span = parse_span(value)
        if span is not None:
            return span
        try:
            day = date.fromisoformat(value)
        except ValueError:
            self.fail(f'"{value}" is no expiry: use 30d, 12h or 2027-01-31', param, ctx)
        return datetime(day.year, day.month, day.day, tzinfo=UTC)


def until(expiry: timedelta | datetime | None, *, now_us: int) -> timedelta | None:
    """How long from now until the expiry; negative when it has passed, None for none."""
    if not isinstance(expiry, datetime):
        return expiry
    return expiry - datetime(1970, 1, 1, tzinfo=UTC) - timedelta(microseconds=now_us)
