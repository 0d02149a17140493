"""Unpack bundles and compressed files: return each resume as its own bytes.

    a.json                   one value; an array; or, depending on its content, a value per line
    a.ndjson  a.jsonl        a value per line
    a.json.gz  a.gz  …       any of these; without an inner ending the content decides
    a.zip                    files with these endings; archives within archives are refused

Nothing is written to disk. An array is checked to its end before its first item is returned, and
gzip is read to its end, so that nothing of a truncated file is imported. Names of a zip's members
are shown, escaped, and never used as paths; members that are skipped because of their names are
reported. The numbers of members and bytes are checked before any member is opened, without trusting
the archive's own headers.
"""

import contextlib
import dataclasses
import gzip
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from zipfile import ZipFile, ZipInfo

from importer.files import escaped
from importer.json_texts import (
    GZIP_MAGIC,
    ZIP_MAGICS,
    CannotUnpack,
    Part,
    check_beginning,
    file_too_large,
    invalid_archive,
    is_json_bundle,
    too_many_parts,
    unpack_content,
)
from importer.options import Limits
from importer.outcomes import NONE_SKIPPED, SkippedMember, SkippedMembers
from resumes.store.labels import label_of_folder
from resumes.watched_names import (
    SkipReason,
    find_extension,
    is_hidden_or_temporary,
    is_system_folder,
)

__all__ = ["CannotUnpack", "Limits", "Part", "Unpacked", "is_bundle", "unpack"]

_GZ, _ZIP = ".gz", ".zip"
LINES = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz")

MAX_PLACE_CHARS = 200
"""The maximum length of a member's name in messages, in characters."""
MAX_SKIPPED = 100
"""The maximum number of skipped members that are listed by name."""


class Unpacked(NamedTuple):
    """The parts of a file, in order and unpacked lazily, and the members that were skipped."""

    parts: Iterator[Part]
    skipped: SkippedMembers = NONE_SKIPPED


def is_bundle(name: str, body: bytes) -> bool:
    """Return whether the file is to be unpacked rather than read as one resume.

    The endings of JSON Lines, gzip and zip decide that alone. For `.json` and other names the content
    decides; compressed content is unpacked too.
    """
    extension = find_extension(name)
    if extension is not None and extension != ".json":
        return True
    return _packing(name, body) is not None or is_json_bundle(body)


def unpack(name: str, body: bytes, limits: Limits) -> Unpacked:
    """Return the parts of the file, at most `max_parts`; for a zip with more, a last part refuses them.
    Raises CannotUnpack immediately, if at all; a member of a zip that cannot be read is a refused part."""
    extension = find_extension(name)
    packing = _packing(name, body)
    if packing == _ZIP:
        archive, members, skipped = open_archive(body, limits)
        return Unpacked(_iter_zip(archive, members, limits), skipped)
    is_by_line = extension in LINES
    content = gunzip(body, limits, is_by_line=is_by_line) if packing == _GZ else body
    return Unpacked(unpack_content(content, limits, is_by_line=is_by_line))


def _packing(name: str, body: bytes) -> str | None:
    """Return how the file is compressed, by its name's ending or else its content; None if it is not."""
    extension = find_extension(name)
    if extension is not None:
        return next((packing for packing in (_GZ, _ZIP) if extension.endswith(packing)), None)
    if body.startswith(GZIP_MAGIC):
        return _GZ
    return _ZIP if body.startswith(ZIP_MAGICS) else None


CHUNK_BYTES = 64 * 1024
"""How much is decompressed at a time."""
_STREAM = GZIP_MAGIC + b"\x08"
"""The first bytes of each stream of a gzip file; by chance also at one in 16 million other offsets."""


