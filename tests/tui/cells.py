"""The screen cell by cell: which letter, in which style, with which contrast."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual._context import visible_screen_stack
from textual.app import App

NOTHING: Final = Style()
LINES: Final = range(0x2500, 0x25A0)
"""Characters that draw frames, bars and scrollbars, and are not read."""


class Cell(NamedTuple):
    """A character on the screen, and how it is drawn."""

    char: str
    style: Style

    @property
    def is_read(self) -> bool:
        """Whether it is a character that somebody has to make out."""
        return not self.char.isspace() and ord(self.char[0]) not in LINES

    @property
    def contrast(self) -> float:
        """Of the character with its ground, as WCAG 2 defines it: 1 for none, at most 21."""
        light, dark = sorted(map(_luminance, _colours(self.style)), reverse=True)
        return (light + 0.05) / (dark + 0.05)


def cells_of(app: App[int]) -> list[list[Cell]]:
    """Every character of every line."""
    visible_screen_stack.set(app._background_screens)
    return [list(_cells(strip)) for strip in app.screen._compositor.render_strips()]


def _cells(segments: Iterable[Segment]) -> Iterable[Cell]:
    for text, style, _ in segments:
        # What a cell is linked to cannot be seen.
        shown = (style or NOTHING).clear_meta_and_links()
        yield from (Cell(char, shown) for char in text)


def text_of(line: Iterable[Cell]) -> str:
    return "".join(cell.char for cell in line).rstrip()


def style_at(lines: Sequence[Sequence[Cell]], text: str) -> Style:
    """How the first character of the text is drawn, where it is first seen."""
    for line in lines:
        at = "".join(cell.char for cell in line).find(text)
        if at >= 0:
            return line[at].style
    raise AssertionError(f"{text} is not on the screen")


def styles_in(lines: Sequence[Sequence[Cell]], names: dict[Style, str]) -> list[str]:
    """Each line as runs of styles: `12a3b` is twelve cells of one, then three of another.

    `names` gets a name for each style that is new.
    """
    return ["".join(_runs(line, names)) for line in lines]


def _runs(line: Sequence[Cell], names: dict[Style, str]) -> Iterable[str]:
    for style, cells in itertools.groupby(line, key=lambda cell: cell.style):
        yield f"{len(list(cells))}{names.setdefault(style, _name(len(names)))}"


def _name(number: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    more, at = divmod(number, len(letters))
    return letters[at] if not more else _name(more - 1) + letters[at]


def _colours(style: Style) -> tuple[Color, Color]:
    """What it is drawn in, and on."""
    assert style.color is not None
    assert style.bgcolor is not None
    return style.color, style.bgcolor


def _luminance(colour: Color) -> float:
    red, green, blue = (_linear(part / 255) for part in colour.get_truecolor())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.03928 else float(((part + 0.055) / 1.055) ** 2.4)
