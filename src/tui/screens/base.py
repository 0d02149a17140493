"""The base of the list screens: a list that refreshes, and a preview of the row at the cursor."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from resumes.store.store import Store
from tui.keys import changes_store
from tui.looks import ROOM_CELLS
from tui.session import UiSession
from tui.store_calls import Failure, call
from tui.text import tell
from tui.widgets.bars import ErrorLine, HeaderLine, KeyLine
from tui.widgets.paged_list import ListColumn, PagedList

T = TypeVar("T")

PAGE = "page"
"""The group of the workers that read pages."""


@dataclass(frozen=True, slots=True)
class PageRead(Generic[T]):
    """A page for the list. `about` is what else the screen needs."""

    rows: Sequence[T]
    next_cursor: str | None = None
    about: Any = None


class ListScreen(Screen[None], Generic[T]):
    """A screen that is a list of `T` in a titled panel. What is seen is read again now and then."""

    DEFAULT_CSS = """
    ListScreen { layers: default above; }
    """
    MODE: ClassVar[str]
    INSERTS: ClassVar[bool] = True
    """Whether new rows may come between others; False for lists that grow at their end only."""

    REFRESH_S: ClassVar[float] = 2.0
    AUTO_FOCUS = "PagedList"

    def __init__(self, session: UiSession) -> None:
        super().__init__()
        self.session = session
        self.list: PagedList[T] = PagedList(self.columns(), self.row_key, inserts=self.INSERTS)
        self.list.add_class("panel")
        self._cannot_read = False
        """Whether what is shown as an error is that the list could not be read."""

    @abstractmethod
    def columns(self) -> Sequence[ListColumn[T]]:
        """Return the columns of the list."""

    @abstractmethod
    def row_key(self, row: T) -> str:
        """Return the unique key of a row; its position if cursors are positions."""

    @abstractmethod
    def reading(self, cursor: str) -> Callable[[Store], PageRead[T]]:
        """Return what reads the page after the cursor, in a thread, without using the screen."""

    @abstractmethod
    def heading(self) -> Content:
        """Return the current title of the list."""

    @property
    def whose(self) -> str:
        """The account that the header names; empty for none."""
        return self.session.account or ""

    def labels(self) -> Mapping[str, str]:
        """Return labels of keys in place of the table's, by Textual's action; empty hides one."""
        return {}

    def page_arrived(self, read: PageRead[T]) -> None:
        """Take note of `about` before the page enters the list."""

    def extent(self, none: str) -> str:
        """Return how much of the list there is: `5 of 21`, or `none`, or that more is coming."""
        pages = self.list.pages
        if not pages.is_complete:
            return f"{pages.count:,} loaded · more…"
        if not pages.count:
            return none
        there = pages.count - pages.gone
        return f"{min(self.list.cursor + 1, there):,} of {there:,}"

    def body(self) -> Iterable[Widget]:
        """Yield the widgets between header and footer."""
        yield self.list

    def peel(self) -> bool:
        """Close the topmost layer of the screen; return False if there is none."""
        return False

    def compose(self) -> ComposeResult:
        yield HeaderLine(self.MODE, read_only=self.session.read_only)
        yield ErrorLine()
        yield from self.body()
        yield KeyLine()

    def on_mount(self) -> None:
        self.set_interval(self.session.refresh_s or self.REFRESH_S, self.refresh_rows)

    def on_screen_resume(self) -> None:
        self.refresh_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable actions that change the store in a read-only session."""
        return not (self.session.read_only and changes_store(action))

    def refresh_rows(self) -> None:
        """Read what is visible again, unless a dialog is open or the store is unavailable."""
        if self.is_active and not self._cannot_read:
            self.list.refresh_rows()

    @on(PagedList.PageWanted)
    @work(group=PAGE, exclusive=True)
    async def read_page(self, wanted: PagedList.PageWanted) -> None:
        """Read the page, unless another is wanted before it is there."""
        try:
            read = await call(self.session.store, self.reading(wanted.cursor))
        except Failure as failure:
            self._fail(failure)
        else:
            self._fill(wanted.page, read)

    @on(PagedList.Changed)
    def show_heading(self) -> None:
        """Update the title of the list, and which keys the footer offers."""
        self.list.border_title = self.heading()
        self.query_one(HeaderLine).account = self.whose
        self.query_one(KeyLine).labels = self.labels()

    def show_failure(self, failure: Failure) -> None:
        """Show the failure above the list, which stays."""
        self.query_one(ErrorLine).show(failure)

    @on(ErrorLine.RetryDue)
    def try_again(self) -> None:
        """Read what could not be read."""
        self.list.refresh_rows()

    def action_reload(self) -> None:
        """Read the list again, and clear the error."""
        self.workers.cancel_group(self, PAGE)
        self._forget_failure()
        self.list.refresh_rows(anew=True)

    def restart(self, *, keeps_rows: bool = False) -> None:
        """Read another list from its start; `keeps_rows`: it has some of the same rows."""
        self.workers.cancel_group(self, PAGE)
        self._forget_failure()
        self.list.restart(keeps_rows=keeps_rows)

    def _forget_failure(self) -> None:
        self._cannot_read = False
        self.query_one(ErrorLine).clear()

    def _fill(self, page: int, read: PageRead[T]) -> None:
        self.page_arrived(read)
        if self._cannot_read:
            self._forget_failure()
        self.list.fill(page, read.rows, read.next_cursor)

    def _fail(self, failure: Failure) -> None:
        self._cannot_read = True
        self.query_one(ErrorLine).show(failure)
        self.list.fail(is_gone=failure.is_gone)
        self.list.is_stale = failure.is_passing


