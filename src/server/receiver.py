"""Receiving HTTP/1.1: bytes become requests, or one error. No input or output is done here.

A proxy and this server must never read different requests from the same bytes: ambiguous heads are
refused, not repaired (RFC 9112, 11.2; docs/api.md, Limits). httptools, the parser, refuses broken
lines, misplaced white space, and lengths that are not numbers or contradict each other.
`tests/fuzz/http.py` compares what is received with h11, and lists the differences.
"""

import functools
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import httptools

from server.request import Headers, HttpError, Request

HEAD_BYTES: Final = 64 * 1024
"""The largest head, including the request line."""

TARGET_BYTES: Final = 8 * 1024 - 16
"""The longest request target: with method and version it makes a request line of 8 KiB."""

MAX_FIELDS: Final = 100
"""The largest number of header fields."""

SLICE_BYTES: Final = 16 * 1024
"""How much is parsed before it is counted; a limit is exceeded by less than this."""

CHUNKING_BYTES: Final = 16 * 1024
"""Bytes for sizes, extensions and trailers that a chunked body may have beyond its content."""

CHUNKING_FACTOR: Final = 8
"""Bytes that may be added to CHUNKING_BYTES per byte of content, for chunks of one byte."""

MALFORMED: Final = "Invalid HTTP request received."

HOST: Final = re.compile(
    rb"[A-Za-z0-9._~%!$&'()*+,;=-]*(?::[0-9]*)?|\[[0-9A-Fa-f:.]+\](?::[0-9]*)?"
)
ABSOLUTE: Final = re.compile(rb"https?://([^/:][^/]*)", re.IGNORECASE)
"""The beginning, up to the path, of a target in absolute form. It must not contain user info."""

ENCODED_STRUCTURE: Final = re.compile(rb"%(?:2[ef]|5c|[01][0-9a-f]|7f)", re.IGNORECASE)
"""Percent-encoded dots, slashes, backslashes and control characters in a path."""


Event: TypeAlias = Request | bytes | Exception | None
"""A request whose head is complete; a part of its body; None for its end; why no more is received."""


