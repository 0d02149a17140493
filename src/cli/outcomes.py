"""What became of files, as lines: while it happens, and counted at the end."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from cli.text import safe_text
from resumes.errors import Issue

COLORS = {
    "done": "green",
    "valid": "green",
    "failed": "red",
    "duplicate": "yellow",
    "held": "yellow",
}


def line(outcome: str, name: str, message: str | None = None) -> str:
    """`failed     acme/x.json: Invalid JSON at byte 906: …`, escaped."""
    word = click.style(outcome.ljust(9), fg=COLORS.get(outcome))
    said = f": {safe_text(message)}" if message else ""
    return f"{word}  {safe_text(name)}{said}"


def summary(counts: Mapping[str, int], *, always: Sequence[str] = ("done", "failed")) -> str:
    """`3 done, 0 failed, 2 held`: those named `always`, and the others that there were."""
    return ", ".join(
        f"{count:,} {outcome}" for outcome, count in counts.items() if count or outcome in always
    )


def issues_as_json(issues: Sequence[Issue]) -> list[dict[str, Any]]:
    """Problems or warnings as the API gives them."""
    return [{"path": issue.path, "message": issue.message} for issue in issues]
