"""The source of a file, with line numbers and the position of the error."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import chop_cells
from textual.content import Content
from textual.geometry import Size

from resumes.analyzer.fault import Fault, decoded, find_fault
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import SOURCE_BYTES
from resumes.text import escaped
from tui.text import joined, safe
from tui.widgets.paged_list import SCROLLBAR_GAP_CELLS
from tui.widgets.text_pane import TextPane


def fault_of(file: FileRow) -> Fault:
    """Return the ledger's position of the error; for a bundle, the position of the first error."""
    if file.items is not None and file.items.problems:
        first = file.items.problems[0]
        return Fault(first.path, first.byte_offset, first.place)
    return Fault(file.path, file.byte_offset)


TAB = "  "


@dataclass(frozen=True, slots=True)
class Mark:
    """The position of the error: line and column, both from 1.

    `at` is its index in the displayed line, which is longer where characters are escaped.
    """

    line: int
    column: int
    at: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines without control characters. `mark` is None if the position of the error is unknown.

    `is_whole` is whether the lines are complete; the ledger stores only the start of long sources.
    """

    lines: Sequence[str]
    mark: Mark | None
    is_whole: bool
    title: str = "Source"


def lay_out(source: bytes, fault: Fault, title: str = "Source") -> SourceText:
    """Return the bytes as lines, with invalid UTF-8 and unprintable characters escaped."""
    text = decoded(source)
    lines = text.split("\n")
    at, mark = find_fault(source, fault), None
    if at is not None:
        line = text.count("\n", 0, at)
        before = text[text.rfind("\n", 0, at) + 1 : at]
        # An error at the end of a line or of the text is marked after its last character.
        shown_at = min(len(_shown(before)), len(_shown(lines[line])))
        mark = Mark(line + 1, len(before) + 1, shown_at)
    return SourceText(tuple(map(_shown, lines)), mark, len(source) != SOURCE_BYTES, title)


def _shown(line: str) -> str:
    return escaped(line.removesuffix("\r").replace("\t", TAB))


ABOVE_LINES: Final = 3
"""The number of lines to show above the error."""

NARROWEST: Final = 8

Piece = tuple[int, str, int | None]
"""The content of a screen line: the source line's number, or 0 if it continues one; the text; and
the index of the error in the text, if any."""


class SourceLines(TextPane):
    """Shows a source, wrapped to the width and scrolled to the error."""

    DEFAULT_CSS = """
    SourceLines { width: 1fr; }
    """

    _source = SourceText((), None, is_whole=True)
    _pieces: Sequence[Piece] = ()

    def show_source(self, source: SourceText | None) -> None:
        """Show the source at its error; hide the pane if there is no source."""
        self.display = source is not None
        if source is None:
            return
        self._source = source
        parts = [safe(source.title)]
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
        # No maximum width: a source is scanned rather than read.
        return max(NARROWEST, self.scrollable_content_region.width - SCROLLBAR_GAP_CELLS)

    def _wrap(self) -> None:
        self._width = self._usable_width
        room = max(NARROWEST, self._width - self._gutter_cells)
        self._pieces = list(iter_pieces(self._source, room))
        self.virtual_size = Size(self._width, len(self._pieces))
        self.refresh()

    def _scroll_to_fault(self) -> None:
        at = next((n for n, (*_, at) in enumerate(self._pieces) if at is not None), 0)
        self.scroll_to(y=max(0, at - ABOVE_LINES), animate=False, force=True)

    def line(self, number: int) -> Content:
        if number >= len(self._pieces):
            return safe("")
        line, text, at = self._pieces[number]
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


def iter_pieces(source: SourceText, room_cells: int) -> Iterator[Piece]:
    """Yield the lines of the source, split where they are too long."""
    for number, line in enumerate(source.lines, 1):
        at = source.mark.at if source.mark and source.mark.line == number else None
        if line.isascii():
            pieces = [line[i : i + room_cells] for i in range(0, len(line), room_cells)] or [""]
        else:
            pieces = chop_cells(line, room_cells)
        for part, text in enumerate(pieces):
            is_here = at is not None and (at < len(text) or part == len(pieces) - 1)
            yield 0 if part else number, text, at if is_here else None
            at = None if at is None or is_here else at - len(text)
