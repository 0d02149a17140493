"""Bundles for tests: packed, and unpacked again."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Mapping

from importer.json_texts import CannotUnpack, Part
from importer.options import Limits
from importer.outcomes import Result
from importer.unpack import unpack

LIMITS = Limits(max_bytes=2_000, max_file_bytes=20_000, max_parts=50, max_members=40)
"""Small enough to be exceeded by a test."""

WIDE = Limits(max_bytes=2 * 1024 * 1024, max_file_bytes=64 * 1024 * 1024)
"""Those that are in force unless settings say otherwise."""


def gzipped(content: bytes) -> bytes:
    """A gzip file of one stream, the same for the same content."""
    return gzip.compress(content, compresslevel=6, mtime=0)


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive of the members, in this order."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def zipped_as(encoding: str, members: Mapping[str, bytes]) -> bytes:
    """A zip archive whose names are in this encoding, as programs without Unicode write it."""

    class Member(zipfile.ZipInfo):
        def _encodeFilenameFlags(self) -> tuple[bytes, int]:
            return self.filename.encode(encoding), self.flag_bits

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(Member(name), content)
    return buffer.getvalue()


def bomb(beginning: bytes) -> bytes:
    """About a megabyte of gzip that inflates to a gigabyte, and then is cut short."""
    deflate = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    begun = deflate.compress(beginning) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(b"x" * 1024 * 1024) + deflate.flush(zlib.Z_FULL_FLUSH)
    return begun + block * 1_024


def unpacked(name: str, body: bytes, limits: Limits = WIDE) -> list[Part]:
    """All parts of the file."""
    return list(unpack(name, body, limits).parts)


def refusal_of(name: str, body: bytes, limits: Limits = WIDE) -> Result:
    """Why nothing of the file can be had, which is said before the first part is asked for."""
    try:
        unpack(name, body, limits)
    except CannotUnpack as error:
        return error.refusal
    raise AssertionError("it can be unpacked")


def refused_parts(parts: list[Part]) -> dict[str, str]:
    """The messages of the parts that are refused, by place."""
    return {part.place: part.refusal.message for part in parts if part.refusal is not None}
