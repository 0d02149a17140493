"""What every answer looks like: JSON, its headers, the one shape of errors, and their statuses.

An error is `{"error": str, "status": int}`, whatever layer it comes from; `issues` may follow
(docs/api.md, Errors). Domain errors know no HTTP: `STATUSES` is
where they meet it.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.types import Send

from resumes.errors import (
    ErrorCode,
    InvalidKey,
    InvalidResume,
    Issue,
    OutcomeUnknown,
    ResumesError,
    StoreError,
)

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


async def respond(
    send: Send,
    status: int,
    body: bytes,
    extra: Sequence[tuple[bytes, bytes]] = (),
    *,
    is_whole: bool = True,
) -> None:
    """The answer is sent. Unless `is_whole`, the exchange stays open until one more empty body."""
    await send(
        {"type": "http.response.start", "status": status, "headers": json_headers(body, extra)}
    )
    await send({"type": "http.response.body", "body": body, "more_body": not is_whole})


def error_body(status: int, message: str, issues: Sequence[Issue] = ()) -> bytes:
    """The one shape of errors. `issues` is left out when there are none."""
    body: dict[str, Any] = {"error": message, "status": status}
    if issues:
        body["issues"] = issues
    return orjson.dumps(body)


async def respond_error(send: Send, error: ResumesError) -> None:
    """The client is told of a domain error."""
    status = STATUSES[error.code]
    issues = error.issues if isinstance(error, InvalidResume) else ()
    extra: Headers = []
    if isinstance(error, InvalidKey):
        extra = [(b"www-authenticate", b"Bearer")]
    elif status == 503:
        extra = [RETRY_AFTER]
    await respond(send, status, error_body(status, _public_message(error), issues), extra)


def _public_message(error: ResumesError) -> str:
    # What the store says of itself names files on this machine: for the log, not for clients.
    if isinstance(error, StoreError) and not isinstance(error, OutcomeUnknown):
        return UNAVAILABLE
    return error.message


async def respond_http_error(send: Send, error: HTTPException) -> None:
    """The client is told of an error that only HTTP has: a path, a method, a content type."""
    status = error.status_code
    extra = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in (error.headers or {}).items()
    ]
    await respond(send, status, error_body(status, error.detail), extra)
