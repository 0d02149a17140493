"""gzip, and how much of anything compressed is inflated: no more than the limits say."""

import zlib
from collections.abc import Callable, Generator, Iterable, Iterator

from importer.parts import CannotUnpack, Limits, file_too_large, invalid_archive

GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 64 * 1024
"""What is inflated at a time."""

_GZIP = 16 + zlib.MAX_WBITS
"""Has zlib read gzip's headers, and check its checksums and lengths."""


def collect(
    chunks: Iterable[bytes], limits: Limits, look: Callable[[bytearray], None]
) -> bytearray:
    """All that is inflated. Raises CannotUnpack over `max_file_bytes`, having taken no more.

    `look` is shown the beginning as soon as that is longer than one resume may be, and may raise
    CannotUnpack too.
    """
    content = bytearray()
    for chunk in chunks:
        was_small = len(content) <= limits.max_bytes
        content += chunk
        if len(content) > limits.max_file_bytes:
            raise CannotUnpack(file_too_large(limits))
        if was_small and len(content) > limits.max_bytes:
            look(content)
    return content


def iter_gunzipped(body: bytes, limits: Limits) -> Iterator[bytes]:
    """What the gzip file holds, in pieces: one stream, or several one after the other (RFC 1952).

    Zeros may follow, as tapes and block devices leave them. Raises CannotUnpack for anything else,
    and for what is damaged or cut short.
    """
    if not body.startswith(GZIP_MAGIC):
        raise CannotUnpack(invalid_archive("It is not a gzip file, though its name says so"))
    at = 0
    for _ in range(limits.max_members):
        at = yield from _iter_stream(body, at)
        if body[at : at + 1] in (b"", b"\0") and body.count(b"\0", at) == len(body) - at:
            return
    raise CannotUnpack(
        invalid_archive(f"The gzip file has more than {limits.max_members:,} streams")
    )


def _iter_stream(body: bytes, at: int) -> Generator[bytes, None, int]:
    """What one stream holds; returns where it ends in the file."""
    inflater = zlib.decompressobj(wbits=_GZIP)
    while not inflater.eof:
        data = inflater.unconsumed_tail
        if not data:
            data = body[at : at + CHUNK_BYTES]
            at += len(data)
        try:
            inflated = inflater.decompress(data, CHUNK_BYTES)
        except zlib.error:
            raise CannotUnpack(invalid_archive("The gzip file is damaged")) from None
        if not data and not inflated and not inflater.eof:
            raise CannotUnpack(invalid_archive("The gzip file is cut short"))
        yield inflated
    return at - len(inflater.unused_data)
