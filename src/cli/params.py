"""The parameter types of commands: durations, expiry dates, and the reasons of imported files."""

from datetime import datetime, timedelta
from typing import Any

import click
from click.shell_completion import CompletionItem

from resumes import durations, import_reasons


class Duration(click.ParamType[timedelta]):
    """A length of time."""

    name = "span"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the span; fail with a usage error for anything else."""
        span = durations.parse_span(value) if isinstance(value, str) else value
        if not isinstance(span, timedelta):
            self.fail(f'"{value}" is not a valid duration: use 7d, 12h, 30m or 0', param, ctx)
        return span


class Expiry(click.ParamType[timedelta | datetime]):
    """A length of time from now, or a date, which stands for its first moment in UTC."""

    name = "expiry"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta | datetime:
        """Return the span or the moment; fail with a usage error for anything else."""
        if not isinstance(value, str):
            assert isinstance(value, timedelta | datetime)
            return value
        expiry = durations.parse_expiry(value)
        if expiry is None:
            self.fail(f'"{value}" is not a valid expiry: use 30d, 12h or 2027-01-31', param, ctx)
        return expiry


def until(expiry: timedelta | datetime | None, *, now_us: int) -> timedelta | None:
    """Return how long it is from now until the expiry; negative when it has passed, None for none."""
    return None if expiry is None else durations.until(expiry, now_us=now_us)


class ReasonType(click.ParamType[str]):
    """A reason that reports and the ledger give."""

    name = "reason"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the reason; fail with a usage error, which lists them all, for any other word."""
        known = _known()
        if value not in known:
            self.fail(f'"{value}" is not a valid reason: use one of {", ".join(known)}', param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the reasons with this beginning."""
        return [CompletionItem(reason) for reason in _known() if reason.startswith(incomplete)]


def _known() -> list[str]:
    return [reason.value for reason in import_reasons.Reason]
