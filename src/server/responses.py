"""What every answer looks like: JSON, its headers, the one shape of errors, and their statuses.

An error is `{"error": str, "status": int}`, whatever layer it comes from; `requestId`, `retryAfter`
and `issues` may follow (docs/api.md, Errors). Domain errors know no HTTP: `STATUSES` is where they
meet it.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from resumes.errors import ErrorCode, Issue

Headers = list[tuple[bytes, bytes]]

STATUSES: dict[ErrorCode, int] = {
    ErrorCode.INVALID_JSON: 400,
    ErrorCode.INVALID_RESUME: 400,
    ErrorCode.COVER_LETTER: 400,
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.INVALID_KEY: 401,
    ErrorCode.QUOTA_REACHED: 403,
    ErrorCode.BUSINESS_PLAN_REQUIRED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.IDEMPOTENCY_MISMATCH: 422,
    # Trying again does not mend it, so it is no 503.
    ErrorCode.STORE_INCOMPATIBLE: 500,
    ErrorCode.STORE_UNAVAILABLE: 503,
    ErrorCode.OUTCOME_UNKNOWN: 503,
}
"""The status of every domain error that reaches a client."""

UNAVAILABLE = "Service unavailable; nothing was done, try again later"
RETRY_AFTER: tuple[bytes, bytes] = (b"retry-after", b"1")
CLOSE: tuple[bytes, bytes] = (b"connection", b"close")

_JSON: Headers = [
    (b"content-type", b"application/json"),
    # Answers hold personal data and depend on the key: no cache may keep them.
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


def json_headers(body: bytes, extra: Sequence[tuple[bytes, bytes]] = ()) -> Headers:
    """The headers of an answer with this JSON body."""
    return [*_JSON, (b"content-length", b"%d" % len(body)), *extra]


def error_body(
    status: int, message: str, issues: Sequence[Issue] = (), *, request_id: str = "", **more: Any
) -> bytes:
    """The one shape of errors. What is empty is left out."""
    body: dict[str, Any] = {"error": message, "status": status, **more}
    if request_id:
        body["requestId"] = request_id
    if issues:
        body["issues"] = issues
    return orjson.dumps(body)
