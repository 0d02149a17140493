"""A request: which heads are served, and its answer: JSON, and errors in the one shape.

Two readers of one head, a proxy and this server, must never read two requests: what could be read in
two ways is refused, not repaired (RFC 9112, 11.2; docs/api.md, Limits). The parser refuses broken
lines, white space where none belongs, and lengths that are not numbers or contradict each other.

An error is `{"error": str, "status": int}`, whatever layer it comes from; `requestId`, `retryAfter`
and `issues` may follow (docs/api.md, Errors). Domain errors know no HTTP: `STATUSES` is where they
meet it.
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
from resumes.store.api_keys import KeyHolder

Headers = Sequence[tuple[bytes, bytes]]

REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
"""The form in which a client may name its request (docs/api.md, Errors)."""

STATUSES: Final[dict[ErrorCode, int]] = {
    ErrorCode.INVALID_JSON: 400,
    ErrorCode.INVALID_RESUME: 400,
    ErrorCode.COVER_LETTER: 400,
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.INVALID_KEY: 401,
    ErrorCode.QUOTA_REACHED: 403,
    ErrorCode.BUSINESS_PLAN_REQUIRED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.IDEMPOTENCY_MISMATCH: 422,
    # Trying again does not help, so it is not a 503.
    ErrorCode.STORE_INCOMPATIBLE: 500,
    ErrorCode.STATEMENT_REFUSED: 500,
    ErrorCode.STORE_UNAVAILABLE: 503,
    ErrorCode.OUTCOME_UNKNOWN: 503,
}
"""The status of every domain error that reaches a client."""

UNAVAILABLE: Final = "Service unavailable: nothing was done; try again later"
RETRY_AFTER: Final = (b"retry-after", b"1")
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in http.HTTPStatus
}

FILE_SLICE_BYTES: Final = 32 * 1024
"""How much of a large answer is in memory at once, for each client that asks for it."""

# Answers hold personal data and depend on the key: no cache may keep them.
_JSON: Final = b"content-type: application/json\r\ncache-control: no-store\r\n"
_BODY: Final = b"x-content-type-options: nosniff\r\ncontent-length: %d\r\n"


class HttpError(Exception):
    """An answer that no error of the store or the format stands for: a path, a method, a head, a full disk.

    `headers` and `more` are for its answer, and for the body of that.
    """

    def __init__(self, status: int, message: str = "", headers: Headers = (), **more: int) -> None:
        self.status = status
        self.message = message or http.HTTPStatus(status).phrase
        super().__init__(self.message)
        self.headers = headers
        self.more = more


class ClientGone(Exception):
    """The client has left before it had sent all; nobody waits for an answer."""


class ResponseWriter(Protocol):
    """What a request came by, as far as the request uses it."""

    def write(self, data: bytes) -> None:
        """Send the data after what was written before, in this turn of the event loop."""

    def resume_reading(self) -> None:
        """Read on from the client."""

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written."""

    def finish(self, request: "Request") -> None:
        """Record that the request has its complete answer."""

    def abort(self) -> None:
        """End the connection immediately; what was not sent is lost."""


