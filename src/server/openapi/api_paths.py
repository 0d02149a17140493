"""The operations that need a key: what they take and answer."""

from typing import Any

from resumes.store.listing import DEFAULT_LIMIT
from server.openapi.answers import RATE_LIMITS, json_answer
from server.openapi.errors import ANYWHERE, responses
from server.openapi.kinds import Schema, reference
from server.openapi.parameters import parameter_references
from server.openapi.resume import EXAMPLE
from server.openapi.shapes import RESUME_ID

CREATED_AT = "2026-01-31T09:00:00.000Z"

WITH_KEY = (*ANYWHERE, "InvalidKey", "TooManyRequests")
"""The errors that any request with a key can meet."""


def api_paths() -> dict[str, Schema]:
    """The paths that need a key."""
    return {
        "/api/v1/resumes": {
            "parameters": parameter_references("RequestId"),
            "get": _list(),
            "post": _create(),
        },
        "/api/v1/resumes/{id}": {
            "parameters": parameter_references("Id", "RequestId"),
            "get": _get(),
            "delete": _delete(),
        },
    }


def _list() -> Schema:
    entry = {
        "id": RESUME_ID,
        "title": "Nurse",
        "filename": "AdaExampleResume.pdf",
        "createdAt": CREATED_AT,
        "updatedAt": CREATED_AT,
    }
    page: Any = {"resumes": [entry], "pagination": {"cursor": None, "limit": DEFAULT_LIMIT}}
    return {
        "operationId": "listResumes",
        "tags": ["Resumes"],
        "summary": "List resumes",
        "description": "The account's resumes, oldest first. Who goes on with the last id seen "
        "misses none and sees none twice. Needs a plan with API listing.",
        "parameters": parameter_references("Cursor", "Limit"),
        "responses": {
            "200": json_answer("A page.", reference("Page"), page, *RATE_LIMITS),
            **responses(*WITH_KEY, "BusinessPlanRequired"),
        },
    }


def _create() -> Schema:
    answer = json_answer(
        "The resume is stored for good.",
        reference("Created"),
        {"id": RESUME_ID},
        *RATE_LIMITS,
        "Idempotent-Replayed",
        links={"get": _link("getResume"), "delete": _link("deleteResume")},
    )
    return {
        "operationId": "createResume",
        "tags": ["Resumes"],
        "summary": "Create a resume",
        "description": "Two equal creates make two resumes, unless an Idempotency-Key says "
        "otherwise. Cover letters cannot be created.",
        "parameters": parameter_references("IdempotencyKey"),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": reference("Resume"), "example": EXAMPLE}},
        },
        "responses": {
            "201": answer,
            **responses(
                *WITH_KEY,
                *("InvalidResume", "QuotaReached", "InFlight", "TooLarge", "NotJson", "OtherBody"),
            ),
        },
    }


def _link(operation: str) -> Schema:
    return {"operationId": operation, "parameters": {"id": "$response.body#/id"}}


def _get() -> Schema:
    return {
        "operationId": "getResume",
        "tags": ["Resumes"],
        "summary": "Get a resume",
        "description": "What is shown of it, in the shape that create takes. Needs a plan with "
        "API listing.",
        "responses": {
            "200": json_answer("The resume.", reference("ShownResume"), EXAMPLE, *RATE_LIMITS),
            **responses(*WITH_KEY, "BusinessPlanRequired", "NotFound"),
        },
    }


def _delete() -> Schema:
    deleted = json_answer("It is gone.", reference("Deleted"), {"success": True}, *RATE_LIMITS)
    return {
        "operationId": "deleteResume",
        "tags": ["Resumes"],
        "summary": "Delete a resume",
        "description": "For good, on any plan; its place is free again.",
        "responses": {
            "200": deleted,
            **responses(*WITH_KEY, "NotFound"),
        },
    }
