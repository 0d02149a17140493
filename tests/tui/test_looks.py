"""The sets of colours."""

import pytest
from rich.color import Color
from rich.style import Style
from textual.command import CommandPalette
from textual.theme import BUILTIN_THEMES

from resumes.settings import Settings, Theme
from resumes.store import keys
from resumes.store.engine import Store
from tests.tui.driving import presses, segments, shows, until
from tui.app import ResumesApp
from tui.looks import DARK, THEMES, is_colourless, look, next_theme, theme_of
from tui.opening import prepare
from tui.screens.keys.creating import CreateKeyDialog
from tui.session import Session


def test_every_look_that_can_be_set_has_its_theme() -> None:
    assert list(THEMES) == list(Theme)
    for name, theme in THEMES.items():
        assert theme_of(name) == theme
        assert look(theme) == name
        assert BUILTIN_THEMES[theme].ansi is name.startswith("terminal")
        assert BUILTIN_THEMES[theme].dark is (name in ("dark", "terminal"))


def test_one_look_follows_another_and_the_first_the_last() -> None:
    seen = [DARK]
    while (following := next_theme(seen[-1])) != DARK:
        seen.append(following)

    assert seen == list(THEMES.values())
    assert next_theme("nord") == DARK
    assert look("nord") == "nord"


def test_the_environment_may_ask_for_no_colours() -> None:
    assert is_colourless({"NO_COLOR": "1"})
    assert not is_colourless({"COLORTERM": "truecolor"})


@pytest.mark.anyio
@pytest.mark.parametrize("theme", Theme)
async def test_the_look_that_was_set_is_shown_and_the_row_stands_out(
    store: Store, theme: Theme
) -> None:
    keys.create_key(store, "ana", name="first")
    keys.create_key(store, "ana", name="second")
    app = ResumesApp(lambda: prepare(store, settings=Settings(theme=theme)), screen="keys")
    async with app.run_test():
        await shows(app, "first", "second")

        assert app.theme == theme_of(theme)
        assert background(app, "first") != background(app, "second")


@pytest.mark.anyio
async def test_without_colours_none_is_drawn_and_the_row_still_stands_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.create_key(store, "ana", name="first")
    keys.create_key(store, "ana", name="second")
    monkeypatch.setenv("NO_COLOR", "1")
    app = ResumesApp(lambda: Session(store), screen="keys")
    async with app.run_test(notifications=True) as pilot:
        await shows(app, "first", "second")
        assert_colourless(app)
        assert style_of(app, " 5 Keys ").reverse
        assert bool(style_of(app, "first").reverse) != bool(style_of(app, "second").reverse)
        await presses(pilot, "T")
        await shows(app, "NO_COLOR is set")
        await presses(pilot, "n")
        await until(lambda: isinstance(app.screen, CreateKeyDialog))
        assert_colourless(app)
        await presses(pilot, "escape", "colon")
        await until(lambda: isinstance(app.screen, CommandPalette))
        await shows(app, "Show Keys  (5)")
        assert_colourless(app)


def assert_colourless(app: ResumesApp) -> None:
    for segment in segments(app):
        for colour in (segment.style.color, segment.style.bgcolor) if segment.style else ():
            assert colour is None or colour.is_default, segment


def style_of(app: ResumesApp, text: str) -> Style:
    """How the text is drawn."""
    found = next(segment.style for segment in segments(app) if text in segment.text)
    assert found is not None
    return found


def background(app: ResumesApp, text: str) -> Color | None:
    return style_of(app, text).bgcolor