REST_S = 0.08
"""How long the cursor rests on a row before the preview is read."""


class SplitScreen(ListScreen[T]):
    """A list, and a pane that follows its cursor."""

    DEFAULT_CSS = """
    SplitScreen #split > PagedList { width: 2fr; }
    SplitScreen #split > .pane { width: 3fr; display: none; }
    SplitScreen.-wide #split > .pane, SplitScreen.-very-wide #split > .pane { display: block; }
    SplitScreen.-list-only #split > .pane { display: none; }
    """

    def __init__(self, session: UiSession, pane: Widget) -> None:
        super().__init__(session)
        self._pane = pane
        self._pane.add_class("pane")
        self._resting: Timer | None = None

    @abstractmethod
    def read_preview(self, row: T | None) -> None:
        """Read what the preview shows: the row at the cursor, None if there is none."""

    def body(self) -> Iterable[Widget]:
        yield Horizontal(self.list, self._pane, id="split")

    @property
    def is_split(self) -> bool:
        """Whether there is a preview next to the list."""
        return self.size.width >= ROOM_CELLS and not self.has_class("-list-only")

    @on(PagedList.Changed)
    def follow(self) -> None:
        """Show the row at the cursor once the cursor rests."""
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST_S, self.refresh_preview)

    def on_resize(self, _: events.Resize) -> None:
        self._rearrange()

    def _rearrange(self) -> None:
        self.list.show_columns(self.columns())
        self.show_heading()
        self.follow()

    def refresh_preview(self) -> None:
        """Read what the preview shows, if there is a preview."""
        if self.is_split and self.is_mounted:
            self.read_preview(self.list.current)

    def action_toggle_split(self) -> None:
        """Show or hide the preview."""
        if self.has_class("-narrow"):
            tell(self, f"The preview needs {ROOM_CELLS} columns. Press enter to open the row.")
            return
        self.toggle_class("-list-only")
        self.call_after_refresh(self._rearrange)

    def neighbour(self, rows: int) -> Any:
        """Move the cursor that many rows down and return the row there; None if there is none."""
        before = self.list.cursor
        self.list.action_move(rows)
        return None if self.list.cursor == before else self.list.current
