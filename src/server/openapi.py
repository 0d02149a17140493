"""The OpenAPI 3.1 description of the API.

`interface.json` contains the description; the fields of a resume are added from the analyzer's
table. The schema accepts a JSON value that can be stored if and only if a create request accepts
it. Constraints that a schema cannot express (JSON syntax, depth and size) are in the descriptions.
A value that is stored with a warning is accepted, and its description contains the usual range.

The description is served as JSON and as Swagger UI, with all necessary files: the page works
offline, and its policy prevents the browser from loading anything from other hosts (docs/api.md,
Description). `python -m server.openapi FILE` writes the document for the default settings.
"""

import asyncio
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson

from resumes.analyzer import DEFAULT_FORMAT, Format
from resumes.analyzer.kinds import (
    MAX_TEXT_CHARS,
    Added,
    Choice,
    Colour,
    ColumnNumber,
    Flag,
    Group,
    Kind,
    KnownText,
    Listing,
    Month,
    Number,
    Text,
)
from resumes.analyzer.schema import (
    COLUMNS,
    DATE_RANGE,
    EXTRA_SECTION,
    HEADER,
    LAYOUTS,
    SECTION_TYPES,
    STYLE,
    TITLE,
)
from resumes.analyzer.strict_json import MAX_DEPTH, MAX_FIELDS, MAX_VALUES, MIN_INTEGER
from server.request import Headers, Request, Respond

Schema = dict[str, Any]

INTERFACE: Final = Path(__file__).with_name("interface.json")
COLOUR: Final = "^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$"
MAX_NAMES_IN_WORDS: Final = 30


def document_bytes(accepted: Format = DEFAULT_FORMAT) -> bytes:
    """Return the document as served: indented JSON."""
    return orjson.dumps(build_document(accepted), option=orjson.OPT_INDENT_2) + b"\n"


def build_document(accepted: Format = DEFAULT_FORMAT) -> dict[str, Any]:
    """Return the OpenAPI document of a service that accepts this format."""
    document: dict[str, Any] = orjson.loads(INTERFACE.read_bytes())
    create = document["paths"]["/api/v1/resumes"]["post"]
    example = create["requestBody"]["content"]["application/json"]["example"]
    schemas = document["components"]["schemas"]
    for name, group in (("Header", HEADER), ("Style", STYLE), ("DateRange", DATE_RANGE)):
        schemas[name] |= group_schema(group)
    references = {}
    for name, section_type in SECTION_TYPES.items():
        component = f"{name[0].upper()}{name[1:]}Section"
        references[name] = {"$ref": f"#/components/schemas/{component}"}
        about = (
            f'If `name` is missing or blank, the section\'s heading is "{section_type.heading}".'
        )
        schemas[component] = {"description": about, **group_schema(section_type.kind)}
    for name in sorted(accepted.extra_section_types):
        about = "An additional section type that this installation accepts; its items are stored unchanged."
        references[name] = {"description": about, **group_schema(EXTRA_SECTION)}
    resume = schemas["Resume"]
    resume["description"] = resume["description"].format(
        max_bytes=accepted.max_bytes,
        max_depth=MAX_DEPTH,
        max_values=MAX_VALUES,
        max_fields=MAX_FIELDS,
    )
    resume["properties"]["title"] = or_null(value_schema(TITLE))
    resume["properties"]["sections"]["properties"] = references
    resume["examples"] = schemas["ShownResume"]["examples"] = [example]
    return document


def group_schema(group: Group) -> Schema:
    """Return the schema of an object with the fields of the group. Other fields are allowed."""
    properties = {}
    for name, kind in group.fields.items():
        value = value_schema(kind)
        properties[name] = value if name in group.not_null else or_null(value)
    required = {"required": [*group.required]} if group.required else {}
    return {"type": "object", "properties": properties, **required}


def or_null(schema: Schema) -> Schema:
    """Return the schema that also allows null."""
    if not schema:
        return {}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    widened = schema | {"type": [schema["type"], "null"]}
    if "enum" in schema:
        widened["enum"] = [*schema["enum"], None]
    return widened


