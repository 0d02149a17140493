"""The process behind a page: `resumes tui` itself, drawing through a pipe."""

import os
from collections.abc import Mapping
from typing import Final

DRIVER: Final = "tui.web.driver:BrowserDriver"
_VARIABLE: Final = "TEXTUAL_DRIVER"


def is_behind_a_page(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process draws for a browser, so that it needs no terminal."""
    return environment.get(_VARIABLE) == DRIVER


def environment_of(
    width: int, height: int, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment of a process that draws for a page of so many cells."""
    return {
        **environment,
        _VARIABLE: DRIVER,
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "COLUMNS": str(width),
        "ROWS": str(height),
    }
