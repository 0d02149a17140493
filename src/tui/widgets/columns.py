"""The columns of a list, chosen and sized by the width there is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from textual.content import Content

from tui.text import NONE, safe

T = TypeVar("T")

GAP_CELLS = 2
"""Between columns."""

MARGIN_CELLS = 1
"""On either side of the rows."""

MAX_CELL_CHARS = 400
"""A field may hold 20,000 characters; more than these are never seen, and measuring is slow."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a list. `cells` is its width; 0 shares what the others leave, up to `at_most`.

    It is there in lists of at least `from_cells`.
    """

    heading: str
    cells: int
    cell: Callable[[T], Content]
    from_cells: int = 0
    at_most: int = 1_000


def fit(columns: Sequence[Column[T]], width_cells: int) -> list[tuple[Column[T], int]]:
    """The columns that a list of this width shows, each with its width."""
    shown = [column for column in columns if column.from_cells <= width_cells]
    fixed = sum(column.cells for column in shown) + GAP_CELLS * (len(shown) - 1)
    flexible = sum(not column.cells for column in shown)
    share = max(4, (width_cells - fixed) // flexible) if flexible else 0
    return [(column, column.cells or min(share, column.at_most)) for column in shown]


def text_cell(text: str | None, style: str = "") -> Content:
    """A text from data as a cell; a dash for none."""
    return safe(NONE, "dim") if text is None else safe(text[:MAX_CELL_CHARS], style)
