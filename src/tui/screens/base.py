"""Base classes of screens: a list to refresh, filter and sort; a list and preview; a row's page."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from resumes.errors import InvalidArgument
from resumes.store import accounts
from resumes.store.store import Store
from resumes.text import counted
from tui.filters import find_words, has_words, parse_filter
from tui.keys import ACTIONS, Target, shown_key
from tui.screens.dialogs import Chooser, ask
from tui.session import TrailStep, UiSession
from tui.store_calls import Failure, call, is_running, is_writing
from tui.text import joined, safe, show_message
from tui.themes import ROOM_CELLS
from tui.widgets.bars import ErrorLine, HeaderLine, KeyLine
from tui.widgets.filter_bar import FilterLine
from tui.widgets.paged_list import FindHits, ListColumn, PagedList, text_cell
from tui.widgets.text_pane import Paragraph
from tui.widgets.window import PageRead, T

W = TypeVar("W")
"""The type that identifies a row to its pane."""


@dataclass(frozen=True, slots=True)
class Order:
    """A sort order. `label` is shown in the title; if `key` is None, the rows are not sorted."""

    label: str
    key: Callable[[Any], Any] | None = None
    is_descending: bool = False


NEWEST_FIRST = Order("newest first")
PATH_MARK = " › "


class ModeScreen(Screen[None]):
    """A screen of a mode, with a header, an error line and a key line."""

    MODE: ClassVar[str]

    def __init__(self, session: UiSession) -> None:
        super().__init__()
        self.session = session

    @abstractmethod
    def body(self) -> Iterable[Widget]:
        """Yield the widgets between header and footer."""

    @abstractmethod
    def close_top_layer(self) -> bool:
        """Close the topmost layer of the screen; return False if there is none to close."""

    @property
    @abstractmethod
    def path(self) -> tuple[str, ...]:
        """The titles that lead here, such as `Accounts`, `acme`, `Resumes`."""

    @property
    def path_here(self) -> tuple[str, ...]:
        """The path of the link that led to this mode; empty if no link did."""
        return self.session.trail[-1].path if self.session.trail else ()

    def compose(self) -> ComposeResult:
        yield HeaderLine(self.MODE, read_only=self.session.read_only)
        yield ErrorLine()
        yield from self.body()
        yield KeyLine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In a read-only session, disable all actions that change the store."""
        return not self.session.read_only or not any(
            entry.command for entry in ACTIONS if entry.method == action
        )

    @abstractmethod
    def action_reload(self, *, row: str = "") -> None:
        """Read again everything that is shown, and go to the row with the key `row`, if given."""

    def unmark(self) -> None:
        """Remove all marks, if the screen has any."""
        for listed in self.query(PagedList):
            listed.unmark()

    def show_failure(self, failure: Failure) -> None:
        """Show why an action failed; `ErrorLine` shows why a read failed."""
        # The remedy "Press r to retry" would be wrong: r does not repeat the action.
        show_message(
            self, failure.message if failure.is_passing else failure.content.plain, "error"
        )

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """Hand the terminal to another program. Raises InvalidArgument if that is not possible."""
        try:
            with self.app.suspend():
                yield
        except SuspendNotSupported as error:
            message = "This terminal cannot be handed to another program"
            raise InvalidArgument(message) from error
        finally:
            # Deletions could not be undone during the block.
            self.session.deletions.restart_grace()

    def titled(self, *more: Content) -> Content:
        """Return the title: the path, then `more`."""
        return joined([safe(PATH_MARK.join(self.path)), *more], by=" · ")

    def follow_link(self, link: Target, *names: str) -> None:
        """Show the link's destination, closing the pages open in that mode; `esc` returns here.

        `names` are added to the path of this screen, such as the name of the row with the link.
        """
        # A mode has only one stack of screens, so a link to a mode of the trail shortens the trail.
        trail = self.session.trail
        modes = [*(step.mode for step in trail), self.MODE, link.mode]
        steps = [*trail, TrailStep(self.MODE, (*self.path, *names))]
        trail[:] = steps[: modes.index(link.mode)]
        self.session.link = link
        self.app.switch_mode(link.mode)
        while len(self.app.screen_stack) > 1:
            self.app.pop_screen()


