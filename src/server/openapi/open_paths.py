"""The operations that need no key: how the service is, and what it is."""

from server.openapi.answers import header_references, json_answer
from server.openapi.errors import ANYWHERE, responses
from server.openapi.kinds import Schema, reference
from server.openapi.parameters import parameter_references


def open_paths() -> dict[str, Schema]:
    """The paths outside the API."""
    return {
        "/healthz": _open("health", "Whether it lives", {"200": _health()}),
        "/readyz": _open("readiness", "Whether it can serve", _readiness()),
        "/metrics": _open("metrics", "Metrics for Prometheus", {"200": _text("text/plain")}),
        "/openapi.json": _open("openapi", "This document", {"200": _document()}),
        "/docs": _open("docs", "This document as a page", {"200": _text("text/html")}),
    }


def _open(operation: str, summary: str, answers: dict[str, Schema]) -> Schema:
    return {
        "parameters": parameter_references("RequestId"),
        "get": {
            "operationId": operation,
            "tags": ["Operations"],
            "summary": summary,
            "security": [],
            "responses": {**responses(*ANYWHERE), **answers},
        },
    }


def _health() -> Schema:
    schema: Schema = {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"const": "ok"}},
    }
    return json_answer("It answers.", schema, {"status": "ok"})


def _readiness() -> dict[str, Schema]:
    ready, not_ready = _checks("ready"), _checks("not ready")
    well = {"status": "ready", "checks": {"read": "ok", "write": "ok", "disk": "ok"}}
    ill = {"status": "not ready", "checks": {"read": "ok", "write": "failed", "disk": "ok"}}
    either: Schema = {"anyOf": [not_ready, reference("Error")]}
    return {
        "200": json_answer("It can create and read, as of the last second.", ready, well),
        "503": json_answer("It cannot; the checks say what.", either, ill, "Retry-After"),
    }


def _checks(status: str) -> Schema:
    return {
        "type": "object",
        "required": ["status", "checks"],
        "properties": {
            "status": {"const": status},
            "checks": {"type": "object", "additionalProperties": {"enum": ["ok", "failed"]}},
        },
    }


def _document() -> Schema:
    schema: Schema = {
        "type": "object",
        "required": ["openapi", "info", "paths"],
        "properties": {"openapi": {"type": "string"}},
    }
    example = {"openapi": "3.1.0", "info": {"title": "Resumes", "version": "1"}, "paths": {}}
    return json_answer("The document.", schema, example)


def _text(media_type: str) -> Schema:
    return {
        "description": "The text.",
        "headers": header_references(),
        "content": {media_type: {"schema": {"type": "string"}}},
    }
