"""Answers compared with what the OpenAPI document says of them."""

from typing import Any

import httpx
import jsonschema_rs

Document = dict[str, Any]


def resolved(document: Document, part: Any) -> Any:
    """The part itself, or what it refers to within the document."""
    while isinstance(part, dict) and "$ref" in part:
        found: Any = document
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def is_valid(document: Document, schema: Any, value: Any) -> bool:
    """Whether the value is what a schema of the document allows."""
    root = {**schema, "components": document["components"]}
    return jsonschema_rs.Draft202012Validator(root).is_valid(value)


def check_answer(document: Document, path: str, method: str, answer: httpx.Response) -> None:
    """The operation's document tells of such an answer: status, headers, type and body."""
    answers = document["paths"][path][method]["responses"]
    assert str(answer.status_code) in answers
    described = resolved(document, answers[str(answer.status_code)])
    check_headers(document, described["headers"], answer.headers)
    if "content" not in described:
        assert not answer.content
        return
    media_type = answer.headers["Content-Type"].partition(";")[0]
    schema = described["content"][media_type]["schema"]
    body = answer.json() if media_type == "application/json" else answer.text
    assert is_valid(document, schema, body), body


def check_headers(document: Document, described: Document, headers: httpx.Headers) -> None:
    """What must be there is, and all that is there has the form that is described."""
    for name, reference in described.items():
        header = resolved(document, reference)
        assert name in headers or not header.get("required"), name
        if name in headers:
            schema = header["schema"]
            value: Any = headers[name]
            value = int(value) if schema["type"] == "integer" else value
            assert is_valid(document, schema, value), name
    ours = ("x-", "retry", "www-", "allow", "idempotent", "etag", "content-disposition")
    own = {name for name in headers if name.lower().startswith(ours)}
    own -= {"x-content-type-options"}
    assert own <= {name.lower() for name in described}
