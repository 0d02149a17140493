"""The pane with the raw source."""

import pytest
from textual.app import App, ComposeResult

from resumes.text import is_harmless
from tests.tui.builders import HOSTILE
from tests.tui.driving import lines, segments, until
from tui.screens.imports.faults import Fault
from tui.screens.imports.source_pane import SourcePane, about_source, iter_pieces
from tui.screens.imports.source_text import SourceText, lay_out

pytestmark = pytest.mark.anyio


def a_source(text: str, byte_offset: int | None = None) -> SourceText:
    return lay_out(text.encode(), Fault(byte_offset=byte_offset))


class PaneApp(App[int]):
    """Nothing but the pane."""

    def __init__(self) -> None:
        super().__init__()
        self.pane = SourcePane()

    def compose(self) -> ComposeResult:
        yield self.pane


def test_long_lines_are_cut_and_numbered_once() -> None:
    assert list(iter_pieces(a_source("abcdefgh\nx"), 3)) == [
        (1, "abc", None),
        (0, "def", None),
        (0, "gh", None),
        (2, "x", None),
    ]


@pytest.mark.parametrize(
    ("offset", "marked"), [(0, [0, None]), (3, [None, 0]), (5, [None, 2]), (6, [None, 3])]
)
def test_the_fault_is_in_one_piece_alone(offset: int, marked: list[int | None]) -> None:
    assert [at for _, _, at in iter_pieces(a_source("abcdef", offset), 3)] == marked


def test_wide_letters_are_cut_by_the_cells_they_take() -> None:
    assert [text for _, text, _ in iter_pieces(a_source("山田太郎"), 5)] == ["山田", "太郎"]


def test_an_empty_line_takes_a_line() -> None:
    assert [text for _, text, _ in iter_pieces(a_source("a\n\nb"), 5)] == ["a", "", "b"]


def test_the_line_above_says_where_and_how_much() -> None:
    assert about_source(a_source("{\n x", 3)).plain == "Source as it was read · ▶ line 2, column 2"
    assert about_source(a_source("x" * 65_536)).plain.endswith("the first 64 KiB")


async def test_the_fault_is_seen_and_pointed_at() -> None:
    app = PaneApp()
    text = "\n".join(f"line {number}" for number in range(1, 101))
    async with app.run_test(size=(40, 12)):
        app.pane.show(a_source(text, text.index("80")))

        await until(lambda: any("line 80, column 6" in line for line in lines(app)))
        shown = lines(app)
        assert [line for line in shown if "▶" in line][1:] == ["  80 ▶ line 80"]
        at = shown.index("  80 ▶ line 80")
        assert shown[at + 1].index("^") == shown[at].index("80", 5)
        assert shown[at + 2].startswith("  81 │ line 81")
        assert "  77 │ line 77" in shown


async def test_without_a_fault_it_shows_the_start() -> None:
    app = PaneApp()
    async with app.run_test(size=(40, 12)):
        app.pane.show(a_source("\n".join("abcdefghijklmnop")))
        await until(lambda: " 1 │ a" in "\n".join(lines(app)))
        assert "▶" not in app.pane.lines.plain
        assert len(app.pane.lines.plain.splitlines()) == 16


async def test_a_narrow_pane_points_without_words() -> None:
    app = PaneApp()
    async with app.run_test(size=(16, 8)):
        app.pane.show(a_source("abcdefgh", 3))
        await until(lambda: "1 ▶ abcdefgh" in app.pane.lines.plain)
        assert app.pane.lines.plain.splitlines()[1] == "       ^"


async def test_a_source_is_cut_anew_for_another_width() -> None:
    app = PaneApp()
    async with app.run_test(size=(40, 8)) as pilot:
        app.pane.show(a_source("x" * 60, 50))
        await until(lambda: len(app.pane.lines.plain.splitlines()) == 3)
        await pilot.resize_terminal(80, 8)
        await until(lambda: len(app.pane.lines.plain.splitlines()) == 2)


async def test_without_a_source_it_is_not_there() -> None:
    app = PaneApp()
    async with app.run_test(size=(40, 8)):
        app.pane.show(a_source("x"))
        app.pane.show(None)
        assert not app.pane.display


async def test_a_hostile_source_draws_nothing_but_text() -> None:
    app = PaneApp()
    async with app.run_test(size=(60, 12)):
        app.pane.show(a_source(f'{{"a": "{HOSTILE}"}}', 10))
        await until(lambda: any("[@click=app.quit]x[/]" in line for line in lines(app)))
        for segment in segments(app):
            assert is_harmless(segment.text), segment
            assert segment.style is None or "@click" not in segment.style.meta, segment
