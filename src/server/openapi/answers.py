"""What answers are made of beside their bodies: headers."""

from typing import Any

from server.openapi.kinds import Schema

HEADERS: dict[str, Schema] = {
    "X-Request-Id": {
        "description": "The id of the request: as sent, if it has the form, else a new one.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "X-RateLimit-Limit": {
        "description": "Requests that the tightest window allows, while limits are on.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "X-RateLimit-Remaining": {
        "description": "How many of them are left.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "X-RateLimit-Reset": {
        "description": "When all of them are there again, in seconds since 1970.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "Retry-After": {
        "description": "The seconds after which to try again; always there with 429.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {
        "description": "How to say who asks.",
        "required": True,
        "schema": {"type": "string", "const": "Bearer"},
    },
    "Allow": {
        "description": "The methods that the path has.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Idempotent-Replayed": {
        "description": "There, and true, when the resume was created by an earlier request.",
        "schema": {"type": "string", "const": "true"},
    },
}

RATE_LIMITS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


def header_references(*names: str) -> dict[str, Schema]:
    """The headers of an answer: X-Request-Id, which all have, and these."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *names)}


def json_answer(about: str, schema: Schema, example: Any, *headers: str, **more: Any) -> Schema:
    """An answer of JSON."""
    return {
        "description": about,
        "headers": header_references(*headers),
        "content": {"application/json": {"schema": schema, "example": example}},
        **more,
    }
