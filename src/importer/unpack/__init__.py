"""Files of several resumes, and compressed ones: taken apart, each resume as its own bytes.

    a.json                   one value; an array; or, told by its content, a value a line
    a.ndjson  a.jsonl        a value a line
    a.json.gz  a.gz  …       any of these; without an inner ending it is told by content
    a.zip                    files of these endings; archives within archives are refused

Nothing is written anywhere. An array is looked through before its first item is given, and gzip
to its end, so that of a file that is cut short nothing is imported.
"""

import dataclasses
from collections.abc import Iterator
from zipfile import ZipFile

from importer.options import Limits
from importer.unpack import archive, text
from importer.unpack.archive import Member
from importer.unpack.text import Bytes, CannotUnpack, Part, too_many_parts
from resumes.watched_names import find_extension

__all__ = ["CannotUnpack", "Limits", "Part", "is_bundle", "unpack"]

_GZ, _ZIP = ".gz", ".zip"
_LINES = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz")

MAX_PLACE_CHARS = 200


def is_bundle(name: str, body: bytes) -> bool:
    """Return whether the file is to be unpacked rather than read as one resume.

    The name's ending says so, whatever the file holds. `.json` leaves it to the content, as does
    any other name: with those, content that is compressed is to be unpacked too.
    """
    extension = find_extension(name)
    if extension is not None and extension != ".json":
        return True
    return _packing(name, body) is not None or text.is_several(body)


def unpack(name: str, body: bytes, limits: Limits) -> Iterator[Part]:
    """Yield the parts of the file in its order, each made when it is asked for.

    At most `max_parts`; of a zip with more, one more that says so. Raises CannotUnpack at once, if
    at all; a member of a zip that cannot be had is a part that is refused.
    """
    extension = find_extension(name)
    packing = _packing(name, body)
    if packing == _ZIP:
        return _iter_zip(*archive.open_archive(body, limits), limits)
    if packing == _GZ:
        return _unpack_chunks(archive.iter_gunzipped(body, limits), extension, limits)
    return text.unpack_content(body, limits, is_by_line=extension in _LINES)


def _packing(name: str, body: bytes) -> str | None:
    """Return how the file is compressed, by its name; by its content where the name says nothing."""
    extension = find_extension(name)
    if extension is not None:
        return next((packing for packing in (_GZ, _ZIP) if extension.endswith(packing)), None)
    if body.startswith(text.GZIP_MAGIC):
        return _GZ
    return _ZIP if body.startswith(text.ZIP_MAGICS) else None


def _unpack_chunks(
    chunks: Iterator[bytes], extension: str | None, limits: Limits
) -> Iterator[Part]:
    is_by_line = extension in _LINES

    def look(beginning: Bytes) -> None:
        text.check_beginning(beginning, limits, is_by_line=is_by_line)

    content = archive.collect(chunks, limits, look)
    return text.unpack_content(content, limits, is_by_line=is_by_line)


def _iter_zip(opened: ZipFile, members: list[Member], limits: Limits) -> Iterator[Part]:
    number = 0
    for member in members:
        for part in _unpack_member(opened, member, limits):
            number += 1
            if number > limits.max_parts:
                yield Part(number, "", None, b"", too_many_parts(limits))
                return
            place = f"member {_short(member.name)}" + (f", {part.place}" if part.place else "")
            yield dataclasses.replace(part, number=number, place=place)


def _unpack_member(opened: ZipFile, member: Member, limits: Limits) -> Iterator[Part]:
    refusal = member.refusal
    if refusal is None:
        try:
            chunks = archive.iter_inflated(opened, member.info)
            return _unpack_chunks(chunks, member.extension, limits)
        except CannotUnpack as error:
            refusal = error.refusal
    return iter([Part(1, "", None, b"", refusal)])


def _short(name: str) -> str:
    """Return a member's name as places give it: it stands in every part of the member."""
    return name if len(name) <= MAX_PLACE_CHARS else f"{name[:MAX_PLACE_CHARS]}…"
