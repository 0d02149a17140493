"""A pane of paragraphs, which are wrapped to its width and drawn line by line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.keys import Place, bindings
from tui.text import safe
from tui.widgets.paged_list import SCROLLBAR_GAP_CELLS, line_strip

MAX_WIDTH_CELLS = 100
"""The maximum width of a line: longer lines are hard to read, even in a wide terminal."""

SLICE_S = 0.02
"""How long wrapping may block the event loop."""

PAUSE_S = 0.001


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text to wrap. `mark` precedes its first line; the other lines are indented by its width."""

    content: Content
    mark: str = ""
    mark_style: str = ""


class TextPane(ScrollView, can_focus=True):
    """Shows scrollable paragraphs."""

    BINDINGS = bindings(Place.TEXT)
    DEFAULT_CSS = """
    TextPane { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1;
        scrollbar-gutter: stable; }
    """

    def __init__(self, paragraphs: Sequence[Paragraph] = ()) -> None:
        super().__init__()
        self._paragraphs = paragraphs
        self._lines: list[Content] = []
        self._unwrapped: Iterator[Paragraph] = iter(())
        self._width = 0

    def show(self, paragraphs: Sequence[Paragraph], *, from_start: bool = True) -> None:
        """Show the paragraphs if they changed, from the start or at the current scroll position."""
        if len(paragraphs) == len(self._paragraphs) and all(
            new == old and new.content.is_same(old.content)
            for new, old in zip(paragraphs, self._paragraphs, strict=True)
        ):
            return
        self._paragraphs = paragraphs
        self._wrap()
        if from_start:
            self.scroll_to(y=0, animate=False, force=True)

    def show_line(self, line: Paragraph) -> None:
        """Show only this line."""
        self.show([line])

    def on_resize(self) -> None:
        if self._width != self._usable_width:
            self._wrap()

    @property
    def _usable_width(self) -> int:
        return max(
            8, min(MAX_WIDTH_CELLS, self.scrollable_content_region.width - SCROLLBAR_GAP_CELLS)
        )

    def _wrap(self) -> None:
        self._width = self._usable_width
        self._lines = []
        self._unwrapped = iter(self._paragraphs)
        self._wrap_slice()

    def _wrap_slice(self) -> None:
        """Wrap lines for SLICE_S and continue later, because 2 MiB of text take half a second."""
        enough = perf_counter() + SLICE_S
        for paragraph in self._unwrapped:
            self._lines += wrapped(paragraph, self._width)
            if perf_counter() > enough:
                self.set_timer(PAUSE_S, self._wrap_slice)
                break
        self.virtual_size = Size(self._width, len(self._lines))
        self.refresh()

    def line(self, number: int) -> Content:
        """Return the wrapped line with this number, or a blank line after the end."""
        return self._lines[number] if number < len(self._lines) else safe("")

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll down by this many screens, which overlap by one line."""
        self.scroll_relative(y=pages * max(1, self.size.height - 1), animate=False)

    @property
    def allow_vertical_scroll(self) -> bool:
        """Always true, so that keys also scroll before the first layout has added a scrollbar."""
        return True

    def render_line(self, y: int) -> Strip:
        return line_strip(self, self.line(self.scroll_offset.y + y), self.visual_style)


def wrapped(paragraph: Paragraph, width_cells: int) -> list[Content]:
    """Return the wrapped lines of a paragraph, at least one."""
    mark = safe(paragraph.mark, paragraph.mark_style)
    indent = mark.cell_length
    if paragraph.content.cell_length + indent <= width_cells:
        return [mark + paragraph.content]
    lines = paragraph.content.wrap(max(4, width_cells - indent))
    return [mark + lines[0], *(line.pad_left(indent) for line in lines[1:])]
