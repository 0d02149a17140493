"""A list with a cursor that draws only the visible lines.

Textual's DataTable measures every cell of every row: 12 s for 100,000 rows. This list draws lines
from a page cache, so its cost depends only on the screen's height.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from rich.segment import Segment
from textual import events
from textual.content import Content, Span
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.keys import Place, bindings
from tui.text import AGE_CELLS, NONE, age, highlighted, safe, show_message
from tui.widgets.pages import Missing, Pages, T, just_before

GAP_CELLS = 2
"""The gap between columns."""

SCROLLBAR_GAP_CELLS = 1
"""The gap between text and the scrollbar."""

MARK = "● "
"""Prefix of a marked row's text, in the first column without a fixed width."""

MAX_CELL_CHARS = 400
"""Longest text to measure, which is slow; a field may have 20,000 characters."""


@dataclass(frozen=True, slots=True)
class ListColumn(Generic[T]):
    """A column of a list. `cells` is its width; 0 shares the remaining width, up to `at_most`.

    It is shown in lists at least `from_cells` wide. `is_right` aligns it to the right. `source` is the
    field of the row that it shows, if hits of a filter depend on it.
    """

    heading: str
    cells: int
    cell: Callable[[T], Content]
    from_cells: int = 0
    at_most: int = 1_000
    is_right: bool = False
    source: str = ""


FindHits = Callable[[str, str], Iterable[tuple[int, int]]]
"""Finds what a filter matches in the text of a cell, given with the `source` of its column: ranges of
characters."""


def fit(columns: Sequence[ListColumn[T]], width_cells: int) -> list[tuple[ListColumn[T], int]]:
    """Return the columns that fit into this width, each with its own width."""
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
    """Return the text from data as a cell; a dash for None."""
    return safe(NONE, "dim") if text is None else safe(text[:MAX_CELL_CHARS], style)


def age_column(
    heading: str,
    instant: Callable[[T], str | None],
    clock: Callable[[], int],
    from_cells: int = 0,
    *,
    none: str = NONE,
) -> ListColumn[T]:
    """Return a column with the age of an instant; it shows `none` for None."""

    def cell(row: T) -> Content:
        at = instant(row)
        return safe(none if at is None else age(at, clock()), "dim")

    return ListColumn(heading, max(AGE_CELLS, len(heading)), cell, from_cells, is_right=True)


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
"""The next page is requested when fewer than this many screens of rows are left."""

MAX_RELOADED_PAGES = 10
"""Pages of a list that a refresh reloads; further down only the visible rows are read again."""


