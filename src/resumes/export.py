"""Export resumes in several formats to files."""

import contextlib
import itertools
import os
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

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
from resumes.errors import Conflict, InvalidArgument, NotFound
from resumes.output_files import OutputFile, drafted, explained, reserved
from resumes.rendering import (
    DEFAULT_CHOICE,
    FileType,
    PageOptions,
    Renderer,
    RenderingFailed,
    TooLong,
)
from resumes.rendering.book import MAX_RESUMES, Book
from resumes.rendering.branding import load_branding
from resumes.rendering.fonts import font_folders
from resumes.rendering.page import file_name
from resumes.settings import Settings
from resumes.spreadsheet import CANDIDATES_START, CSV_START, csv_line, csv_row
from resumes.store import stored_resumes
from resumes.store.search import iter_entries
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from resumes.text import counted


class ExportFormat(StrEnum):
    """The format of an exported resume."""

    ANALYZER = "analyzer"
    """The complete format. The same resume can be created from it."""

    JSON_RESUME = "jsonresume"
    """JSON Resume, which cannot contain some of the sections."""

    PDF = "pdf"
    """A document for people to read."""

    WORD = "docx"
    """A document that people can change."""

    CSV = "csv"
    """One table of all resumes (see `spreadsheet`)."""


MAX_RENDERERS: Final = 4
"""The maximum of the default number of rendering processes, which is one per processor."""

SUFFIXES = {
    ExportFormat.ANALYZER: ".json",
    ExportFormat.JSON_RESUME: ".jsonresume.json",
    ExportFormat.PDF: ".pdf",
    ExportFormat.WORD: ".docx",
    ExportFormat.CSV: ".csv",
}
"""The file name suffixes. They differ, so that one folder can contain all exports of a resume."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported resume. `left_out` names the sections that the format cannot contain."""

    name: str
    """The file's name, such as `AdaLovelaceResume.json`, unless another resume's file has it."""

    name_with_id: str
    """The file's name if `name` is taken."""

    content: bytes | None
    """The resume as JSON on one line, or None if the format is not JSON."""

    body: bytes
    """The content of the file, or a row for CSV."""

    left_out: tuple[str, ...] = ()
    missing: str | None = None
    """A text in the PDF that no font can display."""