class Receiver:
    """Receives the requests of one connection."""

    # Set when a part of a head or body is received
    _events: list[Event]
    _head_bytes: int
    _wire_bytes: int
    _target: bytes
    _headers: list[tuple[bytes, bytes]]
    _expects_continue: bool
    _request: Request

    def __init__(self) -> None:
        self.is_in_head = False
        """Whether the head of a request has begun and is incomplete."""
        self.is_in_body = False
        """Whether a head is complete, and the body has not ended."""
        self.has_begun = False
        """Whether the head or body that is incomplete began in the data that was fed last."""
        self.body_bytes = 0
        """The size of the current body so far, without its chunking."""
        self._parser = self._new_parser()

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # A client that closes after its last request may still read the answers to earlier ones.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def feed(self, data: bytes) -> Sequence[Event]:
        """Return what the next bytes, at most SLICE_BYTES, complete.

        If the last event is an error, nothing can be fed any more: an HttpError is for the client.
        """
        events = self._events = []
        self.has_begun = False
        try:
            self._parse(data)
            if self.is_in_head or self.is_in_body:
                self._check_sizes(len(data))
        except httptools.HttpParserCallbackError as error:
            # The error raised in a callback is the context of the parser's error.
            self._fail(error.__context__ or error)
        except httptools.HttpParserError:
            self._fail(HttpError(400, MALFORMED))
        except Exception as error:  # noqa: BLE001  (the caller's to report)
            self._fail(error)
        return events

    def _fail(self, error: Any) -> None:
        # The traceback of an HttpError is never read, but its frames refer to the events, and so to the
        # error: the cycle would stay in memory.
        is_expected = isinstance(error, HttpError)
        self._events.append(error.with_traceback(None) if is_expected else error)

    def partial_request(self) -> Request:
        """Return what is known of the request whose head is incomplete, or that has not begun."""
        request = Request(headers=self._headers if self.is_in_head else [])
        # Before the target is received, the parser still has the method of an earlier request.
        if self.is_in_head and self._target:
            request.method = self._parser.get_method().decode()
        return request

    def _parse(self, data: bytes) -> None:
        """Parse the data. Raises HttpError and HttpParserError.

        A request that offers a protocol upgrade keeps its body. Java's HttpClient offers HTTP/2 on
        every first request, even a POST. A server may decline by answering in HTTP/1.1 (RFC 9110,
        7.8). But the parser takes everything after such a head for the new protocol, so the request
        is parsed again without the offer.
        """
        while True:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = self._without_offer(data[upgrade.args[0] :])

    def _without_offer(self, rest: bytes) -> bytes:
        method: bytes = self._parser.get_method()
        if method == b"CONNECT":  # an upgrade by the method's name alone
            raise HttpError(400, "CONNECT is not supported.")
        version = self._parser.get_http_version().encode()
        head = [b"%b %b HTTP/%b" % (method, self._target, version)]
        head += [b"%b: %b" % header for header in self._headers if header[0] != b"upgrade"]
        self._parser = self._new_parser()
        return b"\r\n".join([*head, b"", rest])

    def _check_sizes(self, size_bytes: int) -> None:
        """Count the bytes of an incomplete request. Raises HttpError if there are too many."""
        if self.is_in_head:
            if not self.has_begun:
                self._head_bytes += size_bytes
            check_size(self._head_bytes, self._target)
        elif not self.has_begun:
            self._wire_bytes += size_bytes
            if self._wire_bytes > CHUNKING_BYTES + (CHUNKING_FACTOR + 1) * self.body_bytes:
                raise HttpError(400, "Invalid chunks: too much between them")

    # Called by the parser

    def on_message_begin(self) -> None:
        """Begin a request."""
        self.is_in_head = self.has_begun = True
        self._head_bytes = 0
        self._target = b""
        self._headers = []
        self._expects_continue = False

    def on_url(self, url: bytes) -> None:
        """Add a part of the request's target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field; ignore trailers after a chunked body."""
        if not self.is_in_head:
            return
        name = name.lower()
        # The parser does not read a coding with a tab behind it as chunked: `check_head` refuses it.
        value = value.strip(b" " if name == b"transfer-encoding" else None)
        if name == b"expect" and value.lower() == b"100-continue":
            self._expects_continue = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Finish the head. Raises HttpError if it is not served."""
        parser = self._parser
        # A head within one slice is small, but for its target.
        if not self.has_begun or len(self._target) > TARGET_BYTES:
            check_size(count_bytes(self._target, self._headers), self._target)
        version = parser.get_http_version()
        target, query = check_head(version, self._target, self._headers)
        if parser.should_upgrade():
            return
        path = target.decode()
        request = self._request = Request(
            parser.get_method().decode(),
            urllib.parse.unquote(path) if "%" in path else path,
            query,
            self._headers,
        )
        if version == "1.1":
            request.expects_continue = self._expects_continue
            request.keep_alive = parser.should_keep_alive()
        self._events.append(request)
        self.is_in_head = False
        self.is_in_body = self.has_begun = True
        self.body_bytes = self._wire_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        self.body_bytes += len(body)
        self._events.append(body)

    def on_message_complete(self) -> None:
        """Finish the request."""
        if self.is_in_head:
            return  # an upgrade offer, which `_parse` declines
        self.is_in_body = self.has_begun = False
        if self._request.keep_alive and not self._parser.should_keep_alive():
            self._request.keep_alive = False  # a trailer closes the connection
        self._events.append(None)


def check_head(version: str, target: bytes, headers: Headers) -> tuple[bytes, bytes]:
    """Return the path and the query of a complete head, whose size was checked. Raises HttpError
    if it is not served.

    `headers` have names in lower case. The host of a target in absolute form replaces the Host header
    (RFC 9112, 3.2.2), but neither affects the answer here.
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
    hosts = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if not _is_host(value):
                raise HttpError(400, "Invalid Host: it must be a name or an address")
        elif name == b"transfer-encoding":
            if version == "1.0":
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


@functools.lru_cache(maxsize=64)  # a client always sends the same host
def _is_host(value: bytes) -> bool:
    return HOST.fullmatch(value) is not None


def count_bytes(target: bytes, headers: Headers) -> int:
    """Return the size of a complete head."""
    # Includes ": " and a line break for each field, and the rest of the request line.
    return len(target) + 16 + sum(len(name) + len(value) + 4 for name, value in headers)


def check_size(head_bytes: int, target: bytes) -> None:
    """Raise HttpError if a head, perhaps still incomplete, is too large."""
    if len(target) > TARGET_BYTES:
        raise HttpError(414, f"Request line too long: the limit is {TARGET_BYTES + 16} bytes")
    if head_bytes > HEAD_BYTES:
        raise HttpError(431, f"Request head too large: the limit is {HEAD_BYTES} bytes")
