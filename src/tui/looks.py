"""The widths that layouts change at, and the sets of colors: dark, light, the terminal's own, none.

Under NO_COLOR Textual turns its colors into greys, which are still colors on the wire. Those
of the terminal it leaves out altogether; so then all are taken for such (`is_colorless`).
"""

import os
from collections.abc import Mapping
from typing import Final

from textual.app import App

DARK: Final = "textual-dark"
LIGHT: Final = "textual-light"
TERMINAL_DARK: Final = "ansi-dark"
TERMINAL_LIGHT: Final = "ansi-light"
"""The two that send the numbers of the terminal's sixteen colors, not colors of ours."""

THEMES: Final[Mapping[str, str]] = {
    "dark": DARK,
    "light": LIGHT,
    "terminal": TERMINAL_DARK,
    "terminal-light": TERMINAL_LIGHT,
}
"""Textual's theme for each look, by the name that the setting and the command line have for it."""


ROOM_CELLS: Final = 110
"""Width from which there is room for a preview next to a list."""

BREAKPOINTS: Final = [(0, "-narrow"), (ROOM_CELLS, "-wide"), (170, "-very-wide")]
"""The class that a screen has from each width on."""

VERTICAL_BREAKPOINTS: Final = [(0, "-low"), (30, "-high")]
"""The class that a screen has from each height on, in lines."""

LEGIBLE: Final[Mapping[str, Mapping[str, str]]] = {
    DARK: {"block-cursor-background": "#0053aa"},
    LIGHT: {
        "text-warning": "#663a00",
        "text-accent": "#663a00",
        "text-success": "#1d5c31",
        "footer-key-foreground": "#004578",
    },
}
"""Colors in place of the theme's own, which have too little contrast to be read."""


def theme_of(look: str) -> str:
    """Return Textual's theme for a value of the setting `theme`."""
    return THEMES[look]


def look(theme: str) -> str:
    """Return the setting's name of a theme; the theme's own name for any other theme."""
    return next((name for name, ours in THEMES.items() if ours == theme), theme)


def next_theme(theme: str) -> str:
    """Return the next theme; the first after the last, and after any other theme."""
    themes = list(THEMES.values())
    at = themes.index(theme) if theme in themes else -1
    return themes[(at + 1) % len(themes)]


def is_colorless(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether NO_COLOR is set (no-color.org). To be called before the app is created."""
    return "NO_COLOR" in environment


def change_theme(app: App[int]) -> str:
    """Switch to the next theme, unless colors are off; return what to say."""
    if app.no_color:
        return "Colors are off because NO_COLOR is set."
    app.theme = next_theme(app.theme)
    return f"Theme: {look(app.theme)}."
