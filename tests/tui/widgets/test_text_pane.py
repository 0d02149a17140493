"""Texts that wrap and scroll."""

import pytest
from textual.app import App, ComposeResult

from tests.tui.driving import lines, presses, until
from tui.text import safe
from tui.widgets.text_pane import MAX_WIDTH_CELLS, Paragraph, TextPane, wrapped

pytestmark = pytest.mark.anyio


def plain(paragraph: Paragraph, width: int) -> list[str]:
    return [line.plain for line in wrapped(paragraph, width)]


async def test_further_lines_are_indented_like_the_first() -> None:
    assert plain(Paragraph(safe("one two three"), "  • "), 11) == ["  • one two", "    three"]


async def test_a_paragraph_without_text_is_a_line() -> None:
    assert plain(Paragraph(safe("")), 20) == [""]


async def test_wide_letters_count_as_two() -> None:
    assert plain(Paragraph(safe("山田山田")), 4) == ["山田", "山田"]


class Reading(App[int]):
    def __init__(self, paragraphs: list[Paragraph]) -> None:
        super().__init__()
        self.pane = TextPane(paragraphs)

    def compose(self) -> ComposeResult:
        yield self.pane


async def test_it_scrolls_by_keys() -> None:
    app = Reading([Paragraph(safe(f"line {number}")) for number in range(100)])
    async with app.run_test(size=(80, 24)) as pilot:
        for keys, top in (
            ("j", 1),
            ("k", 0),
            ("pagedown", 23),
            ("G", 76),
            ("pageup", 53),
            ("g", 0),
        ):
            await presses(pilot, keys)
            assert lines(app)[0].split("  ")[0] == f" line {top}"


async def test_lines_do_not_grow_with_the_terminal_beyond_reading() -> None:
    app = Reading([Paragraph(safe("word " * 100))])
    async with app.run_test(size=(200, 50)):
        assert max(map(len, app.pane.plain.split("\n"))) <= MAX_WIDTH_CELLS


async def test_a_long_text_is_wrapped_in_slices_and_whole_in_the_end() -> None:
    app = Reading([Paragraph(safe("word " * 2_000)) for _ in range(100)])
    async with app.run_test(size=(80, 24)):
        await until(lambda: app.pane.plain.count("word") == 200_000)
