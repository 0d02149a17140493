"""Resumes as they leave the store: what people are given, and the files that hold it."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from resumes.analyzer import (
    DEFAULT_FORMAT,
    Format,
    filename,
    public_view,
    sections_left_out,
    to_jsonresume,
)
from resumes.errors import NotFound
from resumes.export_formats import Kind
from resumes.output_files import drafted
from resumes.rendering import DEFAULT_CHOICE, Choice, Renderer
from resumes.rendering.fonts import font_folders
from resumes.rendering.page import file_name as pdf_name
from resumes.store import stored_resumes
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume


@dataclass(frozen=True, slots=True)
class Exported:
    """A resume as it is exported. `left_out` names the sections that the kind has no place for."""

    kind: Kind
    name: str
    """What its file is called, in any folder its own."""

    content: Mapping[str, Any] | None
    """As JSON; None for what is none."""

    body: bytes
    """What its file holds."""

    left_out: tuple[str, ...] = ()
    missing: str | None = None
    """A text of a PDF that no font has."""


class Exporter:
    """Exports resumes as one kind. PDFs are drawn in a process that the end of the block ends."""

    def __init__(
        self, kind: Kind, accepted: Format, *, home: Path, choice: Choice = DEFAULT_CHOICE
    ) -> None:
        self.kind = kind
        self._accepted = accepted
        self._choice = choice
        self._renderer = Renderer(font_folders(home)) if kind is Kind.PDF else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._renderer is not None:
            self._renderer.close()

    def export(self, resume: StoredResume) -> Exported:
        """Return the resume as this kind shows it: what is hidden is left out.

        Raises TooLong and RenderingFailed for a PDF.
        """
        if self._renderer is not None:
            rendered = self._renderer.render_resume(resume, self._choice, self._accepted)
            shown = pdf_name(resume.entry.filename, resume.entry.id, self._choice)
            name = _file_name(shown, resume.entry.id, self.kind)
            return Exported(self.kind, name, None, rendered.pdf, missing=rendered.missing)
        view = public_view(resume.document, self._accepted)
        is_whole = self.kind is Kind.ANALYZER
        content = view if is_whole else to_jsonresume(view)
        left_out = () if is_whole else tuple(sections_left_out(view))
        name = _file_name(resume.entry.filename, resume.entry.id, self.kind)
        return Exported(self.kind, name, content, _as_json(content), left_out)


def _as_json(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, indent=2)
    if len(text.encode()) >= DEFAULT_FORMAT.max_bytes:  # a resume that came in should come in again
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode()


def iter_resumes(store: Store, account_id: str) -> Iterator[StoredResume]:
    """Every resume of the account, oldest first; one that is deleted meanwhile is left out."""
    cursor: str | None = ""
    while cursor is not None:
        page = stored_resumes.list_page(
            store, account_id, cursor=cursor, limit=stored_resumes.MAX_LIMIT
        )
        for entry in page.entries:
            with contextlib.suppress(NotFound):
                yield stored_resumes.get_resume(store, account_id, entry.id)
        cursor = page.cursor


def _file_name(shown: str, resume_id: str, kind: Kind) -> str:
    """Return `AdaLovelaceResume-<id>.json`, a file name and no path, whatever the store holds."""
    return f"{_stem(shown)}-{_stem(resume_id)}{kind.suffix}"


def _stem(text: str) -> str:
    """What a file name may be made of, of the text; all of it where the service made it."""
    return filename(text.removesuffix(".pdf"), None).removesuffix(".pdf")


class Written(NamedTuple):
    """The file of a resume, and whether it took the place of something of its name."""

    path: Path
    is_replacing: bool


def write(folder: Path, exported: Exported) -> Written:
    """Write the resume to a file of its own in the folder; an earlier export of it is replaced.

    The file is there whole or not at all, and whatever else had its name is gone, unopened: a
    link, a pipe. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / exported.name
    # What can be exported again need not be on the disk before the next one is.
    with drafted(path, Path.replace, mode=0o666) as file:
        file.write(exported.body)
        is_replacing = os.path.lexists(path)
    return Written(path, is_replacing)
