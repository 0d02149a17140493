"""The cache of a list that is read forward, page by page, by cursor.

All cursors are kept, so that any page can be read again; rows are kept only for the most
recently used pages, so that a million rows take no more memory than a few thousand.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PAGES_KEPT = 50


class Missing(Enum):
    """Why there is no row: it must be read (again), or it was deleted after it was first read."""

    UNREAD = "unread"
    GONE = "gone"


_FLIPPED: Final = str.maketrans("0123456789abcdef", "fedcba9876543210")


def flipped(hexadecimal: str) -> str:
    """Return the complement of a hexadecimal number, which sorts in reverse; its own inverse."""
    return hexadecimal.translate(_FLIPPED)


def just_before(position: str) -> str:
    """Return the cursor of a page that begins at this position, a hexadecimal number. A suffix
    after a dot is ignored: the page begins at the first position with that number."""
    number = position.partition(".")[0]
    return f"{int(number, 16) - 1:0{len(number)}x}"


class Pages(Generic[T]):
    """The pages read so far. `key` returns a row's position, in the same form as cursors.

    The list begins after the cursor `start`; empty: at its first row.
    """

    def __init__(self, key: Callable[[T], str], start: str = "") -> None:
        self._key = key
        self.start = start
        self._cursors = [start]
        """The cursor of each page, including the next one."""
        self._starts = [0]
        """The number of each page's first row, then the number of rows."""
        self._rows: OrderedDict[int, list[T | Missing]] = OrderedDict()
        self._stale: set[int] = set()
        """Pages to read again once visible; until then their old rows are shown."""
        self._checks_end = False
        """Whether to check for new rows after the end of a complete list."""
        self._last_key = ""
        self.is_complete = False
        """Whether no page followed the last one when it was read."""

    @property
    def count(self) -> int:
        """The number of rows read so far, including rows deleted since."""
        return self._starts[-1]

    @property
    def gone(self) -> int:
        """How many of the cached rows are known to be deleted."""
        return sum(row is Missing.GONE for rows in self._rows.values() for row in rows)

    @property
    def next_page(self) -> int:
        """The number of the first page that was not read yet."""
        return len(self._starts) - 1

    def page_of(self, number: int) -> int:
        """Return the number of the page that contains this row."""
        return bisect_right(self._starts, number) - 1

    def peek(self, number: int) -> T | Missing:
        """Return the row of this number, counted from 0, or why it is missing."""
        page = self.page_of(number)
        rows = self._rows.get(page)
        if rows is None:
            return Missing.UNREAD
        self._rows.move_to_end(page)
        at = number - self._starts[page]
        return rows[at] if at < len(rows) else Missing.GONE

    def find(self, key: str) -> int | None:
        """Return the number of the row with this key; None if it is not cached."""
        for page, rows in self._rows.items():
            for at, row in enumerate(rows):
                if not isinstance(row, Missing) and self._key(row) == key:
                    return self._starts[page] + at
        return None

    def wanted(self, first: int, last: int, *, ahead: int) -> int | None:
        """Return the page to read next while these rows are visible; None if there is none.

        Missing visible rows come first, then stale visible rows; then the next page, if fewer than
        `ahead` rows are left.
        """
        end = min(last, self.count - 1)
        seen = range(self.page_of(first), self.page_of(end) + 1)
        missing = [page for page in seen if page not in self._rows]
        if due := missing or [page for page in seen if page in self._stale]:
            return due[0]
        if self._checks_end or (not self.is_complete and last + ahead >= self.count):
            return self.next_page
        return None

    def cursor(self, page: int) -> str:
        """Return the cursor to read the page with."""
        return self._cursors[page]

    def fill(self, page: int, rows: Sequence[T], next_cursor: str | None) -> None:
        """Fill the page with these rows.

        A page read before keeps its position and length, so that no row moves: rows that belong to
        the following page are dropped, and deleted rows are shown as deleted.
        """
        self._stale.discard(page)
        if page < self.next_page:
            self._keep(page, self._in_place(page, rows, next_cursor))
            return
        self._checks_end = False
        self.is_complete = next_cursor is None
        if not rows and page:
            # No row was found before the next cursor; the search continues from there.
            self._cursors[-1] = next_cursor or self._cursors[-1]
            return
        self._starts.append(self._starts[-1] + len(rows))
        self._keep(page, list(rows))
        if rows:
            self._last_key = self._key(rows[-1])
        self._cursors.append(self._last_key if next_cursor is None else next_cursor)

    def _in_place(self, page: int, rows: Sequence[T], next_cursor: str | None) -> list[T | Missing]:
        before = self._rows.get(page)
        if before is None:
            length = self._starts[page + 1] - self._starts[page]
            end = self._cursors[page + 1]
            return [*[row for row in rows if self._key(row) <= end][:length]]
        found = {self._key(row): row for row in rows}
        # If the page ends earlier now, rows beyond its end were not read.
        return [
            row
            if isinstance(row, Missing) or self._key(row) > (next_cursor or "~")
            else found.get(self._key(row), Missing.GONE)
            for row in before
        ]

    def expect_changes(self) -> None:
        """Mark every page to be read again once visible, and check for rows after the last one."""
        self._stale = set(self._rows)
        self._checks_end = self.is_complete

    def _keep(self, page: int, rows: list[T | Missing]) -> None:
        self._rows[page] = rows
        self._rows.move_to_end(page)
        while len(self._rows) > PAGES_KEPT:
            forgotten, _ = self._rows.popitem(last=False)
            self._stale.discard(forgotten)
