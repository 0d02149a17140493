"""Sizes at which layouts change, and color themes: dark, light, two with the terminal's colors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from textual.theme import BUILTIN_THEMES, Theme

ROOM_CELLS: Final = 110
"""The minimum width of a screen that shows a preview next to a list."""

BREAKPOINTS: Final = [(0, "-narrow"), (ROOM_CELLS, "-wide"), (170, "-very-wide")]
"""Minimum widths in cells, each with the CSS class that screens have up to the next width."""

VERTICAL_BREAKPOINTS: Final = [(0, "-tiny"), (12, "-low"), (30, "-high")]
"""Minimum heights in lines, each with the CSS class that screens have up to the next height."""


def _theme(name: str, base: str, **legible: str) -> Theme:
    """Return Textual's theme `base` with its illegible colors replaced."""
    colors = {variable.replace("_", "-"): color for variable, color in legible.items()}
    own = BUILTIN_THEMES[base]
    return replace(own, name=name, variables={**own.variables, **colors})


THEMES: Final[Mapping[str, Theme]] = {
    theme.name: theme
    for theme in (
        _theme(
            "dark", "textual-dark", block_cursor_background="#05a", button_color_foreground="#fff"
        ),
        _theme(
            "light",
            "textual-light",
            text_warning="#663a00",
            text_accent="#663a00",
            text_success="#1d5c31",
            footer_key_foreground="#004578",
            button_color_foreground="#fff",
        ),
        # These two send the numbers of the terminal's sixteen colors instead of RGB values.
        _theme(
            "terminal",
            "ansi-dark",
            primary="ansi_bright_blue",
            text_primary="ansi_bright_blue",
            error="ansi_bright_red",
            text_error="ansi_bright_red",
            footer_key_foreground="ansi_green",
        ),
        _theme(
            "terminal-light",
            "ansi-light",
            input_selection_foreground="ansi_black",
            screen_selection_foreground="ansi_black",
        ),
    )
}
"""The themes by name; the setting `theme` is one of these names."""
