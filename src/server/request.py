"""A request: reading its body, and answering it in JSON, with errors in the common format.

An error of any layer is `{"error": str, "status": int}`, possibly with `requestId`, `retryAfter` and
`issues` (docs/api.md, Errors). Domain errors do not know HTTP; `STATUSES` maps them to statuses.
"""

import asyncio
import functools
import http
import random
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl

import orjson

from resumes.errors import (
    ErrorCode,
    InvalidArgument,
    InvalidKey,
    InvalidResume,
    OutcomeUnknown,
    ResumesError,
    StoreError,
    TooLarge,
)

Headers = Sequence[tuple[bytes, bytes]]

REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
"""The form of a request ID from a client (docs/api.md, Errors)."""

STATUSES: Final[dict[ErrorCode, int]] = {
    ErrorCode.INVALID_JSON: 400,
    ErrorCode.INVALID_RESUME: 400,
    ErrorCode.COVER_LETTER: 400,
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.INVALID_KEY: 401,
    ErrorCode.QUOTA_REACHED: 403,
    ErrorCode.FORGOTTEN: 403,
    ErrorCode.BUSINESS_PLAN_REQUIRED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.RESUME_CHANGED: 412,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.IDEMPOTENCY_MISMATCH: 422,
    # Not 503, because a retry does not help.
    ErrorCode.STORE_INCOMPATIBLE: 500,
    ErrorCode.STATEMENT_REFUSED: 500,
    ErrorCode.STORE_UNAVAILABLE: 503,
    ErrorCode.OUTCOME_UNKNOWN: 503,
}
"""The status of each domain error that can reach a client."""

UNAVAILABLE: Final = "Service unavailable: nothing was done; try again later"
RETRY_AFTER: Final = (b"retry-after", b"1")
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in http.HTTPStatus
}

FILE_SLICE_BYTES: Final = 32 * 1024
"""How much of a large answer is buffered at a time, per client."""

# Answers contain personal data and depend on the key, so no cache may store them.
_JSON: Final = b"content-type: application/json\r\ncache-control: no-store\r\n"
_BODY: Final = b"x-content-type-options: nosniff\r\ncontent-length: %d\r\n"


class HttpError(Exception):
    """An error answer without a domain error: about a path, a method, a head, or a full disk.

    `headers` are added to the answer, `more` to its body.
    """

    def __init__(self, status: int, message: str = "", headers: Headers = (), **more: int) -> None:
        self.status = status
        self.message = message or http.HTTPStatus(status).phrase
        super().__init__(self.message)
        self.headers = headers
        self.more = more


class ClientGone(Exception):
    """The client left before the request was complete; no answer is needed."""


class ResponseWriter(Protocol):
    """The connection, as far as a request uses it."""

    def write(self, data: bytes) -> None:
        """Queue the data to be sent in this turn of the event loop."""

    def resume_reading(self) -> None:
        """Resume reading from the client."""

    async def drain(self) -> None:
        """Wait until the client has read most of what was written."""

    def release(self, size_bytes: int) -> None:
        """Count this much of the body as no longer held in memory."""

    def finish(self, request: "Request") -> None:
        """Record that the request has its complete answer."""

    def abort(self) -> None:
        """End the connection immediately; unsent data is lost."""


