"""Resumes as they are exported: the formats, and the files that hold them."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from stat import S_ISREG

import msgspec.json
import orjson

from resumes.analyzer import (
    DEFAULT_FORMAT,
    Format,
    filename,
    public_json,
    sections_left_out,
    shown_view,
    to_jsonresume,
)
from resumes.errors import InvalidArgument, NotFound
from resumes.output_files import drafted
from resumes.rendering import DEFAULT_CHOICE, PdfOptions, Renderer, RenderingFailed, TooLong
from resumes.rendering.fonts import font_folders
from resumes.rendering.page import file_name as pdf_name
from resumes.store import stored_resumes
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from resumes.text import counted


class ExportFormat(StrEnum):
    """The format that an exported resume is in."""

    ANALYZER = "analyzer"
    """Can be created again as it is."""

    JSON_RESUME = "jsonresume"
    """Does not hold everything."""

    PDF = "pdf"
    """For people."""


SUFFIXES = {
    ExportFormat.ANALYZER: ".json",
    ExportFormat.JSON_RESUME: ".jsonresume.json",
    ExportFormat.PDF: ".pdf",
}
"""What the files' names end in; they differ, so that one folder may hold all of a resume's exports."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A resume as it is exported. `left_out` names the sections that the format has no place for."""

    name: str
    """The name of its file if no other resume's file has it, such as `AdaLovelaceResume.json`."""

    name_with_id: str
    """The name of its file otherwise."""

    content: bytes | None
    """As JSON on one line; None for a PDF."""

    body: bytes
    """The content of its file."""

    left_out: tuple[str, ...] = ()
    missing: str | None = None
    """A text of a PDF that no font has."""


class Exporter(contextlib.AbstractContextManager["Exporter"]):
    """Exports resumes in one format. The process that draws PDFs ends with the block."""

    def __init__(
        self,
        export_format: ExportFormat,
        accepted: Format,
        *,
        home: Path,
        choice: PdfOptions = DEFAULT_CHOICE,
    ) -> None:
        self._written: set[str] = set()
        """The names of files that were written, without case."""

        self._format = export_format
        self._accepted = accepted
        self._choice = choice
        self._renderer = Renderer(font_folders(home)) if export_format is ExportFormat.PDF else None

    def __exit__(self, *error: object) -> None:
        if self._renderer is not None:
            self._renderer.close()

    def export(self, resume: StoredResume) -> Exported:
        """Return the resume in this format, without what is hidden.

        Raises TooLong and RenderingFailed for a PDF.
        """
        entry = resume.entry
        if self._renderer is not None:
            rendered = self._renderer.render_resume(resume, self._choice, self._accepted)
            names = self._names(pdf_name(entry.filename, entry.id, self._choice), entry.id)
            return Exported(*names, None, rendered.pdf, missing=rendered.missing)
        names = self._names(entry.filename, entry.id)
        if self._format is ExportFormat.ANALYZER:
            content = public_json(resume.document, self._accepted)
            return Exported(*names, content, _indented(content))
        view = shown_view(resume.document, self._accepted)
        content = orjson.dumps(to_jsonresume(view))
        return Exported(*names, content, _indented(content), sections_left_out(view))

    def _names(self, shown: str, resume_id: str) -> tuple[str, str]:
        """Return file names and no paths, whatever the store holds."""
        suffix = SUFFIXES[self._format]
        return f"{_stem(shown)}{suffix}", f"{_stem(shown)}-{_stem(resume_id)}{suffix}"

    def write(self, folder: Path, exported: Exported, *, overwrite: bool = True) -> bool:
        """Write the resume to a file of its own in the folder. Return whether anything had its name.

        The file appears complete or not at all. With `overwrite`, what had its name, an earlier export, a
        link or a pipe, is gone, unopened; without it, the same content counts as an earlier export and
        stays, and beside anything else the file gets the name with the ID. Raises InvalidArgument if
        the file cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = self._choose(folder, exported, overwrite=overwrite)
            is_taken = os.path.lexists(path)
            if overwrite or not is_taken:
                # What can be exported again need not be on the disk before the next one is.
                with drafted(path, Path.replace, mode=0o666) as file:
                    file.write(exported.body)
        except OSError as error:
            raise InvalidArgument(f"Cannot write to {folder}: {error.strerror}") from error
        return is_taken

    def _choose(self, folder: Path, exported: Exported, *, overwrite: bool) -> Path:
        plain, with_id = Path(exported.name), Path(exported.name_with_id)
        first = [] if os.path.lexists(folder / with_id) else [plain]
        numbered = (with_id.with_stem(f"{with_id.stem}-{number}") for number in itertools.count(2))
        for name in itertools.chain(first, [with_id], numbered):
            path = folder / name
            if name.name.casefold() not in self._written and (
                overwrite or _is_free_for(path, exported.body)
            ):
                break
        self._written.add(name.name.casefold())
        return path


def _is_free_for(path: Path, body: bytes) -> bool:
    """Return whether nothing has the name, or a file with this content."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return True
    return S_ISREG(found.st_mode) and found.st_size == len(body) and path.read_bytes() == body


