"""A list with a cursor that draws only the visible lines.

Textual's DataTable measures every cell of every row, which takes 12 s for 100,000 rows. This list
draws lines from the rows in memory, so its cost depends only on the screen's height.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from rich.segment import Segment
from textual import events, work
from textual.content import Content, Span
from textual.geometry import Region, Size, Spacing
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.keys import Place, bindings
from tui.store_calls import Failure, is_running
from tui.text import AGE_CELLS, NONE, age, highlighted, safe, show_message
from tui.widgets.window import PageRead, T, Window, just_before

GAP_CELLS = 2
"""The gap between columns."""

SCROLLBAR_GAP_CELLS = 1
"""The gap between text and the scrollbar."""

MARK = "● "
"""Prefix of a marked row's text, in the first column without a fixed width."""

MAX_CELL_CHARS = 400
"""Text in cells is cut to this length: fields may be long, and measuring long text is slow."""


@dataclass(frozen=True, slots=True)
class ListColumn(Generic[T]):
    """A column. `cells` is its width; columns with 0 share the remaining width, up to `at_most`.

    The column is shown in lists that are at least `from_cells` wide. `is_right` aligns it to the
    right. `source` is the field that it shows, if the matches of a filter depend on the field.
    """

    heading: str
    cells: int
    cell: Callable[[T], Content]
    from_cells: int = 0
    at_most: int = 1_000
    is_right: bool = False
    source: str = ""


FindHits = Callable[[str, str], Iterable[tuple[int, int]]]
"""Takes the text of a cell and the `source` of its column; returns the ranges of characters that
match the filter."""


