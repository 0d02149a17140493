"""Editing a file in the user's own editor, which takes over the terminal while it runs."""

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Final

from textual.app import App, SuspendNotSupported

from resumes.errors import InvalidArgument

LINE_EDITORS: Final = re.compile("vi|vim|nvim|nano|pico|emacs|emacsclient|micro|kak|joe|jed|ne|mg")
"""Editors that accept `+LINE` as the line to start at."""


def edit(app: App[object], path: Path, line: int | None) -> bool:
    """Open the file in the editor, at the line if the editor accepts one, and wait for it to end.

    Return whether the file was changed. Raises InvalidArgument if the user's setting is not a
    command, if the file cannot be edited here, or if the editor exits with an error.
    """
    setting = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(setting) or ["vi"]
    except ValueError as error:
        raise InvalidArgument(f'Cannot run the editor "{setting}": {error}') from error
    takes_line = line is not None and LINE_EDITORS.fullmatch(Path(words[0]).name)
    command = [*words, *([f"+{line}"] if takes_line else []), str(path)]
    # The terminal sends Ctrl+C to both processes; only the editor should act on it.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        saved = _state(path)
        with app.suspend():
            code = subprocess.run(command, check=False).returncode
        if code:
            raise InvalidArgument(f"{command[0]} failed (exit code {code})")
        return _state(path) != saved
    except (OSError, SuspendNotSupported) as error:
        if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
            raise InvalidArgument(
                "The file was moved or deleted in the meantime, perhaps by a retry; nothing was saved. "
                "Open it from the list again"
            ) from error
        reason = getattr(error, "strerror", None) or "this terminal cannot run an editor"
        raise InvalidArgument(f"Cannot edit with {command[0]}: {reason}") from error
    finally:
        signal.signal(signal.SIGINT, before)


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
