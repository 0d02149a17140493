"""The rows of a list that are in memory: a window on a list that is read forward, page by page."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

MAX_ROWS: Final = 10_000
"""The most rows of a paged list to keep in memory: when more are read, the first are dropped."""

_FLIPPED: Final = str.maketrans("0123456789abcdef", "fedcba9876543210")


def flipped(hexadecimal: str) -> str:
    """Invert a hexadecimal number, which reverses the sort order; inverting again restores it."""
    return hexadecimal.translate(_FLIPPED)


def just_before(position: str) -> str:
    """Return the cursor of a page that begins at this position, a hexadecimal number. A suffix
    after a dot is ignored, so the page begins at the first position with this number."""
    number = position.partition(".")[0]
    return f"{int(number, 16) - 1:0{len(number)}x}"


@dataclass(frozen=True, slots=True)
class PageRead(Generic[T]):
    """A page of the list. `about` holds any other data that the screen needs."""

    rows: Sequence[T]
    next_cursor: str | None = None
    about: Any = None


class Window(Generic[T]):
    """The `rows` between two cursors: they begin after `before`, and more rows may follow `after`.

    `key` returns a row's key. In a paged list, keys are positions: they increase along the list and
    can be used as cursors.
    """

    def __init__(self, key: Callable[[T], str], before: str = "") -> None:
        self._key = key
        self.before = self.after = before
        self.rows: list[T] = []
        self.is_complete = False
        """Whether the last row was the end of the list when it was read."""

        self.dropped = 0
        """The number of rows that were dropped from the start."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def find(self, key: str, start: int = 0) -> int | None:
        """Return the number of the row with this key, searching from `start`; None if not found."""
        numbers = range(start, len(self.rows))
        return next((at for at in numbers if self._key(self.rows[at]) == key), None)

    def page_start(self, number: int) -> int:
        """Return the number of the first row that must be on the same page as this row, because
        positions that differ only after a dot are never separated."""
        positions = [self._key(row).partition(".")[0] for row in self.rows[: number + 1]]
        return positions.index(positions[-1]) if positions else 0

    def cursor(self, number: int) -> str:
        """Return the cursor of a page that begins with the row of this number."""
        if number == len(self.rows):
            return self.after
        return self._key(self.rows[number - 1]) if number else self.before

    def put(self, start: int, rows: Sequence[T], next_cursor: str | None) -> None:
        """Replace the rows from number `start` up to `next_cursor` with the rows just read."""
        old = self.rows[start:]
        reach = len(old) if next_cursor is None else bisect_right(old, next_cursor, key=self._key)
        self.rows[start:] = [*rows, *old[reach:]]
        if reach == len(old):
            self.is_complete = next_cursor is None
            last = self._key(self.rows[-1]) if self.rows else self.before
            self.after = last if next_cursor is None else next_cursor

    def drop(self) -> int:
        """Drop the first rows if there are more than MAX_ROWS; return how many were dropped."""
        if (extra := len(self.rows) - MAX_ROWS) <= 0:
            return 0
        self.before = self._key(self.rows[extra - 1])
        del self.rows[:extra]
        self.dropped += extra
        return extra
