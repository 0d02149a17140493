"""The resume as JSON Schema: what create takes, derived from the analyzer's table of fields.

`x == create accepts x` for every JSON value x that can be kept at all; what a schema cannot see
(how the JSON is written, its depth and its size) is in the description. What is kept with a warning is
accepted, and its usual range is in the description, too.
"""

from collections.abc import Mapping
from typing import Any

from resumes.analyzer import Format
from resumes.analyzer.fields import (
    MAX_LIST_ENTRIES,
    MAX_TEXT_CHARS,
    Choice,
    Colour,
    ColumnNumber,
    Flag,
    Group,
    Kind,
    KnownText,
    Listing,
    Number,
    Text,
)
from resumes.analyzer.schema import (
    COLUMNS,
    DATE_RANGE,
    HEADER,
    LAYOUTS,
    MAX_ITEMS,
    MULTICOLUMN,
    SECTION_FIELDS,
    SECTION_FIELDS_NOT_NULL,
    SECTION_TYPES,
    STYLE,
    TITLE,
    SectionType,
)
from resumes.analyzer.strict_json import MAX_DEPTH, MAX_FIELDS, MAX_VALUES, MIN_INTEGER

Schema = dict[str, Any]

COLOUR = "^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$"
MAX_NAMES_IN_WORDS = 30

COVER_LETTER = (
    r"^[\W\d_]*" + "".join(rf"[{each.upper()}{each}][\W\d_]*" for each in "coverletter") + "[Ss]?"
    r"[\W\d_]*$"
)
"""The name of a cover letter, in any case and whatever stands between its letters."""

KIND_MARKS = ("type", "kind", "documentType")

ABOUT = """The output of the analyzer. Unknown fields are stored, not shown, and reported as warnings. `record`,
show flags and `isImported` are set by the service.

Not expressed by this schema: the body must be UTF-8 without a byte order mark, at most {max_bytes:,} bytes,
{max_depth} levels deep, with at most {max_values:,} values and {max_fields:,} fields in all, without
duplicate keys, lone surrogates or U+0000; numbers without a fraction or an exponent must be in the range
-2^63 to 2^63-1, others must not overflow. The name of a cover letter is recognized whatever characters
separate its letters, except for letters of other alphabets."""


def resume_components(accepted: Format, example: Any) -> dict[str, Schema]:
    """Return the schemas `Resume`, `ShownResume` and what these are made of, by name."""
    return {
        "Resume": _resume(accepted, example),
        "ShownResume": _shown_resume(example),
        "Header": {
            "description": "Contact information of the resume's owner.",
            **fields_schema(HEADER.fields),
        },
        "Style": {"description": "Visual styling.", **fields_schema(STYLE.fields)},
        "DateRange": {
            "description": "A period. Months are 0-based: 0 is January, 11 is December.",
            **fields_schema(DATE_RANGE.fields),
        },
        **{component_name(each.name): _section(each) for each in SECTION_TYPES.values()},
    }


def component_name(section_type: str) -> str:
    """Return the name of a section type's schema: ExperiencesSection."""
    return f"{section_type[0].upper()}{section_type[1:]}Section"


def _resume(accepted: Format, example: Any) -> Schema:
    is_multicolumn = {
        "properties": {
            "style": {
                "type": "object",
                "properties": {"layout": {"const": MULTICOLUMN}},
                "required": ["layout"],
            }
        },
        "required": ["style"],
    }
    two_columns: Schema = {"properties": {"column": {"not": {"const": 2}}}}
    return {
        "description": ABOUT.format(
            max_bytes=accepted.max_bytes,
            max_depth=MAX_DEPTH,
            max_values=MAX_VALUES,
            max_fields=MAX_FIELDS,
        ),
        "type": "object",
        "required": ["header", "sections"],
        "properties": {
            "header": reference("Header"),
            "sections": _sections(accepted),
            "title": or_null(value_schema(TITLE)),
            "style": or_null(reference("Style")),
            **_no_cover_letter(),
        },
        "propertyNames": {"not": {"pattern": COVER_LETTER}},
        "if": is_multicolumn,
        "else": {"properties": {"sections": {"additionalProperties": two_columns}}},
        "examples": [example],
    }


def _no_cover_letter() -> dict[str, Schema]:
    marks: dict[str, Schema] = {
        mark: {"not": {"type": "string", "pattern": COVER_LETTER}} for mark in KIND_MARKS
    }
    return {**marks, "isCoverLetter": {"not": {"const": True}}}


def _sections(accepted: Format) -> Schema:
    known = {name: reference(component_name(name)) for name in SECTION_TYPES}
    extra = {name: _extra_section() for name in sorted(accepted.extra_section_types)}
    return {
        "description": "The sections by their type.",
        "type": "object",
        "properties": {**known, **extra},
        "additionalProperties": False,
    }


def _section(section_type: SectionType) -> Schema:
    item = fields_schema(section_type.fields)
    return {
        "description": f'Shown under "{section_type.heading}" unless it has a name.',
        **_section_object(section_type.own_fields, item),
    }


def _extra_section() -> Schema:
    return {
        "description": "An additional type that this installation accepts; its items are stored unchanged.",
        **_section_object(SECTION_FIELDS, {}),
    }


def _section_object(fields: Any, item: Schema) -> Schema:
    schema = fields_schema(fields)
    for name in SECTION_FIELDS_NOT_NULL:
        schema["properties"][name] = value_schema(fields[name])
    schema["properties"]["items"] = {
        "type": ["array", "null"],
        "maxItems": MAX_ITEMS,
        "items": item,
    }
    return {**schema, "required": ["column"]}


def _shown_resume(example: Any) -> Schema:
    return {
        "description": "What is shown of a resume, in the form that create accepts.",
        "allOf": [reference("Resume")],
        "propertyNames": {"enum": ["header", "sections", "title", "style"]},
        "examples": [example],
    }


def reference(component: str) -> Schema:
    """Return the schema of that name among the components."""
    return {"$ref": f"#/components/schemas/{component}"}


def fields_schema(fields: Mapping[str, Kind]) -> Schema:
    """Return an object with these fields, each of which may be absent or null. It may have others."""
    return {
        "type": "object",
        "properties": {name: or_null(value_schema(kind)) for name, kind in fields.items()},
    }


def or_null(schema: Schema) -> Schema:
    """Return the schema with null added."""
    if not schema:
        return {}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    widened = schema | {"type": [schema["type"], "null"]}
    if "enum" in schema:
        widened["enum"] = [*schema["enum"], None]
    return widened


def value_schema(kind: Kind) -> Schema:
    """Return what a field of this kind may hold, null aside."""
    match kind:
        case ColumnNumber():
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
    known = f"A known {kind.known_as}; others are stored, with a warning."
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
            f"Usually {kind.lowest} to {kind.highest}{hint}. Others are stored, with a warning."
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
            f"Usually up to {kind.usual_entries}; more are stored, with a warning."
        )
    return schema
