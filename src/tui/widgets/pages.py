"""What is known of a list that is read page by page, forwards, by cursor.

All cursors are kept, so that any page can be read again; of the rows only those of the pages
used last, so that a list of a million takes no more memory than one of some thousand.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")

PAGES_KEPT = 50


class Missing(Enum):
    """Why there is no row: it has to be read (again), or was deleted since it was read first."""

    UNREAD = "unread"
    GONE = "gone"


class Pages(Generic[T]):
    """The pages read so far. `key` gives a row's position, as cursors do."""

    def __init__(self, key: Callable[[T], str]) -> None:
        self._key = key
        self._cursors = [""]
        """The cursor that each page is read with, that of the next one included."""
        self._starts = [0]
        """The number of each page's first row, and after the last page the number of rows."""
        self._rows: OrderedDict[int, Sequence[T]] = OrderedDict()
        self._last_key = ""
        self.is_complete = False
        """Whether nothing followed the last page when it was read."""

    @property
    def count(self) -> int:
        """How many rows were read so far, those that are gone since included."""
        return self._starts[-1]

    @property
    def is_long(self) -> bool:
        """Whether there is more than one page."""
        return len(self._starts) > 2 or not self.is_complete

    def peek(self, number: int) -> T | Missing:
        """The row of this number, 0 being the first."""
        page = bisect_right(self._starts, number) - 1
        rows = self._rows.get(page)
        if rows is None:
            return Missing.UNREAD
        self._rows.move_to_end(page)
        at = number - self._starts[page]
        return rows[at] if at < len(rows) else Missing.GONE

    def wanted(self, first: int, last: int, *, ahead: int) -> int | None:
        """The page to read next for a reader who sees these rows; None when there is none.

        What is seen comes first; then the next page, when fewer than `ahead` rows are left.
        """
        for number in range(first, min(last + 1, self.count)):
            if self.peek(number) is Missing.UNREAD:
                return bisect_right(self._starts, number) - 1
        if not self.is_complete and last + ahead >= self.count:
            return len(self._starts) - 1
        return None

    def cursor(self, page: int) -> str:
        """The cursor that the page is read with."""
        return self._cursors[page]

    def fill(self, page: int, rows: Sequence[T], next_cursor: str | None) -> None:
        """The page holds these rows.

        One that was read before keeps its place and length, so that no row moves: rows that
        belong to the page after it are left out, and what was deleted shows as gone.
        """
        if page < len(self._starts) - 1:
            length = self._starts[page + 1] - self._starts[page]
            end = self._cursors[page + 1] if page + 1 < len(self._cursors) else self._last_key
            self._keep(page, [row for row in rows if self._key(row) <= end][:length])
            return
        self._starts.append(self._starts[-1] + len(rows))
        self._keep(page, rows)
        if rows:
            self._last_key = self._key(rows[-1])
        self.is_complete = next_cursor is None
        if next_cursor is not None:
            self._cursors.append(next_cursor)

    def forget_rows(self) -> None:
        """Every page is to be read again, and what came after the last one too."""
        self._rows.clear()
        if self.is_complete:
            self.is_complete = False
            self._cursors.append(self._last_key)

    def _keep(self, page: int, rows: Sequence[T]) -> None:
        self._rows[page] = rows
        self._rows.move_to_end(page)
        while len(self._rows) > PAGES_KEPT:
            self._rows.popitem(last=False)
