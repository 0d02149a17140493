"""Corrections for characters whose width differs between Rich and terminals, or among terminals.

Rich's tables follow wcwidth, in which spacing marks (frequent in Hindi, Tamil and Burmese) took no
cell until https://github.com/jquast/wcwidth/issues/155 was resolved. In glibc's wcwidth(), tmux,
xterm.js and others, they take one cell. When Rich also counts one cell, `test_rich_alone_…` will
fail; then remove the correction of Rich's tables, but keep `aligned`.
"""

import re
import unicodedata
from typing import Final

from rich._unicode_data import load
from rich.cells import cell_len, get_character_cell_size

_WIDTHS: Final = load().widths
_WIDTHS[:] = [  # type: ignore[index]  # it is a list
    measured
    for first, last, cells in _WIDTHS
    for measured in (
        [(first, last, cells)]
        if cells or last > 0x1FFFF  # no mark has a higher code point
        else ((at, at, int(unicodedata.category(chr(at)) == "Mc")) for at in range(first, last + 1))
    )
]
get_character_cell_size.cache_clear()

_UNSURE: Final = re.compile(
    "[\u0900-\u109f\u1700-\u1cff\ua800-\uabff\U00011000-\U00011fff\U0001f000-\U0001faff][^\0-\x7e]*"
)
"""Text whose width differs between terminals: scripts with spacing marks, and emoji."""


def aligned(drawn: str) -> str:
    """Add escape sequences that make any terminal continue at the column that Rich has counted."""

    def align(found: re.Match[str]) -> str:
        if not (cells := cell_len(found[0])):
            return found[0]
        # Clear the cells, draw the text from their start, then move from their start to their end.
        return f"\x1b7{' ' * cells}\x1b8{found[0]}\x1b8\x1b[{cells}C"

    return _UNSURE.sub(align, drawn)