class Exporter(contextlib.AbstractContextManager["Exporter"]):
    """Exports resumes in one format. Its rendering processes end with the `with` block.

    `renderers` is the number of these processes; by default, there is one per processor, but at
    most 4. A book is rendered by one process.
    """

    def __init__(
        self,
        export_format: ExportFormat,
        accepted: Format,
        *,
        home: Path,
        choice: PageOptions = DEFAULT_CHOICE,
        book: Book | None = None,
        brand: Mapping[str, Any] | None = None,
        renderers: int | None = None,
    ) -> None:
        self._brand = brand
        self.book = book
        self._written: set[str] = set()
        """The names of the written files, case-folded."""

        self._format = export_format
        self.is_table = export_format is ExportFormat.CSV
        self._accepted = accepted
        self.renderers = list[Renderer]()
        self._idle = queue.LifoQueue[Renderer]()
        if export_format.value in list(FileType):
            self._choice = replace(choice, file_type=FileType(export_format))
            count = 1 if book else renderers or min(MAX_RENDERERS, os.cpu_count() or 1)
            self.renderers = [Renderer(font_folders(home)) for _ in range(count)]
        for renderer in self.renderers:
            self._idle.put(renderer)

    def __exit__(self, *error: object) -> None:
        for renderer in self.renderers:
            renderer.close()

    def export(self, resume: StoredResume) -> Exported:
        """Convert the resume to this format without hidden fields, or add it to the book.

        Raises TooLong and RenderingFailed for a PDF or Word document.
        """
        entry = resume.entry
        if self.renderers:
            renderer = self._idle.get()
            try:
                if self.book is not None:
                    rendered = self.book.draw(renderer, resume, self._accepted)
                    return Exported("", "", None, b"", missing=rendered.missing)
                rendered = renderer.render_resume(
                    resume, self._choice, self._accepted, brand=self._brand
                )
            finally:
                self._idle.put(renderer)
            names = self._names(file_name(entry.filename, entry.id, self._choice), entry.id)
            return Exported(*names, None, rendered.body, missing=rendered.missing)
        names = self._names(entry.filename, entry.id)
        if self._format is ExportFormat.ANALYZER:
            content = public_json(resume.document, self._accepted)
            return Exported(*names, content, _indented(content))
        if self.is_table:
            return Exported(*names, None, csv_row(resume, self._accepted))
        view = shown_view(resume.document, self._accepted, resume.first_month)
        content = orjson.dumps(to_jsonresume(view))
        return Exported(*names, content, _indented(content), sections_left_out(view))

    def finish_book(self) -> bytes:
        """Return the book. Raises InvalidArgument if its first pages cannot be rendered."""
        assert self.book is not None
        try:
            return self.book.finish(self.renderers[0])
        except RenderingFailed as error:
            raise InvalidArgument(f"Cannot render the contents of the book: {error}") from error

    def list_candidates(self) -> bytes:
        """Return a CSV table with the resume ID and name of each candidate in the book."""
        assert self.book is not None
        rows = [(drawn.name, drawn.resume.id, drawn.resume.name) for drawn in self.book.entries]
        return b"".join([CANDIDATES_START, *map(csv_line, rows)])

    def _names(self, shown: str, resume_id: str) -> tuple[str, str]:
        """Return `name` and `name_with_id`. They contain no path even if the store is damaged."""
        suffix = SUFFIXES[self._format]
        stem = _stem(shown.removesuffix(suffix))
        return f"{stem}{suffix}", f"{stem}-{_stem(resume_id)}{suffix}"

    def write(self, folder: Path, exported: Exported, *, overwrite: bool = True) -> bool:
        """Write the resume to a separate file in the folder. Return whether its name was taken.

        The file appears complete or not at all. With `overwrite`, an earlier export, link or pipe
        with the same name is replaced without being opened. Otherwise, a file with the same content
        is kept, and if anything else has the name, the name with the ID is used. Raises
        InvalidArgument if the file cannot be written.
        """
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            path = self._choose(folder, exported, overwrite=overwrite)
            is_taken = os.path.lexists(path)
            if overwrite or not is_taken:
                # The file is not flushed to the disk, since it can be exported again.
                with drafted(path, Path.replace, mode=0o666) as file:
                    file.write(exported.body)
        return is_taken

    def _choose(self, folder: Path, exported: Exported, *, overwrite: bool) -> Path:
        plain, with_id = Path(exported.name), Path(exported.name_with_id)
        first = [] if os.path.lexists(folder / with_id) else [plain]
        for name in itertools.chain(first, [with_id], _numbered(with_id)):
            path = folder / name
            if name.name.casefold() not in self._written and (
                overwrite or _is_free_for(path, exported.body)
            ):
                break
        self._written.add(name.name.casefold())
        return path


@contextlib.contextmanager
def single_file(
    path: Path, *, remedy: str = "choose another file", start: bytes | None = None
) -> Iterator[OutputFile]:
    """Reserve a new file for all resumes of an export, such as `resumes.csv`.

    An earlier file is replaced if it begins with `start`. Raises the errors of `OutputFile`. Enter
    the block before a store is opened.
    """
    with contextlib.ExitStack() as stack:
        with explained(path):
            stack.enter_context(reserved(path))
            output = OutputFile(
                path,
                remedy=remedy,
                may_replace=lambda file: start is not None and file.read(len(start)) == start,
            )
        yield output


@contextlib.contextmanager
def new_file(folder: Path, name: str) -> Iterator[OutputFile]:
    """Reserve a new file in the folder, and create the folder if it is missing.

    If the name is taken, add a number to it. Raises InvalidArgument if the folder cannot be used.
    """
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for path in itertools.chain([folder / name], _numbered(folder / name)):
            with contextlib.suppress(Conflict):
                file = stack.enter_context(single_file(path))
                break
        yield file


def _numbered(path: Path) -> Iterator[Path]:
    return (path.with_stem(f"{path.stem}-{number}") for number in itertools.count(2))


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidArgument(f"Cannot write to {folder}: {error.strerror}") from error


