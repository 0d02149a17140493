"""The kinds of value of the analyzer format as JSON Schema.

A schema accepts what the kind's `check` accepts. What is kept with a warning is accepted, and its
usual range is told in words.
"""

from collections.abc import Mapping
from typing import Any

from resumes.analyzer.json_text import MIN_INTEGER
from resumes.analyzer.kinds import (
    MAX_LIST_ENTRIES,
    MAX_TEXT_CHARS,
    Choice,
    Colour,
    Column,
    Flag,
    Group,
    Kind,
    KnownText,
    Listing,
    Number,
    Text,
)
from resumes.analyzer.sections import COLUMNS, DATE_RANGE, LAYOUTS

Schema = dict[str, Any]

COLOUR = "^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$"
MAX_NAMES_IN_WORDS = 30


def reference(component: str) -> Schema:
    """The schema of that name among the components."""
    return {"$ref": f"#/components/schemas/{component}"}


def fields_schema(fields: Mapping[str, Kind]) -> Schema:
    """An object with these fields, each of which may be absent or null. It may have others."""
    return {
        "type": "object",
        "properties": {name: or_null(value_schema(kind)) for name, kind in fields.items()},
    }


def or_null(schema: Schema) -> Schema:
    """The schema, and null beside it."""
    if not schema:
        return {}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    widened = schema | {"type": [schema["type"], "null"]}
    if "enum" in schema:
        widened["enum"] = [*schema["enum"], None]
    return widened


def value_schema(kind: Kind) -> Schema:
    """What a field of this kind may hold, null aside."""
    match kind:
        case Column():
            return _column()
        case Number():
            return _number(kind)
        case Text():
            return _text(kind)
        case Choice():
            return _choice(kind)
        case Colour():
            return {"type": "string", "pattern": COLOUR, "examples": ["#1A2B3C"]}
        case Flag():
            return {"type": "boolean"}
        case Listing():
            return _listing(kind)
        case Group():
            return reference("DateRange") if kind is DATE_RANGE else fields_schema(kind.fields)
        case _:
            return {}  # any value, kept as it is


def _text(kind: Text) -> Schema:
    schema: Schema = {"type": "string", "maxLength": MAX_TEXT_CHARS}
    if isinstance(kind, KnownText):
        schema["description"] = _known(kind)
        schema["examples"] = [min(kind.known)]
    return schema


def _known(kind: KnownText) -> str:
    known = f"A known {kind.known_as}; another one is kept, with a warning."
    if len(kind.known) > MAX_NAMES_IN_WORDS:
        return known
    return f"{known} Known: {', '.join(sorted(kind.known))}."


def _choice(kind: Choice) -> Schema:
    schema: Schema = {"type": "string", "enum": list(kind.choices)}
    if kind.choices is LAYOUTS:
        templates = ", ".join(f"`{value}` is {name}" for value, name in LAYOUTS.items())
        schema["description"] = f"The template: {templates}."
    return schema


def _number(kind: Number) -> Schema:
    schema: Schema = {"type": "number"}
    if kind.lowest != MIN_INTEGER:
        hint = f": {kind.hint}" if kind.hint else ""
        schema["description"] = (
            f"Usually {kind.lowest} to {kind.highest}{hint}. Others are kept, with a warning."
        )
        schema["examples"] = [kind.lowest]
    return schema


def _column() -> Schema:
    columns = ", ".join(f"{number} is the {name}" for number, name in COLUMNS.items())
    return {
        "type": "number",
        "enum": list(COLUMNS),
        "description": f"The column: {columns}, which needs `style.layout` `multicolumn`.",
    }


def _listing(kind: Listing) -> Schema:
    schema: Schema = {
        "type": "array",
        "maxItems": MAX_LIST_ENTRIES,
        "items": or_null(value_schema(kind.entry)),
    }
    if kind.usual_entries < MAX_LIST_ENTRIES:
        schema["description"] = (
            f"Usually up to {kind.usual_entries}; more are kept, with a warning."
        )
    return schema