class RowPane(Widget, Generic[W]):
    """Reads a row of a list and shows it, as a preview or on a page of its own.

    `W` is the type that identifies the row.
    """

    session: UiSession
    failure: reactive[Failure | None] = reactive(None, repaint=False)
    """Why the row could not be read."""

    _last_read: object = None
    """The key of the row that is being read or was last read."""

    @dataclass(eq=False)
    class Shown(Message):
        """Posted when another row, or a newer state of the same row, is shown."""

        read: Any

    def key_of(self, wanted: W) -> object:
        """Return a key that identifies the row and its view, even if the content changes."""
        return wanted

    @abstractmethod
    def reading(self, wanted: W) -> Callable[[Store], Any]:
        """Return a function that reads the row; it runs in a thread and must not use the pane."""

    @abstractmethod
    def show_read(self, read: Any) -> None:
        """Show the row that was read; scroll to its start unless it was already shown."""

    @abstractmethod
    def show_line(self, line: Paragraph) -> None:
        """Show this line instead of a row."""

    @abstractmethod
    def action_scroll_pages(self, pages: int) -> None:
        """Scroll down by this many screens."""

    def read_row(self, wanted: W, *, again: bool = False) -> None:
        """Read the row and show it, unless another row is requested first.

        `again` repeats a read of the same row in progress, which may have begun before a change.
        """
        # Starting the worker again would discard its read in progress.
        key = self.key_of(wanted)
        if again or key != self._last_read or not self.is_reading:
            self._last_read = key
            self._read_row(wanted)

    @property
    def is_reading(self) -> bool:
        """Whether a row is being read."""
        return is_running(self, self._read_row)

    @work(exclusive=True, description="")
    async def _read_row(self, wanted: W) -> None:
        try:
            read = await call(self.session.store, self.reading(wanted))
        except Failure as failure:
            self.failure = failure
        else:
            self.failure = None
            self.show_read(read)
            self.post_message(self.Shown(read))


class RowScreen(ModeScreen, Generic[W]):
    """A page for one row of a list. `is_linked` is whether a link opened it, not the list."""

    def __init__(
        self, listed: "SplitScreen[Any, W]", pane: RowPane[W], wanted: W, *, is_linked: bool
    ) -> None:
        super().__init__(listed.session)
        self.pane = pane
        self._listed = listed
        self.wanted = wanted
        """The row to show; while it is being read, the pane still shows the previous row."""
        self.is_linked = is_linked

    @property
    @abstractmethod
    def name_here(self) -> str:
        """The row's name in the title."""

    @property
    def path(self) -> tuple[str, ...]:
        above = self.path_here if self.is_linked else ()
        return (*(above or self._listed.path), self.name_here)

    def body(self) -> Iterable[Widget]:
        yield self.pane

    def on_mount(self) -> None:
        self.watch(self.pane, "failure", self.query_one(ErrorLine).show)
        self.refresh_pane()

    @on(ErrorLine.RetryDue)
    def refresh_pane(self) -> None:
        self.pane.read_row(self.wanted)

    def action_reload(self, *, row: str = "") -> None:
        """Read the row again, even if it is already being read."""
        self.pane.failure = None
        self.pane.read_row(self.wanted, again=True)

    def action_neighbour(self, rows: int) -> None:
        """Show the row that is this many rows further down the list."""
        listed = self._listed.list
        if listed.is_replaced:
            listed.refresh_rows()  # also retries a failed read
            show_message(self, "Loading the list…")
            return
        before = listed.cursor
        listed.action_move(rows)
        if listed.cursor == before or listed.current is None:
            show_message(self, f"{'Last' if rows > 0 else 'First'} {self._listed.ROW} in the list.")
        else:
            self.wanted = self._listed.wanted_of(listed.current)
            self.refresh_pane()

    def close_top_layer(self) -> bool:
        if is_writing(self):
            show_message(self, "Still working…")
            return True
        self.dismiss()
        return not self.is_linked


