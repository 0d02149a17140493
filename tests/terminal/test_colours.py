"""How the screens are drawn in every look: the same text, legible, and nothing said by colour alone."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from rich.style import Style

from resumes.settings import Theme
from resumes.store.store import Store
from tests.support.terminal import scenes
from tests.support.terminal.driving import SMALL, presses, running, tells, until
from tests.support.terminal.outages import UnsteadyStore
from tests.support.terminal.scenes import an_app, standing_still
from tests.support.terminal.snapshot import Cell, cells_of, seen, still, style_at, text_of
from tui.keys import MODES
from tui.screens.base import ListScreen

pytestmark = pytest.mark.usefixtures("header")

NO_COLOUR: Final = "no-colour"
LOOKS: Final = (*(theme.value for theme in Theme), NO_COLOUR)

OURS: Final = (Theme.DARK.value, Theme.LIGHT.value)
"""The looks whose colours are ours, and so whether they can be told apart is too."""

TERMINALS: Final = (Theme.TERMINAL.value, Theme.TERMINAL_LIGHT.value)

EACH_LOOK: Final = [
    pytest.param(look, marks=() if look == NO_COLOUR else pytest.mark.slow) for look in LOOKS
]
"""For most runs, that with no colours: what can be told apart in it can be in the others."""

GONE: Final = "gone"
BODY: Final = 4.5

QUIET: Final = 3.0
"""The least contrast of what is read, and of what is dim because it matters less."""

Screen = Sequence[Sequence[Cell]]

Drawn = Mapping[str, Mapping[str, Screen]]
"""By look and then by screen: every cell."""


class _Drawn(dict[str, Mapping[str, Screen]]):
    """Draws a look when it is first asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self._folders = folders

    def __missing__(self, look: str) -> Mapping[str, Screen]:
        self[look] = _drawn_in(look, self._folders)
        return self[look]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """All screens in all looks, with data, and one whose store is gone."""
    return _Drawn(tmp_path_factory)


def _drawn_in(look: str, folders: pytest.TempPathFactory) -> Mapping[str, Screen]:
    with pytest.MonkeyPatch.context() as patches:
        patches.chdir(folders.mktemp(look))
        patches.delenv("NO_COLOR", raising=False)
        theme = Theme.DARK if look == NO_COLOUR else Theme(look)
        if look == NO_COLOUR:
            patches.setenv("NO_COLOR", "1")
        with standing_still(patches) as (store, clock):
            scenes.fill_data(store, clock)
            return asyncio.run(_draw_all(store, theme))


async def _draw_all(store: Store, theme: Theme) -> Mapping[str, Screen]:
    unsteady = UnsteadyStore(store)
    app = an_app(unsteady, theme=theme)
    found = {}
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        await until(lambda: isinstance(app.screen, ListScreen))
        for mode in MODES:
            await pilot.press(mode.key)
            await still(app)
            found[mode.name] = cells_of(app)
        unsteady.go_away()
        await pilot.press("r")
        await until(lambda: "Retrying" in "".join(seen(app)))
        found[GONE] = cells_of(app)
    return found


@pytest.mark.parametrize("look", EACH_LOOK)
@pytest.mark.parametrize("screen", [mode.name for mode in MODES])
def test_the_row_with_the_cursor_stands_out(drawn: Drawn, look: str, screen: str) -> None:
    lines = drawn[look][screen]
    first = next(at for at, line in enumerate(lines) if is_heading(line)) + 1
    row, below = lines[first][1:70], lines[first + 1][1:70]

    for cell, other in zip(row, below, strict=True):
        assert ground(cell.style) != ground(other.style)


@pytest.mark.parametrize("look", EACH_LOOK)
def test_an_error_stands_out_and_what_is_old_is_dim(drawn: Drawn, look: str) -> None:
    lines = drawn[look][GONE]
    texts = [text_of(line) for line in lines]
    error = next(at for at, text in enumerate(texts) if text.startswith(" ! "))

    assert "Press r to retry. Retrying in" in texts[error]
    if look != NO_COLOUR:
        assert lines[error][1].style != lines[error - 1][1].style
    before = drawn[look][MODES[-1].name]
    for text in ("settings", "SQLite"):
        assert style_at(lines, text) != style_at(before, text)


@pytest.mark.slow
@pytest.mark.parametrize("look", OURS)
def test_what_is_read_has_contrast_also_if_it_is_old(drawn: Drawn, look: str) -> None:
    def least(screen: str, number: int, at: int) -> float:
        is_quiet = screen == GONE or drawn[TERMINALS[0]][screen][number][at].style.dim
        return QUIET if is_quiet else BODY

    too_little = {
        f"{screen}: {cell.style} has {cell.contrast:.2f}, as in {text_of(line[at : at + 30])}"
        for screen, lines in drawn[look].items()
        for number, line in enumerate(lines)
        for at, cell in enumerate(line)
        if cell.is_read and cell.contrast < least(screen, number, at)
    }

    assert not too_little, "\n".join(sorted(too_little))


def test_without_colours_there_are_none(drawn: Drawn) -> None:
    for lines in drawn[NO_COLOUR].values():
        for style in {cell.style for line in lines for cell in line}:
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default


def is_heading(line: Sequence[Cell]) -> bool:
    """Whether it is the line above the first row."""
    return text_of(line).split()[:1] in (["OUTCOME"], ["NAME"], ["STATE"], ["ABOUT"])


def ground(style: Style) -> object:
    """What a cell stands on, as one sees it: reversed it is the foreground."""
    return ("reversed", style.color) if style.reverse else style.bgcolor


# One after the other.


@pytest.mark.anyio
async def test_one_look_follows_another_and_the_first_the_last(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    async with running(store) as pilot:
        for look in (*OURS[1:], *TERMINALS, OURS[0]):
            await presses(pilot, "T")
            await tells(pilot.app, f"Theme: {look}.")


@pytest.mark.parametrize("look", EACH_LOOK)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_the_current_screen_stands_out_among_their_names(
    drawn: Drawn, look: str, mode: object
) -> None:
    for other in MODES:
        style = style_at(drawn[look][other.name], f" {other.key} {other.title} ")
        rest = {
            str(style_at(drawn[look][other.name], f" {one.key} {one.title} "))
            for one in MODES
            if one is not other
        }
        assert len(rest) == 1
        assert str(style) not in rest
        assert style.reverse
        assert style.bold
