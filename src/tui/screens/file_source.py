"""The source of a file: line numbers, and the position of the error marked."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Final

from rich.cells import cell_len, chop_cells
from textual.content import Content
from textual.geometry import Size

from resumes.analyzer.findings import printable
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import SOURCE_BYTES
from resumes.text import escaped
from tui.text import joined, safe
from tui.widgets.paged_list import SCROLLBAR_GAP_CELLS
from tui.widgets.text_pane import TextPane

_SPACE: Final = re.compile(r"[ \t\r\n\ufeff]*")
_LINE: Final = re.compile(r"line (\d+)")
_ITEM: Final = re.compile(r"item (\d+)")
_DECODER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is known of where it is. `place` is the resume's position in a bundle, as in reports."""

    path: str | None = None
    byte_offset: int | None = None
    place: str = ""


def fault_of(file: FileRow) -> Fault:
    """Return where the ledger says the fault is; for a bundle, its first problem."""
    if file.items is not None and file.items.problems:
        first = file.items.problems[0]
        return Fault(first.path, first.byte_offset, first.place)
    return Fault(file.path, file.byte_offset)


def decoded(source: bytes) -> str:
    r"""Return the bytes as text, those that are not UTF-8 as `\xff`."""
    return source.decode("utf-8", "backslashreplace")


def find_fault(source: bytes, fault: Fault) -> int | None:
    """Return the number of the character in `decoded(source)`; None if it is unknown.

    Where the path leads to nothing, since a field is missing, it is what should hold it.
    """
    line, item = _LINE.fullmatch(fault.place), _ITEM.fullmatch(fault.place)
    if fault.place and not line and not item:
        return None  # in an archive, whose source is not text
    start = 0
    if line:
        *before, rest = source.split(b"\n", int(line[1]) - 1)
        if len(before) < int(line[1]) - 1:
            return None
        start = len(source) - len(rest)
    if fault.byte_offset is not None and item is None:
        # Offsets count from the resume's own first byte.
        begin = start + len(source[start:]) - len(source[start:].lstrip()) if start else 0
        at = begin + fault.byte_offset
        return len(decoded(source[:at])) if at <= len(source) else None
    path = f"[{int(item[1]) - 1}]" if item else ""
    if fault.path:
        path = f"{path}.{fault.path}" if path else fault.path
    if not path:
        return len(decoded(source[:start])) if line else None
    return _find_value(decoded(source), len(decoded(source[:start])), path)


def _find_value(text: str, start: int, path: str) -> int | None:
    """Return where the member at the path begins, or the last one on the way there."""
    found: int | None = None
    at, prefix = _skip(text, start), ""
    try:
        while prefix != path:
            for name, begin, value in _iter_members(text, at, prefix):
                if path == name or path.startswith((f"{name}.", f"{name}[")):
                    prefix, found, at = name, begin, value
                    break
            else:
                return found
    except (JSONDecodeError, IndexError, RecursionError):
        return found  # the text ends here, or is not JSON from here on
    return found


def _iter_members(text: str, at: int, prefix: str) -> Iterator[tuple[str, int, int]]:
    """Yield the members of the value there: path, where it begins, and where its value does."""
    if text[at] not in "{[":
        return
    is_object, number = text[at] == "{", 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        begin = at
        name = f"{prefix}[{number}]"
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            name = f"{prefix}.{printable(str(key))}" if prefix else printable(str(key))
            at = _skip(text, _skip(text, at) + 1)
        yield name, begin, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


TAB = "  "


