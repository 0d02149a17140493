"""A last line of the terminal that is rewritten while other lines appear above it.

It takes one control sequence that every terminal but a dumb one knows, and no colours.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO, cast

from cli.text import cut

REWRITE = "\r\x1b[K"
"""To the beginning of the line, and erase it (ECMA-48, EL)."""


class StatusLine:
    """A stream to a terminal that keeps a status on its last line: all that is written appears
    above it, whoever writes. Otherwise it is the stream that it was made from."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # Entered twice when a warning is written while we write.
        self._lock = threading.RLock()
        self._status = ""
        self._is_drawn = False
        self._is_line_open = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def cells(self) -> int:
        """The length of the longest status: one less than a line has, which then never wraps."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return max(1, (columns or 80) - 1)

    def write(self, text: str) -> int:
        """The text stands above the status."""
        if not text:
            return self._stream.write(text)
        with self._lock:
            if self._is_drawn:
                self._stream.write(REWRITE)
                self._is_drawn = False
            written = self._stream.write(text)
            self._is_line_open = not text.endswith("\n")
            self._draw()
            return written

    def show(self, status: str) -> None:
        """The status is on the last line, cut to its length; without one nothing is."""
        with self._lock:
            if status == self._status:
                return
            self._status = status
            if self._is_drawn and not status:
                self._stream.write(REWRITE)
                self._stream.flush()
                self._is_drawn = False
            self._draw()

    def _draw(self) -> None:
        if self._status and not self._is_line_open:
            self._stream.write(REWRITE + cut(self._status, self.cells))
            self._is_drawn = True
            self._stream.flush()


def can_rewrite(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can rewrite a line."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


@contextlib.contextmanager
def last_line() -> Iterator[StatusLine | None]:
    """The status line of standard error during the block, gone afterwards; what is written to
    standard error meanwhile appears above it. None where that is no terminal."""
    if not can_rewrite(sys.stderr):
        yield None
        return
    status_line = StatusLine(sys.stderr)
    with contextlib.redirect_stderr(cast(TextIO, status_line)):
        try:
            yield status_line
        finally:
            status_line.show("")
