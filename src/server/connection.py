"""A connection: parsing the client's data into requests, and answering them in order.

httptools parses; `request` decides which heads are served, `deadlines` how long a client may take,
`connections` how much all connections may hold. Requests that must not reach the application are
refused here, in the common error format: invalid or ambiguous HTTP, heads that are too large, and
bodies for which there is no memory (docs/api.md, Limits).
"""

import asyncio
import time
import urllib.parse
from collections import deque
from typing import Any, Final

import httptools

from server.app import App, public_error
from server.deadlines import STOP_S, Deadlines, Reading
from server.request import (
    UNAVAILABLE,
    HttpError,
    Request,
    check_head,
    check_size,
    count_bytes,
    find_request_id,
)

BETWEEN, HEAD, BODY, DRAINING = Reading

SLICE_BYTES: Final = 16 * 1024
"""How much is parsed before it is counted; a limit is exceeded by less than this."""

CHUNKING_BYTES: Final = 16 * 1024
"""Bytes for sizes, extensions and trailers that a chunked body may have beyond its content."""

CHUNKING_FACTOR: Final = 8
"""Bytes that may be added to CHUNKING_BYTES per byte of content, for chunks of one byte."""

AHEAD_BYTES: Final = 64 * 1024
"""How much of a body is read before the application asks for it, or for its next part."""

TURN_BYTES: Final = 64 * 1024
"""After this much, a connection's further answers wait for the next turn of the event loop, so
that a client with thousands of pipelined requests neither delays others nor fills the memory."""

DRAIN_BYTES: Final = 16 * 1024 * 1024
"""How much of a refused body is read and discarded, so that a client that reads only after sending
everything gets the answer instead of a reset."""

SETTLE_S: Final = 0.5
"""How long a stopping service keeps an idle connection open for requests that are on their way."""

LATE: Final = "The request took too long to arrive"
STOPPING: Final = "The server is shutting down, so nothing was done; try again later"
MALFORMED: Final = "Invalid HTTP request received."


