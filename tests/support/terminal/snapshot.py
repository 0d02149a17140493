"""What screens looked like when somebody last looked: texts in `snapshots`, and how they differ.

`UPDATE_SNAPSHOTS=1 pytest -m "" tests/terminal/test_{snapshots,colours}.py` writes them anew, for a
person to read in the diff.
"""

import asyncio
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App

from tests.support.terminal.driving import LIMIT_S, is_busy, strips

FOLDER: Final = Path(__file__).parents[2] / "terminal" / "snapshots"

IS_WRITTEN_ANEW: Final = bool(os.environ.get("UPDATE_SNAPSHOTS"))

STILL_LOOKS: Final = 10
STILL_LOOK_S: Final = 0.015
"""A screen that is the same so often in a row, so long apart, is complete. Looks, not seconds: on a busy machine a second may pass
in which this process, and whatever timer it has, does not run."""

DIFFERENT_LOOKS: Final = 130
"""A screen that is the same so often while nothing is read will not become another by itself. Looks
during a read do not count: lists are read again and again."""

RULE: Final = "═" * 3


class Snapshot:
    """The parts of a file, each a heading and the lines of a screen under it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: dict[str, list[str]] = {}
        self._before = parse_parts(_read(name))

    async def holds(self, part: str, app: App[int], *, is_waiting: bool = False) -> None:
        """The screen is what it was, or soon is. `is_waiting`: it never gets what it reads."""
        before = self._before.get(part)
        if IS_WRITTEN_ANEW:
            await still(app, is_waiting=is_waiting)
            before = seen(app)
        if not await _comes_to(app, before, is_waiting=is_waiting) or before is None:
            pytest.fail(self._difference(part, before, seen(app)))
        self.parts[part] = before

    def check_whole(self) -> None:
        """There is no part in the file that nobody looked at."""
        if IS_WRITTEN_ANEW:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{self.name}.txt").write_text(_text(self.parts), encoding="utf-8")
        else:
            assert list(self.parts) == list(self._before), "run with UPDATE_SNAPSHOTS=1"

    def _difference(self, part: str, before: Sequence[str] | None, found: Sequence[str]) -> str:
        name = f"snapshots/{self.name}.txt, {part}"
        difference = unified_diff(before or (), found, name, "now", lineterm="", n=3)
        body = "\n".join(difference) or "The same, but something is still being read."
        return f"{body}\nIf this is as it should be: UPDATE_SNAPSHOTS=1 writes it anew."


@contextmanager
def a_snapshot(name: str, *, is_whole: bool = True) -> Iterator[Snapshot]:
    """The file of this name, of which every part must be looked at, in its order, if `is_whole`."""
    snapshot = Snapshot(name)
    yield snapshot
    if is_whole:
        snapshot.check_whole()


async def still(app: App[int], *, is_waiting: bool = False) -> None:
    """The screen is complete. Fails when it goes on changing."""
    deadline = time.monotonic() + LIMIT_S
    before, looks = seen(app), 0
    while looks < STILL_LOOKS:
        assert time.monotonic() < deadline, "the screen never stood still"
        await asyncio.sleep(STILL_LOOK_S)
        now = seen(app)
        looks = 0 if now != before or (is_busy(app) and not is_waiting) else looks + 1
        before = now


async def _comes_to(app: App[int], wanted: Sequence[str] | None, *, is_waiting: bool) -> bool:
    """Whether the screen is complete and the wanted one, now or before it stands still."""
    deadline = time.monotonic() + LIMIT_S
    now, looks = seen(app), 0
    while looks < DIFFERENT_LOOKS and time.monotonic() < deadline:
        is_read = is_waiting or not is_busy(app)
        if is_read and now == wanted:
            return True
        looks += is_read
        await asyncio.sleep(STILL_LOOK_S)
        before, now = now, seen(app)
        looks = looks if now == before else 0
    return False


def parse_parts(text: str) -> dict[str, list[str]]:
    """The lines under each heading."""
    parts: dict[str, list[str]] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith(RULE):
            heading = line.strip("═ ")
            parts[heading] = []
        else:
            parts[heading].append(line)
    return parts


def _text(parts: Mapping[str, Sequence[str]]) -> str:
    return "".join(
        f"{RULE} {heading} {RULE}\n" + "".join(f"{line}\n" for line in found)
        for heading, found in parts.items()
    )


def _read(name: str) -> str:
    path = FOLDER / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def seen(app: App[int]) -> list[str]:
    """The lines of the screen. The countdown to the next try stands still at its first second."""
    return [
        re.sub(r"Retrying in \d+ s", "Retrying in 1 s", strip.text).rstrip()
        for strip in strips(app)
    ]


# Cell by cell: which letter, in which style, with which contrast.

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


def cells_of(app: App[int]) -> list[list[Cell]]:
    """Every character of every line."""
    return [list(_cells(strip)) for strip in strips(app)]
