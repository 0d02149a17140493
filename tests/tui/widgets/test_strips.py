"""Lines as they are drawn."""

import pytest
from textual.app import App
from textual.style import Style

from tui.text import safe
from tui.widgets.strips import cells_strip, line_strip

pytestmark = pytest.mark.anyio


async def test_a_line_is_as_wide_as_its_widget() -> None:
    app: App[int] = App()
    async with app.run_test(size=(20, 5)):
        for text in ("short", "山田" * 20):
            assert line_strip(app.screen, safe(text), Style()).cell_length == 20


async def test_cells_keep_to_their_columns() -> None:
    app: App[int] = App()
    async with app.run_test(size=(20, 5)):
        strip = cells_strip(app.screen, [(safe("too long"), 5), (safe("山田"), 6)], Style())

    assert strip.text == " too …  山田        "
    assert strip.cell_length == 20
