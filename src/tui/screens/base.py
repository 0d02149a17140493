"""The kinds of screens: a list to refresh, filter and sort; a list with a preview; a row's page."""

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
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from resumes.errors import InvalidArgument
from resumes.store import accounts
from resumes.store.store import Store
from resumes.text import counted
from tui.filters import find_words, has_words, parse_filter
from tui.keys import ACTIONS, MODES, Target, shown_key
from tui.screens.dialogs import Chooser
from tui.session import TrailStep, UiSession
from tui.store_calls import Failure, call, is_running
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
    """A sort order. `label` is its name in the title line; `key` None keeps the order of reading.

    `keeps_deleted`: a row that is deleted while it is visible keeps its line.
    """

    label: str
    key: Callable[[Any], Any] | None = None
    is_descending: bool = False
    keeps_deleted: bool = False


NEWEST_FIRST = Order("newest first")
PATH_MARK = " › "

PANE = "pane"
"""The worker group for reading a pane's row."""


class ModeScreen(Screen[None]):
    """A screen of a mode: a title with its path, an error line, the key line."""

    MODE: ClassVar[str]
    IS_PAGE: ClassVar[bool] = False
    """Whether this is the page of one row, not a list."""

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
        """The path of the link that led to this mode; empty if none did."""
        return self.session.trail[-1].path if self.session.trail else ()

    def compose(self) -> ComposeResult:
        yield HeaderLine(self.MODE, read_only=self.session.read_only)
        yield ErrorLine()
        yield from self.body()
        yield KeyLine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable actions that change the store in a read-only session."""
        return not self.session.read_only or not any(
            entry.command for entry in ACTIONS if entry.method == action
        )

    @abstractmethod
    def action_reload(self, *, row: str = "") -> None:
        """Read all that is shown again, and go to the row of this key if given."""

    def unmark(self) -> None:
        """Remove all marks, if the screen has any."""

    def show_failure(self, failure: Failure) -> None:
        """Show why an action failed; failed reads go to `ErrorLine`."""
        # When the store is back, the screen is read again, but the action is not repeated.
        show_message(
            self, failure.message if failure.is_passing else failure.content.plain, "error"
        )

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """Hand the terminal to another program during the block. Raises InvalidArgument if it cannot be."""
        try:
            with self.app.suspend():
                yield
        except SuspendNotSupported as error:
            message = "This terminal cannot be handed to another program"
            raise InvalidArgument(message) from error
        finally:
            # No deletion could be undone meanwhile.
            self.session.deletions.restart_grace()

    def titled(self, *more: Content) -> Content:
        """Return the title: the path, then `more`."""
        return joined([safe(PATH_MARK.join(self.path)), *more], by=" · ")

    def follow_link(self, link: Target, *names: str) -> None:
        """Show the link's destination over whatever was open in that mode; `esc` returns.

        `names` are the titles that the link was followed from.
        """
        # A mode has one stack of screens: a trail that returns to a mode continues from there.
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

    `W` is what identifies the row.
    """

    session: UiSession
    _last_read: object = None
    """The key of the row that is being read, or was read last."""

    is_outdated = False
    """Whether a read in progress may predate a change."""

    @dataclass(eq=False)
    class Shown(Message):
        """Posted when another row is shown, or the current state of the same row."""

        read: Any

    @dataclass(eq=False)
    class Failed(Message):
        """Posted when the row could not be read."""

        failure: Failure

    def key_of(self, wanted: W) -> object:
        """Return a key that identifies what is shown of the row even if its content changes."""
        return wanted

    @abstractmethod
    def reading(self, wanted: W) -> Callable[[Store], Any]:
        """Return a function that reads the row, in a thread, without the pane."""

    @abstractmethod
    def show_read(self, read: Any) -> None:
        """Show the row that was read; scroll to its start unless it is shown already."""

    @abstractmethod
    def show_line(self, line: Paragraph) -> None:
        """Show the line in place of a row."""

    @abstractmethod
    def action_scroll_pages(self, pages: int) -> None:
        """Scroll down by this many screens."""

    def read_row(self, wanted: W) -> None:
        """Read the row and show it, unless another row is requested first."""
        # Asking again would discard the call in progress.
        key = self.key_of(wanted)
        if self.is_outdated or key != self._last_read or not self.is_reading:
            self._last_read, self.is_outdated = key, False
            self._read_row(wanted)

    @property
    def is_reading(self) -> bool:
        """Whether a row is being read."""
        return is_running(self, self._read_row)

    @work(group=PANE, exclusive=True, description="")
    async def _read_row(self, wanted: W) -> None:
        try:
            read = await call(self.session.store, self.reading(wanted))
        except Failure as failure:
            self.post_message(self.Failed(failure))
        else:
            self.show_read(read)
            self.post_message(self.Shown(read))


