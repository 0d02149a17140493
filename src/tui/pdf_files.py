"""PDFs of resumes: temporary files that are deleted when the terminal UI ends, and their viewer."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from resumes.analyzer import Format, filename
from resumes.output_files import drafted
from resumes.rendering import Renderer, RenderingFailed, TooLong
from resumes.rendering.branding import load_branding
from resumes.rendering.fonts import font_folders, font_packages
from resumes.store import accounts, stored_resumes
from resumes.store.store import Store

MAX_REASON_CHARS: Final = 200

Viewer = subprocess.Popen[bytes]
Made = tuple[Path, str | None, Viewer | None]
"""A PDF's path, text in it that no font can draw (or None), and the viewer's process (or None)."""


class PdfFiles:
    """Renders PDFs and keeps them until `close`, in files that only this user can read.

    Thread-safe. The rendering process and the folder are created when first needed. If `close` is
    not called, the folder is removed at exit, unless the process is killed.
    """

    def __init__(self, accepted: Format, home: Path) -> None:
        self._accepted, self._home = accepted, home
        self._renderer = Renderer(font_folders(home))
        self._guard = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._is_closed = False
        self._turns: dict[str, threading.Lock] = {}
        """A lock for each resume ID, held by the thread that renders it."""

        self.paths: dict[str, Path] = {}
        """The path of each PDF, by resume ID."""

    def make(self, store: Store, account: str, resume_id: str) -> Made | str | None:
        """Render the resume as a PDF and open it in a viewer, or return why rendering failed.

        Return None if another thread is rendering the same resume. Raises NotFound.
        """
        turn = self._turns.setdefault(resume_id, threading.Lock())
        if not turn.acquire(blocking=False):
            return None
        try:
            owner = accounts.get_account(store, account)
            resume = stored_resumes.get_resume(store, owner.id, resume_id)
            # Reduce the stored name to a file name without a path.
            name = filename(resume.entry.filename.removesuffix(".pdf"), None)
            brand = load_branding(self._home, account).brand
            drawn = self._renderer.render_resume(resume, accepted=self._accepted, brand=brand)
            path = self._write(resume_id, name, drawn.body)
        except (TooLong, RenderingFailed) as error:
            return describe(error)
        except OSError as error:
            return f"Could not write the PDF: {error.strerror}."
        finally:
            turn.release()
        # The viewer must outlive this process, so it gets a session of its own.
        program, quiet = shutil.which(find_viewer() or ""), subprocess.DEVNULL
        if program is None:
            return path, drawn.missing, None
        command = [program, str(path)]
        viewer = Viewer(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        return path, drawn.missing, viewer

    def _write(self, resume_id: str, name: str, pdf: bytes) -> Path:
        """Write the PDF to a file of this name and return its path. Raises OSError."""
        with self._guard:
            if self._is_closed:
                raise OSError(errno.ECANCELED, "The terminal UI has ended")
            if self._folder is not None and not Path(self._folder.name).exists():
                self._folder.cleanup()  # a program that cleans TMPDIR removed it
                self._folder = None
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="resumes-")
            # Each resume has its own folder because two people may have the same name.
            folder = Path(self._folder.name, resume_id)
            folder.mkdir(mode=0o700, exist_ok=True)
            path = folder / name
            with drafted(path, Path.replace) as file:
                file.write(pdf)
            self.paths[resume_id] = path
        return path

    def close(self) -> None:
        """Remove the files and stop the rendering process permanently. May be called twice."""
        with self._guard:
            self._is_closed = True
            self._renderer.close()
            if self._folder is not None:
                self._folder.cleanup()


def describe(error: TooLong | RenderingFailed, noun: str = "PDF") -> str:
    """Return a sentence that explains why the document, called `noun`, could not be rendered."""
    if isinstance(error, TooLong):
        return f"{error}."
    reason = str(error).partition("\n")[0][:MAX_REASON_CHARS].rstrip(".")
    return f"Could not generate the {noun}: {reason}."


def describe_boxes(missing: str | None, home: Path) -> str:
    """Return how to fix text that no font can draw, or an empty string if `missing` is None."""
    if missing is None:
        return ""
    remedy = f"Install {font_packages(missing)}, or put a font into {home / 'fonts'}"
    return f' No installed font has "{missing}", so it is drawn as boxes. {remedy}.'


def find_viewer() -> str | None:
    """Return the command that opens files in their default program, or None without a display."""
    if sys.platform == "darwin":
        return "open"
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return "xdg-open" if has_display else None
