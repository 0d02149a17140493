"""Text from data, made harmless before it reaches the terminal.

A resume is written by strangers. As a plain `str` it would drive the terminal: escape sequences
write to the clipboard or leave the screen, direction controls make text look like other text,
and Textual's markup turns `[@click=app.quit]x[/]` into a button that quits. So every string from
data passes `safe_text`, and reaches widgets only as `Content`, in which nothing is markup
(research/tui.md 3.1). `Content` is made in this module and nowhere else.
"""

import re
from collections.abc import Iterable
from typing import Final, NewType

from textual.content import Content

SafeText = NewType("SafeText", str)
"""One line that draws nothing but itself."""

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
LINE_END: Final = "⏎"
NONE: Final = "\N{EM DASH}"
"""Stands where a value would, for a value that there is not."""

UNSAFE: Final = (
    *range(0x20),  # C0
    *range(0x7F, 0xA0),  # DEL and C1
    0x061C,
    0x180E,
    0x200B,  # zero-width space; the joiners U+200C and U+200D stay: names need them
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),  # line and paragraph ends, direction embeddings
    *range(0x2060, 0x2070),  # word joiner, direction isolates
    *range(0xD800, 0xE000),  # surrogates, which no terminal can be sent
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),  # tags: text that nobody sees
)
"""Code points that are dropped or replaced."""

_INTRODUCERS: Final = (0x1B, 0x90, 0x98, 0x9B, 0x9D, 0x9E, 0x9F)
_TABLE: Final[dict[int, str | None]] = {
    **dict.fromkeys(UNSAFE),
    # Where a sequence would have begun stays visible, as does where a line ended.
    **dict.fromkeys(_INTRODUCERS, REPLACEMENT),
    **dict.fromkeys(range(0xD800, 0xE000), REPLACEMENT),
    **dict.fromkeys((0x0A, 0x2028, 0x2029), LINE_END),
    0x09: " ",
}
_LINE_ENDS: Final = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")


def safe_text(text: str) -> SafeText:
    """The text on one line, without anything that a terminal acts upon."""
    # Every unsafe code point is unprintable to Python, and most texts hold none.
    return SafeText(text if text.isprintable() else text.translate(_TABLE))


def safe_lines(text: str) -> list[SafeText]:
    """The lines of the text, each safe; at least one."""
    return [safe_text(line) for line in _LINE_ENDS.split(text)]


def safe(text: str, style: str = "") -> Content:
    """The text on one line as what widgets take, drawn in a style of Textual's (`bold`, `$error`)."""
    return Content.styled(safe_text(text), style)


def joined(parts: Iterable[Content], by: str = "") -> Content:
    """The parts in one line, with `by` between them."""
    return safe(by).join(parts)
