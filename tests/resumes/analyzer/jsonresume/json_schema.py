"""As much of JSON Schema as the schema of JSON Resume uses.

A keyword that is not known here is an error, so nothing that the schema asks for is passed over.
`format` is what draft 4 leaves to each validator: it is not looked at.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "data" / "jsonresume-schema-1.0.0.json").read_text("utf-8")
)

_TYPES: dict[str, type] = {"object": dict, "array": list, "string": str}
_SAID_ELSEWHERE = {"$schema", "title", "description", "definitions", "format", "additionalItems"}
_KNOWN = {"$ref", "type", "pattern", "properties", "additionalProperties", "items"}


def iter_faults(value: Any, schema: dict[str, Any] = SCHEMA, path: str = "") -> Iterator[str]:
    """What of the value the schema forbids, each with its path; nothing for a valid value."""
    assert schema.keys() <= _KNOWN | _SAID_ELSEWHERE, schema.keys()
    if "$ref" in schema:
        yield from iter_faults(value, _definition(schema["$ref"]), path)
        return
    if not isinstance(value, _TYPES[schema["type"]]):
        yield f"{path} is no {schema['type']}"
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{path} is {value}"
    elif isinstance(value, dict):
        yield from _iter_member_faults(value, schema, path)
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from iter_faults(entry, schema["items"], f"{path}[{position}]")


def _iter_member_faults(value: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    members = schema["properties"]
    for name, member in value.items():
        if name in members:
            yield from iter_faults(member, members[name], f"{path}.{name}")
        elif not schema["additionalProperties"]:
            yield f"{path}.{name} is not known"


def _definition(reference: str) -> dict[str, Any]:
    definition: dict[str, Any] = SCHEMA["definitions"][reference.removeprefix("#/definitions/")]
    return definition