class Connection(asyncio.Protocol):
    """A client's connection."""

    _transport: asyncio.Transport

    def __init__(self, app: App) -> None:
        self._app = app
        self.registry = app.connections
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(self._loop.time(), self.registry.client_timeout_s)
        self._parser = self._new_parser()
        self.is_connected = False
        """Whether HTTP has begun (with TLS: after the handshake) and the client is connected."""

        # Receiving
        self._reading: Reading = BETWEEN
        self._is_new = False
        """Whether the current head or body began in the data that is being parsed."""
        self._parsing = Request(self, is_answered=True)
        """The request whose head is being received, or was received last."""
        self._head_bytes = self._body_bytes = self._wire_bytes = 0
        self._held_bytes = 0
        """The size of this connection's bodies in memory."""
        self._is_paused = False

        # Answering
        self._receiving = self._answering = self._parsing
        """The requests being received and being answered; if there is none, the last ones."""
        self._waiting: deque[Request] = deque()
        """Requests behind the one being answered."""
        self._unsent: list[bytes] = []
        """Data written in this turn of the event loop."""
        self._unsent_bytes = self._written_bytes = 0
        self._is_closing = False
        self._lingers = False
        """Whether closing only ends sending, while incoming data is still received.

        Closing with unread data would reset the connection, and the client would lose an answer that
        it has not read yet. The deadline ends such a connection.
        """
        self._writable = asyncio.Event()
        """Whether the client is reading its answers."""
        self._writable.set()

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # A client that closes after its last request may still read the answers to earlier ones.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    # Begin and end of the connection

    def connection_made(self, transport: Any) -> None:
        """Begin to receive requests; answer a connection over the limit with 503 and end it."""
        self._transport = transport
        self.is_connected = True
        self.registry.discard(self.check)  # with TLS it was counted during the handshake
        if not self.registry.is_full:
            self.registry.add(self.check)
            self.registry.served.add(self.shutdown)
            if self.registry.is_stopping:
                self.shutdown()
            return
        if not self.registry.is_overrun:
            self.registry.add(self.check, is_refused=True)
            self._lingers = True
        self._reading = DRAINING
        Request(self, find_request_id(())).respond_error(HttpError(503, UNAVAILABLE))

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that the connection held."""
        self.is_connected = False
        self.registry.discard(self.check)
        self.registry.served.discard(self.shutdown)
        self.release(self._held_bytes)
        for request in (self._answering, self._receiving, *self._waiting):
            if not request.is_answered:
                request.leave()
        self._waiting.clear()
        self.resume_writing()

    def eof_received(self) -> bool | None:
        """Answer complete requests: the client has only ended sending.

        With TLS it cannot do so without ending the connection.
        """
        if self._transport.get_extra_info("sslcontext") is not None:
            return None
        if not self._abandon_incomplete():
            if self._reading is DRAINING:
                return None
            self._close()  # after the pending answer
        self._reading = DRAINING
        return True

    def shutdown(self) -> None:
        """End the connection after the answers to requests that were already sent.

        Wait for the rest of an incomplete request, but not as long as for an answer.
        """
        self._deadlines.stop_s = self._loop.time()
        self._loop.call_later(STOP_S, lambda: self.check(self._loop.time()))
        if self._receiving.is_answered:
            self._loop.call_later(SETTLE_S, self._close_if_idle)
        else:
            self._receiving.keep_alive = False

    def _close_if_idle(self) -> None:
        if self._reading is BETWEEN and self._receiving.is_answered:
            self._close()

    # Received data

    def data_received(self, data: bytes) -> None:
        """Parse requests, and begin those whose turn it is."""
        try:
            for start in range(0, len(data), SLICE_BYTES):
                self._feed(data[start : start + SLICE_BYTES])
        except httptools.HttpParserCallbackError as error:
            # The error raised in a callback is the context of the parser's error.
            self._refuse(error.__context__ or error)
        except httptools.HttpParserError:
            self._refuse(HttpError(400, MALFORMED))
        except Exception as error:  # noqa: BLE001  (the server's edge)
            self._refuse(error)

    def _feed(self, data: bytes) -> None:
        """Parse the data. Raises HttpError and HttpParserError.

        A request that offers a protocol upgrade keeps its body. Java's HttpClient offers HTTP/2 on
        every first request, even a POST. A server may decline by answering in HTTP/1.1 (RFC 9110,
        7.8). But the parser takes everything after such a head for the new protocol, so the request
        is parsed again without the offer.
        """
        if self._reading is DRAINING:
            self._body_bytes += len(data)
            if self._body_bytes > DRAIN_BYTES:
                self.abort()
            return
        size_bytes = len(data)
        while True:
            try:
                self._parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                data = self._without_offer(data[upgrade.args[0] :])
        if self._reading is not BETWEEN:
            self._count(size_bytes)
        if self._waiting:
            self._begin_waiting()

    def _without_offer(self, rest: bytes) -> bytes:
        method: bytes = self._parser.get_method()
        if method == b"CONNECT":  # an upgrade by the method's name alone
            raise HttpError(400, "CONNECT is not supported.")
        target, version = self._parsing.target, self._parser.get_http_version()
        head = [b"%b %b HTTP/%b" % (method, target, version.encode())]
        head += [b"%b: %b" % header for header in self._parsing.headers if header[0] != b"upgrade"]
        self._parser = self._new_parser()
        return b"\r\n".join([*head, b"", rest])

    def _count(self, size_bytes: int) -> None:
        """Count the bytes of an incomplete request. Raises HttpError if there are too many."""
        is_new, self._is_new = self._is_new, False
        if self._reading is HEAD:
            if not is_new:
                self._head_bytes += size_bytes
            elif self._receiving.method:  # the time of the first head began with the connection
                self._deadlines.begin(self._loop.time())
            check_size(self._head_bytes, self._parsing.target)
        elif is_new:
            self._deadlines.begin(self._loop.time())
        else:
            self._wire_bytes += size_bytes
            if self._wire_bytes > CHUNKING_BYTES + (CHUNKING_FACTOR + 1) * self._body_bytes:
                raise HttpError(400, "Invalid chunks: too much between them")

    def on_message_begin(self) -> None:
        """Begin a request (called by the parser)."""
        self._reading = HEAD
        self._is_new = True
        self._head_bytes = 0
        self._parsing = Request(self)

    def on_url(self, url: bytes) -> None:
        """Add a part of the request's target (called by the parser)."""
        self._parsing.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field (called by the parser); ignore trailers after a chunked body."""
        if self._reading is not HEAD:
            return
        name, value = name.lower(), value.strip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self._parsing.expects_continue = True
        self._parsing.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Finish the head (called by the parser). Raises HttpError if it is not served."""
        parser, request = self._parser, self._parsing
        # A head within one slice is small.
        size_bytes = 0 if self._is_new else count_bytes(request.target, request.headers)
        check_size(size_bytes, request.target)
        version = parser.get_http_version()
        target, query = check_head(version, request.target, request.headers)
        if parser.should_upgrade():
            return
        path = target.decode("ascii")
        request.began_s = time.perf_counter()
        request.id = find_request_id(request.headers)
        request.method = parser.get_method().decode("ascii")
        request.path = urllib.parse.unquote(path) if "%" in path else path
        request.query = query
        if version == "1.0":
            request.expects_continue = False
        elif parser.should_keep_alive() and self._deadlines.stop_s is None:
            request.keep_alive = True
        self._receiving = request
        self._waiting.append(request)
        self._reading = BODY
        self._is_new = True
        self._body_bytes = self._wire_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Add a part of the body (called by the parser). Raises HttpError if it is too large."""
        size_bytes = len(body)
        self._body_bytes += size_bytes
        request = self._receiving
        if request.status:  # data after the answer is discarded
            if self._body_bytes > DRAIN_BYTES:
                raise HttpError(413, "Request body too large")
            return
        self._held_bytes += size_bytes
        self.registry.body_bytes += size_bytes
        if self.registry.body_bytes > self.registry.max_body_bytes:
            raise HttpError(503, UNAVAILABLE)
        request.receive(body)
        if request.body_bytes > AHEAD_BYTES and not request.max_bytes:
            self._pause_reading()

    def on_message_complete(self) -> None:
        """Finish the request (called by the parser)."""
        if self._reading is HEAD:
            return  # an upgrade offer, which `_feed` declines
        self._reading = BETWEEN
        if self._receiving.keep_alive and not self._parser.should_keep_alive():
            self._receiving.keep_alive = False  # a trailer closed the connection for the parser
            if self._receiving.is_answered:
                self._close()
        if self._receiving.is_answered:
            self._deadlines.begin(self._loop.time())
        else:
            self._receiving.complete()

    def _pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            if not self._transport.is_closing():
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading from the client, unless it has requests waiting."""
        if self._is_paused and not self._waiting:
            self._is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def release(self, size_bytes: int) -> None:
        """Count this many bytes of this connection's bodies as no longer held in memory."""
        self.registry.body_bytes -= size_bytes
        self._held_bytes -= size_bytes

    # Sending

    def _begin_waiting(self) -> None:
        """Begin waiting requests, each after the answer to the previous one."""
        while self._waiting:
            if not self._answering.is_answered or not self._writable.is_set():
                self._pause_reading()
                return
            if self._is_ending():
                return
            if self._unsent_bytes > TURN_BYTES:
                self._pause_reading()  # until these answers are sent
                return
            request = self._answering = self._waiting.popleft()
            rest = self._app.begin(request)
            if rest is not None:
                task = self._loop.create_task(rest)
                self.registry.tasks.add(task)
                task.add_done_callback(self._end_task)
        self.resume_reading()

    def _begin_later(self) -> None:
        """Begin waiting requests before the event loop polls for others in this turn."""
        self._begin_waiting()
        self._app.authenticator.end_poll()

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self.registry.tasks.discard(task)
        self._begin_later()

    def write(self, data: bytes) -> None:
        """Queue the data; it is sent when this turn's work is done.

        The loop would send each part immediately. Sent together, they cost one system call, and a
        busy client is woken once for all answers of a turn.
        """
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(data)
        self._unsent_bytes += len(data)

    def _flush(self) -> None:
        """Send the data of this turn, then begin requests that waited for that."""
        unsent = self._unsent
        data = unsent[0] if len(unsent) == 1 else b"".join(unsent)
        unsent.clear()
        self._unsent_bytes = 0
        if not self._transport.is_closing():  # otherwise the client is gone
            self._written_bytes += len(data)
            self._transport.write(data)
            if self._is_closing:
                self._close_transport()
        if self._waiting:
            self._begin_later()

    def _close(self) -> None:
        """Close the connection after sending what was written."""
        self._is_closing = True
        if not self._unsent:
            self._close_transport()

    def _close_transport(self) -> None:
        if not self._lingers or not self._transport.can_write_eof():
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()

    def abort(self) -> None:
        """End the connection immediately; unsent data is lost."""
        self._is_closing = True
        self._transport.abort()

    def _is_ending(self) -> bool:
        """Return whether nothing can be written any more."""
        return self._is_closing or self._transport.is_closing()

    def finish(self, request: Request) -> None:
        """Record that the request has its complete answer."""
        request.is_answered = True
        if request.is_gone:
            return
        if self._reading is BETWEEN or self._reading is DRAINING:
            self._deadlines.begin(self._loop.time())
        if not request.keep_alive:
            self._receiving = request
            self._waiting.clear()  # requests sent after it are not run
            if self._reading in (HEAD, BODY):
                self._drain_input()
            self._close()
        if self._held_bytes:
            self.release(request.body_bytes if self._waiting else self._held_bytes)
        self.resume_reading()

    def pause_writing(self) -> None:
        """Note that the client is not reading (called by the transport)."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Note that the client has read most of the data (called by the transport)."""
        if not self._writable.is_set():
            self._writable.set()
            self._begin_later()

    async def drain(self) -> None:
        """Wait until the client has read most of what was written."""
        await self._writable.wait()

    # Refusing

    def check(self, now_s: float) -> None:
        """Refuse or cut off a client that has kept the connection waiting for too long."""
        if not self.is_connected:
            return  # the TLS handshake has its own deadline
        unsent_bytes = self._transport.get_write_buffer_size()
        if self._deadlines.is_stuck(now_s, self._written_bytes - unsent_bytes, unsent_bytes):
            self.abort()
        elif self._reading is not BODY and not self._receiving.is_answered:
            return  # the client is waiting for the answer
        elif self._reading is not DRAINING and self._is_paused:
            self._deadlines.begin(now_s)  # the client is waiting for this server to read
        elif self._deadlines.is_over(now_s, self._reading, self._body_bytes):
            if self._reading in (HEAD, BODY):
                has_stopped = self._deadlines.has_stopped(now_s)
                self._refuse(HttpError(503, STOPPING) if has_stopped else HttpError(408, LATE))
            elif self._reading is BETWEEN and not self._is_ending():
                self._close()
            else:
                self.abort()

    def _drain_input(self) -> None:
        """Discard incoming data for a limited time."""
        self._reading = DRAINING
        self._body_bytes = 0
        self._deadlines.begin(self._loop.time())
        if self._deadlines.stop_s is None:
            self._lingers = True

    def _refuse(self, error: BaseException) -> None:
        """Answer with the error, read no other request, and end the connection.

        If an earlier request has no complete answer yet, do not send the error, which the client would
        take for that answer; end the connection after it.
        """
        # If a part of the body was received, log and metrics record the status for this request.
        request = self._receiving if self._reading is BODY else None
        # Otherwise only the head, or a part of it, is known.
        headers = self._parsing.headers if self._reading is HEAD else ()
        unread = Request(self, find_request_id(headers))
        # Before the target is received, the parser still has the method of an earlier request.
        if self._reading is HEAD and self._parsing.target:
            unread.method = self._parser.get_method().decode("ascii")
        if isinstance(error, MemoryError):
            error = HttpError(503, UNAVAILABLE)  # the request was not begun
        response = public_error(error, (request or unread).id)
        was_answered = request is not None and request.is_answered
        is_answering = self._abandon_incomplete()
        if self._is_ending():
            return  # an earlier answer ends the connection
        self._drain_input()
        if not is_answering:
            if request is None:
                unread.respond_error(response)
            elif not was_answered:
                again = Request(self, request.id, request.method, lines=request.lines)
                again.respond_error(response)
                request.status = again.status
            self.release(self._held_bytes)
            self._close()
        self.resume_reading()

    def _abandon_incomplete(self) -> bool:
        """Abandon the incomplete request. Return whether another one awaits its answer."""
        request = self._receiving
        if self._reading is BODY and not request.status:
            request.leave()
            if request is self._answering:
                request = Request(self, is_answered=True)  # earlier ones are answered
            else:
                self._waiting.pop()
                request = self._waiting[-1] if self._waiting else self._answering
            self._receiving = request
        # Complete requests sent earlier are still answered.
        self._begin_waiting()
        if request.is_answered:
            return False
        request.keep_alive = False
        return True
