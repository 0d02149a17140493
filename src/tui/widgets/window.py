"""The rows of a list that are in memory: a window on a list that is read forward, by cursor."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

MAX_ROWS: Final = 10_000
"""The most rows of a paged list in memory. The first ones are dropped when more are read."""

_FLIPPED: Final = str.maketrans("0123456789abcdef", "fedcba9876543210")


def flipped(hexadecimal: str) -> str:
    """Return the complement of a hexadecimal number, which sorts in reverse; its own inverse."""
    return hexadecimal.translate(_FLIPPED)


def just_before(position: str) -> str:
    """Return the cursor of a page that begins at this position, a hexadecimal number. A suffix
    after a dot is ignored: the page begins at the first position with that number."""
    number = position.partition(".")[0]
    return f"{int(number, 16) - 1:0{len(number)}x}"


@dataclass(frozen=True, slots=True)
class PageRead(Generic[T]):
    """A page of the list. `about` holds whatever else the screen needs."""

    rows: Sequence[T]
    next_cursor: str | None = None
    about: Any = None


class Window(Generic[T]):
    """The `rows` between two cursors: they begin after `before`, and more may follow after `after`.

    `key` returns a row's key. The keys of a paged list are its positions: they increase along the list,
    and each is a cursor.
    """

    def __init__(self, key: Callable[[T], str], before: str = "") -> None:
        self._key = key
        self.before = self.after = before
        self.rows: list[T] = []
        self.is_complete = False
        """Whether no row followed the last one when that was read."""

        self.gone: set[str] = set()
        """The keys of rows that were deleted after they were read."""

        self.dropped = 0
        """How many rows were dropped at the start."""

    @property
    def count(self) -> int:
        """The number of rows, including deleted ones."""
        return len(self.rows)

    def find(self, key: str, start: int = 0) -> int | None:
        """Return the number of the row with this key, from `start` on; None if it is not in memory."""
        numbers = range(start, len(self.rows))
        return next((at for at in numbers if self._key(self.rows[at]) == key), None)

    def page_start(self, number: int) -> int:
        """Return the number of the row at or before this one at which a page may begin: positions that
        differ only after a dot are on one page."""
        positions = [self._key(row).partition(".")[0] for row in self.rows[: number + 1]]
        return positions.index(positions[-1]) if positions else 0

    def cursor(self, number: int) -> str:
        """Return the cursor to read the row of this number with, and those after it."""
        if number == len(self.rows):
            return self.after
        return self._key(self.rows[number - 1]) if number else self.before

    def put(
        self, start: int, rows: Sequence[T], next_cursor: str | None, *, keeps_deleted: bool = False
    ) -> None:
        """Replace the rows from number `start` up to the next cursor by these, as they were read.

        With `keeps_deleted`, a row that is missing among them keeps its position, and is in `gone`.
        """
        old, keys = self.rows[start:], {self._key(row) for row in rows}
        reach = len(old) if next_cursor is None else bisect_right(old, next_cursor, key=self._key)
        missing = [row for row in old[:reach] if self._key(row) not in keys]
        lost = missing if keeps_deleted else []
        self.gone -= keys.union(map(self._key, missing))
        self.gone.update(map(self._key, lost))
        new = sorted([*rows, *lost], key=self._key) if lost else rows
        self.rows[start:] = [*new, *old[reach:]]
        if reach == len(old):
            self.is_complete = next_cursor is None
            last = self._key(self.rows[-1]) if self.rows else self.before
            self.after = last if next_cursor is None else next_cursor

    def drop(self) -> int:
        """Drop the first rows if there are more than MAX_ROWS; return how many."""
        if (extra := len(self.rows) - MAX_ROWS) <= 0:
            return 0
        self.before = self._key(self.rows[extra - 1])
        del self.rows[:extra]
        self.dropped += extra
        return extra
