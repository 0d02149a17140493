"""What commands print: data on standard output, messages on standard error, tables, outcome lines."""

import contextlib
import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import click

from resumes.clock import minute
from resumes.errors import Issue
from resumes.text import escaped, escaped_in_json, escaped_json

ELLIPSIS = "…"

safe_text: Final = escaped
"""What is not harmless is shown escaped, line ends too: one value stays on one line."""

safe_json: Final = escaped_json
"""The same characters, escaped so that it is still JSON. Line ends between values stay."""


def width(text: str) -> int:
    """Return how many cells the text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, cells: int) -> str:
    """Return the text in at most `cells` cells, its end replaced by an ellipsis where it is longer."""
    if width(text) <= cells:
        return text
    kept, used = "", 0
    for char in text:
        used += _char_width(char)
        if used > cells - 1:
            break
        kept += char
    return kept.rstrip() + ELLIPSIS


def pad(text: str, cells: int, *, to_the_right: bool = False) -> str:
    """Return the text filled with blanks to `cells` cells, at its end or, `to_the_right`, its start."""
    blanks = " " * max(0, cells - width(text))
    return blanks + text if to_the_right else text + blanks


GAP = "  "
NARROWEST = 12
"""Cells that a flexible column keeps, however narrow the terminal."""


Level = Literal["info", "warning", "error"]
"""As logs have them. `logging` itself would cost every `--help` 7 ms."""

Narrator = Callable[[Level, str], None]
"""Takes a level and a line of text, which may be empty."""


class _Narration:
    """The narrator of this process, if it does not print lines of text, and whether these begin with the time."""

    by: Narrator | None = None
    is_timed: bool = False


TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
"""The time of a log line, in UTC."""


@contextlib.contextmanager
def timed(*, is_wanted: bool = True) -> Iterator[None]:
    """Begin each message of the block with the time, as log lines do: it is one of many for hours."""
    _Narration.is_timed = is_wanted
    try:
        yield
    finally:
        _Narration.is_timed = False


def redirect_messages(narrator: Narrator | None) -> None:
    """Send all messages of this process to the narrator from now on, without styles; None ends it."""
    _Narration.by = narrator


def say(text: str = "", *, level: Level = "info") -> None:
    """Write a message, a line on standard error. Escape what comes from data first.

    The level is for those who read logs, where it goes to one.
    """
    if _Narration.is_timed and text:
        text = f"{time.strftime(TIME, time.gmtime())} {text}"
    if _Narration.by is None:
        click.echo(text, file=sys.stderr, color=_color())
    else:
        _Narration.by(level, click.unstyle(text))


def put(text: str = "") -> None:
    """Write data, a line on standard output. Escape what comes from data first."""
    click.echo(text, file=sys.stdout, color=_color())


def _color() -> bool | None:
    # None lets click decide by whether the stream is a terminal (no-color.org for the rest).
    return False if os.environ.get("NO_COLOR") else None


def put_json(value: Any) -> None:
    """Write a document to standard output, indented, its keys in the order given."""
    _put_json(value, indent=2)


def put_json_line(value: Any) -> None:
    """Write a document to standard output, on one line."""
    _put_json(value, separators=(",", ":"))


def _put_json(value: Any, **layout: Any) -> None:
    import json

    put_json_text(json.dumps(value, ensure_ascii=False, **layout))


def put_json_text(text: str) -> None:
    """Write JSON text to standard output."""
    if not sys.stdout.encoding.lower().startswith("utf"):
        # In a locale of another encoding, an é would be no JSON.
        text = "".join(char if char.isascii() else escaped_in_json(char) for char in text)
    put(safe_json(text))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its title, and what it shows of what a row is of.

    A flexible one is cut where the terminal is too narrow.
    """

    title: str
    cell: Callable[[Any], str]
    is_number: bool = False
    is_flexible: bool = False


def put_table(columns: Sequence[Column], rows: Iterable[Any]) -> None:
    """Write a table to standard output, cells escaped; on a terminal, cut to its width."""
    body = [[safe_text(column.cell(row)) for column in columns] for row in rows]
    titles = [column.title for column in columns]
    widths = [max(map(width, cells)) for cells in zip(titles, *body, strict=True)]
    _squeeze(columns, widths)
    put(click.style(_line(columns, widths, titles), bold=True))
    for row in body:
        put(_line(columns, widths, row))


def _squeeze(columns: Sequence[Column], widths: list[int]) -> None:
    if not sys.stdout.isatty():
        return
    room = shutil.get_terminal_size().columns
    for at in sorted(range(len(columns)), key=lambda at: -widths[at]):
        excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
        if excess > 0 and columns[at].is_flexible:
            widths[at] = max(min(NARROWEST, widths[at]), widths[at] - excess)


def _line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> str:
    padded = [
        pad(cut(cell, cells_wide), cells_wide, to_the_right=column.is_number)
        for column, cells_wide, cell in zip(columns, widths, cells, strict=True)
    ]
    return GAP.join(padded).rstrip()


def put_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Write names and values to standard output, one a line, values aligned and escaped."""
    pairs = [(name, safe_text(value)) for name, value in fields]
    longest = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        put(f"{name.ljust(longest)}{GAP}{value}".rstrip())


def instant(timestamp: str | None) -> str:
    """Return a stored instant as people read it, to the minute in UTC; a dash for none."""
    return "-" if timestamp is None else minute(timestamp)


COLORS = {
    "done": "green",
    "valid": "green",
    "failed": "red",
    "duplicate": "yellow",
    "held": "yellow",
}


def line(outcome: str, name: str, message: str | None = None) -> str:
    """Return `failed     acme/x.json: Invalid JSON at byte 906: …`, escaped."""
    word = click.style(outcome.ljust(9), fg=COLORS.get(outcome))
    said = f": {safe_text(message)}" if message else ""
    return f"{word}  {safe_text(name)}{said}"


def summary(counts: Mapping[str, int], *, always: Sequence[str] = ("done", "failed")) -> str:
    """Return `3 done, 0 failed, 2 held`: those in `always`, and others that are not 0."""
    return ", ".join(
        f"{count:,} {outcome}" for outcome, count in counts.items() if count or outcome in always
    )


def issues_as_json(issues: Sequence[Issue]) -> list[dict[str, Any]]:
    """Return problems or warnings as the API gives them."""
    return [{"path": issue.path, "message": issue.message} for issue in issues]
