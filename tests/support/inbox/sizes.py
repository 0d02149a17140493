"""Files that are too large, or would be, and those that are just small enough."""

import functools
from collections.abc import Mapping

from resumes.analyzer import DEFAULT_FORMAT
from tests.support.inbox.packing import bomb, zipped
from tests.support.resumes import a_document

GIGABYTE = 1024**3
LIMIT = DEFAULT_FORMAT.max_bytes


def filled(name: str, size_bytes: int) -> bytes:
    """A resume of exactly so many bytes."""
    empty = len(a_document(name, filler=""))
    body = a_document(name, filler="x" * (size_bytes - empty))
    assert len(body) == size_bytes
    return body


@functools.cache
def refused() -> Mapping[str, tuple[bytes, str]]:
    """Return the content and the reason of each file that is refused, by its name."""
    return {
        "empty.json": (b"", "invalid_json"),
        "over.json": (filled("over", LIMIT + 1), "too_large"),
        "wide.json": (b"[" + b"{}," * 20_000_000 + b"{}]", "too_large"),
        "bomb.json.gz": (bomb(b'{"header": {"name": "a"}, "x": "'), "too_large"),
        "lines.ndjson.gz": (bomb(b"{}\n"), "too_large"),
        "bomb.zip": (zipped({"a.json": b"x" * (256 * 1024 * 1024)}), "too_large"),
        "nested.zip": (
            zipped({"inner.zip": zipped({"a.json": a_document("nested")})}),
            "invalid_archive",
        ),
        "escape.zip": (zipped({"../evil.json": a_document("evil")}), "invalid_archive"),
        "root.zip": (zipped({"/etc/evil.json": a_document("evil")}), "invalid_archive"),
    }


SPARSE = {"sparse.json": GIGABYTE, "sparse.ndjson": GIGABYTE // 8, "sparse.zip": GIGABYTE // 8}
