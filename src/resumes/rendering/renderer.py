"""Drawing pages in a child process, with a deadline."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

logger = logging.getLogger("resumes.rendering")

TIMEOUT_S: Final = 10.0
IDLE_S: Final = 60.0
"""How long a child without work is kept."""

END_S: Final = 1.0

_COMMAND: Final = "from resumes.rendering.child import main; main()"


class RenderingFailed(Exception):
    """The PDF was not made: it took too long, or its child ended twice."""


class Rendered(NamedTuple):
    """A PDF. `missing` is a text that no font has, and that is drawn as boxes."""

    pdf: bytes
    missing: str | None


class Renderer:
    """Draws one page at a time; safe to call from several threads, which wait for their turn.

    The child is started by the first page, and ends when it had nothing to do for a minute.
    """

    def __init__(self, font_folders: Sequence[Path], *, timeout_s: float = TIMEOUT_S) -> None:
        self.font_folders = font_folders
        self._timeout_s = timeout_s
        self._turn = threading.Lock()
        self._child: _Child | None = None
        self._idle: threading.Timer | None = None

    def render(self, page: Mapping[str, Any]) -> Rendered:
        """Return the PDF. Raises RenderingFailed."""
        body = orjson.dumps(page)
        ends_at = time.monotonic() + self._timeout_s
        with self._turn:
            self._stop_idling()
            try:
                return self._draw(body, ends_at)
            except (EOFError, OSError):
                logger.warning("The child that draws PDFs ended; once more in another")
                self._end()
            try:
                return self._draw(body, ends_at)
            except (EOFError, OSError) as error:
                self._end()
                raise RenderingFailed("The child that draws PDFs ended") from error
            finally:
                self._idle_from_now()

    def _draw(self, body: bytes, ends_at: float) -> Rendered:
        try:
            if self._child is None:
                self._child = _Child([str(folder) for folder in self.font_folders])
            return self._child.draw(body, ends_at)
        except TimeoutError:
            self._end()
            raise RenderingFailed(f"It took longer than {self._timeout_s:g} s") from None
        finally:
            self._idle_from_now()

    def close(self) -> None:
        """End the child. Safe to call twice."""
        with self._turn:
            self._stop_idling()
            self._end()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _idle_from_now(self) -> None:
        self._stop_idling()
        self._idle = threading.Timer(IDLE_S, self.close)
        self._idle.daemon = True
        self._idle.start()

    def _stop_idling(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


class _Child:
    """A process of `resumes.rendering.child`. Raises OSError when it cannot be started."""

    def __init__(self, font_folders: Sequence[str]) -> None:
        # -I: nothing of the environment, nor of the current folder, is imported. Without HOME,
        # Typst asks the system for the user's home, which reads /etc/passwd and may use a socket.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # On a terminal it would be drawn over the screen.
            stderr=subprocess.DEVNULL if os.isatty(2) else None,
            env={"PATH": os.defpath, "HOME": "/nonexistent"},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = Connection(os.dup(self._process.stdin.fileno()), readable=False)
        self._out = Connection(os.dup(self._process.stdout.fileno()), writable=False)
        self._process.stdin.close()
        self._process.stdout.close()
        self._in.send_bytes(orjson.dumps(font_folders))

    def draw(self, body: bytes, ends_at: float) -> Rendered:
        """Return the PDF. Raises TimeoutError, and EOFError or OSError when the process ended."""
        self._in.send_bytes(body)
        said = orjson.loads(self._receive(ends_at))
        if "error" in said:
            logger.error("A page could not be drawn: %s", said["error"])
            raise RenderingFailed(said["error"])
        return Rendered(self._receive(ends_at), said["missing"])

    def _receive(self, ends_at: float) -> bytes:
        if not self._out.poll(max(0.0, ends_at - time.monotonic())):
            raise TimeoutError
        return self._out.recv_bytes()

    def end(self) -> None:
        """End the process: at once, for nothing is lost with it."""
        self._in.close()
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self._out.close()
