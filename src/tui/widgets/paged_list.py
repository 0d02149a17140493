"""A list with a cursor that draws only the visible lines.

Textual's DataTable measures every cell of every row: 12 s for 100,000. This one draws lines of
a page cache, so its cost depends on the screen's height alone.
"""

from collections.abc import Callable, Iterator, Sequence
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
"""Between columns."""

SCROLLBAR_GAP_CELLS = 1
"""Between text and the scrollbar."""

MARK = "● "
"""Before the text of a marked row, in its first column without a width of its own."""

MAX_CELL_CHARS = 400
"""A field may hold 20,000 characters; more than these are never seen, and measuring is slow."""


@dataclass(frozen=True, slots=True)
class ListColumn(Generic[T]):
    """A column of a list. `cells` is its width; 0 shares what the others leave, up to `at_most`.

    It is there in lists of at least `from_cells`. `is_right` aligns it to the right.
    """

    heading: str
    cells: int
    cell: Callable[[T], Content]
    from_cells: int = 0
    at_most: int = 1_000
    is_right: bool = False


def fit(columns: Sequence[ListColumn[T]], width_cells: int) -> list[tuple[ListColumn[T], int]]:
    """Return the columns that a list of this width shows, each with its width."""
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
    """Return a text from data as a cell; a dash for None."""
    return safe(NONE, "dim") if text is None else safe(text[:MAX_CELL_CHARS], style)


def age_column(
    heading: str,
    instant: Callable[[T], str | None],
    clock: Callable[[], int],
    from_cells: int = 0,
    *,
    none: str = NONE,
) -> ListColumn[T]:
    """Return a column of how long ago an instant was; `none` stands for None."""

    def cell(row: T) -> Content:
        at = instant(row)
        return safe(none if at is None else age(at, clock()), "dim")

    return ListColumn(heading, max(AGE_CELLS, len(heading)), cell, from_cells, is_right=True)


def line_strip(widget: Widget, content: Content, style: Style) -> Strip:
    """Return the content on a line of the widget's width, cut if it does not fit."""
    ground = style.rich_style
    return Strip(_segments(widget, content, style)).adjust_cell_length(widget.size.width, ground)


def _segments(widget: Widget, content: Content, style: Style) -> Iterator[Segment]:
    """Yield the content's text with its styles on top of this one."""
    parse = widget.app.stylesheet.parse_style
    match content.spans:
        case [Span(start=0, end=end, style=part)] if end == len(content.plain):
            # Nearly every cell has one style, for which `Content.render` sorts spans all the same.
            yield Segment(content.plain, (style + parse(part)).rich_style)
        case _:
            for text, part in content.render(style, end="", parse_style=parse):
                yield Segment(text, (style + part).rich_style)


SCREENS_AHEAD = 2
"""The next page is asked for when fewer than these many screens of rows are left."""

PAGES_READ_ANEW = 10
"""A list into which rows are inserted is read again as far as these pages."""


