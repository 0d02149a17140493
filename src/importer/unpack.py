"""Unpack bundles and compressed files: return the bytes of each resume separately.

    a.json                   one value, an array, or one value per line, depending on its content
    a.ndjson  a.jsonl        one value per line
    a.json.gz  a.gz  …       any of these; without an inner extension, the content decides
    a.zip                    files with these extensions; nested archives are rejected

Nothing is written to disk. An array is checked to its end before its first item is returned, and a
gzip file is decompressed completely, so that no part of a truncated file is imported. Names of zip
members are shown in escaped form and are never used as paths. Members that are skipped because of
their names are reported. The numbers of members and bytes are checked before any member is opened,
without relying on the archive's own headers.
"""

import contextlib
import dataclasses
import gzip
import io
import itertools
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from zipfile import ZipFile, ZipInfo

from importer.files import escaped
from importer.json_texts import (
    GZIP_MAGIC,
    ZIP_MAGICS,
    CannotUnpack,
    Part,
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

_GZ, _ZIP = ".gz", ".zip"
LINES = (".ndjson", ".jsonl", ".ndjson.gz", ".jsonl.gz")

MAX_PLACE_CHARS = 200
"""The maximum number of characters of a member's name in messages."""
MAX_SKIPPED = 100
"""The maximum number of skipped members that are listed by name."""


class Unpacked(NamedTuple):
    """The parts of a file, unpacked lazily and in order, and the members that were skipped."""

    parts: Iterator[Part]
    skipped: SkippedMembers = NONE_SKIPPED


def is_bundle(name: str, body: bytes) -> bool:
    """Return whether the file must be unpacked rather than read as one resume.

    Files with the extensions of JSON Lines, gzip and zip are always unpacked. For `.json` and other
    names, the content decides; compressed content is unpacked, too.
    """
    extension = find_extension(name)
    if extension is not None and extension != ".json":
        return True
    return _packing(name, body) is not None or is_json_bundle(body)


def unpack(name: str, body: bytes, limits: Limits) -> Unpacked:
    """Return the parts of the file. In a zip, an unreadable member is a rejected part, and so is
    the last part if there are over `max_parts`. Raises CannotUnpack immediately or not at all."""
    extension = find_extension(name)
    packing = _packing(name, body)
    if packing == _ZIP:
        archive = open_archive(body, limits)
        return Unpacked(_iter_zip(archive, limits), archive.skipped)
    content = gunzip(body, limits) if packing == _GZ else body
    return Unpacked(unpack_content(content, limits, is_by_line=extension in LINES))


def _packing(name: str, body: bytes) -> str | None:
    """Return how the file is compressed (by its extension, or else its content), or None."""
    extension = find_extension(name)
    if extension is not None:
        return next((packing for packing in (_GZ, _ZIP) if extension.endswith(packing)), None)
    if body.startswith(GZIP_MAGIC):
        return _GZ
    return _ZIP if body.startswith(ZIP_MAGICS) else None


_STREAM = GZIP_MAGIC + b"\x08"
"""The first bytes of each stream in a gzip file; by chance, at 1 in 16 million other offsets."""


def gunzip(body: bytes, limits: Limits) -> bytes:
    """Return the content of a gzip file: the joined content of all its streams (RFC 1952).

    Zeros may follow, as on tapes and block devices. Raises CannotUnpack for any other file, for a
    damaged or truncated one, and as soon as the content exceeds `max_file_bytes`.
    """
    if not body.startswith(GZIP_MAGIC):
        raise invalid_archive("It is not a gzip file, despite its name")
    if body.count(_STREAM) > limits.max_members:
        raise invalid_archive(f"The gzip file has more than {limits.max_members:,} streams")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            content = file.read(limits.max_file_bytes + 1)
    except EOFError:
        raise invalid_archive("The gzip file is truncated") from None
    except (gzip.BadGzipFile, zlib.error):
        raise invalid_archive("The gzip file is damaged") from None
    if len(content) > limits.max_file_bytes:
        raise file_too_large(limits)
    return content


_ENTRY = b"PK\x01\x02"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_UTF_8 = 0x800
_SEPARATOR = re.compile(r"[/\\]")
# Without the UTF-8 flag, the encoding of a name is unknown. In Shift-JIS, Big5 and GBK, a byte in
# this range may be the second byte of a character: a backslash in 表, a tilde in ミ, an A in ア. A
# slash or dot cannot be a second byte, nor can a byte that follows an ASCII byte (pitfalls I18).
_SECOND_BYTE = re.compile(r"(?<=[^\x00-\x7f])[@-~]")
_DRIVE = re.compile(r"[A-Za-z]:")
# The exceptions that zipfile raises for damaged or malicious archives.
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
    """A zip member to import. `name` is escaped, `obstacle` explains why the member cannot be
    opened, and `label` is the label of its resumes, from its first folder."""

    info: ZipInfo
    name: str
    label: str | None
    extension: str
    obstacle: CannotUnpack | None


class Archive(NamedTuple):
    """A zip archive, its members to import in their original order, and its skipped members."""

    file: ZipFile
    members: list[Member]
    skipped: SkippedMembers


def open_archive(body: bytes, limits: Limits) -> Archive:
    """Return the archive if it has a member to import. Raises CannotUnpack if it has none, is not a
    zip archive, is damaged as a whole, or exceeds the limits."""
    # Each member's entry begins with these bytes, so there cannot be more members than that.
    if body.count(_ENTRY) > limits.max_members:
        raise invalid_archive(f"The zip archive has more than {limits.max_members:,} members")
    try:
        archive = ZipFile(io.BytesIO(body))
    except DAMAGED:
        message = "The zip archive is damaged or truncated"
        if not body.startswith(ZIP_MAGICS):
            message = "It is not a zip archive, despite its name"
        raise invalid_archive(message) from None
    judged = [_judge(info) for info in archive.infolist()]
    members = [each for each in judged if isinstance(each, Member)]
    skipped = [each for each in judged if isinstance(each, SkippedMember)]
    left_out = SkippedMembers(len(skipped), skipped[:MAX_SKIPPED])
    if not members:
        which = f". Skipped {left_out.describe()}" if skipped else ""
        raise invalid_archive(
            f"The zip archive contains no file that ends in .json, .ndjson or .jsonl{which}",
            left_out,
        )
    infos = [member.info for member in members if not member.obstacle]
    # zipfile returns at most the number of bytes in a member's header, so the sums are limits.
    if sum(info.file_size for info in infos) > limits.max_file_bytes:
        raise file_too_large(limits)
    if sum(info.compress_size for info in infos) > len(body):
        raise invalid_archive("The zip archive is damaged: its members overlap")
    return Archive(archive, members, left_out)


def _judge(info: ZipInfo) -> Member | SkippedMember | None:
    """Return the member, the reason why its name prevents its import, or None for a folder."""
    # `filename` would end at a NUL character.
    name = info.orig_filename
    shown = escaped(decoded(info, name)[: MAX_PLACE_CHARS + 1])
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
    """Return the label from the member's first folder. `name` may have other characters than the
    name in the archive, but has the same length."""
    at = name.find(folder)
    folder = info.orig_filename[at : at + len(folder)]
    return label_of_folder(escaped(decoded(info, folder)))


def decoded(info: ZipInfo, name: str) -> str:
    """Return the name, or a part of it, as UTF-8 if it is valid: macOS does not set the flag."""
    if not info.flag_bits & _UTF_8:
        with contextlib.suppress(UnicodeError):
            return name.encode("cp437").decode()
    return name


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


def read_member(archive: ZipFile, member: Member) -> bytes:
    """Return the member's content. Raises CannotUnpack if it is damaged or cannot be opened."""
    if member.obstacle is not None:
        raise member.obstacle
    size_bytes = member.info.file_size
    try:
        with archive.open(member.info) as file:
            # Without a limit, zipfile would inflate more than it returns.
            content = file.read(size_bytes + 1)
    except DAMAGED:
        raise invalid_archive("It is damaged") from None
    if len(content) != size_bytes:
        raise invalid_archive("It is damaged: shorter than the archive says")
    return content


def _iter_zip(archive: Archive, limits: Limits) -> Iterator[Part]:
    numbers = itertools.count(1)
    for member in archive.members:
        parts: Iterable[Part]
        try:
            content = read_member(archive.file, member)
            parts = unpack_content(content, limits, is_by_line=member.extension in LINES)
        except CannotUnpack as error:
            parts = [Part(1, "", refusal=error.refusal)]
        for part, number in zip(parts, numbers, strict=False):
            if number > limits.max_parts:
                yield Part(number, "", refusal=too_many_parts(limits).refusal)
                return
            place = f"member {member.name}" + (f", {part.place}" if part.place else "")
            yield dataclasses.replace(part, number=number, place=place, label=member.label)
