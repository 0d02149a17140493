"""The JSON objects that requests and answers are made of, the resume aside."""

from resumes.analyzer.findings import MAX_REPORTED
from resumes.store.listing import MAX_LIMIT
from server.openapi.kinds import Schema, reference

RESUME_ID = "0006543de8f5b2a09c1f77e2"

SHAPES: dict[str, Schema] = {
    "ResumeId": {
        "description": "Ids rise in the order in which an account's resumes were created.",
        "type": "string",
        "pattern": "^[0-9a-f]{24}$",
        "examples": [RESUME_ID],
    },
    "Created": {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": reference("ResumeId"),
            "warnings": {
                "description": "What is odd and was kept all the same; absent without any. At "
                "most 50, then one that counts the rest.",
                "type": "array",
                "minItems": 1,
                "items": reference("Issue"),
            },
        },
    },
    "Deleted": {
        "type": "object",
        "required": ["success"],
        "properties": {"success": {"const": True}},
    },
    "ResumeEntry": {
        "type": "object",
        "required": ["id", "title", "filename", "createdAt", "updatedAt"],
        "properties": {
            "id": reference("ResumeId"),
            "title": {"type": "string"},
            "filename": {"type": "string", "description": "Suggested for downloads."},
            "createdAt": {"type": "string", "format": "date-time"},
            "updatedAt": {"type": "string", "format": "date-time"},
        },
    },
    "Page": {
        "type": "object",
        "required": ["resumes", "pagination"],
        "properties": {
            "resumes": {
                "type": "array",
                "maxItems": MAX_LIMIT,
                "items": reference("ResumeEntry"),
            },
            "pagination": {
                "type": "object",
                "required": ["cursor", "limit"],
                "properties": {
                    "cursor": {
                        "anyOf": [reference("ResumeId"), {"type": "null"}],
                        "description": "Of the next page; null when nothing follows.",
                    },
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
                },
            },
        },
    },
    "Issue": {
        "description": "A remark on one place of the resume.",
        "type": "object",
        "required": ["path", "message"],
        "properties": {
            "path": {"type": "string", "description": "`sections.skills.items[2].tags`"},
            "message": {"type": "string"},
        },
    },
    "Error": {
        "description": "The one shape of errors, whatever they come from.",
        "type": "object",
        "required": ["error", "status"],
        "properties": {
            "error": {"type": "string", "description": "What is wrong, for people."},
            "status": {"type": "integer", "description": "The HTTP status once more."},
            "requestId": {"type": "string", "description": "As in X-Request-Id."},
            "retryAfter": {"type": "number", "description": "Seconds, as in Retry-After."},
            "issues": {
                "type": "array",
                "maxItems": MAX_REPORTED,
                "items": reference("Issue"),
                "description": "Every problem of the resume, in document order.",
            },
        },
    },
}