class PagedList(ScrollView, Generic[T], can_focus=True):
    """Rows in columns, under a heading that stays. It asks for pages with `PageWanted`."""

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
    """The number of the row that keys act on."""

    is_stale: reactive[bool] = reactive(False)
    """Whether the rows are old, because the newest are unavailable."""

    @dataclass(eq=False)
    class PageWanted(Message):
        """Somebody fill this page: `fill` with the rows after `cursor`, or `fail`."""

        page: int
        cursor: str

    @dataclass(eq=False)
    class Chosen(Message):
        """Enter, or a click on the row that has the cursor."""

        row: Any

    class Changed(Message):
        """The cursor, or what is known of the list, changed."""

    def __init__(
        self, columns: Sequence[ListColumn[T]], key: Callable[[T], str], *, inserts: bool = False
    ) -> None:
        """Create a list. `inserts`: new rows may come between others, as in lists by name."""
        super().__init__()
        self._columns = columns
        self._key = key
        self.inserts = inserts
        self.terms: Sequence[str] = ()
        """What the list is filtered by, which is highlighted in its rows."""

        self.marked: dict[str, T] = {}
        """The marked rows, by key."""

        self._wanted = ""
        """The key of the row that the cursor goes to when it is read."""

        self._fitted: list[tuple[ListColumn[T], int]] = []
        self._fresh: Pages[T] | None = None
        """The list being read again, which will take the place of the one that is shown."""
        self.is_replaced = False
        """Whether that is another list than the one that is shown."""
        self._asked: tuple[Pages[T], int] | None = None
        self._has_failed = False
        self.empty: Sequence[Content] = ()
        """The lines that stand for the rows when there are none."""

        self.pages: Pages[T] = Pages(key)

    # State that comes down.

    def show_columns(self, columns: Sequence[ListColumn[T]]) -> None:
        """Show these columns of the same rows."""
        self._columns = columns
        self._fitted = fit(columns, self._row_cells)
        self.refresh()

    def show_title(self, title: Content) -> None:
        """Show the title in the frame. Textual's own setter repaints all rows as well."""
        if self._border_title is None or not self._border_title.is_same(title):
            self._border_title = title
            left, top = self.content_offset
            self.refresh(Region(-left, -top, self.outer_size.width, 1))

    def fill(self, page: int, rows: Sequence[T], next_cursor: str | None) -> None:
        """Show the page that was asked for."""
        if self._asked is None or self._asked[1] != page:
            return
        pages, self._asked, self._has_failed = self._asked[0], None, False
        self.is_stale = False
        pages.fill(page, rows, next_cursor)
        if pages is self._fresh and self.is_replaced:
            self._begin_at_wanted(pages)
        elif pages is self._fresh:
            self._compare(pages)
        self._go_to_wanted()
        if self.pages.is_complete:
            self.cursor = max(0, min(self.cursor, self.pages.count - 1))
        self._grow()

    def fail(self, *, is_gone: bool = False) -> None:
        """Note that the page could not be read; nothing is asked until `refresh_rows`.

        `is_gone`: whatever the rows belonged to is not there any more, and so neither are they.
        """
        if is_gone:
            self._begin(Pages(self._key))
        self._asked = None
        self._has_failed = True
        self._grow()

    def refresh_rows(self, *, anew: bool = False) -> None:
        """Read what is visible again, and what followed since. Cursor and view stay.

        `anew`: rows that are gone leave the list, instead of saying so where they were; and what is
        being read already, perhaps from before the change that is to be seen, is asked for again.
        """
        self._has_failed = False
        if anew:
            self._asked = None
        if self.is_replaced:
            pass  # what was asked for last comes first
        elif not (self.inserts or anew) or not self.pages.next_page:
            self.pages.expect_changes()
        elif (self._fresh is None or anew) and not self._is_far_down:
            self._fresh = Pages(self._key, self.pages.start)
        elif anew:
            self.pages.expect_changes()
        self._ask()
        self.refresh()

    def reload(self) -> None:
        """Read the list again as it is now; far down from the cursor's row on."""
        row = self.current
        if self.inserts and self._is_far_down and row is not None and not self.is_replaced:
            self.restart(keeps_rows=True, row=self._key(row))
        else:
            self.refresh_rows(anew=True)

    @property
    def _is_far_down(self) -> bool:
        return self.pages.page_of(max(self.cursor, self.scroll_offset.y)) >= PAGES_READ_ANEW

    def restart(self, *, keeps_rows: bool = False, row: str = "") -> None:
        """Show another list from its start, or at the row of this key.

        `keeps_rows`: show these rows until the first of the other list are read, and keep the marks.
        """
        self._asked, self._has_failed, self._wanted = None, False, row
        if keeps_rows:
            self._fresh, self.is_replaced = Pages(self._key), True
            self._ask()
        else:
            self.marked.clear()
            self._begin(Pages(self._key))
            self._grow()

    def _begin_at_wanted(self, pages: Pages[T]) -> None:
        """Show the other list once the row to begin at is read; begin there if that is far down."""
        if not self._wanted or pages.is_complete or pages.find(self._wanted) is not None:
            self._begin(pages)
        elif pages.start:  # the row was deleted, and this is where it was
            self._wanted = ""
            self._begin(pages)
        elif pages.next_page >= PAGES_READ_ANEW:
            self._fresh = Pages(self._key, just_before(self._wanted))

    def _go_to_wanted(self) -> None:
        if not self._wanted or self.is_replaced:
            return
        number = self.pages.find(self._wanted)
        if number is not None:
            self.cursor = number
        if number is not None or (self.pages.is_complete and self._fresh is None):
            self._wanted = ""

    def _begin(self, pages: Pages[T]) -> None:
        self.pages, self._fresh, self.is_replaced = pages, None, False
        self.is_stale = False
        self._resize_list()
        self.cursor = 0
        self.scroll_to(y=0, animate=False, force=True)

    @property
    def current(self) -> T | None:
        """The row that has the cursor; None when there is none, or it is not read yet."""
        if self.cursor >= self.pages.count:
            return None
        row = self.pages.peek(self.cursor)
        return None if isinstance(row, Missing) else row

    def is_ready(self) -> bool:
        """Return whether the row at the cursor is one of the list that was asked for; if not, say so.

        Where that one cannot be read, the rows that are shown stay usable.
        """
        is_usable = self._wanted or self._has_failed or self.is_stale
        is_loading = self.is_replaced and not is_usable
        if is_loading:
            show_message(self, "Loading the list…")
        return not is_loading

    def select(self, key: str) -> None:
        """Move the cursor to the row of this key, as soon as it is read."""
        self._wanted = key
        self._go_to_wanted()

    def toggle_mark(self) -> None:
        """Mark the row at the cursor, or take its mark away; and go to the next row."""
        if not self.is_ready():
            return
        row = self.current
        if row is not None and self.marked.pop(self._key(row), None) is None:
            self.marked[self._key(row)] = row
        self.action_move(1)
        self._grow()

    def unmark(self) -> None:
        """Take all marks away."""
        self.marked.clear()
        self._grow()

    def _compare(self, fresh: Pages[T]) -> None:
        """Show the list that was read again as soon as it reaches as far as the reader."""
        current = self.current
        number = None if current is None else fresh.find(self._key(current))
        top, lines = self.scroll_offset.y, self._row_lines
        reaches = number is not None or fresh.count > self.cursor + lines
        # The wheel shows other rows than those around the cursor.
        is_seen = top <= self.cursor < top + lines
        if not fresh.is_complete and not (reaches and (is_seen or fresh.count > top + lines)):
            return
        self.pages, self._fresh = fresh, None
        moved = 0 if number is None else number - self.cursor
        self._resize_list()
        self.set_reactive(PagedList.cursor, max(0, min(self.cursor + moved, fresh.count - 1)))
        # At the top the user watches what arrives; elsewhere no line moves.
        self.scroll_to(y=top + moved if top else 0, animate=False, force=True)
        if is_seen:
            self._scroll_to_cursor()

    def _grow(self) -> None:
        self._resize_list()
        self.refresh()
        self._ask()
        self.post_message(self.Changed())

    def _resize_list(self) -> None:
        # One line for the heading, and one that says that more is coming.
        lines = self.pages.count + (0 if self.pages.is_complete else 1)
        self.virtual_size = Size(self.size.width, lines + 1)

    def _ask(self) -> None:
        """Ask for the page that is needed most, one at a time."""
        if self._asked is not None or self._has_failed or not self.size:
            return
        first = self.scroll_offset.y
        page: int | None
        if self._fresh is not None:
            pages, page = self._fresh, self._fresh.next_page
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
        self.call_after_refresh(self._ask)  # what is read already is painted first

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
        if not self._fitted:  # painted for the first time, before it is told of its size
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
            # On its ground other colors than its own could not be read.
            cells = [highlighted(safe(cell.plain), self.terms) for cell in cells]
        return self._draw(cells, style)

    def _cells(self, row: T) -> list[Content]:
        cells = [highlighted(column.cell(row), self.terms) for column, _ in self._fitted]
        if self._key(row) in self.marked:
            at = next((at for at, (one, _) in enumerate(self._fitted) if not one.cells), 0)
            cells[at] = safe(MARK, "bold $text-accent") + cells[at]
        return cells

    def _draw(self, cells: Sequence[Content], style: Style) -> Strip:
        """Return the cells side by side; one that does not fit ends in an ellipsis."""
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
        """Return a line below the rows: that more is coming, or that the list is empty."""
        line = safe("")
        if not self.pages.is_complete and number == self.pages.count:
            line = safe("… not loaded" if self._has_failed else "… loading")
        elif self.pages.is_complete and not self.pages.count and 0 <= y - 2 < len(self.empty):
            line = self.empty[y - 2]
        return line.truncate(self._row_cells, ellipsis=True)

    def _style(self, component: str = "") -> Style:
        """Return the style of lines of this component class, or of rows."""
        style = self.get_visual_style(component) if component else self.visual_style
        if component == "paged-list--cursor" and self.app.no_color:
            # Nothing else shows the row; and a visual style drops a reverse of CSS.
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
        """Move the cursor to the last row that is loaded."""
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
