"""GET /, /openapi.json and /docs: descriptions of the API, for programs and for people (docs/api.md, Description).

The page is Swagger UI with everything it needs, so it works without a way to anywhere else, and
its policy lets the browser load nothing from there.
"""

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path

from resumes.analyzer import Format
from server.openapi import document_bytes
from server.request import Headers, Request, Respond

ASSETS = Path(__file__).parent / "assets"
SWAGGER_UI = "swagger-ui-5.35.0"
"""The folder of the files that are Swagger UI's own, with their license; its name has the version."""

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # Swagger UI's style sheet has its icons inside
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
# The path has the version, so what it names stays the same.
_VERSIONED: Headers = [(b"cache-control", b"public, max-age=31536000, immutable")]


WELCOME = b'{"docs":"/docs","openapi":"/openapi.json"}'


def description_files(accepted: Format) -> dict[str, Respond]:
    """Return by path: where these are, the document for this format, the page, and what that loads."""
    document = functools.partial(document_bytes, accepted)
    script, style = "text/javascript", "text/css"
    bundle, sheet = f"{SWAGGER_UI}/swagger-ui-bundle.js", f"{SWAGGER_UI}/swagger-ui.css"
    return {
        "/": _file(lambda: WELCOME, "application/json", _OURS),
        "/openapi.json": _file(document, "application/json", _OURS),
        "/docs": _asset("docs.html", "text/html", _PAGE),
        "/docs/docs.js": _asset("docs.js", script, _OURS),
        "/docs/docs.css": _asset("docs.css", style, _OURS),
        f"/docs/{bundle}": _asset(bundle, script, _VERSIONED),
        f"/docs/{sheet}": _asset(sheet, style, _VERSIONED),
    }


def _asset(path: str, content_type: str, headers: Headers) -> Respond:
    return _file((ASSETS / path).read_bytes, f"{content_type}; charset=utf-8", headers)


def _file(load: Callable[[], bytes], content_type: str, headers: Headers) -> Respond:
    """Return what answers with bytes that stay the same while the service runs."""
    load = functools.cache(load)

    async def respond(request: Request) -> None:
        # The first time they are read, or made: milliseconds, for which others would have to wait.
        body = await asyncio.to_thread(load)
        await request.respond_file(body, [(b"content-type", content_type.encode()), *headers])

    return respond
