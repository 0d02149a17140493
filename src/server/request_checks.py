"""Checks of a request's head, beyond those of the parser (docs/api.md, Limits).

Two readers of one head, a proxy and this server, must never read two requests: what could be read in
two ways is refused, not repaired (RFC 9112, 11.2). The parser refuses broken lines, white space
where none belongs, and lengths that are not numbers or contradict each other.
"""

import functools
import re
from collections.abc import Sequence

from server.request import HttpError

HEAD_BYTES = 64 * 1024
"""The largest head, its request line among it."""

TARGET_BYTES = 8 * 1024 - 16
"""The longest request target: with method and version around it, a request line of 8 KiB."""

MAX_FIELDS = 100
"""The most header fields of a head."""

HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=-]*(?::[0-9]*)?|\[[0-9A-Fa-f:.]+\](?::[0-9]*)?")
ENCODED_STRUCTURE = re.compile(rb"%(?:2[ef]|5c|[01][0-9a-f]|7f)", re.IGNORECASE)
"""Dots, slashes, backslashes and control characters that hide in a path."""


def check_head(version: str, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Check that a complete head, which is not too large, is one that is served. Raises HttpError.

    `headers` have names in lower case.
    """
    if len(headers) > MAX_FIELDS:
        raise HttpError(431, f"Too many header fields: at most {MAX_FIELDS}")
    if version not in ("1.1", "1.0"):
        raise HttpError(400, f"HTTP/{version} is not supported: use HTTP/1.1")
    # As a path: what names another host, or nothing in particular, has nothing to find here.
    if target[:1] != b"/" or b"#" in target:
        raise HttpError(400, "Invalid request target: it must be a path, as in /api/v1/resumes")
    if b"%" in target and ENCODED_STRUCTURE.search(target.partition(b"?")[0]):
        raise HttpError(400, "Invalid request target: an encoded dot, slash or control character")
    hosts = codings = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if not _is_host(value):
                raise HttpError(400, "Invalid Host: it must be a name or an address")
        elif name == b"transfer-encoding":
            codings += 1
            if version == "1.0" or codings > 1:
                raise HttpError(
                    400, "Invalid Transfer-Encoding: it needs HTTP/1.1, and may be sent only once"
                )
            if value.lower() != b"chunked":
                raise HttpError(
                    501, "Unsupported transfer coding: send chunked, or a Content-Length"
                )
    if hosts != 1 and (hosts or version == "1.1"):
        raise HttpError(400, "Missing Host" if not hosts else "More than one Host")


@functools.lru_cache(maxsize=64)  # a client always sends the same
def _is_host(value: bytes) -> bool:
    return HOST.fullmatch(value) is not None


def count_bytes(target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> int:
    """Return the size of a complete head."""
    # With ": " and a line break for each field, and what a request line has around its target.
    return len(target) + 16 + sum(len(name) + len(value) + 4 for name, value in headers)


def check_size(head_bytes: int, target: bytes) -> None:
    """Check that a head, or what has come of it, is not too large. Raises HttpError."""
    if len(target) > TARGET_BYTES:
        raise HttpError(414, f"Request line too long: the limit is {TARGET_BYTES + 16} bytes")
    if head_bytes > HEAD_BYTES:
        raise HttpError(431, f"Request head too large: the limit is {HEAD_BYTES} bytes")
