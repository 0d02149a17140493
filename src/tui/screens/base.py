"""The base of the list screens: a list that refreshes, and the row at the cursor beside it."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
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
from tui.text import safe, tell
from tui.widgets.bars import ErrorLine, KeyLine, ModeLine, TitleLine
from tui.widgets.paged_list import ListColumn, PagedList

T = TypeVar("T")

PAGE = "page"
"""The group of the workers that read pages."""


@dataclass(frozen=True, slots=True)
class PageRead(Generic[T]):
    """A page for the list. `about` is what the screen wants to know beside it."""

    rows: Sequence[T]
    next_cursor: str | None = None
    about: Any = None


class ListScreen(Screen[None], Generic[T]):
    """A screen that is a list of `T` under a title. What is seen is read again now and then."""

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
        self._cannot_read = False
        """Whether what is shown as an error is that the list could not be read."""

    @abstractmethod
    def columns(self) -> Sequence[ListColumn[T]]:
        """The columns of the list."""

    @abstractmethod
    def row_key(self, row: T) -> str:
        """What tells a row from all others; the position of a row where cursors name that."""

    @abstractmethod
    def reading(self, cursor: str) -> Callable[[Store], PageRead[T]]:
        """What reads the page after the cursor, in a thread: it must not look at the screen."""

    @abstractmethod
    def heading(self) -> Content:
        """The title line, as things stand."""

    def page_arrived(self, read: PageRead[T]) -> None:
        """The page is about to enter the list: a place to take note of `about`."""

    def extent(self, none: str) -> str:
        """How much of the list there is: `5 of 21`, or `none`, or that more is coming."""
        pages = self.list.pages
        if not pages.is_complete:
            return f"{pages.count:,} loaded · more…"
        if not pages.count:
            return none
        there = pages.count - pages.gone
        return f"{min(self.list.cursor + 1, there):,} of {there:,}"

    def body(self) -> Iterable[Widget]:
        """What stands between title and footer."""
        yield self.list

    def peel(self) -> bool:
        """The topmost layer of the screen is gone; False when there is none but the screen."""
        return False

    def compose(self) -> ComposeResult:
        yield ModeLine(self.MODE, read_only=self.session.read_only)
        yield TitleLine(safe("…"))
        yield ErrorLine()
        yield from self.body()
        yield KeyLine()

    def on_mount(self) -> None:
        self.set_interval(self.session.refresh_s or self.REFRESH_S, self.refresh_rows)

    def on_screen_resume(self) -> None:
        self.refresh_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing that changes the store exists while the session is read-only."""
        return not (self.session.read_only and changes_store(action))

    def refresh_rows(self) -> None:
        """What is seen is being read again, unless a dialog is open or the store is away."""
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
        """The title line says how things stand."""
        self.query_one(TitleLine).show(self.heading())

    def show_failure(self, failure: Failure) -> None:
        """The failure stands above the list; what was read stays."""
        self.query_one(ErrorLine).show(failure)

    @on(ErrorLine.RetryDue)
    def try_again(self) -> None:
        """What could not be read is being read."""
        self.list.refresh_rows()

    def action_reload(self) -> None:
        """The list is being read again; an error is gone until the next one."""
        self.workers.cancel_group(self, PAGE)
        self._forget_failure()
        self.list.refresh_rows(anew=True)

    def restart(self, *, keeps_rows: bool = False) -> None:
        """Another list is being read, from its start; `keeps_rows`: it has some of the same rows."""
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
"""So long the cursor rests on a row before what is beside it is read."""


class SplitScreen(ListScreen[T]):
    """A list, and a pane that follows its cursor."""

    DEFAULT_CSS = """
    SplitScreen #split > PagedList { width: 2fr; }
    SplitScreen #split > .pane { width: 3fr; border-left: vkey $panel; display: none; }
    SplitScreen.-wide #split > .pane, SplitScreen.-very-wide #split > .pane { display: block; }
    SplitScreen.-list-only #split > .pane { display: none; }
    """

    def __init__(self, session: UiSession, pane: Widget) -> None:
        super().__init__(session)
        self._pane = pane
        self._pane.add_class("pane")
        self._resting: Timer | None = None

    @abstractmethod
    def read_beside(self, row: T | None) -> None:
        """What is beside the list is being read: the row, or None when there is none at the cursor."""

    def body(self) -> Iterable[Widget]:
        yield Horizontal(self.list, self._pane, id="split")

    @property
    def is_split(self) -> bool:
        """Whether there is something beside the list."""
        return bool(self._pane.display)

    @on(PagedList.Changed)
    def follow(self) -> None:
        """The row at the cursor is shown soon, once the cursor rests."""
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST_S, self.refresh_beside)

    def on_resize(self, _: events.Resize) -> None:
        self.follow()

    def refresh_beside(self) -> None:
        """What is beside the list is being read, if there is anything beside it."""
        if self.is_split and self.is_mounted:
            self.read_beside(self.list.current)

    def action_toggle_split(self) -> None:
        """The pane is there, or not."""
        if self.has_class("-narrow"):
            tell(self, f"The terminal is too narrow for that ({ROOM_CELLS} columns). Enter opens.")
            return
        self.toggle_class("-list-only")
        self.call_after_refresh(self.refresh_beside)

    def neighbour(self, rows: int) -> Any:
        """The row that many further down, where the cursor is now; None when there is none."""
        before = self.list.cursor
        self.list.action_move(rows)
        return None if self.list.cursor == before else self.list.current
