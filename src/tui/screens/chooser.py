"""A dialog that asks for one of several things that the store has."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from resumes.store.store import Store
from tui.actions import Place, bindings
from tui.notices import Failure
from tui.store_client import Reply, StoreClient
from tui.text import safe
from tui.widgets.columns import Column
from tui.widgets.key_line import KeyLine
from tui.widgets.lines import ErrorLine, TitleLine
from tui.widgets.paged_list import PagedList

T = TypeVar("T")


class Chooser(ModalScreen[T | None], Generic[T]):
    """Gives the chosen row, None when nothing was chosen. `preset` is the key of the first one."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG, Place.CHOOSER)

    def __init__(
        self,
        store: Store,
        *,
        question: str,
        columns: Sequence[Column[T]],
        key: Callable[[T], str],
        read: Callable[[Store], Sequence[T]],
        preset: str | None = None,
    ) -> None:
        super().__init__()
        self._question = question
        self._client = StoreClient(store, self)
        self._list: PagedList[T] = PagedList(columns, key)
        self._read = read
        self._preset = preset

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield TitleLine(safe(f"{self._question}  enter chooses, esc cancels", "bold"))
            yield ErrorLine()
            yield self._list
        yield KeyLine()

    @on(PagedList.PageWanted)
    def read(self) -> None:
        """The rows are being read."""
        self._client.read("choices", self._read, then=self._fill, failed=self._fail)

    @on(ErrorLine.RetryDue)
    def action_reload(self) -> None:
        """What could not be read is being read."""
        self._list.refresh_rows()

    def _fail(self, failure: Failure) -> None:
        self.query_one(ErrorLine).show(failure)
        self._list.fail()

    def _fill(self, rows: Sequence[T]) -> None:
        self.query_one(ErrorLine).clear()
        self._list.fill(0, rows, None)
        if self._preset is not None:
            self._list.select(self._preset)

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """The store call has ended."""
        self._client.deliver(reply)

    @on(PagedList.Chosen)
    def choose(self, chosen: PagedList.Chosen) -> None:
        """The dialog ends with the row."""
        self.dismiss(chosen.row)

    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)
