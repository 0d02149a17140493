"""Why a file is not done, as a word on the command line."""

from typing import Any

import click
from click.shell_completion import CompletionItem

from resumes import import_reasons


class ReasonType(click.ParamType[str]):
    """A reason that reports and the ledger give."""

    name = "reason"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The reason; a usage error, which names them all, for any other word."""
        known = _known()
        if value not in known:
            self.fail(f'"{value}" is no reason: use one of {", ".join(known)}', param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The reasons that begin so."""
        return [CompletionItem(reason) for reason in _known() if reason.startswith(incomplete)]


def _known() -> list[str]:
    return [reason.value for reason in import_reasons.Reason]