class ListScreen(ModeScreen, Generic[T]):
    """A screen with a list of `T` in a titled panel, which refreshes the visible rows regularly."""

    DEFAULT_CSS = """
    ListScreen { layers: default above; }
    """
    ROW: ClassVar[str]
    """The noun for a row, such as `file`."""

    ORDERS: ClassVar[Sequence[Order]] = (Order(""),)
    FILTER_HINT: ClassVar[str] = ""
    """Examples of filters, shown while the filter is empty."""

    MORE_TO_TYPE: ClassVar[str] = ""
    """Advice that is shown if the filter finds nothing."""

    ALL_LABEL: ClassVar[str] = ""
    """The title for the list of all accounts; empty if there is no such list."""

    IS_PAGED: ClassVar[bool] = False
    """Whether the list is read page by page rather than all at once."""

    REFRESH_S: ClassVar[float] = 2.0
    AUTO_FOCUS = "PagedList"

    def __init__(self, session: UiSession) -> None:
        super().__init__(session)
        self.account = session.accounts.get(self.MODE)
        """The account whose list is shown, or None for all accounts."""

        self.order = self.ORDERS[0]
        self.filter = FilterLine(self.FILTER_HINT)
        self.list: PagedList[T] = PagedList(
            self.columns(), self.row_key, self.read_page, is_paged=self.IS_PAGED
        )
        self.list.add_class("panel")

    @abstractmethod
    def columns(self) -> Sequence[ListColumn[T]]:
        """Return the columns of the list."""

    @abstractmethod
    def row_key(self, row: T) -> str:
        """Return a row's unique key. In a paged list, it is a position, which can be a cursor."""

    @abstractmethod
    def reading(self, cursor: str) -> Callable[[Store], PageRead[T]]:
        """Return a function that reads the page after the cursor in a thread, without `self`."""

    @abstractmethod
    def open_row(self, row: T) -> None:
        """Open the row, which the user has chosen with enter or a click."""

    @on(PagedList.Chosen)
    def _open_chosen(self, chosen: PagedList.Chosen) -> None:
        self.open_row(chosen.row)

    def words(self, row: T) -> str:
        """Return the text that the filter searches. Runs in a thread; not used by paged lists."""
        return ""

    def hits_of(self, text: str) -> FindHits:
        """Return a function that finds the matches of a filter in a cell."""
        words = parse_filter(text)
        return lambda cell, _: find_words(cell, words)

    def heading(self) -> Iterable[Content]:
        """Yield the title's parts after the path: the number of rows and the order."""
        yield safe(counted(self.list.window.count, self.ROW))
        if self.order.label:
            yield safe(self.order.label)

    def hidden(self) -> Iterable[str]:
        """Yield the actions, by Textual's names, that the key line omits for the current row."""
        return ()

    def page_arrived(self, read: PageRead[T]) -> Sequence[Content]:
        """Handle `about` before the page is shown; return the lines that an empty list shows."""
        return ()

    def chosen_rows(self, verb: str, *, one: bool = False) -> Sequence[T]:
        """Return the marked rows, or the row at the cursor if `one` or if none are marked.
        If there is no row, show a message."""
        if not self.list.is_ready():
            return []
        current = [] if self.list.current is None else [self.list.current]
        marked = [] if one else [*self.list.marked.values()]
        if not current and not marked:
            show_message(self, f"No {self.ROW} to {verb}.")
        return marked or current

    def current_row(self, verb: str) -> T | None:
        """Return the row at the cursor; if there is none, show a message and return None."""
        return next(iter(self.chosen_rows(verb, one=True)), None)

    def extent(self, none: str) -> str:
        """Return the cursor's position as `5 of 21`, or the number of loaded rows, or `none`."""
        window = self.list.window
        if not window.is_complete:
            return f"{window.dropped + window.count:,} loaded · more…"
        if not window.count:
            return none
        return f"{window.dropped + self.list.cursor + 1:,} of {window.dropped + window.count:,}"

    def body(self) -> Iterable[Widget]:
        """Yield the widgets between header and footer."""
        yield self.list

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.filter

    def on_mount(self) -> None:
        self.watch(self.filter, "text", self.show_found, init=False)
        self.watch(self.list, "failure", self.query_one(ErrorLine).show)
        self.set_interval(self.session.refresh_s or self.REFRESH_S, self.refresh_rows)

    # Navigation.

    @property
    def path(self) -> tuple[str, ...]:
        path = (*self.path_here, self.MODE.capitalize())
        return path if self.account is None or self.account in path else (*path, self.account)

    def on_screen_resume(self) -> None:
        """Follow a pending link, or show another account if the session's choice has changed."""
        if not self.children:
            return  # the app ended before the screen was composed
        link, self.session.link = self.session.link, None
        if link is not None:
            self.open_link(link)
        elif self.session.accounts.get(self.MODE) != self.account:
            self.show_account(self.session.accounts.get(self.MODE))
        self.show_heading()
        self.refresh_rows()

    def open_link(self, link: Target) -> None:
        """Show the list to which the link leads, at the link's row."""
        if link.account != self.account or self.filter.text:
            self.show_account(link.account)
        if link.row:
            self.list.select(link.row)

    def show_account(self, name: str | None) -> None:
        """Show the list of this account; None means all accounts or, for resumes, the first one."""
        self.account = self.session.accounts[self.MODE] = name
        self.filter.close()
        self.list.restart()

    @work
    async def action_choose_account(self) -> None:
        """Ask which account's list to show, or the list of all accounts."""

        def read(store: Store) -> Sequence[tuple[str, int]]:
            known = [(info.name, info.resume_count) for info in accounts.list_accounts(store)]
            everything = "", sum(resumes for _, resumes in known)
            return [everything, *known] if self.ALL_LABEL else known

        chooser = Chooser(
            self.session.store,
            title="Choose account",
            columns=(
                ListColumn("ACCOUNT", 0, lambda choice: text_cell(choice[0] or "(all accounts)")),
                ListColumn("RESUMES", 9, lambda choice: safe(f"{choice[1]:,}"), is_right=True),
            ),
            key=lambda choice: choice[0],
            read=read,
            preset=self.account or "",
        )
        if (choice := await ask(self, chooser)) is not None:
            self.session.trail.clear()
            self.show_account(choice[0] or None)

    def close_top_layer(self) -> bool:
        if self.filter.text:
            self.filter.close()
        elif self.list.marked:
            self.list.unmark()
        else:
            return False
        return True

    # Filter, order and marks.

    @property
    def is_newest_first(self) -> bool:
        """Whether the newest rows come first; `reading` must return them in that order."""
        return self.order is NEWEST_FIRST

    def action_filter(self) -> None:
        self.filter.open()

    def show_found(self) -> None:
        """Show the rows that match the filter. Without a filter the cursor stays on its row."""
        current = self.list.current
        text = self.filter.text
        stays = "" if text or current is None else self.row_key(current)
        self.list.find_hits = self.hits_of(text) if text else None
        self.list.restart(keeps_rows=True, row=stays)

    def action_next_order(self) -> None:
        self.order = self.ORDERS[(self.ORDERS.index(self.order) + 1) % len(self.ORDERS)]
        self.list.restart()

    def action_mark(self) -> None:
        self.list.toggle_mark()

    def refresh_rows(self) -> None:
        """Read the visible rows again, unless a dialog is open or the last read failed."""
        if self.is_active and self.list.failure is None:
            self.list.refresh_rows()

    async def read_page(self, cursor: str) -> PageRead[T]:
        """Return the page after the cursor. Raises Failure."""
        reading, filtered_by, order = self.reading(cursor), self.filter.text, self.order
        words = parse_filter(filtered_by)

        def read_narrowed(store: Store) -> PageRead[T]:
            """Read the page; filter it unless the list is paged; sort it if the order has a key."""
            read = reading(store)
            rows = read.rows
            if words and not self.IS_PAGED:
                rows = [row for row in rows if has_words(self.words(row), words)]
            if order.key is not None:
                rows = sorted(rows, key=order.key, reverse=order.is_descending)
            return replace(read, rows=rows)

        read = await call(self.session.store, read_narrowed)
        self.list.empty = self.page_arrived(read)
        if filtered_by:
            key = shown_key("everywhere.back", self.session.settings.keymap)
            whose = f" in {self.account}" if self.account else ""
            none = safe(f'No matches for "{filtered_by.strip()}"{whose}.')
            more = [safe(self.MORE_TO_TYPE)] if self.MORE_TO_TYPE else []
            self.list.empty = none, *more, safe(f"Press {key} to clear the filter.")
        return read

    @on(PagedList.Changed)
    def show_heading(self) -> None:
        """Update the list's title, the header's account, and the keys in the key line."""
        text, marked = self.filter.text.strip(), len(self.list.marked)
        path = [*self.path, *([self.ALL_LABEL] if self.ALL_LABEL and not self.account else [])]
        parts = [
            safe(PATH_MARK.join(path)),
            *([safe(f"{marked:,} marked", "bold $text-accent")] if marked else ()),
            *([safe(f'"{text}"', "$text-accent")] if text else ()),
            *self.heading(),
        ]
        self.list.show_title(joined(parts, by=" · "))
        whose = self.account or self.ALL_LABEL or self.session.accounts.get("resumes") or ""
        self.query_one(HeaderLine).account = whose
        self.query_one(KeyLine).labels = {} if marked else dict.fromkeys(self.hidden(), "")

    @on(ErrorLine.RetryDue)
    def try_again(self) -> None:
        self.list.refresh_rows()

    def action_reload(self, *, row: str = "") -> None:
        """Read the list again, and go to the row with the key `row`, if given."""
        self.list.refresh_rows(reloads=True)
        if row:
            self.list.select(row)