def fit(columns: Sequence[ListColumn[T]], width_cells: int) -> list[tuple[ListColumn[T], int]]:
    """Return the columns that fit into this width, and the width of each."""
    shown = [column for column in columns if column.from_cells <= width_cells]
    left = width_cells - sum(column.cells for column in shown) - GAP_CELLS * (len(shown) - 1)
    flexible = sum(not column.cells for column in shown)
    fitted = []
    for column in shown:
        cells = column.cells
        if not cells:
            cells = max(4, min(left // flexible, column.at_most))
            left, flexible = left - cells, flexible - 1
        fitted.append((column, cells))
    return fitted


def text_cell(text: str | None, style: str = "") -> Content:
    """Return a cell with the text, which comes from data, or with a dash if it is None."""
    return safe(NONE, "dim") if text is None else safe(text[:MAX_CELL_CHARS], style)


def age_column(
    heading: str,
    instant: Callable[[T], str | None],
    clock: Callable[[], int],
    from_cells: int = 0,
    *,
    none: str = NONE,
) -> ListColumn[T]:
    """Return a column that shows the age of each row's instant, or `none` if that is None."""
    return ListColumn(
        heading,
        max(AGE_CELLS, len(heading)),
        lambda row: safe(age(instant(row), clock(), none), "dim"),
        from_cells,
        is_right=True,
    )


def line_strip(widget: Widget, content: Content, style: Style) -> Strip:
    """Return the content as a line of the widget's width, cut if it does not fit."""
    ground = style.rich_style
    return Strip(_segments(widget, content, style)).adjust_cell_length(widget.size.width, ground)


def _segments(widget: Widget, content: Content, style: Style) -> Iterator[Segment]:
    """Yield the content's text with its styles applied on top of `style`."""
    parse = widget.app.stylesheet.parse_style
    match content.spans:
        case [Span(start=0, end=end, style=part)] if end == len(content.plain):
            # Fast path: nearly every cell has one style, and `Content.render` would sort spans.
            yield Segment(content.plain, (style + parse(part)).rich_style)
        case _:
            for text, part in content.render(style, end="", parse_style=parse):
                yield Segment(text, (style + part).rich_style)


SCREENS_AHEAD = 2
"""More rows are read when fewer than this many screens of rows are left below the view."""

MAX_RELOADED = 1_000
"""The number of rows within which a reload, or the search for a row, begins at the start.
Further down, it begins at the first visible row, or at the row to find."""


class PagedList(ScrollView, Generic[T], can_focus=True):
    """Rows in columns under a fixed heading.

    The list awaits `read`, which returns the page after a cursor or raises Failure. Only one load
    is in progress at a time: first a list that replaces this one, then a change to show, then the
    visible rows, then more rows.
    """

    BINDINGS = bindings(Place.LIST)
    COMPONENT_CLASSES = {"paged-list--heading", "paged-list--cursor", "paged-list--quiet"}
    DEFAULT_CSS = """
    PagedList {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        .paged-list--heading { text-style: bold; color: $text-muted; }
        .paged-list--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
        .paged-list--quiet { text-style: italic; color: $text-muted; }
    }
    """

    cursor: reactive[int] = reactive(0, repaint=False)
    """The number of the row at the cursor, counted from 0."""

    failure: reactive[Failure | None] = reactive(None)
    """Why the last load failed; the rows are dimmed while the store is unavailable."""

    @dataclass(eq=False)
    class Chosen(Message):
        """Posted when the user presses enter, or clicks the row at the cursor."""

        row: Any

    class Changed(Message):
        """Posted when the cursor, the loaded rows or the marks have changed."""

    def __init__(
        self,
        columns: Sequence[ListColumn[T]],
        key: Callable[[T], str],
        read: Callable[[str], Awaitable[PageRead[T]]],
        *,
        is_paged: bool = False,
    ) -> None:
        """Create a list. If `is_paged`, it is read page by page, and its keys are positions."""
        super().__init__()
        self._columns = columns
        self._key = key
        self._read = read
        self._is_paged = is_paged
        self.find_hits: FindHits | None = None
        """Finds the matches of the filter, which are highlighted; None if there is no filter."""

        self.marked: dict[str, T] = {}
        """The marked rows, by key."""

        self._wanted = ""
        """The key of the row that the cursor will move to once the row is read; empty if none."""

        self._fitted: list[tuple[ListColumn[T], int]] = []
        """The columns that fit, each with its width; computed when the list is next drawn."""

        self.is_replaced = False
        """Whether another list is being read while the rows of the previous list are shown."""

        self.empty: Sequence[Content] = ()
        """The lines shown when there are no rows."""

        self.window: Window[T] = Window(key)

    # State set by the screen.

    def show_columns(self, columns: Sequence[ListColumn[T]]) -> None:
        """Show the same rows with these columns."""
        self._columns, self._fitted = columns, []
        self.refresh()

    def show_title(self, title: Content) -> None:
        """Show the title in the frame. Unlike Textual's setter, this does not repaint all rows."""
        if self._border_title is None or not self._border_title.is_same(title):
            self._border_title = title
            left, top = self.content_offset
            self.refresh(Region(-left, -top, self.outer_size.width, 1))

    def refresh_rows(self, *, reloads: bool = False) -> None:
        """Read the visible rows, and rows added at the end, without moving the cursor or the view.

        `reloads` repeats a read in progress, which may have begun before the change to show.
        """
        if reloads:
            self.failure = None
        if reloads or not is_running(self, self._load):
            first = self.window.page_start(self.scroll_offset.y)
            is_whole = not self._is_paged or (reloads and first < MAX_RELOADED)
            self._load(None if self.is_replaced else 0 if is_whole else first)
        self.refresh()

    def restart(self, *, keeps_rows: bool = False, row: str = "") -> None:
        """Show another list, from its start or at the row with the key `row`.

        `keeps_rows` shows the current rows until the other list is read, and keeps the marks.
        """
        self._wanted, self.failure = row, None
        if not keeps_rows:
            self.marked.clear()
            self._show(Window(self._key))
            self._grow()
        self.is_replaced = keeps_rows
        self._load(None)

    @work(exclusive=True, description="")
    async def _load(self, start: int | None) -> None:
        """Read the rows from number `start` to the last visible row; None reads another list."""
        try:
            if start is None:
                self._show(await self._read_list())
            else:
                await self._read_rows(start)
        except Failure as failure:
            if failure.is_gone:  # the owner of the rows no longer exists
                self._show(Window(self._key))
            self.failure = failure
        else:
            self.failure = None
            self._go_to_wanted()
            if start is None or self.window.is_complete:
                self._wanted = ""
        self._grow()

    async def _read_list(self) -> Window[T]:
        """Return the pages from the start to the wanted row, at least the first page. If that row
        is far down the list, return only the page that begins there."""
        window = Window(self._key)
        while True:
            read = await self._read(window.after)
            window.put(window.count, read.rows, read.next_cursor)
            if window.is_complete or window.before or window.after >= self._wanted:
                return window
            if window.count >= MAX_RELOADED:
                window = Window(self._key, just_before(self._wanted))

    async def _read_rows(self, start: int) -> None:
        """Read the rows from number `start` to the last visible row, and new rows at the end."""
        window = self.window
        visible = window.rows[start : self.scroll_offset.y + self._row_lines]
        last = self._key(visible[-1]) if visible else ""
        read = await self._read(window.cursor(start))
        rows = [*read.rows]
        while read.next_cursor is not None and read.next_cursor < last:
            read = await self._read(read.next_cursor)
            rows += read.rows
        self._put(start, rows, read.next_cursor)
        if window.is_complete and read.next_cursor is not None:
            read = await self._read(window.after)
            self._put(window.count, read.rows, read.next_cursor)

    def _put(self, start: int, rows: Sequence[T], next_cursor: str | None) -> None:
        """Put the rows into the window. The cursor or else the first visible row keeps its line."""
        window, top = self.window, self.scroll_offset.y
        is_seen = top <= self.cursor < top + self._row_lines  # the mouse wheel may have hidden it
        known = range(start, window.count)
        keys = {at: self._key(window.rows[at]) for at in (self.cursor, top) if at in known}
        window.put(start, rows, next_cursor)
        numbers = {at: window.find(key, start) for at, key in keys.items()}
        moved = {at: number - at for at, number in numbers.items() if number is not None}
        dropped = window.drop() if self._is_paged else 0
        self._resize_list()
        cursor = self.cursor + moved.get(self.cursor, 0) - dropped
        top += moved.get(self.cursor if is_seen else top, 0) - dropped if top else 0
        self.set_reactive(PagedList.cursor, max(0, min(cursor, window.count - 1)))
        self.scroll_to(y=top, animate=False, force=True)
        if is_seen:
            self._scroll_to_cursor()

    def _show(self, window: Window[T]) -> None:
        self.window, self.is_replaced = window, False
        self._resize_list()
        self.cursor = 0
        self.scroll_to(y=0, animate=False, force=True)

    def _go_to_wanted(self) -> None:
        if self._wanted and not self.is_replaced:
            number = self.window.find(self._wanted)
            if number is not None:
                self.cursor, self._wanted = number, ""

    @property
    def current(self) -> T | None:
        """The row at the cursor; None if there is none."""
        return self.window.rows[self.cursor] if self.cursor < self.window.count else None

    def is_ready(self) -> bool:
        """Return whether the current row belongs to the requested list; if not, show a message.

        If the requested list cannot be read, the rows that are shown can still be used.
        """
        is_loading = self.is_replaced and not (self._wanted or self.failure)
        if is_loading:
            show_message(self, "Loading the list…")
        return not is_loading

    def select(self, key: str) -> None:
        """Move the cursor to the row with this key once the row is read."""
        self._wanted = key
        self._go_to_wanted()

    def toggle_mark(self) -> None:
        """Mark or unmark the row at the cursor, then move to the next row."""
        if not self.is_ready():
            return
        row = self.current
        if row is not None and self.marked.pop(self._key(row), None) is None:
            self.marked[self._key(row)] = row
        self.action_move(1)
        self._grow()

    def mark(self, rows: Iterable[T]) -> None:
        """Mark these rows, some of which may not be loaded."""
        self.marked |= {self._key(row): row for row in rows}
        self._grow()

    def unmark(self) -> None:
        """Remove all marks."""
        self.marked.clear()
        self._grow()

    def _grow(self) -> None:
        self._resize_list()
        self.refresh()
        self.call_later(self._read_more)  # after a load that calls this has ended
        self.post_message(self.Changed())

    def _resize_list(self) -> None:
        # Add a line for the heading, and a line that shows that more rows are being read.
        lines = self.window.count + (0 if self.window.is_complete else 1)
        self.virtual_size = Size(self.size.width, lines + 1)

    def _read_more(self) -> None:
        """Read the next page if the rows are running out, unless a load is in progress."""
        bottom = self.scroll_offset.y + (1 + SCREENS_AHEAD) * self._row_lines
        is_wanted = bottom >= self.window.count and not self.window.is_complete and self.size
        if is_wanted and not (self.failure or is_running(self, self._load)):
            self._load(None if self.is_replaced else self.window.count)

    @property
    def _row_cells(self) -> int:
        return max(1, self.scrollable_content_region.width - SCROLLBAR_GAP_CELLS)

    @property
    def _row_lines(self) -> int:
        return max(1, self.size.height - 1)

    # Drawing.

    def on_resize(self) -> None:
        self._fitted = []
        self._grow()
        self._scroll_to_cursor()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.call_after_refresh(self._read_more)  # paint the rows already read first

    def watch_cursor(self, old: int, new: int) -> None:
        self.refresh_line(old + 1)
        self.refresh_line(new + 1)
        self._scroll_to_cursor()
        self.call_after_refresh(self._read_more)
        self.post_message(self.Changed())

    def _scroll_to_cursor(self) -> None:
        line, heading = Region(0, self.cursor + 1, 1, 1), Spacing(top=1)
        self.scroll_to_region(line, spacing=heading, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        if not self._fitted:
            self._fitted = fit(self._columns, self._row_cells)
        if y == 0:
            headings = [safe(column.heading) for column, _ in self._fitted]
            return self._draw(headings, self.get_visual_style("paged-list--heading"))
        number = self.scroll_offset.y + y - 1
        if number >= self.window.count:
            return line_strip(self, self._quiet_line(y, number), self._style("paged-list--quiet"))
        style = self._style("paged-list--cursor") if number == self.cursor else self._style()
        return self._draw(self._cells(number), style)

    def _cells(self, number: int) -> list[Content]:
        row, columns = self.window.rows[number], [column for column, _ in self._fitted]
        cells = [column.cell(row) for column in columns]
        if self._key(row) in self.marked:
            at = next((at for at, column in enumerate(columns) if not column.cells), 0)
            cells[at] = safe(MARK, "bold $text-accent") + cells[at]
        if number == self.cursor:
            # Other colors would be illegible on the cursor's background.
            cells = [safe(cell.plain) for cell in cells]
        if (hits := self.find_hits) is not None:
            pairs = zip(cells, columns, strict=True)
            cells = [highlighted(cell, hits(cell.plain, column.source)) for cell, column in pairs]
        return cells

    def _draw(self, cells: Sequence[Content], style: Style) -> Strip:
        """Return the cells side by side; a cell that does not fit ends in an ellipsis."""
        segments = list[Segment]()
        blanks, ground = "", style.rich_style
        for cell, (column, width) in zip(cells, self._fitted, strict=True):
            room = width - cell.cell_length
            if room < 0:
                cell = cell.truncate(width, ellipsis=True)
                room = width - cell.cell_length
            if column.is_right:
                blanks, room = blanks + " " * room, 0
            if blanks:
                segments.append(Segment(blanks, ground))
            segments += _segments(self, cell, style)
            blanks = " " * (room + GAP_CELLS)
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def _quiet_line(self, y: int, number: int) -> Content:
        """Return a line below the rows: a note that more are being read, or that there are none."""
        line = safe("")
        if not self.window.is_complete and number == self.window.count:
            line = safe("… not loaded" if self.failure else "… loading")
        elif self.window.is_complete and not self.window.count and 0 <= y - 2 < len(self.empty):
            line = self.empty[y - 2]
        return line.truncate(self._row_cells, ellipsis=True)

    def _style(self, component: str = "") -> Style:
        """Return the style of this component class, or the style of rows if it is empty."""
        style = self.get_visual_style(component) if component else self.visual_style
        if component == "paged-list--cursor" and self.app.no_color:
            # Without colors, nothing else shows the cursor, and `visual_style` drops CSS's reverse.
            style += Style(reverse=True)
        return style + Style(dim=True) if self.failure and self.failure.is_passing else style

    # Keys and mouse.

    def action_move(self, rows: int) -> None:
        self._wanted = ""
        self.cursor = max(0, min(self.cursor + rows, self.window.count - 1))

    def action_page(self, pages: int) -> None:
        self.action_move(pages * self._row_lines)

    def action_first(self) -> None:
        if self.window.before:
            self.restart(keeps_rows=True)
        self.action_move(-self.cursor)

    def action_last(self) -> None:
        """Move the cursor to the last loaded row."""
        self.action_move(self.window.count)

    def action_choose(self) -> None:
        row = self.current
        if self.is_ready() and row is not None:
            self.post_message(self.Chosen(row))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or at.y == 0:
            return
        number = self.scroll_offset.y + at.y - 1
        if number >= self.window.count:
            return
        if number == self.cursor:
            self.action_choose()
        self.action_move(number - self.cursor)