def value_schema(kind: Kind) -> Schema:
    """Return the schema of a field of this kind, without null."""
    text = {"type": "string", "maxLength": MAX_TEXT_CHARS}
    match kind:
        case ColumnNumber():
            *columns, last = (f"{number} ({name})" for number, name in COLUMNS.items())
            about = (
                f"The column of the section: {', '.join(columns)} or {last}. "
                "Column 2 requires the layout `multicolumn`."
            )
            return {"type": "number", "enum": list(COLUMNS), "description": about}
        case Number(lowest=lowest) if lowest == MIN_INTEGER:
            return {"type": "number"}
        case Number():
            about = (
                f"A number, usually from {kind.lowest} to {kind.highest}; "
                "other numbers are accepted but cause a warning."
            )
            if kind.hint:
                about += f" {kind.hint[0].upper()}{kind.hint[1:]}."
            if isinstance(kind, Month):
                about += " If the account is set to count months from 1, they are 1 to 12."
            return {"type": "number", "description": about, "examples": [kind.lowest]}
        case KnownText():
            about = f"Unknown {kind.known_as}s are accepted but cause a warning."
            if len(kind.known) <= MAX_NAMES_IN_WORDS:
                *names, last = sorted(kind.known)
                about += f" The known {kind.known_as}s are {', '.join(names)} and {last}."
            return {**text, "description": about, "examples": [min(kind.known)]}
        case Text():
            return text
        case Choice():
            *layouts, last = (f"`{value}` ({name})" for value, name in LAYOUTS.items())
            about = f"The layout is one of {', '.join(layouts)} and {last}."
            return {"type": "string", "enum": list(kind.choices), "description": about}
        case Colour():
            return {"type": "string", "pattern": COLOUR, "examples": ["#1A2B3C"]}
        case Flag():
            return {"type": "boolean"}
        case Listing():
            entry = value_schema(kind.entry)
            entries = entry if kind.not_null else or_null(entry)
            schema = {"type": "array", "maxItems": kind.max_entries, "items": entries}
            if kind.usual_entries < kind.max_entries:
                about = (
                    f"Usually at most {kind.usual_entries} entries; "
                    "longer lists are accepted but cause a warning."
                )
                schema["description"] = about
            return schema
        case Added():
            return value_schema(kind.kind)
        case Group() if kind is DATE_RANGE:
            return {"$ref": "#/components/schemas/DateRange"}
        case Group():
            return group_schema(kind)
        case _:
            return {}  # any value is accepted and stored unchanged


WELCOME = b'{"docs":"docs","openapi":"openapi.json"}'
"""Relative links, so that a proxy can serve the API under any path."""

ASSETS = Path(__file__).parent / "assets"
SWAGGER_UI = "swagger-ui-5.35.0"
"""The folder with the files and license of Swagger UI, named after its version."""

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # Swagger UI's style sheet contains inline icons
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)

_PAGE: Headers = [
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]
_OURS: Headers = [(b"cache-control", b"no-cache")]
# The path contains the version, so the content never changes.
_VERSIONED: Headers = [(b"cache-control", b"public, max-age=31536000, immutable")]


def description_files(accepted: Format) -> dict[str, Respond]:
    """Return, by path: the links, the document for this format, the page, and the page's files."""
    html, script, style = (f"text/{kind}; charset=utf-8" for kind in ("html", "javascript", "css"))
    bundle, sheet = f"{SWAGGER_UI}/swagger-ui-bundle.js", f"{SWAGGER_UI}/swagger-ui.css"
    return {
        "/": _file(lambda: WELCOME, "application/json", _OURS),
        "/openapi.json": _file(lambda: document_bytes(accepted), "application/json", _OURS),
        "/docs": _file((ASSETS / "docs.html").read_bytes, html, _PAGE),
        "/docs/": _file(_page_with_slash, html, _PAGE),
        "/docs/docs.js": _file((ASSETS / "docs.js").read_bytes, script, _OURS),
        "/docs/docs.css": _file((ASSETS / "docs.css").read_bytes, style, _OURS),
        f"/docs/{bundle}": _file((ASSETS / bundle).read_bytes, script, _VERSIONED),
        f"/docs/{sheet}": _file((ASSETS / sheet).read_bytes, style, _VERSIONED),
    }


def _page_with_slash() -> bytes:
    """Return the page with links that work under /docs/."""
    page = (ASSETS / "docs.html").read_bytes()
    return page.replace(b'"docs/', b'"').replace(b'"openapi.json"', b'"../openapi.json"')


def _file(load: Callable[[], bytes], content_type: str, headers: Headers) -> Respond:
    """Return a function that answers with constant bytes, which are loaded on first use."""
    load = functools.cache(load)

    async def respond(request: Request) -> None:
        # Loading takes milliseconds, during which the event loop would be blocked.
        body = await asyncio.to_thread(load)
        await request.respond_file(body, [(b"content-type", content_type.encode()), *headers])

    return respond


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(document_bytes())