PREVIEW_DELAY_S = 0.08
"""How long the cursor must rest on a row before its preview is read."""


class SplitScreen(ListScreen[T], Generic[T, W]):
    """A list, and in a wide terminal a preview of the row at its cursor."""

    DEFAULT_CSS = """
    SplitScreen #split > PagedList { width: 2fr; }
    SplitScreen #split > .pane { width: 3fr; display: none; }
    SplitScreen.-wide #split > .pane, SplitScreen.-very-wide #split > .pane { display: block; }
    SplitScreen.-list-only #split > .pane { display: none; }
    """

    def __init__(self, session: UiSession, pane: RowPane[W]) -> None:
        super().__init__(session)
        self.pane = pane

    @abstractmethod
    def wanted_of(self, row: T) -> W:
        """Return the value by which the pane identifies the row."""

    def body(self) -> Iterable[Widget]:
        self.pane.add_class("pane")
        yield Horizontal(self.list, self.pane, id="split")

    def on_mount(self) -> None:
        self.watch(self.pane, "failure", self._show_why)

    @property
    def is_split(self) -> bool:
        """Whether the preview is shown next to the list."""
        return self.size.width >= ROOM_CELLS and not self.has_class("-list-only")

    @on(PagedList.Changed)
    @work(exclusive=True, group="follow", description="")
    async def follow(self) -> None:
        """Show the row at the cursor in the preview once the cursor rests."""
        await asyncio.sleep(PREVIEW_DELAY_S)
        self.refresh_pane()

    def on_resize(self) -> None:
        self.list.show_columns(self.columns())
        self.show_heading()
        self.follow()

    def refresh_pane(self, *, again: bool = False) -> None:
        """Read the preview's row again, if there is a preview. For `again`, see `read_row`."""
        if not self.is_split or not self.is_mounted:
            return
        row = self.list.current
        if row is None:
            self.workers.cancel_node(self.pane)
            self.pane.show_line(Paragraph(safe("")))
        else:
            self.pane.read_row(self.wanted_of(row), again=again)

    def action_reload(self, *, row: str = "") -> None:
        super().action_reload(row=row)
        self.refresh_pane(again=True)

    def _show_why(self, failure: Failure | None) -> None:
        # If the store is unavailable, the list shows that, and the preview does not change.
        if failure is not None and not failure.is_passing:
            self.pane.show_line(Paragraph(failure.content))

    def action_scroll_pane(self, pages: int) -> None:
        self.pane.action_scroll_pages(pages)

    def action_toggle_split(self) -> None:
        if self.has_class("-narrow"):
            show_message(
                self, f"The preview needs {ROOM_CELLS} columns. Press enter to open the row."
            )
            return
        self.toggle_class("-list-only")
        self.call_after_refresh(self.on_resize)
