"""The answers that are errors: one row for each status and what it can mean."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from resumes.analyzer import DEFAULT_FORMAT
from resumes.errors import (
    BusinessPlanRequired,
    IdempotencyMismatch,
    InvalidKey,
    QuotaReached,
    TooLarge,
)
from server.openapi.answers import RATE_LIMITS, header_references
from server.openapi.kinds import Schema, reference
from server.request import UNAVAILABLE

REQUEST_ID = "3f1c9a5be07d2468"
NAME_IS_NO_STRING = 'Invalid section "experiences": name must be a string'
TOO_MANY_REQUESTS = "Rate limit exceeded. Please try again later."


class ErrorAnswer(NamedTuple):
    """What a client is told with a status.

    `message` and `more` are of the example; `headers` come beside X-Request-Id. `is_exact`: it
    is always this message.
    """

    name: str
    status: int
    about: str
    message: str
    headers: tuple[str, ...] = RATE_LIMITS
    more: Mapping[str, Any] = {}
    is_exact: bool = False


ERRORS = (
    ErrorAnswer(
        "BadRequest",
        400,
        "What was sent is not HTTP, or cannot be used; the message names it.",
        "Invalid limit: must be an integer from 1 to 100",
    ),
    ErrorAnswer(
        "InvalidResume",
        400,
        "The body is not JSON that can be kept, not a resume, or a cover letter; or the "
        "Idempotency-Key is malformed.",
        NAME_IS_NO_STRING,
        more={"issues": [{"path": "sections.experiences.name", "message": NAME_IS_NO_STRING}]},
    ),
    ErrorAnswer(
        "InvalidKey",
        401,
        "The API key is missing, malformed, unknown, revoked or expired.",
        InvalidKey().message,
        ("WWW-Authenticate",),
        is_exact=True,
    ),
    ErrorAnswer(
        "QuotaReached",
        403,
        "The account holds as many resumes as its plan allows.",
        QuotaReached(max_resumes=5).message,
    ),
    ErrorAnswer(
        "BusinessPlanRequired",
        403,
        "The account's plan does not include reading over the API.",
        BusinessPlanRequired().message,
        is_exact=True,
    ),
    ErrorAnswer(
        "NotFound",
        404,
        "The account has no such resume.",
        "Resume not found",
        is_exact=True,
    ),
    ErrorAnswer(
        "NoSuchMethod",
        405,
        "The path has other methods.",
        "Method Not Allowed",
        ("Allow", *RATE_LIMITS),
    ),
    ErrorAnswer(
        "Late",
        408,
        "The request did not arrive in time. The connection is closed.",
        "The request took too long to arrive",
        (),
    ),
    ErrorAnswer(
        "InFlight",
        409,
        "An earlier request with this Idempotency-Key is still being worked on.",
        "An earlier request with this Idempotency-Key is still being worked on; send this one "
        "again later",
        ("Retry-After", *RATE_LIMITS),
    ),
    ErrorAnswer(
        "TooLarge",
        413,
        "The body is over the size limit. The connection is closed.",
        TooLarge(limit_bytes=DEFAULT_FORMAT.max_bytes).message,
    ),
    ErrorAnswer(
        "LongTarget",
        414,
        "The request line is too long. The connection is closed.",
        "Request line too long: the limit is 8192 bytes",
        (),
    ),
    ErrorAnswer(
        "NotJson",
        415,
        "The body is not declared as JSON, or is encoded.",
        "Unsupported content type: send application/json",
    ),
    ErrorAnswer(
        "OtherBody",
        422,
        "The Idempotency-Key came with another body before.",
        IdempotencyMismatch().message,
        is_exact=True,
    ),
    ErrorAnswer(
        "TooManyRequests",
        429,
        "The key has made more requests than its plan allows.",
        TOO_MANY_REQUESTS,
        ("Retry-After", *RATE_LIMITS),
        more={"retryAfter": 1},
        is_exact=True,
    ),
    ErrorAnswer(
        "LargeHead",
        431,
        "The headers are too large or too many. The connection is closed.",
        "Too many header fields: at most 100",
        (),
    ),
    ErrorAnswer(
        "InternalError",
        500,
        "Something is wrong with the service; the id is in its log.",
        "Internal error 0123456789abcdef",
    ),
    ErrorAnswer(
        "UnknownCoding",
        501,
        "The body has a transfer coding other than chunked. The connection is closed.",
        "Unsupported transfer coding: send chunked, or a Content-Length",
        (),
    ),
    ErrorAnswer(
        "Unavailable",
        503,
        "Nothing was done, unless the message says that the outcome is unknown; try again.",
        UNAVAILABLE,
        ("Retry-After", *RATE_LIMITS),
    ),
)

ANYWHERE = (
    "BadRequest",
    "NoSuchMethod",
    "Late",
    "LongTarget",
    "LargeHead",
    "InternalError",
    "UnknownCoding",
    "Unavailable",
)
"""The errors that any request can meet."""

_STATUSES = {each.name: each.status for each in ERRORS}


def error_responses() -> dict[str, Schema]:
    """The answers that are errors, by name."""
    return {each.name: _response(each) for each in ERRORS}


def _response(answer: ErrorAnswer) -> Schema:
    fixed: Schema = {"status": {"const": answer.status}}
    if answer.is_exact:
        fixed["error"] = {"const": answer.message}
    example = {"error": answer.message, "status": answer.status, "requestId": REQUEST_ID}
    content = {
        "schema": {"allOf": [reference("Error")], "properties": fixed},
        "example": {**example, **answer.more},
    }
    return {
        "description": answer.about,
        "headers": header_references(*answer.headers),
        "content": {"application/json": content},
    }


def responses(*names: str) -> dict[str, Schema]:
    """References to the errors of these names, by their status."""
    return {
        str(_STATUSES[name]): {"$ref": f"#/components/responses/{name}"}
        for name in sorted(names, key=_STATUSES.__getitem__)
    }
