"""Widths of characters in cells, where Rich and terminals disagree, or terminals with one another.

Rich's tables follow wcwidth, in which spacing marks (frequent in Hindi, Tamil and Burmese) took no cell
until https://github.com/jquast/wcwidth/issues/155 was resolved; glibc's wcwidth(), and with it tmux,
xterm.js and others, counts one. The correction can go once Rich counts one, too; a test (`test_rich_alone_…`)
then fails. `aligned` stays.
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
        if cells or last > 0x1FFFF  # there are no marks beyond
        else ((at, at, int(unicodedata.category(chr(at)) == "Mc")) for at in range(first, last + 1))
    )
]
get_character_cell_size.cache_clear()

_UNSURE: Final = re.compile(
    "[\u0900-\u109f\u1700-\u1cff\ua800-\uabff\U00011000-\U00011fff\U0001f000-\U0001faff][^\0-\x7e]*"
)
"""Text whose width differs between terminals: scripts with spacing marks, and emoji."""


def aligned(drawn: str) -> str:
    """Return the text with escape sequences that continue at the counted column in any terminal."""

    def align(found: re.Match[str]) -> str:
        if not (cells := cell_len(found[0])):
            return found[0]
        # Clear the cells, draw the text from their start, then move from there to their end.
        return f"\x1b7{' ' * cells}\x1b8{found[0]}\x1b8\x1b[{cells}C"

    return _UNSURE.sub(align, drawn)