class PagedList(ScrollView, Generic[T], can_focus=True):
    """Rows in columns under a fixed heading. It requests pages with `PageWanted`."""

    BINDINGS = bindings(Place.LIST)
    COMPONENT_CLASSES = {
        "paged-list--heading",
        "paged-list--cursor",
        "paged-list--quiet",
    }
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
    """The number of the row at the cursor, from 0."""

    is_stale: reactive[bool] = reactive(False)
    """Whether the rows are outdated because the store is unavailable."""

    @dataclass(eq=False)
    class PageWanted(Message):
        """A request for a page: the screen calls `fill` with the rows after `cursor`, or `fail`."""

        page: int
        cursor: str

    @dataclass(eq=False)
    class Chosen(Message):
        """Posted on enter, or on a click on the row at the cursor."""

        row: Any

    class Changed(Message):
        """Posted when the cursor or the known rows changed."""

    def __init__(
        self, columns: Sequence[ListColumn[T]], key: Callable[[T], str], *, inserts: bool = False
    ) -> None:
        """Create a list. `inserts`: new rows may appear between others, as in lists by name."""
        super().__init__()
        self._columns = columns
        self._key = key
        self.inserts = inserts
        self.find_hits: FindHits | None = None
        """Finds the matches of the filter, which are highlighted in the rows; None without a filter."""

        self.marked: dict[str, T] = {}
        """The marked rows, by key."""

        self._wanted = ""
        """The key of the row to move the cursor to once it is read; empty for none."""

        self._fitted: list[tuple[ListColumn[T], int]] = []
        self._reloading: Pages[T] | None = None
        """The list being reloaded, which will replace the one that is shown; None if none is."""
        self.is_replaced = False
        """Whether the list being loaded is a different one."""
        self._asked: tuple[Pages[T], int] | None = None
        self._has_failed = False
        self.empty: Sequence[Content] = ()
        """The lines shown when there are no rows."""

        self.pages: Pages[T] = Pages(key)

    # State set by the screen.

    def show_columns(self, columns: Sequence[ListColumn[T]]) -> None:
        """Show the same rows with these columns."""
        self._columns = columns
        self._fitted = fit(columns, self._row_cells)
        self.refresh()

    def show_title(self, title: Content) -> None:
        """Show the title in the frame; unlike Textual's setter, without repainting all rows."""
        if self._border_title is None or not self._border_title.is_same(title):
            self._border_title = title
            left, top = self.content_offset
            self.refresh(Region(-left, -top, self.outer_size.width, 1))

    def fill(self, page: int, rows: Sequence[T], next_cursor: str | None) -> None:
        """Show the requested page."""
        if self._asked is None or self._asked[1] != page:
            return
        pages, self._asked, self._has_failed = self._asked[0], None, False
        self.is_stale = False
        pages.fill(page, rows, next_cursor)
        if pages is self._reloading and self.is_replaced:
            self._begin_at_wanted(pages)
        elif pages is self._reloading:
            self._show_reloaded(pages)
        self._go_to_wanted()
        if self.pages.is_complete:
            self.cursor = max(0, min(self.cursor, self.pages.count - 1))
        self._grow()

    def fail(self, *, is_gone: bool = False) -> None:
        """Record that the page could not be read; no page is requested until `refresh_rows`.

        `is_gone`: the owner of the rows no longer exists, so they are removed.
        """
        if is_gone:
            self._begin(Pages(self._key))
        self._asked = None
        self._has_failed = True
        self._grow()

    def refresh_rows(self, *, reloads: bool = False) -> None:
        """Read the visible rows again, and rows added at the end. Cursor and view stay.

        `reloads`: deleted rows are removed instead of being shown as deleted; and a read in progress,
        which may predate the change to show, is repeated.
        """
        self._has_failed = False
        if reloads:
            self._asked = None
        if self.is_replaced:
            pass  # the latest request comes first
        elif not (self.inserts or reloads) or not self.pages.next_page:
            self.pages.expect_changes()
        elif (self._reloading is None or reloads) and not self._is_far_down:
            self._reloading = Pages(self._key, self.pages.start)
        elif reloads:
            self.pages.expect_changes()
        self._ask()
        self.refresh()

    def reload(self) -> None:
        """Read the list again; far down, from the cursor's row on."""
        row = self.current
        if self.inserts and self._is_far_down and row is not None and not self.is_replaced:
            self.restart(keeps_rows=True, row=self._key(row))
        else:
            self.refresh_rows(reloads=True)

    @property
    def _is_far_down(self) -> bool:
        return self.pages.page_of(max(self.cursor, self.scroll_offset.y)) >= MAX_RELOADED_PAGES

    def restart(self, *, keeps_rows: bool = False, row: str = "") -> None:
        """Show another list, from its start or at the row of this key.

        `keeps_rows`: show the current rows until the first of the other list are read; keep the marks.
        """
        self._asked, self._has_failed, self._wanted = None, False, row
        if keeps_rows:
            self._reloading, self.is_replaced = Pages(self._key), True
            self._ask()
        else:
            self.marked.clear()
            self._begin(Pages(self._key))
            self._grow()

    def _begin_at_wanted(self, pages: Pages[T]) -> None:
        """Show the other list once its wanted row is read; if far down, load it from there."""
        if not self._wanted or pages.is_complete or pages.find(self._wanted) is not None:
            self._begin(pages)
        elif pages.start:  # the row was deleted; the list begins where it was
            self._wanted = ""
            self._begin(pages)
        elif pages.next_page >= MAX_RELOADED_PAGES:
            self._reloading = Pages(self._key, just_before(self._wanted))

    def _go_to_wanted(self) -> None:
        if not self._wanted or self.is_replaced:
            return
        number = self.pages.find(self._wanted)
        if number is not None:
            self.cursor = number
        if number is not None or (self.pages.is_complete and self._reloading is None):
            self._wanted = ""

    def _begin(self, pages: Pages[T]) -> None:
        self.pages, self._reloading, self.is_replaced = pages, None, False
        self.is_stale = False
        self._resize_list()
        self.cursor = 0
        self.scroll_to(y=0, animate=False, force=True)

    @property
    def current(self) -> T | None:
        """The row at the cursor; None if there is none, or it is not read yet."""
        if self.cursor >= self.pages.count:
            return None
        row = self.pages.peek(self.cursor)
        return None if isinstance(row, Missing) else row

    def is_ready(self) -> bool:
        """Return whether the row at the cursor belongs to the requested list; if not, say so.

        If that list cannot be read, the rows that are shown stay usable.
        """
        is_usable = self._wanted or self._has_failed or self.is_stale
        is_loading = self.is_replaced and not is_usable
        if is_loading:
            show_message(self, "Loading the list…")
        return not is_loading

    def select(self, key: str) -> None:
        """Move the cursor to the row of this key once it is read."""
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
        """Mark these rows, of which some may not be loaded."""
        self.marked |= {self._key(row): row for row in rows}
        self._grow()

    def unmark(self) -> None:
        """Remove all marks."""
        self.marked.clear()
        self._grow()

    def _show_reloaded(self, fresh: Pages[T]) -> None:
        """Show the reloaded list once it reaches the visible rows and the cursor."""
        current = self.current
        number = None if current is None else fresh.find(self._key(current))
        top, lines = self.scroll_offset.y, self._row_lines
        reaches = number is not None or fresh.count > self.cursor + lines
        # With the mouse wheel the visible rows may not include the cursor.
        is_seen = top <= self.cursor < top + lines
        if not fresh.is_complete and not (reaches and (is_seen or fresh.count > top + lines)):
            return
        self.pages, self._reloading = fresh, None
        moved = 0 if number is None else number - self.cursor
        self._resize_list()
        self.set_reactive(PagedList.cursor, max(0, min(self.cursor + moved, fresh.count - 1)))
        # At the top new rows become visible; elsewhere the visible rows do not move.
        self.scroll_to(y=top + moved if top else 0, animate=False, force=True)
        if is_seen:
            self._scroll_to_cursor()

    def _grow(self) -> None:
        self._resize_list()
        self.refresh()
        self._ask()
        self.post_message(self.Changed())

    def _resize_list(self) -> None:
        # One line for the heading, and one that says that more rows are being read.
        lines = self.pages.count + (0 if self.pages.is_complete else 1)
        self.virtual_size = Size(self.size.width, lines + 1)

    def _ask(self) -> None:
        """Request the page that is needed most, unless one is being read."""
        if self._asked is not None or self._has_failed or not self.size:
            return
        first = self.scroll_offset.y
        page: int | None
        if self._reloading is not None:
            pages, page = self._reloading, self._reloading.next_page
        else:
            pages = self.pages
            page = pages.wanted(
                first, first + self._row_lines, ahead=SCREENS_AHEAD * self._row_lines
            )
        if page is not None:
            self._asked = pages, page
            self.post_message(self.PageWanted(page, pages.cursor(page)))

    @property
    def _row_cells(self) -> int:
        return max(1, self.scrollable_content_region.width - SCROLLBAR_GAP_CELLS)

    @property
    def _row_lines(self) -> int:
        return max(1, self.size.height - 1)

    # Drawing.

    def on_resize(self) -> None:
        self._fitted = fit(self._columns, self._row_cells)
        self._grow()
        self._scroll_to_cursor()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.call_after_refresh(self._ask)  # rows already read are painted first

    def watch_cursor(self, old: int, new: int) -> None:
        for number in (old, new):
            line = number - self.scroll_offset.y + 1
            self.refresh(Region(0, line, self.size.width, 1))
        self._scroll_to_cursor()
        self.call_after_refresh(self._ask)
        self.post_message(self.Changed())

    def _scroll_to_cursor(self) -> None:
        top = self.scroll_offset.y
        if self.cursor < top:
            top = self.cursor
        elif self.cursor >= top + self._row_lines:
            top = self.cursor - self._row_lines + 1
        self.scroll_to(y=top, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        if not self._fitted:  # the first paint comes before the first resize event
            self._fitted = fit(self._columns, self._row_cells)
        if y == 0:
            headings = [safe(column.heading) for column, _ in self._fitted]
            return self._draw(headings, self.get_visual_style("paged-list--heading"))
        number = self.scroll_offset.y + y - 1
        if number >= self.pages.count:
            return line_strip(self, self._quiet_line(y, number), self._style("paged-list--quiet"))
        style = self._style("paged-list--cursor") if number == self.cursor else self._style()
        row = self.pages.peek(number)
        if row is Missing.GONE:
            return line_strip(self, safe("(deleted)", "italic"), style)
        cells = [safe("…")] * len(self._fitted) if row is Missing.UNREAD else self._cells(row)
        if number == self.cursor:
            # On the cursor's background other colors would be illegible.
            cells = self._highlighted([safe(cell.plain) for cell in cells])
        return self._draw(cells, style)

    def _cells(self, row: T) -> list[Content]:
        cells = self._highlighted([column.cell(row) for column, _ in self._fitted])
        if self._key(row) in self.marked:
            at = next((at for at, (column, _) in enumerate(self._fitted) if not column.cells), 0)
            cells[at] = safe(MARK, "bold $text-accent") + cells[at]
        return cells

    def _highlighted(self, cells: list[Content]) -> list[Content]:
        if (find_hits := self.find_hits) is None:
            return cells
        return [
            highlighted(cell, find_hits(cell.plain, column.source))
            for cell, (column, _) in zip(cells, self._fitted, strict=True)
        ]

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
        """Return a line below the rows: that more are being read, or that the list is empty."""
        line = safe("")
        if not self.pages.is_complete and number == self.pages.count:
            line = safe("… not loaded" if self._has_failed else "… loading")
        elif self.pages.is_complete and not self.pages.count and 0 <= y - 2 < len(self.empty):
            line = self.empty[y - 2]
        return line.truncate(self._row_cells, ellipsis=True)

    def _style(self, component: str = "") -> Style:
        """Return the style of this component class; empty: of rows."""
        style = self.get_visual_style(component) if component else self.visual_style
        if component == "paged-list--cursor" and self.app.no_color:
            # Nothing else shows the cursor; and `visual_style` drops CSS's reverse.
            style += Style(reverse=True)
        return style + Style(dim=True) if self.is_stale else style

    # Keys and mouse.

    def action_move(self, rows: int) -> None:
        self._wanted = ""
        self.cursor = max(0, min(self.cursor + rows, self.pages.count - 1))

    def action_page(self, pages: int) -> None:
        self.action_move(pages * self._row_lines)

    def action_first(self) -> None:
        if self.pages.start:
            self.restart(keeps_rows=True)
        self._wanted = ""
        self.cursor = 0

    def action_last(self) -> None:
        """Move the cursor to the last loaded row."""
        self.action_move(self.pages.count)

    def action_choose(self) -> None:
        row = self.current
        if self.is_ready() and row is not None:
            self.post_message(self.Chosen(row))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or at.y == 0:
            return
        number = self.scroll_offset.y + at.y - 1
        if number >= self.pages.count:
            return
        if number == self.cursor:
            self.action_choose()
        self.action_move(number - self.cursor)
