"""The widths that layouts change at, and the sets of colours: dark, light, the terminal's own, none.

Under NO_COLOR Textual turns its colours into greys, which are still colours on the wire. Those
of the terminal it leaves out altogether; so then all are taken for such (`is_colourless`).
"""

import os
from collections.abc import Mapping
from typing import Final

from textual.app import App

DARK: Final = "textual-dark"
LIGHT: Final = "textual-light"
TERMINAL_DARK: Final = "ansi-dark"
TERMINAL_LIGHT: Final = "ansi-light"
"""The two that send the numbers of the terminal's sixteen colours, not colours of ours."""

THEMES: Final[Mapping[str, str]] = {
    "dark": DARK,
    "light": LIGHT,
    "terminal": TERMINAL_DARK,
    "terminal-light": TERMINAL_LIGHT,
}
"""Textual's theme for each look, by the name that the setting and the command line have for it."""


ROOM_CELLS: Final = 110
"""From here on there is room for something beside a list."""

BREAKPOINTS: Final = [(0, "-narrow"), (ROOM_CELLS, "-wide"), (170, "-very-wide")]
"""The class that a screen has from so many columns on."""

LEGIBLE: Final[Mapping[str, Mapping[str, str]]] = {
    DARK: {"block-cursor-background": "#0053aa"},
    LIGHT: {
        "text-warning": "#663a00",
        "text-accent": "#663a00",
        "text-success": "#1d5c31",
        "footer-key-foreground": "#004578",
    },
}
"""Colours in place of the theme's own, which have too little contrast to be read."""


def theme_of(look: str) -> str:
    """The theme of a look that the setting `theme` names."""
    return THEMES[look]


def look(theme: str) -> str:
    """The name of a theme's look; the theme's own for one that is not ours."""
    return next((name for name, ours in THEMES.items() if ours == theme), theme)


def next_theme(theme: str) -> str:
    """The one after it; the first after the last, and after one that is not ours."""
    themes = list(THEMES.values())
    at = themes.index(theme) if theme in themes else -1
    return themes[(at + 1) % len(themes)]


def is_colourless(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether no colours are wanted (no-color.org). To be asked before Textual's app is made."""
    return "NO_COLOR" in environment


def change_theme(app: App[int]) -> str:
    """The next set of colours is used, unless there are none; says which."""
    if app.no_color:
        return "Colors are off because NO_COLOR is set."
    app.theme = next_theme(app.theme)
    return f"Theme: {look(app.theme)}."
