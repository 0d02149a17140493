"""The whole OpenAPI document."""

import functools
from typing import Any

import orjson

from resumes.analyzer import DEFAULT_FORMAT, Format
from server.openapi.answers import HEADERS
from server.openapi.api_paths import api_paths
from server.openapi.errors import error_responses
from server.openapi.open_paths import open_paths
from server.openapi.parameters import PARAMETERS
from server.openapi.resume import resume_components
from server.openapi.shapes import SHAPES

ABOUT = """Keeps resumes in the format of a resume analyzer, for accounts with plans and quotas.

Everything under `/api/v1` needs an API key and sees nothing of other accounts. When several errors
apply, the first of these is told: 401, 404 and 405, 429, 413, 415, 400, 409 and 422, 403; a list
looks at the plan (403) before the query (400). Changes under `/api/v1` only ever add."""


def build_document(accepted: Format = DEFAULT_FORMAT) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a service that accepts this format."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Resumes",
            "version": "1",
            "description": ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"ApiKey": []}],
        "tags": [
            {"name": "Resumes", "description": "With a key."},
            {"name": "Operations", "description": "Without one; nothing personal is told."},
        ],
        "paths": {**api_paths(), **open_paths()},
        "components": {
            "securitySchemes": {
                "ApiKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "enh_live_…",
                    "description": "The API key of an account.",
                }
            },
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "responses": error_responses(),
            "schemas": {**SHAPES, **resume_components(accepted)},
        },
    }


@functools.cache
def document_bytes(accepted: Format = DEFAULT_FORMAT) -> bytes:
    """The document as it is served: JSON that people can read."""
    return orjson.dumps(build_document(accepted), option=orjson.OPT_INDENT_2) + b"\n"