def inflate(read: Callable[[int], bytes], limits: Limits, *, is_by_line: bool) -> bytearray:
    """Return all that can be read. Raises CannotUnpack as soon as it is over `max_file_bytes`, or too long
    for one resume and not a bundle."""
    content = bytearray()
    while chunk := read(CHUNK_BYTES):
        was_small = len(content) <= limits.max_bytes
        content += chunk
        if len(content) > limits.max_file_bytes:
            raise file_too_large(limits)
        if was_small and len(content) > limits.max_bytes:
            check_beginning(content, limits, is_by_line=is_by_line)
    return content


def gunzip(body: bytes, limits: Limits, *, is_by_line: bool) -> bytearray:
    """Return the content of a gzip file: all its streams, joined (RFC 1952).

    Zeros may follow, as from tapes and block devices. Raises CannotUnpack for any other, damaged or
    truncated file, and as `inflate` does.
    """
    if not body.startswith(GZIP_MAGIC):
        raise invalid_archive("It is not a gzip file, despite its name")
    if body.count(_STREAM) > limits.max_members:
        raise invalid_archive(f"The gzip file has more than {limits.max_members:,} streams")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            return inflate(file.read, limits, is_by_line=is_by_line)
    except EOFError:
        raise invalid_archive("The gzip file is truncated") from None
    except (gzip.BadGzipFile, zlib.error):
        raise invalid_archive("The gzip file is damaged") from None