def _is_free_for(path: Path, body: bytes) -> bool:
    """Return whether the path is free or names a file with this content."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return True
    return S_ISREG(found.st_mode) and found.st_size == len(body) and path.read_bytes() == body


def _stem(text: str) -> str:
    """Return the text without characters that are invalid in file names."""
    return filename(text.removesuffix(".pdf"), None).removesuffix(".pdf")


def _indented(content: bytes) -> bytes:
    text = msgspec.json.format(content, indent=2)
    # The file should be small enough to be imported again.
    return (text if len(text) < DEFAULT_FORMAT.max_bytes else content) + b"\n"


@dataclass(slots=True)
class ExportSummary:
    """The results of an export."""

    exported: int = 0
    existing: int = 0
    """The number of exported resumes whose file names were taken (see `Exporter.write`)."""

    failed: list[tuple[str, TooLong | RenderingFailed]] = field(default_factory=list)
    """The IDs of the resumes that could not be rendered, each with the error."""

    missing: list[tuple[str, str]] = field(default_factory=list)
    """Texts that no font can display, each with the ID of the resume whose PDF shows boxes."""

    left_out: dict[str, None] = field(default_factory=dict)
    """The names of the sections that the format cannot contain."""


def open_exporter(
    settings: Settings,
    account: str,
    kind: ExportFormat,
    choice: PageOptions = DEFAULT_CHOICE,
    *,
    is_book: bool = False,
    label: str | None = None,
) -> Exporter:
    """Return an exporter with the account's house style. A book's title is the label or account."""
    brand = load_branding(settings.home, account).brand
    book = Book(label or account, [account] if label else [], choice, brand) if is_book else None
    return Exporter(
        kind,
        settings.format,
        home=settings.home,
        choice=choice,
        book=book,
        brand=brand,
        renderers=settings.renderers,
    )


def export_resumes(
    exporter: Exporter,
    resumes: Iterable[StoredResume],
    to: OutputFile | Callable[[Exported], bool],
    *,
    on_count: Callable[[int], None] = lambda exported: None,
) -> ExportSummary:
    """Export the resumes to one file (a book or table), or call `to` for each resume.

    `to` returns whether the file's name was taken. A resume that cannot be rendered is listed in
    the summary, and the export continues. Raises InvalidArgument if a file cannot be written, or if
    no resume of a book can be rendered; files that have already been written are kept.
    """
    if not isinstance(to, OutputFile):
        return _export_each(exporter, resumes, to, on_count)
    with to.opened(mode=0o666) as file:

        def write(exported: Exported) -> bool:
            file.write(exported.body)
            return False

        file.write(CSV_START if exporter.is_table else b"")
        summary = _export_each(exporter, resumes, write, on_count)
        if exporter.book is not None:
            if not summary.exported:
                why = f": {summary.failed[0][1]}" if summary.failed else ""
                raise InvalidArgument(f"No resume of the book could be rendered{why}")
            file.write(exporter.finish_book())
        on_count(summary.exported)  # may raise, before the file is put in place
    return summary


def _export_each(
    exporter: Exporter,
    resumes: Iterable[StoredResume],
    write: Callable[[Exported], bool],
    on_count: Callable[[int], None],
) -> ExportSummary:
    summary = ExportSummary()
    for resume, get_exported in _iter_exported(exporter, resumes):
        on_count(summary.exported)
        try:
            exported = get_exported()
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


def _iter_exported(
    exporter: Exporter, resumes: Iterable[StoredResume]
) -> Iterator[tuple[StoredResume, Callable[[], Exported]]]:
    """Yield each resume and a function that returns its export, which may run in parallel."""
    count = len(exporter.renderers)
    if count < 2:
        for resume in resumes:
            yield resume, partial(exporter.export, resume)
        return
    pool = ThreadPoolExecutor(count, thread_name_prefix="export")
    waiting = deque[tuple[StoredResume, Callable[[], Exported]]]()
    try:
        for resume in resumes:
            waiting.append((resume, pool.submit(exporter.export, resume).result))
            if len(waiting) > 2 * count:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        pool.shutdown(cancel_futures=True)


def iter_resumes(
    store: Store,
    account_id: str,
    text: str | None = None,
    *,
    label: str | None = None,
    is_typing: bool = False,
) -> Iterator[StoredResume]:
    """Yield the resumes of `iter_entries`, except resumes that were deleted in the meantime."""
    for entry in iter_entries(store, account_id, text, label=label, is_typing=is_typing):
        with contextlib.suppress(NotFound):
            yield stored_resumes.get_resume(store, account_id, entry.id)


def list_for_book(resumes: Iterable[StoredResume]) -> list[StoredResume]:
    """Return the resumes. Raises InvalidArgument if there are none or too many for a book."""
    found = [*itertools.islice(resumes, MAX_RESUMES + 1)]
    if not found:
        raise InvalidArgument("There are no resumes for the book")
    if len(found) > MAX_RESUMES:
        raise InvalidArgument(
            f"A book holds up to {MAX_RESUMES} resumes: choose fewer, by a label or a search, or write each "
            "resume to a file of its own"
        )
    return found
