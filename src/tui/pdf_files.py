"""Resumes as PDFs to view: files that exist while the terminal UI runs, and what opens them."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from textual.notifications import SeverityLevel
from textual.screen import Screen

from resumes.analyzer import Format, filename
from resumes.output_files import drafted
from resumes.rendering import Renderer, RenderingFailed, TooLong
from resumes.rendering.fonts import font_folders, font_packages
from resumes.store import accounts, stored_resumes
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from tui.store_calls import call
from tui.text import tell
from tui.web.driver import is_behind_a_page

ENDED: Final = "The terminal UI has ended"
MAX_REASON_CHARS: Final = 200

FAILS_WITHIN_S: Final = 10.0
"""A viewer that ends with an error later than this has shown the file."""


Viewer = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class DrawnPdf:
    """A resume as a PDF. `missing` is a text that no font has, and that is drawn as boxes."""

    name: str
    body: bytes
    missing: str | None


class PdfFiles:
    """Draws PDFs and keeps them as files that only this user can read, until `close`.

    Safe to use from several threads. The process that draws and the folder are made when they are
    first needed. A folder that nobody closed goes with the process, unless that is killed.
    """

    def __init__(self, accepted: Format, home: Path) -> None:
        self._accepted = accepted
        self.home = home
        self._guard = threading.Lock()
        self._under_way: set[str] = set()
        self._renderer: Renderer | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._paths: dict[str, Path] = {}
        self._is_closed = False

    @contextmanager
    def turn(self, resume_id: str) -> Iterator[bool]:
        """Yield whether nobody else is drawing this resume during the block."""
        with self._guard:
            is_first = resume_id not in self._under_way
            self._under_way.add(resume_id)
        try:
            yield is_first
        finally:
            if is_first:
                self._under_way.discard(resume_id)

    def draw(self, resume: StoredResume) -> DrawnPdf:
        """Return the PDF, called as the list calls it. Raises TooLong and RenderingFailed."""
        with self._guard:
            if self._is_closed:
                raise RenderingFailed(ENDED)
            if self._renderer is None:
                self._renderer = Renderer(font_folders(self.home))
            renderer = self._renderer
        rendered = renderer.render_resume(resume, accepted=self._accepted)
        # A file name and no path, whatever the store holds.
        name = filename(resume.entry.filename.removesuffix(".pdf"), None)
        return DrawnPdf(name, rendered.pdf, rendered.missing)

    def write(self, resume_id: str, pdf: DrawnPdf) -> Path:
        """Return the path of a file that holds the PDF. Raises OSError."""
        with self._guard:
            if self._is_closed:
                raise OSError(errno.ECANCELED, ENDED)
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="resumes-")
            # A folder for each: two people may have the same name.
            folder = Path(self._folder.name, resume_id)
            folder.mkdir(mode=0o700, exist_ok=True)
            path = folder / pdf.name
            with drafted(path, Path.replace) as file:
                file.write(pdf.body)
            self._paths[resume_id] = path
        return path

    def find(self, resume_id: str) -> Path | None:
        """Return where the resume's PDF is; None if it was not written."""
        return self._paths.get(resume_id)

    def close(self) -> None:
        """Remove the files and end the process that draws, for good. Safe to call twice."""
        with self._guard:
            self._is_closed = True
            if self._renderer is not None:
                self._renderer.close()
            if self._folder is not None:
                self._folder.cleanup()
            self._renderer = self._folder = None
            self._paths.clear()


def describe(error: TooLong | RenderingFailed) -> str:
    """Return why there is no PDF, as one sentence."""
    if isinstance(error, TooLong):
        return f"{error}."
    reason = str(error).partition("\n")[0][:MAX_REASON_CHARS].rstrip(".")
    return f"Could not draw the PDF: {reason}."


def describe_boxes(missing: str | None, home: Path) -> str:
    """Return what to do about a text that no font has, as sentences after others; None: nothing."""
    if missing is None:
        return ""
    remedy = f"Install {font_packages(missing)}, or put a font into {home / 'fonts'}"
    return f' No font has "{missing}", so it is drawn as boxes. {remedy}.'


def find_viewer(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> str | None:
    """Return the command that opens a file in its own program; None without a display."""
    if platform == "darwin":
        return "open"
    has_display = environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    return "xdg-open" if has_display else None


def start_viewer(command: str, path: Path) -> Viewer | None:
    """Open the file with the command, which outlives this process; None: it is not installed."""
    program = shutil.which(command)
    if program is None:
        return None
    return subprocess.Popen(
        [program, str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


async def open_pdf(
    screen: Screen[None],
    store: Store,
    pdfs: PdfFiles,
    *,
    account: str,
    resume_id: str,
    copy_key: str,
) -> None:
    """Draw the PDF and start what shows it; a toast says how that went. Raises Failure."""
    app = screen.app
    tell(screen, "Drawing the PDF…")
    made = await call(store, _make, account=account, resume_id=resume_id, pdfs=pdfs)
    if made is None:
        return
    if isinstance(made, str):
        tell(screen, made, "error")
        return
    pdf, path, viewer = made
    boxes = describe_boxes(pdf.missing, pdfs.home)
    severity: SeverityLevel = "warning" if boxes else "information"
    if path is None:
        # The folder is for terminals, where this is not called.
        folder, kind = Path("/"), "application/pdf"
        app.deliver_binary(
            BytesIO(pdf.body), save_directory=folder, save_filename=pdf.name, mime_type=kind
        )
        tell(screen, f"Sent {pdf.name} to the browser.{boxes}", severity)
        return
    command = find_viewer()
    where = f"The PDF is {path}; press {copy_key} to copy the path."
    if command is None:
        tell(screen, f"No display. {where}{boxes}", severity)
    elif viewer is None:
        tell(screen, f"{command} is not installed. {where}{boxes}", "warning")
    else:
        tell(screen, f"Opened {pdf.name}.{boxes}", severity)

        def watch() -> None:
            started_s = time.monotonic()
            code = viewer.wait()
            if code and time.monotonic() - started_s < FAILS_WITHIN_S:
                said = f"{command} could not open it (exit code {code}). {where}"
                app.call_later(tell, app, said, "error")

        threading.Thread(target=watch, daemon=True).start()


def _make(
    store: Store, *, account: str, resume_id: str, pdfs: PdfFiles
) -> tuple[DrawnPdf, Path | None, Viewer | None] | str | None:
    """Return the PDF, for a terminal also its file and what shows it; or why there is none.

    None while another thread does the same. Raises NotFound.
    """
    with pdfs.turn(resume_id) as is_first:
        if not is_first:
            return None
        owner = accounts.get_account(store, account)
        stored = stored_resumes.get_resume(store, owner.id, resume_id)
        try:
            pdf = pdfs.draw(stored)
            if is_behind_a_page():
                return pdf, None, None
            path = pdfs.write(resume_id, pdf)
        except (TooLong, RenderingFailed) as error:
            return describe(error)
        except OSError as error:
            return f"Could not write the PDF: {error.strerror}."
    command = find_viewer()
    return pdf, path, None if command is None else start_viewer(command, path)
