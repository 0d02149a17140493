"""Render pages from standard input as PDFs or Word documents on standard output.

`resumes.rendering.renderer` starts this process, which sets its own resource limits before it reads
any input. Only this process imports Typst and python-docx. It exits at the end of its input.
"""

import contextlib
import functools
import importlib.util
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Literal

import orjson

FOLDER: Final = Path(__file__).parent
TEMPLATE: Final = FOLDER / "resume.typ"
BOOK_TEMPLATE: Final = FOLDER / "book.typ"

_LOGO: Final = b"""#set page(width: auto, height: auto, margin: 0pt, fill: none)
#let logo(..size) = image(bytes(sys.inputs.logo), format: "svg", ..size)
#context if measure(logo(height: 12mm)).width > 55mm { logo(width: 55mm) } else { logo(height: 12mm) }"""
"""A page with the logo at the size at which documents show it. A very wide logo at a height of 12 mm
would need more pixels than fit into memory."""

MAX_MEMORY_BYTES: Final = 768 * 1024 * 1024
MAX_FILES: Final = 128
NICENESS: Final = 5

MADE_AT: Final = 0
"""The creation time in PDFs. It is constant so that equal pages give equal bytes."""

MAX_PAGE_S: Final = 180
"""The maximum time for a page before this process exits, in case its parent no longer exists. A
parent gives up sooner."""

_MISSING: Final = re.compile(r"the text `?\"?(.{1,80}?)\"?`? could not be displayed", re.DOTALL)


def limit_self() -> None:
    """Set the resource limits of this process."""
    limits = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_NOFILE, MAX_FILES),
    )
    for limit, most in limits:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    with contextlib.suppress(OSError):
        os.nice(NICENESS)


class Drawer:
    """Renders pages with the fonts from `font_folders`."""

    def __init__(self, font_folders: Sequence[str]) -> None:
        import typst

        self._error = typst.TypstError
        self._compiler = typst.Compiler(
            input=str(TEMPLATE),
            root=str(FOLDER),
            font_paths=[str(FOLDER / "fonts"), *font_folders],
            ignore_system_fonts=True,
        )

    def draw(self, page: bytes) -> tuple[str | None, bytes]:
        """Return a text that no font can display (or None), and the file.

        A PDF conforms to PDF/UA-1 unless a text cannot be displayed. Raises typst.TypstError and
        the errors of python-docx.
        """
        model = orjson.loads(page)
        if model["file_type"] == "docx":
            logo = model["brand"] and model["brand"]["logo"]
            return None, _load_word()(model, self._pixels(logo) if logo else None)
        template = BOOK_TEMPLATE if model["file_type"] == "book" else TEMPLATE
        if not model.get("is_conforming", True):
            return None, self._compile(template, page, "1.7")
        try:
            return None, self._compile(template, page, "ua-1")
        except self._error as error:
            found = _MISSING.search(f"{error.message}\n{error.diagnostic}")
            if found is None:
                raise
            return found[1], self._compile(template, page, "1.7")

    def _pixels(self, logo: str) -> bytes:
        """Convert the SVG logo to PNG, which all word processors can display."""
        made = self._compiler.compile(
            _LOGO, format="png", ppi=300, sys_inputs={"logo": logo}, timestamp=MADE_AT
        )
        assert isinstance(made, bytes)
        return made

    def _compile(self, template: Path, page: bytes, standard: Literal["ua-1", "1.7"]) -> bytes:
        made = self._compiler.compile(
            str(template),
            format="pdf",
            sys_inputs={"data": page.decode()},
            pdf_standards=standard,
            timestamp=MADE_AT,
        )
        assert isinstance(made, bytes)
        return made


@functools.cache
def _load_word() -> Callable[[dict[str, Any], bytes | None], bytes]:
    """Load `word` as a file, since importing its package would load the service."""
    path = FOLDER / "word.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    build: Callable[[dict[str, Any], bytes | None], bytes] = module.build
    return build


def main() -> None:
    """Render pages until the end of standard input. The first message lists the font folders."""
    limit_self()
    for number in (signal.SIGINT, signal.SIGHUP):  # these signals are also sent to this process
        signal.signal(number, signal.SIG_IGN)
    pages = Connection(os.dup(0), writable=False)
    answers = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # printed text must not be mixed with the answers
    sys.stdin.close()
    with contextlib.suppress(EOFError, OSError):
        drawer = Drawer([os.fsdecode(path) for path in pages.recv_bytes().split(b"\0") if path])
        while True:
            signal.alarm(0)
            page = pages.recv_bytes()
            # Not PR_SET_PDEATHSIG: it would kill this process when the thread that started it ends.
            signal.alarm(MAX_PAGE_S)
            try:
                missing, made = drawer.draw(page)
            except Exception as error:  # noqa: BLE001  (the parent handles it)
                answers.send_bytes(orjson.dumps({"error": str(error)[:2_000]}))
            else:
                answers.send_bytes(orjson.dumps({"missing": missing}))
                answers.send_bytes(made)


if __name__ == "__main__":
    main()
