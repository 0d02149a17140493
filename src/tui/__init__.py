"""The terminal UI over the store."""

import os
from typing import Final

WEB_DRIVER: Final = "tui.web.driver:BrowserDriver"

# Textual reads these variables when it is imported, for its developers, and does not check their values.
if os.environ.get("TEXTUAL_DRIVER") != WEB_DRIVER:
    for name in ("TEXTUAL_COLOR_SYSTEM", "TEXTUAL_DRIVER", "TEXTUAL_PRESS"):
        os.environ.pop(name, None)
