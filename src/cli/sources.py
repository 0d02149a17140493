"""What `import` and `validate` read: files, and standard input for `-`.

A source is a file. It gives one document, or several: arrays, NDJSON, gzip and zip are unpacked
as the importer does it.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from resumes.errors import InvalidArgument, TooLarge

if TYPE_CHECKING:
    from importer.unpack import Limits, Part
    from resumes.settings import Settings

STANDARD_INPUT = "-"

UNREADABLE = "unreadable"
"""The reason for a file that cannot be read, as the importer gives it."""

PATH = click.Path(exists=True, allow_dash=True, path_type=str)


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, or standard input."""

    path: str

    @property
    def name(self) -> str:
        """What to call it."""
        return "standard input" if self.path == STANDARD_INPUT else self.path

    def read(self, *, max_bytes: int) -> bytes:
        """Its bytes. Raises TooLarge over the limit, having read no more, and InvalidArgument."""
        from importer import files

        if self.path != STANDARD_INPUT:
            return files.read(self.path, max_bytes)
        content = sys.stdin.buffer.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise TooLarge(limit_bytes=max_bytes)
        return content


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from. `item` and `place` are None when it is all of its source."""

    source: Source
    item: int | None = None
    place: str | None = None

    @property
    def name(self) -> str:
        """What to call it: `people.ndjson, line 12`."""
        return f"{self.source.name}, {self.place}" if self.place else self.source.name


@dataclass(frozen=True, slots=True)
class Document:
    """One value of a source, to be read as a resume; or why there is none, by `code` and `message`."""

    origin: Origin
    body: bytes = b""
    code: str | None = None
    message: str = ""


def limits_of(settings: "Settings") -> "Limits":
    """How much of a source is taken."""
    from importer.unpack import Limits

    return Limits(max_bytes=settings.max_body_bytes, max_file_bytes=settings.max_file_bytes)


def iter_documents(sources: Iterable[Source], limits: "Limits") -> Iterator[Document]:
    """What the sources hold, in order, of which one at a time is in memory."""
    for source in sources:
        yield from _open(source, limits)


def _open(source: Source, limits: "Limits") -> Iterator[Document]:
    from importer import unpack
    from importer.unpack import text

    origin = Origin(source)
    try:
        body = source.read(max_bytes=max(limits.max_bytes, limits.max_file_bytes))
        if not unpack.is_bundle(source.path, body):
            return iter([Document(origin, body)])
        return _iter_parts(source, unpack.unpack(source.path, body, limits))
    except InvalidArgument as error:
        return iter([Document(origin, code=UNREADABLE, message=error.message)])
    except TooLarge as error:
        message = text.file_too_large(limits).message
        return iter([Document(origin, code=error.code, message=message)])
    except text.CannotUnpack as error:
        return iter([Document(origin, code=error.refusal.reason, message=error.refusal.message)])


def _iter_parts(source: Source, parts: "Iterator[Part]") -> Iterator[Document]:
    for part in parts:
        origin = Origin(source, part.number, part.place or None)
        if part.refusal is None:
            yield Document(origin, part.body)
        else:
            refusal = part.refusal
            yield Document(origin, code=refusal.reason, message=refusal.message)
