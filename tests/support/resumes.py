"""Resumes for tests, with everything that a test does not care about filled in."""

import hashlib
import json
from typing import Any

from resumes import analyzer
from resumes.store.creation import IdempotencyKey, NewResume
from resumes.store.import_ledger import ClaimedFile


def a_document(name: str = "Ada Example", **top_level: Any) -> bytes:
    """The bytes of a small valid resume; keyword arguments replace its top-level fields."""
    document = {
        "header": {"name": name, "email": "ada@example.com"},
        "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things that last."}]}},
    }
    return json.dumps(document | top_level).encode()


def a_resume(
    name: str = "Ada Example",
    *,
    item: int = 0,
    with_digest: bool = False,
    idempotency: str | None = None,
) -> NewResume:
    """A parsed resume, ready to be created."""
    body = a_document(name)
    sha256 = hashlib.sha256(body).digest()
    return NewResume(
        analyzer.parse(body),
        digest=sha256 if with_digest else None,
        item=item,
        idempotency=None if idempotency is None else IdempotencyKey(idempotency, sha256),
    )


def a_claim(
    claim_id: str = "0" * 24,
    name: str = "ada.json",
    *,
    root: str | None = None,
    items: str | None = None,
    source: bytes = b"{",
) -> ClaimedFile:
    """A claimed file."""
    return ClaimedFile(
        claim_id=claim_id,
        name=name,
        size_bytes=100,
        claimed_at="2027-01-15T08:00:00.000Z",
        source=source,
        root=root,
        items=items,
    )


def a_mount(point: str, kind: str, *, id: int = 50, parent: int = 27) -> str:  # noqa: A002  (as proc(5) names it)
    """A line of mountinfo."""
    return f"{id} {parent} 0:44 / {point} rw,relatime shared:7 master:1 - {kind} source rw"


def mountinfo(*lines: str) -> str:
    """The mountinfo of a system on ext4, where these came after its root."""
    root = "27 1 254:0 / / rw,relatime - ext4 /dev/sda rw"
    return "".join(f"{line}\n" for line in (root, *lines))
