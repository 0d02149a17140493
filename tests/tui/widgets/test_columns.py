"""Columns by width."""

from tests.tui.builders import HOSTILE
from tui.text import safe
from tui.widgets.columns import MAX_CELL_CHARS, Column, fit, text_cell

COLUMNS: tuple[Column[str], ...] = (
    Column("WHEN", 16, safe),
    Column("ID", 24, safe, from_cells=100),
    Column("TITLE", 0, safe),
)


def widths(width_cells: int) -> dict[str, int]:
    return {column.heading: cells for column, cells in fit(COLUMNS, width_cells)}


def test_narrow_lists_leave_columns_out() -> None:
    assert widths(80) == {"WHEN": 16, "TITLE": 62}


def test_wide_lists_have_them_all() -> None:
    assert widths(120) == {"WHEN": 16, "ID": 24, "TITLE": 76}


def test_a_column_without_room_keeps_a_few_cells() -> None:
    assert widths(10)["TITLE"] == 4


def test_a_column_may_have_a_greatest_width() -> None:
    column: Column[str] = Column("NAME", 0, safe, at_most=40)

    assert fit([column], 200) == [(column, 40)]


def test_a_cell_is_safe_and_short() -> None:
    assert "\x1b" not in text_cell(HOSTILE).plain
    assert len(text_cell("x" * 20_000).plain) == MAX_CELL_CHARS
    assert text_cell(None).plain == "—"
