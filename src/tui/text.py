"""Text from data, sanitized before it reaches the terminal.

Resumes are untrusted. A plain `str` from a resume could control the terminal: escape sequences
write to the clipboard or leave the screen, direction controls make text look like other text, and
Textual's markup turns `[@click=app.quit]x[/]` into a button that quits. Therefore every string from
data passes through `safe_text` and reaches widgets only as `Content`, which is not parsed as
markup. Only this module creates `Content`.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NewType

from textual.app import App
from textual.content import Content
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import Widget

import tui.widths  # noqa: F401 - every module that measures text imports this one
from resumes import clock
from resumes.text import replaced

SafeText = NewType("SafeText", str)
"""One line without control or invisible characters."""

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
LINE_END: Final = "⏎"
HIT_STYLE: Final = "bold underline"
NONE: Final = "\N{EM DASH}"
"""Shown in place of a missing value."""

_INTRODUCERS: Final = "\x1b\x90\x98\x9b\x9d\x9e\x9f"
_DRAWN: Final = {
    # Show where an escape sequence would have begun and where a line ended.
    **dict.fromkeys(_INTRODUCERS, REPLACEMENT),
    **dict.fromkeys("\n\u2028\u2029", LINE_END),
    "\t": " ",
}
_INVISIBLE: Final = ("Cc", "Cf")
"""General categories (Unicode) of invisible characters."""

_LINE_ENDS: Final = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")


def safe_text(text: str) -> SafeText:
    """Return the text on one line, with unsafe characters removed or replaced by signs."""
    return SafeText(replaced(text, _drawn))


def _drawn(char: str) -> str:
    sign = "" if unicodedata.category(char) in _INVISIBLE else REPLACEMENT
    return _DRAWN.get(char, sign)


def safe_lines(text: str) -> list[SafeText]:
    """Return the lines of the text, at least one, each made safe."""
    return [safe_text(line) for line in _LINE_ENDS.split(text)]


def safe(text: str, style: str = "") -> Content:
    """Return the text on one line as `Content`, with a Textual style such as `bold` or `$error`."""
    return Content.styled(safe_text(text), style)


def joined(parts: Iterable[Content], by: str = "") -> Content:
    """Return the parts on one line, separated by `by`."""
    return safe(by).join(parts)


def stacked(lines: Iterable[Content]) -> Content:
    """Return the lines one below another."""
    return Content("\n").join(lines)


def highlighted(content: Content, hits: Iterable[tuple[int, int]]) -> Content:
    """Return the content with these ranges of its characters emphasized."""
    for start, end in hits:
        content = content.stylize(HIT_STYLE, start, end)
    return content


def minute(timestamp: str | None) -> str:
    """Format a timestamp of the store as `2026-01-31 09:00`, and None as a dash."""
    return NONE if timestamp is None else clock.minute(timestamp)


SHOWN_S = 4.0
_SIGNS: Final = {"information": "", "warning": "! ", "error": "✗ "}


@dataclass(eq=False)
class StatusMessage(Message):
    """A message to show in the key line, or as a toast if its screen is not on top."""

    text: SafeText
    severity: SeverityLevel
    screen: Screen[Any] | None

    @property
    def content(self) -> Content:
        """The message, preceded by a sign if it is a warning or an error."""
        style = "" if self.severity == "information" else f"bold $text-{self.severity}"
        return safe(f"{_SIGNS[self.severity]}{self.text.removeprefix('! ')}", style)


def show_message(
    sender: Widget | App[int], message: str, severity: SeverityLevel = "information"
) -> None:
    """Show the message in place of the previous one."""
    screen = None if isinstance(sender, App) else sender.screen
    sender.app.post_message(StatusMessage(safe_text(message), severity, screen))


def toast(app: App[int], message: str, severity: SeverityLevel = "information") -> None:
    """Show a message on top of any screen, for example the late result of an action."""
    app.notify(safe_text(message), severity=severity, markup=False, timeout=SHOWN_S)


MICROSECONDS: Final = 1_000_000
UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))

AGE_CELLS: Final = 6
"""The width of an age of up to 27 years, which is shown in days."""


def age(instant: str | None, now_us: int, none: str = NONE) -> str:
    """Return the time since `instant` as `4 min`, `3 h`, `12 d` or `now`; if it is None, `none`."""
    if instant is None:
        return none
    passed_s = now_us / MICROSECONDS - datetime.fromisoformat(instant).timestamp()
    for unit, unit_s in UNITS:
        if passed_s >= unit_s:
            return f"{int(passed_s // unit_s)} {unit}"
    return "now"


def ago(instant: str | None, now_us: int) -> str:
    """Return the time since `instant` as `4 min ago` or `just now`; if it is None, `never`."""
    if instant is None:
        return "never"
    passed = age(instant, now_us)
    return "just now" if passed == "now" else f"{passed} ago"


NEAR_PERCENT = 80
BAR_CELLS = 8


def quota_bar(used: int, maximum: int | None) -> Content:
    """Return a bar like `██████░░ 812/1,000 81% !`, with `full` at the limit or `over` above it."""
    if maximum is None:
        return safe(f"{'·' * BAR_CELLS} {used:,}, unlimited")
    # Round down so that 100% means full; a limit of 0 always counts as full.
    percent = 100 if maximum == 0 else used * 100 // maximum
    style, mark = "$text-success", ""
    if used >= maximum:
        style, mark = "$text-error", " over" if used > maximum else " full"
    elif percent >= NEAR_PERCENT:
        style, mark = "$text-warning", " !"
    filled = min(BAR_CELLS, percent * BAR_CELLS // 100)
    bar = [safe("█" * filled, style), safe("░" * (BAR_CELLS - filled), "dim")]
    figure = safe(f"{used:,}/{maximum:,} {percent}%{mark}", style if mark else "")
    return joined([joined(bar), figure], by=" ")
