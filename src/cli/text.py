"""Text from data on its way to a terminal: made harmless, measured, cut."""

import unicodedata
from typing import Final

from resumes.text import escaped, escaped_json

ELLIPSIS = "…"

safe_text: Final = escaped
"""What is not harmless is shown escaped, line ends too: one value stays on one line."""

safe_json: Final = escaped_json
"""The same characters, escaped so that it is still JSON. Line ends between values stay."""


def width(text: str) -> int:
    """How many cells the text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, cells: int) -> str:
    """The text in at most `cells` cells, its end replaced by an ellipsis where it is longer."""
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
    """The text filled with blanks to `cells` cells, at its end or, `to_the_right`, its start."""
    blanks = " " * max(0, cells - width(text))
    return blanks + text if to_the_right else text + blanks
