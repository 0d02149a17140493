"""GET /openapi.json and /docs: the API described, for programs and for people (docs/api.md, Description).

The page is Swagger UI with everything it needs, so it works without a way to anywhere else, and
its policy lets the browser load nothing from there.
"""

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from resumes.analyzer import Format
from server.openapi import document_bytes
from server.responses import Headers

ASSETS = Path(__file__).parent / "assets"
SLICE_BYTES = 32 * 1024
"""How much of an answer is in our hands at once, for each client that asks."""

SWAGGER_UI = "swagger-ui-5.35.0"
"""The folder of the files that are Swagger UI's own, with their licence; its name has the version."""

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


class Unchanging:
    """Answers GET with bytes that stay the same while the service runs."""

    def __init__(self, load: Callable[[], bytes], content_type: str, headers: Headers) -> None:
        self._load = functools.cache(load)
        self._headers: Headers = [
            (b"content-type", content_type.encode()),
            (b"x-content-type-options", b"nosniff"),
            *headers,
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The client has the bytes. Raises HTTPException 405 for other methods."""
        if scope["method"] != "GET":
            raise HTTPException(405, headers={"Allow": "GET"})
        # The first time they are read, or made: milliseconds, in which others want answers.
        body = await asyncio.to_thread(self._load)
        headers = [*self._headers, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        # In slices, each behind a turn of the loop in which the last can leave: a client that
        # does not read costs one of them, and not a copy of all.
        for start in range(0, len(body), SLICE_BYTES):
            part = body[start : start + SLICE_BYTES]
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})


def description_routes(accepted: Format) -> list[Route]:
    """The document of a service that accepts this format, the page, and what the page loads."""
    document = functools.partial(document_bytes, accepted)
    script, style = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
    return [
        Route("/openapi.json", Unchanging(document, "application/json", _OURS)),
        Route("/docs", _asset("docs.html", "text/html; charset=utf-8", _PAGE)),
        Route("/docs/docs.js", _asset("docs.js", script, _OURS)),
        Route("/docs/docs.css", _asset("docs.css", style, _OURS)),
        _swagger_ui("swagger-ui-bundle.js", script),
        _swagger_ui("swagger-ui.css", style),
    ]


def _swagger_ui(name: str, content_type: str) -> Route:
    path = f"{SWAGGER_UI}/{name}"
    return Route(f"/docs/{path}", _asset(path, content_type, _VERSIONED))


def _asset(path: str, content_type: str, headers: Headers) -> Unchanging:
    return Unchanging((ASSETS / path).read_bytes, content_type, headers)