@dataclass(slots=True, eq=False, repr=False)  # it holds a key, and a resume
class Request:
    """A request, what became known of it on its way, and its answer."""

    carrier: ResponseWriter

    id: str = ""
    method: str = ""
    target: bytes = b""
    path: str = ""
    """Decoded."""
    query: bytes = b""
    """Not decoded."""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    """With names in lower case."""

    keep_alive: bool = False
    """Whether the connection stays open after the answer."""

    expects_continue: bool = False
    """Whether the client asks before it sends the body, and has not been answered yet."""

    began_s: float = 0.0
    """When the head was whole."""

    lines: list[bytes] = field(default_factory=list)
    """Header lines of its answer, whatever the status."""

    operation: str = ""
    """What was asked for, by the name that logs and metrics know; empty for what is nothing."""

    holder: KeyHolder | None = None
    """Whose key it came with, once that is known."""

    status: int = 0
    """Of the answer; 0 until it has begun."""

    is_answered: bool = False
    """Whether the answer is whole."""

    is_whole: bool = False
    """Whether all of the body has come."""

    is_gone: bool = False
    """Whether the client has left, or has been sent an error."""

    body_bytes: int = 0
    """How much of the body has come."""

    _chunks: list[bytes] = field(default_factory=list)
    max_bytes: int | None = None
    """How large a body somebody waits for; None while nobody does."""

    _changed: asyncio.Event | None = None
    """While somebody waits for the body."""

    # Its body

    async def read_body(self, max_bytes: int) -> bytes:
        """Return the body, of which the length need not be declared, when all of it has come.

        Raises TooLarge, and ClientGone when the client goes before it has sent all.
        """
        self.max_bytes = max_bytes
        if self.expects_continue and not self.is_gone:
            self.expects_continue = False
            self.carrier.write(CONTINUE)
        while not self.is_gone:
            if self.body_bytes > max_bytes:
                raise TooLarge(limit_bytes=max_bytes)
            if self.is_whole:
                chunks, self._chunks = self._chunks, []
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)
            self.carrier.resume_reading()
            self._changed = asyncio.Event()
            await self._changed.wait()
        raise ClientGone

    def receive(self, chunk: bytes) -> None:
        """Take a part of the body, which the connection has read."""
        self.body_bytes += len(chunk)
        self._chunks.append(chunk)
        if self.max_bytes is not None and self.body_bytes > self.max_bytes:
            self._wake()

    def complete(self) -> None:
        """Take note that all of the body has come."""
        self.is_whole = True
        self._wake()

    def leave(self) -> None:
        """Take note that the client has left, or that nothing will come of this."""
        self.is_gone = True
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()

    # Its answer

    def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Answer in JSON."""
        self._begin(status, _JSON + _BODY % len(body), headers, body)
        self.carrier.finish(self)

    def respond_error(self, error: ResumesError | HttpError) -> None:
        """Tell the client of an error."""
        headers: Headers = ()
        more: dict[str, Any] = {}
        message = error.message
        if isinstance(error, HttpError):
            status, headers, more = error.status, error.headers, error.more
        else:
            status = STATUSES[error.code]
            if isinstance(error, StoreError) and not isinstance(error, OutcomeUnknown):
                # Its own message names files on this machine: for the log, not for clients.
                message = UNAVAILABLE
            elif isinstance(error, InvalidKey):
                headers = [(b"www-authenticate", b"Bearer")]
            elif isinstance(error, TooLarge):
                self.keep_alive = False  # no more of it is read
        body = {"error": message, "status": status, **more, "requestId": self.id}
        if isinstance(error, InvalidResume) and error.issues:
            body["issues"] = error.issues
        if status == 503 and not headers:
            headers = [RETRY_AFTER]
        self.respond(status, orjson.dumps(body), headers)

    def respond_not_modified(self, headers: Headers) -> None:
        """Answer 304: what the client has is what it would get."""
        self._begin(304, b"", headers, b"")
        self.carrier.finish(self)

    def cut_off(self) -> None:
        """End the connection in the middle of the answer: the client sees that the rest is missing."""
        self.leave()
        self.carrier.abort()

    async def respond_file(self, body: bytes, headers: Headers) -> None:
        """Answer 200 with bytes that may be many, as fast as the client takes them."""
        self._begin(200, _BODY % len(body), headers, body[:FILE_SLICE_BYTES])
        end = 0 if self.method == "HEAD" else len(body)
        for start in range(FILE_SLICE_BYTES, end, FILE_SLICE_BYTES):
            # In slices, each after a turn of the loop in which the last can leave: a client that
            # does not read costs one of them, and not a copy of all.
            await asyncio.sleep(0)
            await self.carrier.drain()
            if self.is_gone:
                return
            self.carrier.write(body[start : start + FILE_SLICE_BYTES])
        self.carrier.finish(self)

    def _begin(self, status: int, about: bytes, headers: Headers, body: bytes) -> None:
        if self.is_gone:
            self.status = self.status or status
            return
        if self.expects_continue:
            self.expects_continue = False
            # A client that was not asked for its body may send it or not, and the next request would be
            # taken for it.
            self.keep_alive = self.keep_alive and self.is_whole
        answer = [STATUS_LINES[status], _date_line(int(time.time())), about]
        answer += [b"x-request-id: %b\r\n" % self.id.encode(), *self.lines]
        if headers:
            answer += [b"%b: %b\r\n" % header for header in headers]
        answer += [b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"]
        if self.method != "HEAD":
            answer.append(body)
        self.carrier.write(b"".join(answer))
        self.status = status


Respond = Callable[[Request], Coroutine[Any, Any, None]]
"""Answers whoever asks."""


@functools.lru_cache(maxsize=1)
def _date_line(now_s: int) -> bytes:
    return b"date: %b\r\n" % formatdate(now_s, usegmt=True).encode()


def find_request_id(headers: Headers) -> str:
    """Return the id that the client gave its request, if it is of the form; else a new one."""
    for name, value in headers:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            return value.decode()
    # 16 random hex digits. They name, and keep no secret.
    return f"{random.getrandbits(64):016x}"


def parse_fields(query: bytes, known: Sequence[str]) -> dict[str, str]:
    """Return the parameters of a query string by name.

    Raises InvalidArgument for one that is not known, or that is repeated.
    """
    fields = dict[str, str]()
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known:
            *others, last = known
            raise InvalidArgument(f"Unknown parameter: {name}. Use {', '.join(others)} or {last}")
        if name in fields:
            raise InvalidArgument(f"{name} is repeated")
        fields[name] = value
    return fields


HEAD_BYTES = 64 * 1024
"""The largest head, its request line among it."""

TARGET_BYTES = 8 * 1024 - 16
"""The longest request target: with method and version around it, a request line of 8 KiB."""

MAX_FIELDS = 100
"""The most header fields of a head."""

HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=-]*(?::[0-9]*)?|\[[0-9A-Fa-f:.]+\](?::[0-9]*)?")
ABSOLUTE = re.compile(rb"https?://([^/:][^/]*)", re.IGNORECASE)
"""The beginning of a target as it is sent to a proxy, up to its path. No user may be in it."""

ENCODED_STRUCTURE = re.compile(rb"%(?:2[ef]|5c|[01][0-9a-f]|7f)", re.IGNORECASE)
"""Dots, slashes, backslashes and control characters that hide in a path."""


def check_head(version: str, target: bytes, headers: Headers) -> tuple[bytes, bytes]:
    """Return the path and the query of a complete head, which is not too large. Raises HttpError
    for one that is not served.

    `headers` have names in lower case. The host of a target in absolute form counts instead of the Host
    header (RFC 9112, 3.2.2); here, neither makes a difference.
    """
    if len(headers) > MAX_FIELDS:
        raise HttpError(431, f"Too many header fields: at most {MAX_FIELDS}")
    if version not in ("1.1", "1.0"):
        raise HttpError(400, f"HTTP/{version} is not supported: use HTTP/1.1")
    path, _, query = target.partition(b"?")
    if path[:1] != b"/" and (absolute := ABSOLUTE.match(path)) and _is_host(absolute[1]):
        path = path[absolute.end() :] or b"/"
    if path[:1] != b"/" or b"#" in target:
        raise HttpError(400, "Invalid request target: it must be a path, as in /api/v1/resumes")
    if b"%" in path and ENCODED_STRUCTURE.search(path):
        raise HttpError(400, "Invalid request target: an encoded dot, slash or control character")
    hosts = codings = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if not _is_host(value):
                raise HttpError(400, "Invalid Host: it must be a name or an address")
        elif name == b"transfer-encoding":
            codings += 1
            if version == "1.0" or codings > 1:
                raise HttpError(
                    400, "Invalid Transfer-Encoding: it takes HTTP/1.1, and may be sent once"
                )
            if value.lower() != b"chunked":
                raise HttpError(
                    501, "Unsupported transfer coding: send chunked, or a Content-Length"
                )
    if hosts != 1 and (hosts or version == "1.1"):
        raise HttpError(400, "Missing Host" if not hosts else "More than one Host")
    return path, query


@functools.lru_cache(maxsize=64)  # a client always sends the same
def _is_host(value: bytes) -> bool:
    return HOST.fullmatch(value) is not None


def count_bytes(target: bytes, headers: Headers) -> int:
    """Return the size of a complete head."""
    # With ": " and a line break for each field, and what a request line has around its target.
    return len(target) + 16 + sum(len(name) + len(value) + 4 for name, value in headers)


def check_size(head_bytes: int, target: bytes) -> None:
    """Check that a head, or what has come of it, is not too large. Raises HttpError."""
    if len(target) > TARGET_BYTES:
        raise HttpError(414, f"Request line too long: the limit is {TARGET_BYTES + 16} bytes")
    if head_bytes > HEAD_BYTES:
        raise HttpError(431, f"Request head too large: the limit is {HEAD_BYTES} bytes")
