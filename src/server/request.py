"""A request: reading its body, and sending JSON answers, including errors in the common format.

All errors have the form `{"error": str, "status": int}`, possibly with `requestId`, `retryAfter`
and `issues` (docs/api.md, Errors). Domain errors do not contain HTTP statuses; see `STATUSES`.
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
"""The format of a request ID from a client (docs/api.md, Errors)."""

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
"""The number of bytes of a large answer that are buffered at a time, per client."""

# Answers contain personal data and depend on the key, so caches must not store them.
_JSON: Final = b"content-type: application/json\r\ncache-control: no-store\r\n"
_BODY: Final = b"x-content-type-options: nosniff\r\ncontent-length: %d\r\n"


class HttpError(Exception):
    """An error answer. `headers` are added to the answer and `more` to its body."""

    def __init__(self, status: int, message: str = "", headers: Headers = (), **more: Any) -> None:
        self.status = status
        self.message = message or http.HTTPStatus(status).phrase
        super().__init__(self.message)
        self.headers = headers
        self.more = more


def http_error(error: ResumesError) -> HttpError:
    """Return the answer for a domain error."""
    status = STATUSES[error.code]
    if isinstance(error, StoreError) and not isinstance(error, OutcomeUnknown):
        # The error's own message contains names of local files, which clients must not see.
        return HttpError(status, UNAVAILABLE)
    if isinstance(error, InvalidKey):
        return HttpError(status, error.message, [(b"www-authenticate", b"Bearer")])
    if isinstance(error, InvalidResume):
        return HttpError(status, error.message, issues=error.issues)
    return HttpError(status, error.message)


class ClientGone(Exception):
    """Raised if the client left before the request was complete; no answer is needed."""


class ResponseWriter(Protocol):
    """The methods of a connection that a request uses."""

    def write(self, data: bytes) -> None:
        """Queue the data to be sent in this turn of the event loop."""

    def resume_reading(self) -> None:
        """Resume reading from the client."""

    async def drain(self) -> None:
        """Wait until the client has read most of what was written."""

    def release(self, size_bytes: int) -> None:
        """Count this many bytes of the body as no longer held in memory."""

    def finish(self, request: "Request") -> None:
        """Record that the request was answered completely."""

    def abort(self) -> None:
        """Close the connection immediately; unsent data is lost."""


@dataclass(slots=True, eq=False, repr=False)  # no repr, since it would show a key and a resume
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
    """The time at which the head was complete."""

    lines: list[bytes] = field(default_factory=list)
    """Header lines to add to the answer, regardless of its status."""

    operation: str = ""
    """The operation's name in logs and metrics; empty if there is no operation."""

    account_id: str = ""
    key_id: str = ""
    """The IDs of the account and key; empty until the key is known to be valid."""

    status: int = 0
    """The status of the answer; 0 until the answer has begun."""

    is_answered: bool = False
    """Whether the answer is complete."""

    is_whole: bool = False
    """Whether the body was received completely."""

    is_gone: bool = False
    """Whether the client has left or was sent an error."""

    has_ended_sending: bool = False
    """Whether the client has stopped sending. Most such clients have left; a few still read."""

    body_bytes: int = 0
    """The size of the body received so far, without the parts that `read_part` has returned."""

    _chunks: list[bytes] = field(default_factory=list)
    max_bytes: int | None = None
    """The limit of `read_body`, 0 while the body is read in parts, or None before it is read."""

    _changed: asyncio.Event | None = None
    """An event that wakes the reader of the body; None if no reader has waited yet."""

    # The body of the request

    async def read_body(self, max_bytes: int) -> bytes:
        """Wait for the complete body, which need not have a declared length, and return it.

        Raises TooLarge, and ClientGone if the client leaves before the body is complete.
        """
        await self._wait_for(lambda: self.is_whole or self.body_bytes > max_bytes, max_bytes)
        if self.body_bytes > max_bytes:
            raise TooLarge(limit_bytes=max_bytes)
        return self._take_chunks()

    async def read_part(self) -> bytes:
        """Wait for more of the body and return it. At the end of the body, return no bytes.

        The returned bytes no longer count as memory. Raises ClientGone like `read_body`.
        """
        await self._wait_for(lambda: self.is_whole or bool(self._chunks), 0)
        self.connection.release(self.body_bytes)
        self.body_bytes = 0
        return self._take_chunks()

    async def _wait_for(self, has_arrived: Callable[[], bool], max_bytes: int) -> None:
        """Wait until `has_arrived`, after sending a 100 (Continue) to a client that expects it."""
        self.max_bytes = max_bytes
        if self.expects_continue and not self.is_gone:
            self.expects_continue = False
            self.connection.write(CONTINUE)
        while not self.is_gone:
            if has_arrived():
                return
            self.connection.resume_reading()
            self._changed = asyncio.Event()
            await self._changed.wait()
        raise ClientGone

    def _take_chunks(self) -> bytes:
        chunks, self._chunks = self._chunks, []
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def receive(self, chunk: bytes) -> None:
        """Add a part of the body. The connection calls this."""
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

    # The answer to the request

    def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Answer with a JSON body. A 304, for a client whose copy is current, has no body."""
        if status == 503 and not headers:
            headers = [RETRY_AFTER]
        about = b"" if status == 304 else _JSON + _BODY % len(body)
        self._begin(status, about, headers, body)
        self.connection.finish(self)

    def respond_error(self, error: HttpError) -> None:
        """Answer with the error."""
        if error.status == 413:
            self.keep_alive = False  # the rest of the body is not read
        body = {"error": error.message, "status": error.status, "requestId": self.id, **error.more}
        self.respond(error.status, orjson.dumps(body), error.headers)

    def cut_off(self) -> None:
        """Close the connection within the answer, so that the client notices the missing rest."""
        self.leave()
        self.connection.abort()

    async def respond_file(self, body: bytes, headers: Headers) -> None:
        """Answer 200 with a body of any size, as fast as the client reads it."""
        self._begin(200, _BODY % len(body), headers, body[:FILE_SLICE_BYTES])
        end = 0 if self.method == "HEAD" else len(body)
        for start in range(FILE_SLICE_BYTES, end, FILE_SLICE_BYTES):
            # Write one slice per turn of the loop, during which the previous slice can be sent: a
            # client that does not read costs the memory of one slice, not of a complete copy.
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
            # A client that was sent no 100 (Continue) may or may not send its body, and its next
            # request could be mistaken for the body.
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
"""Answers a request that requires no key."""


@functools.lru_cache(maxsize=1)
def _date_line(now_s: int) -> bytes:
    return b"date: %b\r\n" % formatdate(now_s, usegmt=True).encode()


def find_request_id(headers: Headers) -> str:
    """Return the client's request ID if it has the required format, otherwise a new ID."""
    for name, value in headers:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            return value.decode()
    # Use 16 random hexadecimal digits; the ID need not be unpredictable.
    return f"{random.getrandbits(64):016x}"


_TAG: Final = re.compile(rb'(W/)?"([^"]*?)(?:-gzip|-br)?"')
"""An entity tag, without the suffix that Apache adds when it compresses an answer."""


def find_tags(headers: Headers, name: bytes, *, with_weak: bool) -> set[bytes] | None:
    """Return the entity tags in the header with this name, as strong tags; `*` stands for any tag.
    Return None if there is no such header (RFC 9110, 13.1)."""
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

    Raises InvalidArgument for repeated parameters and, unless `ignores_others`, for unknown ones.
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
