"""The API described as OpenAPI 3.1.

`interface.json` is the description; the schema of a resume, which is put into it, is made from the
analyzer's table of fields.
"""

import functools
from pathlib import Path
from typing import Any, Final

import orjson

from resumes.analyzer import DEFAULT_FORMAT, Format
from server.openapi.resume_schema import resume_components

INTERFACE: Final = Path(__file__).with_name("interface.json")


def build_document(accepted: Format = DEFAULT_FORMAT) -> dict[str, Any]:
    """Return the OpenAPI document of a service that accepts this format."""
    document: dict[str, Any] = orjson.loads(INTERFACE.read_bytes())
    create = document["paths"]["/api/v1/resumes"]["post"]
    example = create["requestBody"]["content"]["application/json"]["example"]
    document["components"]["schemas"] |= resume_components(accepted, example)
    return document


@functools.cache
def document_bytes(accepted: Format = DEFAULT_FORMAT) -> bytes:
    """Return the document as it is served: JSON that people can read."""
    return orjson.dumps(build_document(accepted), option=orjson.OPT_INDENT_2) + b"\n"
