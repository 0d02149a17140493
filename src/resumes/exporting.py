"""Resumes as they leave the store: what people are given, and the files that hold it."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from resumes.analyzer import (
    DEFAULT_FORMAT,
    Format,
    filename,
    public_view,
    sections_left_out,
    to_jsonresume,
)
from resumes.errors import NotFound
from resumes.export_kinds import Kind
from resumes.output_files import drafted
from resumes.store import listing
from resumes.store.engine import Store
from resumes.store.listing import Entry, StoredResume


@dataclass(frozen=True, slots=True)
class Exported:
    """A resume as it is exported. `left_out` names the sections that the kind has no place for."""

    kind: Kind
    content: dict[str, Any]
    left_out: tuple[str, ...] = ()


def export_view(resume: StoredResume, kind: Kind, accepted: Format) -> Exported:
    """The resume as this kind shows it: what is hidden is left out."""
    view = public_view(resume.document, accepted)
    if kind is Kind.ANALYZER:
        return Exported(kind, view)
    return Exported(kind, to_jsonresume(view), tuple(sections_left_out(view)))


def iter_resumes(store: Store, account_id: str) -> Iterator[StoredResume]:
    """Every resume of the account, oldest first; one that is deleted meanwhile is left out."""
    cursor: str | None = ""
    while cursor is not None:
        page = listing.list_page(store, account_id, cursor=cursor, limit=listing.MAX_LIMIT)
        for entry in page.entries:
            with contextlib.suppress(NotFound):
                yield listing.get_resume(store, account_id, entry.id)
        cursor = page.cursor


def file_name(entry: Entry, kind: Kind) -> str:
    """`AdaLovelaceResume-<id>.json`: what its file is called, in any folder its own.

    It stays in that folder, whatever the store holds: a file name, not a path.
    """
    return f"{_stem(entry.filename)}-{_stem(entry.id)}{kind.suffix}"


def _stem(text: str) -> str:
    """What a file name may be made of, of the text; all of it where the service made it."""
    return filename(text.removesuffix(".pdf"), None).removesuffix(".pdf")


class Written(NamedTuple):
    """The file of a resume, and whether it took the place of something of its name."""

    path: Path
    is_replacing: bool


def write(folder: Path, entry: Entry, exported: Exported) -> Written:
    """The resume is in a file of its own in the folder; an earlier export of it is replaced.

    The file is there whole or not at all, and whatever else had its name is gone, unopened: a
    link, a pipe. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(entry, exported.kind)
    text = json.dumps(exported.content, ensure_ascii=False, indent=2)
    if len(text.encode()) >= DEFAULT_FORMAT.max_bytes:  # a resume that came in should come in again
        text = json.dumps(exported.content, ensure_ascii=False, separators=(",", ":"))
    # What can be exported again need not be on the disk before the next one is.
    with drafted(path, Path.replace, mode=0o666) as file:
        file.write(f"{text}\n".encode())
        is_replacing = os.path.lexists(path)
    return Written(path, is_replacing)