class RowScreen(ModeScreen, Generic[W]):
    """A page for one row of a list. `is_linked`: it was opened by a link, not from the list."""

    IS_PAGE = True
    WAITED_FOR: ClassVar[Sequence[Callable[..., object]]] = ()
    """Workers that leaving the page would cancel."""

    def __init__(
        self, listed: "SplitScreen[Any, W]", pane: RowPane[W], wanted: W, *, is_linked: bool
    ) -> None:
        super().__init__(listed.session)
        self.pane = pane
        self._listed = listed
        self.wanted = wanted
        """The row to show; while it is being read, the pane still shows the previous one."""
        self.is_linked = is_linked

    @property
    @abstractmethod
    def name_here(self) -> str:
        """The row's name in the title."""

    @property
    def path(self) -> tuple[str, ...]:
        if self.is_linked and self.path_here:
            return (*self.path_here, self.name_here)
        return (*self._listed.path, self.name_here)

    def body(self) -> Iterable[Widget]:
        yield self.pane

    def on_mount(self) -> None:
        self.refresh_pane()

    @on(ErrorLine.RetryDue)
    def refresh_pane(self) -> None:
        self.pane.read_row(self.wanted)

    @on(RowPane.Shown)
    def _clear_error(self) -> None:
        self.query_one(ErrorLine).clear()

    @on(RowPane.Failed)
    def _show_error(self, failed: RowPane.Failed) -> None:
        self.query_one(ErrorLine).show(failed.failure)

    def action_reload(self, *, row: str = "") -> None:
        """Read the row again, even if it is being read already, and clear the error."""
        self.query_one(ErrorLine).clear()
        self.pane.is_outdated = True
        self.refresh_pane()

    def action_neighbour(self, rows: int) -> None:
        """Show the row this many rows further down the list."""
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
        if any(is_running(self, worker) for worker in self.WAITED_FOR):
            show_message(self, "Still working…")
            return True
        self.dismiss()
        return not self.is_linked


