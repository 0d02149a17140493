"""One request and the answer to it, as all that take part see them."""

import random
import re
import time
from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from resumes.errors import InvalidKey, InvalidResume, OutcomeUnknown, ResumesError, StoreError
from resumes.store.keys import KeyHolder
from server.responses import RETRY_AFTER, STATUSES, UNAVAILABLE, Headers, error_body, json_headers

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
"""The form in which a client may name its request (docs/api.md, Errors)."""


class Exchange:
    """A request, what became known of it on its way, and its answer."""

    __slots__ = (
        "_send",
        "began_s",
        "headers",
        "holder",
        "operation",
        "receive",
        "request_id",
        "scope",
        "status",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self.began_s = time.perf_counter()
        self.request_id = find_request_id(scope["headers"])
        self.headers: Headers = [(b"x-request-id", self.request_id.encode())]
        """What its answer bears beside the headers of its own, whatever it is."""
        self.operation = ""
        """What was asked for, by the name that logs and metrics know; empty for what is nothing."""
        self.holder: KeyHolder | None = None
        """Whose key it came with, once that is known."""
        self.status = 0
        """Of the answer; 0 until it has begun."""

    async def send(self, message: Message) -> None:
        """A part of an answer that somebody else composed is sent."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *self.headers]
        await self._send(message)

    async def respond(
        self,
        status: int,
        body: bytes,
        extra: Sequence[tuple[bytes, bytes]] = (),
        *,
        is_whole: bool = True,
    ) -> None:
        """The answer is sent, of JSON. Unless `is_whole` it stays open until `end`."""
        self.status = status
        headers = json_headers(body, [*self.headers, *extra])
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": not is_whole})

    async def end(self) -> None:
        """An answer that was left open is whole."""
        await self._send({"type": "http.response.body", "body": b""})

    async def respond_error(self, error: ResumesError) -> None:
        """The client is told of a domain error."""
        status = STATUSES[error.code]
        issues = error.issues if isinstance(error, InvalidResume) else ()
        body = error_body(status, _public_message(error), issues, request_id=self.request_id)
        extra: Headers = []
        if isinstance(error, InvalidKey):
            extra = [(b"www-authenticate", b"Bearer")]
        elif status == 503:
            extra = [RETRY_AFTER]
        await self.respond(status, body, extra)

    async def respond_http_error(self, error: HTTPException) -> None:
        """The client is told of an error that only HTTP has: a path, a method, a content type."""
        extra = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in (error.headers or {}).items()
        ]
        body = error_body(error.status_code, error.detail, request_id=self.request_id)
        await self.respond(error.status_code, body, extra)


def find_request_id(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The id that the client gave its request, if it is of the form; else a new one."""
    for name, value in headers:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            return value.decode()
    return new_request_id()


def new_request_id() -> str:
    """A request id: 16 random hex digits. It names, and keeps no secret."""
    return f"{random.getrandbits(64):016x}"


def _public_message(error: ResumesError) -> str:
    # What the store says of itself names files on this machine: for the log, not for clients.
    if isinstance(error, StoreError) and not isinstance(error, OutcomeUnknown):
        return UNAVAILABLE
    return error.message
