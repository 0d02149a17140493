"""The sets of colours."""

from textual.theme import BUILTIN_THEMES

from resumes.settings import Theme
from tui.looks import DARK, THEMES, is_colourless, look, next_theme, theme_of


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