def _stem(text: str) -> str:
    """Return what a file name may hold of the text; all of it if this program made it."""
    return filename(text.removesuffix(".pdf"), None).removesuffix(".pdf")


def _indented(content: bytes) -> bytes:
    text = msgspec.json.format(content, indent=2)
    # What was imported should be importable again.
    return (text if len(text) < DEFAULT_FORMAT.max_bytes else content) + b"\n"


@dataclass(slots=True)
class ExportSummary:
    """What became of the resumes of an export."""

    exported: int = 0
    existing: int = 0
    """Exported resumes whose file had a name that was taken, as `Exporter.write` says."""

    failed: list[tuple[str, TooLong | RenderingFailed]] = field(default_factory=list)
    """IDs of resumes of which no PDF could be made, each with why."""

    missing: list[tuple[str, str]] = field(default_factory=list)
    """Texts that no font has, each with the ID of a resume in whose PDF it is drawn as a box."""

    left_out: dict[str, None] = field(default_factory=dict)
    """Names of the sections that the format has no place for, each once."""


def export_resumes(
    exporter: Exporter,
    resumes: Iterable[StoredResume],
    write: Callable[[Exported], bool],
    *,
    on_count: Callable[[int], None] = lambda exported: None,
) -> ExportSummary:
    """Export the resumes, and give each to `write`, which says whether its file's name was taken.

    A PDF that cannot be made is in the summary, and the others follow. Raises InvalidArgument if a
    file cannot be written; those written before stay.
    """
    summary = ExportSummary()
    for resume in resumes:
        on_count(summary.exported)
        try:
            exported = exporter.export(resume)
            summary.existing += write(exported)
        except (TooLong, RenderingFailed) as error:
            summary.failed.append((resume.entry.id, error))
            continue
        except InvalidArgument as error:
            before = f". {counted(summary.exported, 'resume')} already exported"
            raise InvalidArgument(f"{error.message}{before if summary.exported else ''}") from error
        summary.exported += 1
        summary.left_out |= dict.fromkeys(exported.left_out)
        if exported.missing is not None:
            summary.missing.append((exported.missing, resume.entry.id))
    return summary


def iter_resumes(store: Store, account_id: str) -> Iterator[StoredResume]:
    """Yield every resume of the account, oldest first, except those deleted in the meantime."""
    cursor: str | None = ""
    while cursor is not None:
        page = stored_resumes.list_page(
            store, account_id, cursor=cursor, limit=stored_resumes.MAX_LIMIT
        )
        for entry in page.entries:
            with contextlib.suppress(NotFound):
                yield stored_resumes.get_resume(store, account_id, entry.id)
        cursor = page.cursor
