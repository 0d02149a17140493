"""A list with the row at its cursor beside it, where there is room for that."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

from textual import events, on
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widget import Widget

from tui.looks import ROOM_CELLS
from tui.screens.list_screen import ListScreen
from tui.session import Session
from tui.toasts import tell
from tui.widgets.paged_list import PagedList

T = TypeVar("T")

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

    def __init__(self, session: Session, pane: Widget) -> None:
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
