"""What is known about a list that is read page by page, forward, by cursor.

All cursors are kept, so that any page can be read again; of the rows only those of the pages
used last, so that a list of a million takes no more memory than one of some thousand.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PAGES_KEPT = 50


class Missing(Enum):
    """Why there is no row: it has to be read (again), or was deleted since it was read first."""

    UNREAD = "unread"
    GONE = "gone"


_FLIPPED: Final = str.maketrans("0123456789abcdef", "fedcba9876543210")


def flipped(hexadecimal: str) -> str:
    """Return the number as a position that rises while it falls; and the other way round."""
    return hexadecimal.translate(_FLIPPED)


def just_before(position: str) -> str:
    """Return the cursor of a page that begins at this position, a hexadecimal number; of a position
    that goes on after a dot, at the first one of its number."""
    number = position.partition(".")[0]
    return f"{int(number, 16) - 1:0{len(number)}x}"


class Pages(Generic[T]):
    """The pages read so far. `key` gives a row's position, as cursors do.

    `start` is the cursor that the list begins after; empty: at its first row.
    """

    def __init__(self, key: Callable[[T], str], start: str = "") -> None:
        self._key = key
        self.start = start
        self._cursors = [start]
        """The cursor that each page is read with, that of the next one included."""
        self._starts = [0]
        """The number of each page's first row, and after the last page the number of rows."""
        self._rows: OrderedDict[int, list[T | Missing]] = OrderedDict()
        self._stale: set[int] = set()
        """Pages to be read again when they are seen; until then their rows are shown."""
        self._looks_further = False
        """Whether it is to be asked if anything follows a list that was complete."""
        self._last_key = ""
        self.is_complete = False
        """Whether nothing followed the last page when it was read."""

    @property
    def count(self) -> int:
        """How many rows were read so far, those that are gone since included."""
        return self._starts[-1]

    @property
    def gone(self) -> int:
        """How many of the rows that are kept are known to be gone."""
        return sum(row is Missing.GONE for rows in self._rows.values() for row in rows)

    @property
    def next_page(self) -> int:
        """The number of the first page that was never read."""
        return len(self._starts) - 1

    def page_of(self, number: int) -> int:
        """Return the number of the page of this row."""
        return bisect_right(self._starts, number) - 1

    def peek(self, number: int) -> T | Missing:
        """Return the row of this number, 0 being the first."""
        page = self.page_of(number)
        rows = self._rows.get(page)
        if rows is None:
            return Missing.UNREAD
        self._rows.move_to_end(page)
        at = number - self._starts[page]
        return rows[at] if at < len(rows) else Missing.GONE

    def find(self, key: str) -> int | None:
        """Return the number of the row of this key; None if it is not among those kept."""
        for page, rows in self._rows.items():
            for at, row in enumerate(rows):
                if not isinstance(row, Missing) and self._key(row) == key:
                    return self._starts[page] + at
        return None

    def wanted(self, first: int, last: int, *, ahead: int) -> int | None:
        """Return the page to read next for a reader who sees these rows; None if there is none.

        What is seen and not there comes first, then what is seen and stale; then the next page,
        when fewer than `ahead` rows are left.
        """
        end = min(last, self.count - 1)
        seen = range(self.page_of(first), self.page_of(end) + 1)
        missing = [page for page in seen if page not in self._rows]
        if due := missing or [page for page in seen if page in self._stale]:
            return due[0]
        if self._looks_further or (not self.is_complete and last + ahead >= self.count):
            return self.next_page
        return None

    def cursor(self, page: int) -> str:
        """Return the cursor that the page is read with."""
        return self._cursors[page]

    def fill(self, page: int, rows: Sequence[T], next_cursor: str | None) -> None:
        """Fill the page with these rows.

        One that was read before keeps its place and length, so that no row moves: rows that
        belong to the page after it are left out, and what was deleted shows as gone.
        """
        self._stale.discard(page)
        if page < self.next_page:
            self._keep(page, self._in_place(page, rows, next_cursor))
            return
        self._looks_further = False
        self.is_complete = next_cursor is None
        if not rows and page:
            # Nothing was found on the way to the next cursor, from where it continues.
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
        # What is after the end of a page that reaches less far now was not looked for.
        return [
            row
            if isinstance(row, Missing) or self._key(row) > (next_cursor or "~")
            else found.get(self._key(row), Missing.GONE)
            for row in before
        ]

    def expect_changes(self) -> None:
        """Mark each page to be read again once it is visible, and what follows the last one."""
        self._stale = set(self._rows)
        self._looks_further = self.is_complete

    def _keep(self, page: int, rows: list[T | Missing]) -> None:
        self._rows[page] = rows
        self._rows.move_to_end(page)
        while len(self._rows) > PAGES_KEPT:
            forgotten, _ = self._rows.popitem(last=False)
            self._stale.discard(forgotten)
