"""Print data to standard output and messages to standard error, and format tables and lines."""

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
"""Escapes unsafe characters, including line breaks, so that a value stays on one line."""

safe_json: Final = escaped_json
"""Escapes unsafe characters so that the text stays JSON. Line breaks between values are kept."""


def width(text: str) -> int:
    """Return the width of the text in terminal cells."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, cells: int) -> str:
    """Return the text, cut with an ellipsis if it is wider than `cells` cells."""
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
    """Pad the text with spaces to `cells` cells; `to_the_right` pads it at the start."""
    blanks = " " * max(0, cells - width(text))
    return blanks + text if to_the_right else text + blanks


GAP = "  "
NARROWEST = 12
"""The minimum width of a flexible column, in cells."""


Level = Literal["info", "warning", "error"]
"""Log levels as strings, because importing `logging` would cost every `--help` 7 ms."""

Narrator = Callable[[Level, str], None]
"""A function that writes a line of text, which may be empty, at a level."""


class _Narration:
    """The narrator that receives messages, or None for standard error, with or without the time."""

    by: Narrator | None = None
    is_timed: bool = False


TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
"""The time format of log lines, in UTC."""


@contextlib.contextmanager
def timed(*, is_wanted: bool = True) -> Iterator[None]:
    """Begin each message in the block with the time, for commands that run for hours."""
    _Narration.is_timed = is_wanted
    try:
        yield
    finally:
        _Narration.is_timed = False


def redirect_messages(narrator: Narrator | None) -> None:
    """Send all later messages of this process to the narrator without styles, or stop with None."""
    _Narration.by = narrator


def say(text: str = "", *, level: Level = "info") -> None:
    """Write a message line to standard error. The caller must escape text from data.

    The level matters only if messages are redirected to a log.
    """
    if _Narration.is_timed and text:
        text = f"{time.strftime(TIME, time.gmtime())} {text}"
    if _Narration.by is None:
        click.echo(text, file=sys.stderr, color=_color())
    else:
        _Narration.by(level, click.unstyle(text))


def put(text: str = "") -> None:
    """Write a line of data to standard output. The caller must escape text from data."""
    click.echo(text, file=sys.stdout, color=_color())


def _color() -> bool | None:
    # With None, click uses color if the stream is a terminal (see no-color.org).
    return False if os.environ.get("NO_COLOR") else None


def put_json(value: Any) -> None:
    """Write a document to standard output, indented, with keys in the given order."""
    _put_json(value, indent=2)


def put_json_line(value: Any) -> None:
    """Write a document to standard output on one line."""
    _put_json(value, separators=(",", ":"))


def _put_json(value: Any, **layout: Any) -> None:
    import json

    put_json_text(json.dumps(value, ensure_ascii=False, **layout))


def put_json_text(text: str) -> None:
    """Write JSON text to standard output."""
    if not sys.stdout.encoding.lower().startswith("utf"):
        # In another encoding, non-ASCII characters would not be valid JSON.
        text = "".join(char if char.isascii() else escaped_in_json(char) for char in text)
    put(safe_json(text))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its title, and a function from a row to the cell's text.

    A flexible column is cut if the terminal is too narrow.
    """

    title: str
    cell: Callable[[Any], str]
    is_number: bool = False
    is_flexible: bool = False


def put_table(columns: Sequence[Column], rows: Iterable[Any]) -> None:
    """Write a table with escaped cells to standard output. On a terminal, cut it to the width."""
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
    """Write one name and value per line to standard output, with values aligned and escaped."""
    pairs = [(name, safe_text(value)) for name, value in fields]
    longest = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        put(f"{name.ljust(longest)}{GAP}{value}".rstrip())


def instant(timestamp: str | None) -> str:
    """Format a stored timestamp for people, in UTC without seconds. Return a dash for None."""
    return "-" if timestamp is None else minute(timestamp)


COLORS = {
    "done": "green",
    "valid": "green",
    "failed": "red",
    "duplicate": "yellow",
    "held": "yellow",
}


def line(outcome: str, name: str, message: str | None = None) -> str:
    """Return an outcome line, escaped: `failed     acme/x.json: Invalid JSON at byte 906: …`."""
    word = click.style(outcome.ljust(9), fg=COLORS.get(outcome))
    said = f": {safe_text(message)}" if message else ""
    return f"{word}  {safe_text(name)}{said}"


def summary(counts: Mapping[str, int], *, always: Sequence[str] = ("done", "failed")) -> str:
    """Return `3 done, 0 failed, 2 held`: the counts in `always`, and other nonzero counts."""
    return ", ".join(
        f"{count:,} {outcome}" for outcome, count in counts.items() if count or outcome in always
    )


def issues_as_json(issues: Sequence[Issue]) -> list[dict[str, Any]]:
    """Return problems or warnings in the API's format."""
    return [{"path": issue.path, "message": issue.message} for issue in issues]