@dataclass(frozen=True, slots=True)
class Mark:
    """The character at fault: its line and column as people count them, from 1.

    `at` is its number in the line as it is shown, where escapes take more room.
    """

    line: int
    column: int
    at: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines in which nothing is acted upon. `mark` None: the position of the error is unknown.

    `is_whole` is whether the ledger has all of the file.
    """

    lines: Sequence[str]
    mark: Mark | None
    is_whole: bool


def lay_out(source: bytes, fault: Fault) -> SourceText:
    """Return the bytes as lines; what is not UTF-8 or not drawable is escaped."""
    text = decoded(source)
    lines = text.split("\n")
    at, mark = find_fault(source, fault), None
    if at is not None:
        line = text.count("\n", 0, at)
        before = text[text.rfind("\n", 0, at) + 1 : at]
        # A fault at the end of a line, or of the text, is after its last character.
        shown_at = min(len(_shown(before)), len(_shown(lines[line])))
        mark = Mark(line + 1, len(before) + 1, shown_at)
    return SourceText(tuple(map(_shown, lines)), mark, len(source) < SOURCE_BYTES)


def _shown(line: str) -> str:
    return escaped(line.removesuffix("\r").replace("\t", TAB))


ABOVE_LINES: Final = 3
"""Lines that are seen above the fault."""

NARROWEST: Final = 8

Piece = tuple[int, str, int | None]
"""Part of a line on a line of the screen: the number of its line, 0 for what continues one; the
text; and where in it the fault is."""


class SourceLines(TextPane):
    """A source, its lines cut to the width, scrolled to the fault."""

    DEFAULT_CSS = """
    SourceLines { width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._source = SourceText((), None, is_whole=True)
        self._drawn: list[Piece | Content] = []
        self._fault_at: int | None = None
        """The line of the screen with the fault on it."""

    def show_source(self, source: SourceText | None) -> None:
        """Show this source at its fault; hide the pane if there is none."""
        self.display = source is not None
        if source is None:
            return
        self._source = source
        parts = [safe("Source")]
        if source.mark is not None:
            where = f"▶ line {source.mark.line}, column {source.mark.column}"
            parts.append(safe(where, "bold $text-error"))
        if not source.is_whole:
            parts.append(safe("first 64 KiB only", "$text-warning"))
        self.border_title = joined(parts, by=" · ")
        self._wrap()
        self._scroll_to_fault()

    def on_resize(self) -> None:
        super().on_resize()
        self._scroll_to_fault()

    @property
    def _gutter_cells(self) -> int:
        return len(str(len(self._source.lines))) + 3

    @property
    def _usable_width(self) -> int:
        # As wide as there is room: a source is looked at, not read.
        return max(NARROWEST, self.scrollable_content_region.width - SCROLLBAR_GAP_CELLS)

    def _wrap(self) -> None:
        self._width = self._usable_width
        room = max(NARROWEST, self._width - self._gutter_cells)
        self._drawn, self._fault_at = [], None
        for piece in iter_pieces(self._source, room):
            self._drawn.append(piece)
            if piece[2] is not None:
                self._fault_at = len(self._drawn) - 1
                self._drawn.append(self._pointer(piece))
        self.virtual_size = Size(self._width, len(self._drawn))
        self.refresh()

    def _scroll_to_fault(self) -> None:
        top = 0 if self._fault_at is None else max(0, self._fault_at - ABOVE_LINES)
        self.scroll_to(y=top, animate=False, force=True)

    def line(self, number: int) -> Content:
        drawn = self._drawn[number] if number < len(self._drawn) else safe("")
        if isinstance(drawn, Content):
            return drawn
        line, text, at = drawn
        gutter = f"{line or '':>{self._gutter_cells - 3}}"
        if at is None:
            return joined([safe(f"{gutter} │ ", "dim"), safe(text)])
        return joined(
            [
                safe(f"{gutter} ▶ ", "bold $text-error"),
                safe(text[:at]),
                safe(text[at : at + 1] or " ", "reverse $text-error"),
                safe(text[at + 1 :]),
            ]
        )

    def _pointer(self, piece: Piece) -> Content:
        """Return the line under the fault, which points at it."""
        _, text, at = piece
        blank = " " * (self._gutter_cells + cell_len(text[:at]))
        mark = self._source.mark
        where = "" if mark is None else f"^ line {mark.line}, column {mark.column}"
        if len(blank) + len(where) > self._width:
            where = "^"
        return safe(f"{blank}{where}", "bold $text-error")


def iter_pieces(source: SourceText, room_cells: int) -> Iterator[Piece]:
    """Yield the lines of the source, those that are too long in pieces."""
    for number, line in enumerate(source.lines, 1):
        mark = source.mark
        at = mark.at if mark is not None and mark.line == number else None
        begin = 0
        if line.isascii():
            pieces = [line[i : i + room_cells] for i in range(0, len(line), room_cells)] or [""]
        else:
            pieces = chop_cells(line, room_cells)
        for part, text in enumerate(pieces):
            is_last = part == len(pieces) - 1
            end = begin + len(text)
            is_here = at is not None and begin <= at and (at < end or is_last)
            yield 0 if part else number, text, at - begin if at is not None and is_here else None
            begin = end
