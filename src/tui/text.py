"""Text from data, made harmless before it reaches the terminal.

A resume is written by strangers. As a plain `str` it would drive the terminal: escape sequences
write to the clipboard or leave the screen, direction controls make text look like other text,
and Textual's markup turns `[@click=app.quit]x[/]` into a button that quits. So every string from
data passes `safe_text`, and reaches widgets only as `Content`, in which nothing is markup.
`Content` is made in this module and nowhere else.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, NewType

from textual.content import Content

from resumes.text import replaced

SafeText = NewType("SafeText", str)
"""One line that draws nothing but itself."""

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
LINE_END: Final = "⏎"
NONE: Final = "\N{EM DASH}"
"""Stands where a value would, for a value that there is not."""

_INTRODUCERS: Final = "\x1b\x90\x98\x9b\x9d\x9e\x9f"
_DRAWN: Final = {
    # Where a sequence would have begun stays visible, as does where a line ended.
    **dict.fromkeys(_INTRODUCERS, REPLACEMENT),
    **dict.fromkeys("\n\u2028\u2029", LINE_END),
    "\t": " ",
}
_INVISIBLE: Final = ("Cc", "Cf")
"""Categories of characters that draw nothing (Unicode, General Category)."""

_LINE_ENDS: Final = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")


def safe_text(text: str) -> SafeText:
    """The text on one line: of what is not harmless nothing is left, or a sign in its place."""
    return SafeText(replaced(text, _drawn))


def _drawn(char: str) -> str:
    sign = "" if unicodedata.category(char) in _INVISIBLE else REPLACEMENT
    return _DRAWN.get(char, sign)


def safe_lines(text: str) -> list[SafeText]:
    """The lines of the text, each safe; at least one."""
    return [safe_text(line) for line in _LINE_ENDS.split(text)]


def safe(text: str, style: str = "") -> Content:
    """The text on one line as what widgets take, drawn in a style of Textual's (`bold`, `$error`)."""
    return Content.styled(safe_text(text), style)


def joined(parts: Iterable[Content], by: str = "") -> Content:
    """The parts in one line, with `by` between them."""
    return safe(by).join(parts)
