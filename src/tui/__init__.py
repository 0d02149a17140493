"""The terminal UI over the store."""

import os

# Textual reads these variables when it is imported, for its developers, and does not check their values.
for name in ("TEXTUAL_COLOR_SYSTEM", "TEXTUAL_DRIVER", "TEXTUAL_PRESS"):
    os.environ.pop(name, None)
