"""What the screens with a list have in common: the frame, and how pages reach the list."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen

from resumes.store.engine import Store
from tui.actions import changes_store
from tui.notices import Failure
from tui.session import Session
from tui.store_client import Reply, StoreClient
from tui.text import safe
from tui.widgets.columns import Column
from tui.widgets.lines import ErrorLine, KeyLine, ModeLine, TitleLine
from tui.widgets.paged_list import PagedList

T = TypeVar("T")

PAGE = "page"
"""The group of the calls that read pages."""


@dataclass(frozen=True, slots=True)
class PageRead(Generic[T]):
    """A page for the list. `about` is what the screen wants to know beside it."""

    rows: Sequence[T]
    next_cursor: str | None = None
    about: Any = None


class ListScreen(Screen[None], Generic[T]):
    """A screen that is a list of `T` under a title."""

    MODE: ClassVar[str]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.client = StoreClient(session.store, self)
        self.list: PagedList[T] = PagedList(self.columns(), self.row_key)

    @abstractmethod
    def columns(self) -> Sequence[Column[T]]:
        """The columns of the list."""

    @abstractmethod
    def row_key(self, row: T) -> str:
        """The position of a row, as cursors name it."""

    @abstractmethod
    def reading(self, cursor: str) -> Callable[[Store], PageRead[T]]:
        """What reads the page after the cursor, in a thread: it must not look at the screen."""

    @abstractmethod
    def heading(self) -> Content:
        """The title line, as things stand."""

    def page_arrived(self, read: PageRead[T]) -> None:
        """The page is about to enter the list: a place to take note of `about`."""

    def compose(self) -> ComposeResult:
        yield ModeLine(self.MODE, read_only=self.session.read_only)
        yield TitleLine(safe("…"))
        yield ErrorLine()
        yield self.list
        yield KeyLine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing that changes the store exists while the session is read-only."""
        return not (self.session.read_only and changes_store(action))

    @on(PagedList.PageWanted)
    def read_page(self, wanted: PagedList.PageWanted) -> None:
        """The page is being read."""
        self.client.read(
            PAGE,
            self.reading(wanted.cursor),
            then=lambda read: self._fill(wanted.page, read),
            failed=self._fail,
        )

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """A store call has ended."""
        self.client.deliver(reply)

    @on(PagedList.Changed)
    def show_heading(self) -> None:
        """The title line says how things stand."""
        self.query_one(TitleLine).show(self.heading())

    def show_failure(self, failure: Failure) -> None:
        """The failure stands above the list; what was read stays."""
        self.query_one(ErrorLine).show(failure)

    def action_reload(self) -> None:
        """The list is read again; an error is gone until the next one."""
        self.client.drop(PAGE)
        self.query_one(ErrorLine).clear()
        self.list.reload()

    def restart(self) -> None:
        """Another list is read, from its start."""
        self.client.drop(PAGE)
        self.query_one(ErrorLine).clear()
        self.list.restart()

    def _fill(self, page: int, read: PageRead[T]) -> None:
        self.page_arrived(read)
        self.query_one(ErrorLine).clear()
        self.list.fill(page, read.rows, read.next_cursor)

    def _fail(self, failure: Failure) -> None:
        self.show_failure(failure)
        self.list.fail()
