"""What a request can say beside its body."""

from resumes.store.listing import DEFAULT_LIMIT, MAX_LIMIT
from server.openapi.kinds import Schema, reference

PARAMETERS: dict[str, Schema] = {
    "RequestId": {
        "name": "X-Request-Id",
        "in": "header",
        "description": "A name for the request: 1 to 64 letters, digits, dots, underscores and "
        "hyphens. Anything else is replaced by a new one.",
        "schema": {"type": "string"},
    },
    "Id": {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The id that create answered.",
        "schema": reference("ResumeId"),
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Makes it safe to send the same create again: for 24 hours the same key "
        "with the same body gets the first answer, and no second resume.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "Cursor": {
        "name": "cursor",
        "in": "query",
        "description": "The `pagination.cursor` of the page before, or any id that was seen; "
        "empty for the first page.",
        "schema": {"type": "string", "pattern": "^([0-9a-f]{24})?$"},
    },
    "Limit": {
        "name": "limit",
        "in": "query",
        "description": f"Resumes per page. A number outside is brought into 1 to {MAX_LIMIT}; "
        "`pagination.limit` tells.",
        "schema": {"type": "integer", "default": DEFAULT_LIMIT},
    },
}


def parameter_references(*names: str) -> list[Schema]:
    """References to the parameters of these names."""
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]
