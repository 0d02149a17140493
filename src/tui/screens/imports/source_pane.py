"""The raw source of a file: line numbers, and the place of the fault marked."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, chop_cells
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip

from tui.screens.imports.source_text import SourceText
from tui.text import joined, safe
from tui.widgets.lines import TitleLine
from tui.widgets.strips import line_strip
from tui.widgets.text_pane import TextPane

ABOVE_LINES: Final = 3
"""Lines that are seen above the fault."""

NARROWEST: Final = 8

Piece = tuple[int, str, int | None]
"""Part of a line on a line of the screen: the number of its line, 0 for what continues one; the
text; and where in it the fault is."""


class SourceLines(TextPane):
    """A source, its lines cut to the width, scrolled to the fault."""

    def __init__(self) -> None:
        super().__init__()
        self._source: SourceText | None = None
        self._pieces: Sequence[Piece] = ()
        self._fault_at: int | None = None
        """The line of the screen with the fault on it."""

    def show_source(self, source: SourceText | None) -> None:
        """The pane shows this source at its fault, or nothing."""
        self._source = source
        self._wrap()
        self._scroll_to_fault()

    def on_resize(self) -> None:
        super().on_resize()
        self._scroll_to_fault()

    @property
    def plain(self) -> str:
        return "\n".join(self._line(number).plain for number in range(self._line_count))

    @property
    def _line_count(self) -> int:
        # Under the fault stands a line that points at it.
        return len(self._pieces) + (self._fault_at is not None)

    @property
    def _gutter_cells(self) -> int:
        return 0 if self._source is None else len(str(len(self._source.lines))) + 3

    @property
    def _usable_width(self) -> int:
        # As wide as there is room: a source is looked at, not read.
        return max(NARROWEST, self.scrollable_content_region.width)

    def _wrap(self) -> None:
        self._width = self._usable_width
        source = self._source
        room = max(NARROWEST, self._width - self._gutter_cells)
        self._pieces = [] if source is None else list(iter_pieces(source, room))
        marked = (number for number, piece in enumerate(self._pieces) if piece[2] is not None)
        self._fault_at = next(marked, None)
        self.virtual_size = Size(self._width, self._line_count)
        self.refresh()

    def _scroll_to_fault(self) -> None:
        top = 0 if self._fault_at is None else max(0, self._fault_at - ABOVE_LINES)
        self.scroll_to(y=top, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        return line_strip(self, self._line(self.scroll_offset.y + y), self.visual_style)

    def _line(self, number: int) -> Content:
        fault_at = self._fault_at
        if fault_at is not None and number > fault_at:
            number -= 1
            if number == fault_at:
                return self._pointer(self._pieces[number])
        return self._piece(self._pieces[number]) if number < len(self._pieces) else safe("")

    def _piece(self, piece: Piece) -> Content:
        line, text, at = piece
        number = f"{line or '':>{self._gutter_cells - 3}}"
        if at is None:
            return joined([safe(f"{number} │ ", "dim"), safe(text)])
        return joined(
            [
                safe(f"{number} ▶ ", "bold $text-error"),
                safe(text[:at]),
                safe(text[at : at + 1] or " ", "reverse $text-error"),
                safe(text[at + 1 :]),
            ]
        )

    def _pointer(self, piece: Piece) -> Content:
        _, text, at = piece
        blank = " " * (self._gutter_cells + cell_len(text[:at]))
        mark = None if self._source is None else self._source.mark
        where = "" if mark is None else f"^ line {mark.line}, column {mark.column}"
        if len(blank) + len(where) > self._width:
            where = "^"
        return safe(f"{blank}{where}", "bold $text-error")


def iter_pieces(source: SourceText, room_cells: int) -> Iterator[Piece]:
    """The lines of the source, those that are too long in pieces."""
    for number, line in enumerate(source.lines, 1):
        mark = source.mark
        at = mark.at if mark is not None and mark.line == number else None
        begin = 0
        pieces = _cut(line, room_cells)
        for part, text in enumerate(pieces):
            is_last = part == len(pieces) - 1
            end = begin + len(text)
            is_here = at is not None and begin <= at and (at < end or is_last)
            yield 0 if part else number, text, at - begin if at is not None and is_here else None
            begin = end


def _cut(line: str, room_cells: int) -> list[str]:
    if line.isascii():
        return [line[at : at + room_cells] for at in range(0, len(line), room_cells)] or [""]
    return chop_cells(line, room_cells)


class SourcePane(Vertical):
    """A source under a line that says what it is."""

    DEFAULT_CSS = """
    SourcePane { height: 1fr; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._about = TitleLine(safe(""))
        self.lines = SourceLines()

    def compose(self) -> ComposeResult:
        yield self._about
        yield self.lines

    def show(self, source: SourceText | None) -> None:
        """The pane shows this source at its fault; without one it is not there."""
        self.display = source is not None
        self._about.show(safe("") if source is None else about_source(source))
        self.lines.show_source(source)


def about_source(source: SourceText) -> Content:
    """Where the fault is, and how much of the file this is."""
    parts = [safe("Source as it was read", "bold")]
    if source.mark is not None:
        where = f"▶ line {source.mark.line}, column {source.mark.column}"
        parts.append(safe(where, "bold $text-error"))
    if not source.is_whole:
        parts.append(safe("the first 64 KiB", "$text-warning"))
    return joined(parts, by=" · ")