_ENTRY = b"PK\x01\x02"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_UTF_8 = 0x800
_SEPARATOR = re.compile(r"[/\\]")
# Without the flag for UTF-8 the encoding of a name is unknown. In Shift-JIS, Big5 and GBK a byte of this
# range may be the second of a character: a backslash in 表, a tilde in ミ, an A in ア. Slashes and dots
# never are, nor is a byte that follows an ASCII byte (pitfalls I18).
_SECOND_BYTE = re.compile(r"(?<=[^\x00-\x7f])[@-~]")
_DRIVE = re.compile(r"[A-Za-z]:")
# What zipfile raises for damaged or malicious archives.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    RuntimeError,
)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a zip to import. `name` is escaped; `obstacle` says why it cannot be opened. `label` is
    the label of its resumes, by its first folder."""

    info: ZipInfo
    name: str
    label: str | None
    extension: str
    obstacle: CannotUnpack | None


class Archive(NamedTuple):
    """A zip, its members to import, in its order, and the skipped ones."""

    file: ZipFile
    members: list[Member]
    skipped: SkippedMembers


def open_archive(body: bytes, limits: Limits) -> Archive:
    """Return the archive, which has at least one member to import. Raises CannotUnpack if it has none, is
    not a zip, damaged as a whole, or over the limits."""
    # Each member's entry begins with these bytes, so there are no more members than that.
    if body.count(_ENTRY) > limits.max_members:
        raise invalid_archive(f"The zip archive has more than {limits.max_members:,} members")
    try:
        archive = ZipFile(io.BytesIO(body))
    except DAMAGED:
        message = "The zip archive is damaged or truncated"
        if not body.startswith(ZIP_MAGICS):
            message = "It is not a zip archive, despite its name"
        raise invalid_archive(message) from None
    members: list[Member] = []
    skipped: list[SkippedMember] = []
    skipped_count = 0
    for info in archive.infolist():
        found = _judge(info)
        if isinstance(found, Member):
            members.append(found)
        elif found is not None:
            skipped_count += 1
            if len(skipped) < MAX_SKIPPED:
                skipped.append(found)
    left_out = SkippedMembers(skipped_count, skipped)
    if not members:
        which = f". Skipped {left_out.describe()}" if skipped_count else ""
        raise invalid_archive(
            f"The zip archive contains no file that ends in .json, .ndjson or .jsonl{which}",
            left_out,
        )
    infos = [member.info for member in members if not member.obstacle]
    # zipfile returns at most as much of a member as its header says, so the sums are bounds.
    if sum(info.file_size for info in infos) > limits.max_file_bytes:
        raise file_too_large(limits)
    if sum(info.compress_size for info in infos) > len(body):
        raise invalid_archive("The zip archive is damaged: its members overlap")
    return Archive(archive, members, left_out)


def _judge(info: ZipInfo) -> Member | SkippedMember | None:
    """Return the member, or why its name keeps it from being imported; None for a folder."""
    # `filename` would end at a NUL.
    name = info.orig_filename
    shown = escaped(name[: MAX_PLACE_CHARS + 1])
    if len(shown) > MAX_PLACE_CHARS:
        shown = f"{shown[:MAX_PLACE_CHARS]}…"
    if not info.flag_bits & _UTF_8:
        name = _SECOND_BYTE.sub("_", name)
    *folders, base = _SEPARATOR.split(name)
    folders = [folder for folder in folders if folder.strip(".")]
    if not base and not info.file_size:
        return None
    if any(map(is_system_folder, folders)):
        return SkippedMember(shown, SkipReason.SYSTEM)
    if any(map(is_hidden_or_temporary, [*folders, base])):
        return SkippedMember(shown, SkipReason.HIDDEN)
    extension = find_extension(base)
    if extension is None:
        return SkippedMember(shown, SkipReason.ENDING)
    label = _find_label(info, name, folders[0]) if folders else None
    return Member(info, shown, label, extension, _find_obstacle(info, name, extension))


def _find_label(info: ZipInfo, name: str, folder: str) -> str | None:
    """Return the label by the member's first folder. `name` may have other characters than the archive, but
    as many."""
    at = name.find(folder)
    folder = info.orig_filename[at : at + len(folder)]
    if not info.flag_bits & _UTF_8:
        with contextlib.suppress(UnicodeError):  # macOS does not set the flag
            folder = folder.encode("cp437").decode()
    return label_of_folder(escaped(folder))


def _find_obstacle(info: ZipInfo, name: str, extension: str) -> CannotUnpack | None:
    is_outside = ".." in _SEPARATOR.split(name) or _SEPARATOR.match(name) or _DRIVE.match(name)
    if is_outside or "\0" in name:
        return invalid_archive(
            "Its name is unsafe: it points outside the archive, or contains a NUL"
        )
    if extension.endswith((".gz", ".zip")):
        return invalid_archive("It is a nested archive, which is not opened")
    if info.flag_bits & _ENCRYPTED:
        return invalid_archive("It is encrypted")
    if info.compress_type not in _METHODS:
        return invalid_archive(
            f"It is compressed with method {info.compress_type}, not with deflate"
        )
    return None


def inflate_member(
    archive: ZipFile, info: ZipInfo, limits: Limits, *, is_by_line: bool
) -> bytearray:
    """Return the member's content. Raises CannotUnpack if it is damaged, and as `inflate` does."""
    try:
        with archive.open(info) as member:
            content = inflate(member.read, limits, is_by_line=is_by_line)
    except DAMAGED:
        raise invalid_archive("It is damaged") from None
    if len(content) != info.file_size:
        raise invalid_archive("It is damaged: shorter than the archive says")
    return content


def _iter_zip(opened: ZipFile, members: list[Member], limits: Limits) -> Iterator[Part]:
    number = 0
    for member in members:
        for part in _unpack_member(opened, member, limits):
            number += 1
            if number > limits.max_parts:
                yield Part(number, "", refusal=too_many_parts(limits).refusal)
                return
            place = f"member {member.name}" + (f", {part.place}" if part.place else "")
            yield dataclasses.replace(part, number=number, place=place, label=member.label)


def _unpack_member(opened: ZipFile, member: Member, limits: Limits) -> Iterator[Part]:
    try:
        if member.obstacle is not None:
            raise member.obstacle
        is_by_line = member.extension in LINES
        content = inflate_member(opened, member.info, limits, is_by_line=is_by_line)
        return unpack_content(content, limits, is_by_line=is_by_line)
    except CannotUnpack as error:
        return iter([Part(1, "", refusal=error.refusal)])
