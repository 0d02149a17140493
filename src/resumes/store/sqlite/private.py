"""Files that hold personal data are their owner's alone from their first byte on."""

import os
from pathlib import Path


def make_private(path: Path) -> None:
    """An empty file that only its owner may read. Raises FileExistsError.

    To be made before SQLite does it, which goes by the umask.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
