"""The terminal UI over the store."""

import os

# Textual reads these variables at import and does not check them; they are for its own developers.
for name in ("TEXTUAL_COLOR_SYSTEM", "TEXTUAL_DRIVER", "TEXTUAL_PRESS"):
    os.environ.pop(name, None)