@dataclass(slots=True, eq=False, repr=False)  # no repr: it holds a key and a resume
class Request:
    """A request, its state while it is handled, and its answer."""

    method: str = ""
    path: str = ""
    """The decoded path."""
    query: bytes = b""
    """The query string, not decoded."""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Header fields with names in lower case."""

    id: str = ""

    keep_alive: bool = False
    """Whether the connection stays open after the answer."""

    expects_continue: bool = False
    """Whether the client waits for a 100 (Continue) before it sends the body."""

    connection: ResponseWriter = field(init=False)

    began_s: float = 0.0
    """When the head was complete."""

    lines: list[bytes] = field(default_factory=list)
    """Header lines to add to the answer, whatever its status."""

    operation: str = ""
    """The operation's name in logs and metrics; empty if there is none."""

    account_id: str = ""
    key_id: str = ""
    """The request's account and key; empty until the key is known to be valid."""

    status: int = 0
    """The status of the answer; 0 until it has begun."""

    is_answered: bool = False
    """Whether the answer is complete."""

    is_whole: bool = False
    """Whether the whole body was received."""

    is_gone: bool = False
    """Whether the client has left, or was sent an error."""

    body_bytes: int = 0
    """The size of the body received so far, without what `read_part` has returned."""

    _chunks: list[bytes] = field(default_factory=list)
    max_bytes: int | None = None
    """The limit of `read_body`; 0 while the body is read in parts; None until it is read."""

    _changed: asyncio.Event | None = None
    """Set to wake the reader of the body; None until that waits."""

    # Its body

    async def read_body(self, max_bytes: int) -> bytes:
        """Wait for the whole body, whose length need not be declared, and return it.

        Raises TooLarge, and ClientGone if the client leaves before the body is complete.
        """
        self._ask_for_body(max_bytes)
        while not self.is_gone:
            if self.body_bytes > max_bytes:
                raise TooLarge(limit_bytes=max_bytes)
            if self.is_whole:
                return self._take_chunks()
            await self._wait_for_body()
        raise ClientGone

    async def read_part(self) -> bytes:
        """Wait for more of the body and return it; empty at its end.

        What was returned no longer counts as memory. Raises ClientGone as `read_body`.
        """
        self._ask_for_body(0)
        while not self.is_gone:
            if self._chunks or self.is_whole:
                self.connection.release(self.body_bytes)
                self.body_bytes = 0
                return self._take_chunks()
            await self._wait_for_body()
        raise ClientGone

    def _ask_for_body(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        if self.expects_continue and not self.is_gone:
            self.expects_continue = False
            self.connection.write(CONTINUE)

    def _take_chunks(self) -> bytes:
        chunks, self._chunks = self._chunks, []
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _wait_for_body(self) -> None:
        self.connection.resume_reading()
        self._changed = asyncio.Event()
        await self._changed.wait()

    def receive(self, chunk: bytes) -> None:
        """Add a part of the body, called by the connection."""
        self.body_bytes += len(chunk)
        self._chunks.append(chunk)
        if self.max_bytes is not None and self.body_bytes > self.max_bytes:
            self._wake()

    def complete(self) -> None:
        """Mark the body as complete."""
        self.is_whole = True
        self._wake()

    def leave(self) -> None:
        """Mark the request as abandoned, because the client has left or was sent an error."""
        self.is_gone = True
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()

    # Its answer

    def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Answer with a JSON body; 304, if the client's copy is current, has none."""
        about = b"" if status == 304 else _JSON + _BODY % len(body)
        self._begin(status, about, headers, body)
        self.connection.finish(self)

    def respond_error(self, error: ResumesError | HttpError) -> None:
        """Answer with the error."""
        headers: Headers = ()
        more: dict[str, Any] = {}
        message = error.message
        if isinstance(error, HttpError):
            status, headers, more = error.status, error.headers, error.more
        else:
            status = STATUSES[error.code]
            if isinstance(error, StoreError) and not isinstance(error, OutcomeUnknown):
                # The error's own message names local files, which clients must not see.
                message = UNAVAILABLE
            elif isinstance(error, InvalidKey):
                headers = [(b"www-authenticate", b"Bearer")]
            elif isinstance(error, TooLarge):
                self.keep_alive = False  # the rest of the body is not read
        body = {"error": message, "status": status, **more, "requestId": self.id}
        if isinstance(error, InvalidResume) and error.issues:
            body["issues"] = error.issues
        if status == 503 and not headers:
            headers = [RETRY_AFTER]
        self.respond(status, orjson.dumps(body), headers)

    def cut_off(self) -> None:
        """End the connection within the answer, so that the client notices the missing rest."""
        self.leave()
        self.connection.abort()

    async def respond_file(self, body: bytes, headers: Headers) -> None:
        """Answer 200 with a body of any size, as fast as the client reads it."""
        self._begin(200, _BODY % len(body), headers, body[:FILE_SLICE_BYTES])
        end = 0 if self.method == "HEAD" else len(body)
        for start in range(FILE_SLICE_BYTES, end, FILE_SLICE_BYTES):
            # One slice per turn of the loop, in which the previous one can be sent: a client that does
            # not read costs the memory of one slice, not of a full copy.
            await asyncio.sleep(0)
            await self.connection.drain()
            if self.is_gone:
                return
            self.connection.write(body[start : start + FILE_SLICE_BYTES])
        self.connection.finish(self)

    def _begin(self, status: int, about: bytes, headers: Headers, body: bytes) -> None:
        if self.is_gone:
            self.status = self.status or status
            return
        if self.expects_continue:
            self.expects_continue = False
            # A client that got no 100 (Continue) may or may not send its body, and the next request
            # could be taken for it.
            self.keep_alive = self.keep_alive and self.is_whole
        answer = [STATUS_LINES[status], _date_line(int(time.time())), about]
        answer += [b"x-request-id: %b\r\n" % self.id.encode(), *self.lines]
        if headers:
            answer += [b"%b: %b\r\n" % header for header in headers]
        answer += [b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"]
        if self.method != "HEAD":
            answer.append(body)
        self.connection.write(b"".join(answer))
        self.status = status


Respond = Callable[[Request], Coroutine[Any, Any, None]]
"""Answers a request that needs no key."""


@functools.lru_cache(maxsize=1)
def _date_line(now_s: int) -> bytes:
    return b"date: %b\r\n" % formatdate(now_s, usegmt=True).encode()


def find_request_id(headers: Headers) -> str:
    """Return the client's request ID if it has the right form, otherwise a new one."""
    for name, value in headers:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            return value.decode()
    # 16 random hex digits; the ID need not be unpredictable.
    return f"{random.getrandbits(64):016x}"


_TAG: Final = re.compile(rb'(W/)?"([^"]*?)(?:-gzip|-br)?"')
"""An entity tag, without the suffix that Apache adds when it compresses an answer."""


def find_tags(headers: Headers, name: bytes, *, with_weak: bool) -> set[bytes] | None:
    """Return the entity tags in the header of this name, as strong ones; `*` stands for any. None if
    there is no such header (RFC 9110, 13.1)."""
    values = [value for header, value in headers if header == name]
    if not values:
        return None
    found = (pair for value in values for pair in _TAG.findall(value))
    tags = {b'"%b"' % tag for weak, tag in found if with_weak or not weak}
    return tags | ({b"*"} if b"*" in values else set())


def parse_fields(
    query: bytes, known: Sequence[str], *, ignores_others: bool = False
) -> dict[str, str]:
    """Return the parameters of a query string by name.

    Raises InvalidArgument for a repeated parameter and, unless it `ignores_others`, an unknown one.
    """
    fields = dict[str, str]()
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known:
            if ignores_others:
                continue
            *others, last = known
            use = " or ".join(filter(None, (", ".join(others), last)))
            raise InvalidArgument(f"Unknown parameter: {name}. Use {use}")
        if name in fields:
            raise InvalidArgument(f"{name} is repeated")
        fields[name] = value
    return fields