class ListScreen(ModeScreen, Generic[T]):
    """A screen with a list of `T` in a titled panel, whose visible rows are refreshed."""

    DEFAULT_CSS = """
    ListScreen { layers: default above; }
    """
    ROW: ClassVar[str]
    """The word for a row."""

    ORDERS: ClassVar[Sequence[Order]] = (Order(""),)
    FILTER_HINT: ClassVar[str] = ""
    """What to type into the filter, shown while it is empty."""

    MORE_TO_TYPE: ClassVar[str] = ""
    """What may help if the filter finds nothing."""

    ALL_LABEL: ClassVar[str] = ""
    """The title for the list of all accounts; empty: the list does not belong to accounts."""

    IS_PAGED: ClassVar[bool] = False
    """Whether the list is read page by page, not as a whole."""

    REFRESH_S: ClassVar[float] = 2.0
    AUTO_FOCUS = "PagedList"

    def __init__(self, session: UiSession) -> None:
        super().__init__(session)
        self.account = session.accounts.get(self.MODE)
        """The account whose list is shown; None for all accounts."""

        self.order = self.ORDERS[0]
        self.filter = FilterLine(self.FILTER_HINT)
        self.list: PagedList[T] = PagedList(
            self.columns(),
            self.row_key,
            self.read_page,
            is_paged=self.IS_PAGED,
            keeps_deleted=self.order.keeps_deleted,
        )
        self.list.add_class("panel")

    @abstractmethod
    def columns(self) -> Sequence[ListColumn[T]]:
        """Return the columns of the list."""

    @abstractmethod
    def row_key(self, row: T) -> str:
        """Return the unique key of a row; in a paged list, its position, which is a cursor."""

    @abstractmethod
    def reading(self, cursor: str) -> Callable[[Store], PageRead[T]]:
        """Return a function that reads the page after the cursor in a thread, without the screen."""

    @abstractmethod
    def open_row(self, row: T) -> None:
        """Open the row, after enter or a click."""

    @on(PagedList.Chosen)
    def _open_chosen(self, chosen: PagedList.Chosen) -> None:
        self.open_row(chosen.row)

    def words(self, row: T) -> str:
        """Return the text to filter by, in a thread; empty if `reading` applies the filter."""
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
        """Yield the actions (Textual's names) that the key line omits for the row at the cursor."""
        return ()

    def page_arrived(self, read: PageRead[T]) -> Sequence[Content]:
        """Handle `about` before the page enters the list; return the text of an empty list."""
        return ()

    def chosen_rows(self, verb: str, *, one: bool = False) -> Sequence[T]:
        """Return the marked rows, or with `one` the row at the cursor; if there is none, say so."""
        if not self.list.is_ready():
            return []
        current = [] if self.list.current is None else [self.list.current]
        marked = [] if one else [*self.list.marked.values()]
        if not current and not marked:
            show_message(self, f"No {self.ROW} to {verb}.")
        return marked or current

    def current_row(self, verb: str) -> T | None:
        """Return the row at the cursor; if there is none, say so and return None."""
        return next(iter(self.chosen_rows(verb, one=True)), None)

    def extent(self, none: str) -> str:
        """Return the number of rows: `5 of 21`, `none` if empty, or that more are being read."""
        window = self.list.window
        there = window.dropped + window.count - len(window.gone)
        if not window.is_complete:
            return f"{window.dropped + window.count:,} loaded · more…"
        if not window.count:
            return none
        return f"{min(window.dropped + self.list.cursor + 1, there):,} of {there:,}"

    def body(self) -> Iterable[Widget]:
        """Yield the widgets between header and footer."""
        yield self.list

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.filter

    def on_mount(self) -> None:
        self.watch(self.filter, "text", self.show_found, init=False)
        self.set_interval(self.session.refresh_s or self.REFRESH_S, self.refresh_rows)

    # Navigation.

    @property
    def path(self) -> tuple[str, ...]:
        title = next(mode.title for mode in MODES if mode.name == self.MODE)
        path = (*self.path_here, title)
        return path if self.account is None or self.account in path else (*path, self.account)

    def on_screen_resume(self) -> None:
        """Follow a pending link, or show the account that is current by now."""
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
        """Show the link's list at the link's row."""
        if link.account != self.account or self.filter.text:
            self.show_account(link.account)
        if link.row:
            self.list.select(link.row)

    def show_account(self, name: str | None) -> None:
        """Show the list of this account; None: of all accounts, or of the first."""
        self.account = self.session.accounts[self.MODE] = name
        self.filter.close()
        self.restart()

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
        if (choice := await self.app.push_screen_wait(chooser)) is not None:
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
        self.restart(keeps_rows=True, row=stays)

    def action_next_order(self) -> None:
        self.order = self.ORDERS[(self.ORDERS.index(self.order) + 1) % len(self.ORDERS)]
        self.list.keeps_deleted = self.order.keeps_deleted
        self.restart()

    def action_mark(self) -> None:
        self.list.toggle_mark()

    def refresh_rows(self) -> None:
        """Read the visible rows again, unless a dialog is open or the store is unavailable."""
        if self.is_active and self.query_one(ErrorLine).failure is None:
            self.list.refresh_rows()

    async def read_page(self, cursor: str) -> PageRead[T]:
        """Return the page after the cursor, for the list. Raises Failure, after showing it."""
        reading, filtered_by, order = self.reading(cursor), self.filter.text, self.order
        words = parse_filter(filtered_by)

        def read_narrowed(store: Store) -> PageRead[T]:
            """Read the page; filter and sort it here if the list is read as a whole."""
            read = reading(store)
            rows = read.rows
            if words:
                pairs = [(row, self.words(row)) for row in rows]
                rows = [row for row, text in pairs if not text or has_words(text, words)]
            if order.key is not None:
                rows = sorted(rows, key=order.key, reverse=order.is_descending)
            return replace(read, rows=rows)

        try:
            read = await call(self.session.store, read_narrowed)
        except Failure as failure:
            self.query_one(ErrorLine).show(failure)
            raise
        self.query_one(ErrorLine).clear()
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
        """Update the title of the list and the keys in the footer."""
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
        """Read the list again, clear the error, and go to the row of this key if given."""
        self.query_one(ErrorLine).clear()
        self.list.refresh_rows(reloads=True)
        if row:
            self.list.select(row)

    def restart(self, *, keeps_rows: bool = False, row: str = "") -> None:
        """Read another list, from its start or from the row of this key.

        `keeps_rows`: the lists have rows in common.
        """
        self.query_one(ErrorLine).clear()
        self.list.restart(keeps_rows=keeps_rows, row=row)


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
        self._resting: Timer | None = None

    @abstractmethod
    def wanted_of(self, row: T) -> W:
        """Return what identifies the row to the pane."""

    def body(self) -> Iterable[Widget]:
        self.pane.add_class("pane")
        yield Horizontal(self.list, self.pane, id="split")

    @property
    def is_split(self) -> bool:
        """Whether the preview is shown next to the list."""
        return self.size.width >= ROOM_CELLS and not self.has_class("-list-only")

    @on(PagedList.Changed)
    def follow(self) -> None:
        """Show the row at the cursor once the cursor rests."""
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(PREVIEW_DELAY_S, self.refresh_pane)

    def on_resize(self) -> None:
        self.list.show_columns(self.columns())
        self.show_heading()
        self.follow()

    def refresh_pane(self) -> None:
        """Read the preview's row again, if there is a preview."""
        if not self.is_split or not self.is_mounted:
            return
        row = self.list.current
        if row is None:
            self.workers.cancel_group(self.pane, PANE)
            gone = f"This {self.ROW} was deleted." if self.list.window.count else ""
            self.pane.show_line(Paragraph(safe(gone, "dim")))
        else:
            self.pane.read_row(self.wanted_of(row))

    def action_reload(self, *, row: str = "") -> None:
        self.pane.is_outdated = True
        super().action_reload(row=row)

    @on(RowPane.Failed)
    def _show_why(self, failed: RowPane.Failed) -> None:
        # If the store is unavailable, the list says so, and the preview stays.
        if not failed.failure.is_passing:
            self.pane.show_line(Paragraph(failed.failure.content))

    def unmark(self) -> None:
        self.list.unmark()

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
