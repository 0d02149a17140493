"""Render pages in a child process, with a deadline."""

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
"""The time after which an idle child process is ended."""

END_S: Final = 1.0

_PROGRAM: Final = str(Path(__file__).with_name("child.py"))
"""The child runs this file, not the module, so that it does not import the service."""

_ENVIRONMENT: Final = {
    "PATH": os.defpath,
    "HOME": os.devnull,
    # Typst would start a thread per processor, and each reserves some of the limited address space.
    "RAYON_NUM_THREADS": "1",
    # Free each page's memory; otherwise 1,000 PDFs leave 20 MB more (glibc's mallopt(3)).
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "1048576",
}


class RenderingFailed(Exception):
    """Rendering took too long, the child process died twice, or the renderer is closed."""


class TemplateFailed(RenderingFailed):
    """Typst or python-docx rejected the page, and would reject it again: the service has a bug."""


class Rendered(NamedTuple):
    """A rendered file. `missing` is a text that no font can display: the PDF shows it as boxes."""

    body: bytes
    missing: str | None


class Renderer:
    """Renders one page at a time. Several threads may call it; they wait for their turn.

    The child process is started for the first page and ended after it has been idle for `idle_s`.
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
        """Render the resume. Raises TooLong and the same errors as `render`."""
        document = load_stored(resume.document)
        page = compose(document, resume.entry.id, choice, accepted, resume.first_month, brand)
        return self.render_branded(page, ends_at=ends_at)

    def render_branded(self, page: dict[str, Any], *, ends_at: float | None = None) -> Rendered:
        """Render the page, and if that fails because of the logo, render it without the logo."""
        try:
            return self.render(page, ends_at=ends_at)
        except TemplateFailed:
            if not page["brand"] or not page["brand"]["logo"]:
                raise
            return self.render(page | {"brand": {**page["brand"], "logo": ""}}, ends_at=ends_at)

    def render(self, page: Mapping[str, Any], *, ends_at: float | None = None) -> Rendered:
        """Render the page. Raises RenderingFailed, for example at the deadline.

        The deadline is `ends_at` on the monotonic clock; by default, it is `timeout_s` after the
        page's turn begins.
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
        except BaseException:  # even an interrupt: the next page would get the unread answer
            self._end()
            raise

    def _get_child(self) -> "_Child":
        """Return a child process that uses the current fonts; start it if necessary."""
        look = version(self.font_folders)
        if self._child is not None and self._child.look != look:
            self._end()
        if self._child is None and not self._is_closed:
            self._child = _Child(self.font_folders, look)
        if self._child is None or self._is_closed:  # may be closed while the child starts
            raise RenderingFailed("The renderer is closed")
        return self._child

    def close(self) -> None:
        """End the child process, even while it renders, and reject all further pages.

        Calling it twice is safe."""
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
        # Forget the timer first: after Ctrl-C during `cancel`, a second `cancel` would block.
        idle, self._idle = self._idle, None
        if idle is not None:
            idle.cancel()


class _Child:
    """A process that runs `resumes.rendering.child`, with the template and font version `look`.

    The constructor raises OSError if the process cannot be started.
    """

    def __init__(self, font_folders: Sequence[Path], look: bytes) -> None:
        self.look = look
        # With -I, no module is imported from the environment or the current folder. Without HOME,
        # Python would look up the home folder, which may need a socket. Standard error is
        # discarded: it could garble a terminal and contain parts of a resume.
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
        # Send the paths as bytes: they need not be valid UTF-8, but never contain a zero byte.
        self._first: bytes | None = b"\0".join(map(os.fsencode, font_folders))

    def draw(self, body: bytes, ends_at: float) -> Rendered:
        """Render the page. Raises TimeoutError, or EOFError or OSError if the process has ended."""
        # Kill the process at the deadline: a stuck process may not even read the page, so waiting
        # for its answer with a timeout is not enough.
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
            logger.debug("Page refused: %s", said["error"])  # may quote the resume
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
        """Kill the process. A thread that is waiting for its answer gets an error."""
        self._process.kill()

    def end(self) -> None:
        """Kill the process and wait until it has ended; it holds nothing that could be lost."""
        self._in.close()
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self._out.close()
