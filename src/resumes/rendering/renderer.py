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

from resumes.analyzer import DEFAULT_FORMAT, Format, load_stored
from resumes.rendering.fonts import version
from resumes.rendering.page import DEFAULT_CHOICE, PageOptions, compose
from resumes.store.stored_resumes import StoredResume

logger = logging.getLogger("resumes.rendering")

TIMEOUT_S: Final = 10.0
IDLE_S: Final = 60.0
"""How long an idle child is kept."""

END_S: Final = 1.0

_PROGRAM: Final = str(Path(__file__).with_name("child.py"))
"""Run as a file, so that the child loads nothing of the service."""

_ENVIRONMENT: Final = {
    "PATH": os.defpath,
    "HOME": os.devnull,
    # Each thread reserves address space, which is limited, and Typst starts one per processor.
    "RAYON_NUM_THREADS": "1",
    # Return a page's memory; otherwise 1,000 PDFs leave 20 MB more (glibc's mallopt(3)).
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
}


class RenderingFailed(Exception):
    """The file could not be made: it took too long, the process died twice, or the renderer is closed."""


class TemplateFailed(RenderingFailed):
    """Typst or python-docx refused the page, as it would again: a defect of the template or of the page."""


class Rendered(NamedTuple):
    """A file. `missing` is a text of a PDF that no font can display, so that it is drawn as boxes."""

    body: bytes
    missing: str | None


class Renderer:
    """Draws one page at a time; safe to call from several threads, which wait for their turn.

    The child is started for the first page, and ends when it was idle for `idle_s`.
    """

    def __init__(
        self, font_folders: Sequence[Path], *, timeout_s: float = TIMEOUT_S, idle_s: float = IDLE_S
    ) -> None:
        self.font_folders = font_folders
        self.timeout_s = timeout_s
        self._idle_s = idle_s
        self._turn = threading.Lock()
        self._child: _Child | None = None
        self._idle: threading.Timer | None = None
        self._is_closed = False

    def render_resume(
        self,
        resume: StoredResume,
        choice: PageOptions = DEFAULT_CHOICE,
        accepted: Format = DEFAULT_FORMAT,
        *,
        brand: Mapping[str, Any] | None = None,
        ends_at: float | None = None,
    ) -> Rendered:
        """Return the resume as a file. Raises TooLong, and what `render` raises."""
        document = load_stored(resume.document)
        page = compose(document, resume.entry.id, choice, accepted, resume.first_month, brand)
        return self.render_branded(page, ends_at=ends_at)

    def render_branded(self, page: dict[str, Any], *, ends_at: float | None = None) -> Rendered:
        """Return the file as `render`, without the logo if that is what cannot be drawn."""
        try:
            return self.render(page, ends_at=ends_at)
        except TemplateFailed:
            if not page["brand"] or not page["brand"]["logo"]:
                raise
            return self.render(page | {"brand": {**page["brand"], "logo": ""}}, ends_at=ends_at)

    def render(self, page: Mapping[str, Any], *, ends_at: float | None = None) -> Rendered:
        """Return the file. Raises RenderingFailed.

        A page may take until `ends_at`, on the monotonic clock; by default `timeout_s` from its turn
        on.
        """
        body = orjson.dumps(page)
        with self._turn:
            self._stop_idling()
            if ends_at is None:
                ends_at = time.monotonic() + self.timeout_s
            elif time.monotonic() >= ends_at:
                raise RenderingFailed(f"Rendering did not start within {self.timeout_s:g} s")
            try:
                try:
                    return self._draw(body, ends_at)
                except (EOFError, OSError):
                    if not self._is_closed:
                        logger.warning("The PDF renderer process ended; retrying in a new one")
                try:
                    return self._draw(body, ends_at)
                except (EOFError, OSError) as error:
                    raise RenderingFailed("The PDF renderer process ended") from error
            finally:
                self._idle_from_now()

    def _draw(self, body: bytes, ends_at: float) -> Rendered:
        try:
            return self._get_child().draw(body, ends_at)
        except TimeoutError:
            self._end()
            raise RenderingFailed(f"Rendering took longer than {self.timeout_s:g} s") from None
        except TemplateFailed:
            raise
        except BaseException:  # even an interrupt: an unread answer would be taken for the next one
            self._end()
            raise

    def _get_child(self) -> "_Child":
        """Return a child that uses the present fonts."""
        look = version(self.font_folders)
        if self._child is not None and self._child.look != look:
            self._end()
        if self._child is None and not self._is_closed:
            self._child = _Child(self.font_folders, look)
        if self._child is None or self._is_closed:  # perhaps while it was started
            raise RenderingFailed("The renderer is closed")
        return self._child

    def close(self) -> None:
        """End the child, even while it draws, and draw no more. Safe to call twice."""
        self._is_closed = True
        if (child := self._child) is not None:
            child.kill()
        with self._turn:
            self._stop_idling()
            self._end()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _end_idle(self) -> None:
        with self._turn:
            self._end()

    def _idle_from_now(self) -> None:
        self._stop_idling()
        if self._is_closed:
            return
        self._idle = threading.Timer(self._idle_s, self._end_idle)
        self._idle.daemon = True
        self._idle.start()

    def _stop_idling(self) -> None:
        # Forget the timer first: Ctrl-C during `cancel` leaves its lock taken, which would block a second call.
        idle, self._idle = self._idle, None
        if idle is not None:
            idle.cancel()


class _Child:
    """A process of `resumes.rendering.child`. `look` is the version of template and fonts that it uses.

    Raises OSError when it cannot be started.
    """

    def __init__(self, font_folders: Sequence[Path], look: bytes) -> None:
        self.look = look
        # -I: no module is imported from the environment or the current folder. Without HOME, the
        # system would look it up, which may need a socket. Its standard error could garble a terminal,
        # and contain parts of a resume.
        self._process = subprocess.Popen(
            [sys.executable, "-I", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = Connection(os.dup(self._process.stdin.fileno()), readable=False)
        self._out = Connection(os.dup(self._process.stdout.fileno()), writable=False)
        self._process.stdin.close()
        self._process.stdout.close()
        # Paths need not be UTF-8, as JSON must be; but they never contain a zero byte.
        self._first: bytes | None = b"\0".join(map(os.fsencode, font_folders))

    def draw(self, body: bytes, ends_at: float) -> Rendered:
        """Return the file. Raises TimeoutError, and EOFError or OSError when the process ended."""
        # Kill it instead of waiting with a timeout: a stuck process may not even read the page.
        watchdog = threading.Timer(ends_at - time.monotonic(), self.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            said, made = self._draw(body)
        except (EOFError, OSError):
            if time.monotonic() >= ends_at:
                raise TimeoutError from None
            raise
        finally:
            watchdog.cancel()
        if "error" in said:
            logger.debug("Page refused: %s", said["error"])  # it may quote the resume
            raise TemplateFailed("The page could not be rendered")
        return Rendered(made, said["missing"])

    def _draw(self, body: bytes) -> tuple[dict[str, Any], bytes]:
        first, self._first = self._first, None
        if first is not None:
            self._in.send_bytes(first)
        self._in.send_bytes(body)
        said = orjson.loads(self._out.recv_bytes())
        return said, b"" if "error" in said else self._out.recv_bytes()

    def kill(self) -> None:
        """Kill the process; a caller that waits for its answer gets an error."""
        self._process.kill()

    def end(self) -> None:
        """End the process immediately: nothing is lost with it."""
        self._in.close()
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self._out.close()
