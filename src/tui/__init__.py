"""The terminal UI."""

import os

# Textual reads these variables at import without checking them; they are meant for its developers.
for name in ("TEXTUAL_COLOR_SYSTEM", "TEXTUAL_DRIVER", "TEXTUAL_PRESS"):
    os.environ.pop(name, None)
