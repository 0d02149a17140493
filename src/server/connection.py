"""A connection: read what the client sends into requests, and answer them one after another.

httptools parses; `request` says which heads are served, `deadlines` how long a client may take,
`connections` what all connections may hold. What the application must not get to see is refused
here, in the shape that all errors have: what cannot be read as HTTP, or could be read in two ways,
heads that are too large, and what there is no room for (docs/api.md, Limits).
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

BETWEEN, HEAD, BODY, OVER = Reading

SLICE_BYTES: Final = 16 * 1024
"""How much is parsed before it is counted: a limit is passed by less than that."""

CHUNKING_BYTES: Final = 16 * 1024
"""What a body in chunks may cost beyond its content: sizes, extensions, trailers. In addition…"""

CHUNKING_FACTOR: Final = 8
"""…this for each byte of its content, for clients whose chunks are of one byte."""

AHEAD_BYTES: Final = 64 * 1024
"""How much of a body is read that nobody has asked for yet."""

TURN_BYTES: Final = 64 * 1024
"""How much a connection is answered in a turn of the event loop, except for what exceeds it in one go: a client
that sends thousands of requests at once keeps no other waiting, nor has it all their answers here."""

DRAIN_BYTES: Final = 16 * 1024 * 1024
"""How much more of a body that was refused is read and thrown away, so that the client, which
may read only after it has sent all, sees the answer and not a reset."""

SETTLE_S: Final = 0.5
"""How long, when the service stops, an idle connection is left to bring what was sent before."""

LATE: Final = "The request took too long to arrive"
STOPPING: Final = "The server is shutting down, so nothing was done; try again later"
MALFORMED: Final = "Invalid HTTP request received."


class Connection(asyncio.Protocol):
    """One connection of a client."""

    _transport: asyncio.Transport

    def __init__(self, app: App) -> None:
        self._app = app
        self.all = app.connections
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(self._loop.time(), self.all.client_timeout_s)
        self._parser = self._new_parser()
        self.is_connected = False
        """Whether HTTP has begun, over TLS after the handshake, and the client is there."""

        # What is being received
        self._reading: Reading = BETWEEN
        self._is_new = False
        """Whether the head or body that is being received began in what is being parsed."""
        self._head = Request(self, is_answered=True)
        """The request whose head is being received, or was last."""
        self._head_bytes = self._body_bytes = self._wire_bytes = 0
        self._held_bytes = 0
        """What this connection has of the bodies in memory."""
        self._is_paused = False

        # What is being answered
        self._request = self._begun = self._head
        """The request that is being received, or was last, and the one that is being answered, or was."""
        self._waiting: deque[Request] = deque()
        """Requests after it."""
        self._unsent: list[bytes] = []
        """What was written in this turn of the event loop."""
        self._unsent_bytes = self._written_bytes = 0
        self._is_closing = False
        self._lingers = False
        """Whether to close means to send nothing more, while what still comes is received.

        To close with something unread would reset the connection, and the client lose the answer
        that it has not read yet. Its deadline ends such a connection.
        """
        self._writable = asyncio.Event()
        """Whether the client reads its answers."""
        self._writable.set()

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # The answer to the first of several requests may still be read by a client that closes after them.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    # Its beginning and its end

    def connection_made(self, transport: Any) -> None:
        """Receive requests; a connection over the limit gets a 503 and ends."""
        self._transport = transport
        self.is_connected = True
        self.all.discard(self.look)  # over TLS it was counted during the handshake
        if not self.all.is_full:
            self.all.add(self.look)
            self.all.served.add(self.shutdown)
            if self.all.is_stopping:
                self.shutdown()
            return
        if not self.all.is_overrun:
            self.all.add(self.look, is_refused=True)
            self._lingers = True
        self._reading = OVER
        Request(self, find_request_id(())).respond_error(HttpError(503, UNAVAILABLE))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of all that was kept for it."""
        self.is_connected = False
        self.all.discard(self.look)
        self.all.served.discard(self.shutdown)
        self._release(self._held_bytes)
        for request in (self._begun, self._request, *self._waiting):
            if not request.is_answered:
                request.leave()
        self._waiting.clear()
        self.resume_writing()

    def eof_received(self) -> bool | None:
        """Answer complete requests: the client has only announced that it sends no more.

        Over TLS that cannot be announced without ending the connection.
        """
        if self._transport.get_extra_info("sslcontext") is not None:
            return None
        if not self._give_up():
            if self._reading is OVER:
                return None
            self._close()  # after the answer that is about to be sent
        self._reading = OVER
        return True

    def shutdown(self) -> None:
        """End the connection after the answers to what was sent before.

        A request that has arrived in part is waited for, but not for as long as an answer.
        """
        self._deadlines.stop_s = self._loop.time()
        self._loop.call_later(STOP_S, lambda: self.look(self._loop.time()))
        if self._request.is_answered:
            self._loop.call_later(SETTLE_S, self._close_if_idle)
        else:
            self._request.keep_alive = False

    def _close_if_idle(self) -> None:
        if self._reading is BETWEEN and self._request.is_answered:
            self._close()

    # Received data

    def data_received(self, data: bytes) -> None:
        """Read requests, and begin those that it is time for."""
        try:
            for start in range(0, len(data), SLICE_BYTES):
                self._feed(data[start : start + SLICE_BYTES])
        except httptools.HttpParserCallbackError as error:
            # What a callback raised is the context of the parser's own error.
            self._refuse(error.__context__ or error)
        except httptools.HttpParserError:
            self._refuse(HttpError(400, MALFORMED))
        except Exception as error:  # noqa: BLE001  (the server's edge)
            self._refuse(error)

    def _feed(self, data: bytes) -> None:
        """Parse the data. Raises HttpError and HttpParserError.

        A request that offers to change the protocol keeps its body. Java's HttpClient offers
        HTTP/2 on every first request, POST too. A server may decline by answering in HTTP/1.1
        (RFC 9110, 7.8); the parser, however, takes what follows such a head for the new protocol,
        so the request is read again without the offer.
        """
        if self._reading is OVER:
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
        if method == b"CONNECT":  # means to change the protocol by its name alone
            raise HttpError(400, "CONNECT is not supported.")
        target, version = self._head.target, self._parser.get_http_version()
        head = [b"%b %b HTTP/%b" % (method, target, version.encode())]
        head += [b"%b: %b" % header for header in self._head.headers if header[0] != b"upgrade"]
        self._parser = self._new_parser()
        return b"\r\n".join([*head, b"", rest])

    def _count(self, size_bytes: int) -> None:
        """Count what has come of a request that is not whole. Raises HttpError for too much."""
        is_new, self._is_new = self._is_new, False
        if self._reading is HEAD:
            if not is_new:
                self._head_bytes += size_bytes
            elif self._request.method:  # the first head has had its time since the beginning
                self._deadlines.begin(self._loop.time())
            check_size(self._head_bytes, self._head.target)
        elif is_new:
            self._deadlines.begin(self._loop.time())
        else:
            self._wire_bytes += size_bytes
            if self._wire_bytes > CHUNKING_BYTES + (CHUNKING_FACTOR + 1) * self._body_bytes:
                raise HttpError(400, "Invalid chunks: too much between them")

    def on_message_begin(self) -> None:
        """For the parser: a request begins."""
        self._reading = HEAD
        self._is_new = True
        self._head_bytes = 0
        self._head = Request(self)

    def on_url(self, url: bytes) -> None:
        """For the parser: a part of the request's target."""
        self._head.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """For the parser: a field; one after a body in chunks says nothing, and is not kept."""
        if self._reading is not HEAD:
            return
        name, value = name.lower(), value.strip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self._head.expects_continue = True
        self._head.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """For the parser: the head is whole. Raises HttpError for one that is not served."""
        parser, request = self._parser, self._head
        # A head that came at once, in a slice, is small.
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
        self._request = request
        self._waiting.append(request)
        self._reading = BODY
        self._is_new = True
        self._body_bytes = self._wire_bytes = 0

    def on_body(self, body: bytes) -> None:
        """For the parser: a part of the body. Raises HttpError where there is no room for it."""
        size_bytes = len(body)
        self._body_bytes += size_bytes
        request = self._request
        if request.status:  # nobody keeps what comes after an answer
            if self._body_bytes > DRAIN_BYTES:
                raise HttpError(413, "Request body too large")
            return
        self._held_bytes += size_bytes
        self.all.body_bytes += size_bytes
        if self.all.body_bytes > self.all.max_body_bytes:
            raise HttpError(503, UNAVAILABLE)
        request.receive(body)
        if self._body_bytes > AHEAD_BYTES and request.max_bytes is None:
            self._pause_reading()

    def on_message_complete(self) -> None:
        """For the parser: the request is whole."""
        if self._reading is HEAD:
            return  # its offer is about to be declined
        self._reading = BETWEEN
        if self._request.keep_alive and not self._parser.should_keep_alive():
            self._request.keep_alive = False  # a trailer says so, and the parser reads nothing more
            if self._request.is_answered:
                self._close()
        if self._request.is_answered:
            self._deadlines.begin(self._loop.time())
        else:
            self._request.complete()

    def _pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            if not self._transport.is_closing():
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on from the client, unless it has requests waiting."""
        if self._is_paused and not self._waiting:
            self._is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def _release(self, size_bytes: int) -> None:
        """Stop counting so much of this connection's bodies among those in memory."""
        self.all.body_bytes -= size_bytes
        self._held_bytes -= size_bytes

    # What goes out

    def _begin_waiting(self) -> None:
        """Begin what waits, each request after the answer to the one before it."""
        while self._waiting:
            if not self._begun.is_answered or not self._writable.is_set():
                self._pause_reading()
                return
            if self._is_ending():
                return
            if self._unsent_bytes > TURN_BYTES:
                self._pause_reading()  # until these answers are sent
                return
            request = self._begun = self._waiting.popleft()
            rest = self._app.begin(request)
            if rest is not None:
                task = self._loop.create_task(rest)
                self.all.tasks.add(task)
                task.add_done_callback(self._end_task)
        self.resume_reading()

    def _begin_later(self) -> None:
        """`_begin_waiting`, where the event loop has yet to look for other requests in this turn."""
        self._begin_waiting()
        self._app.authenticator.end_look()

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self.all.tasks.discard(task)
        self._begin_later()

    def write(self, data: bytes) -> None:
        """Send the data, after what was written before, when this turn's work is done.

        The loop would send each part immediately. Together, and after the other work of the turn,
        they cost one system call, and a busy client is woken once for the answers of a turn.
        """
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(data)
        self._unsent_bytes += len(data)

    def _flush(self) -> None:
        """Send what was written in this turn, and begin what waits for that."""
        unsent = self._unsent
        data = unsent[0] if len(unsent) == 1 else b"".join(unsent)
        unsent.clear()
        self._unsent_bytes = 0
        if not self._transport.is_closing():  # else the client is gone by now
            self._written_bytes += len(data)
            self._transport.write(data)
            if self._is_closing:
                self._close_transport()
        if self._waiting:
            self._begin_later()

    def _close(self) -> None:
        """Close the connection after what was written."""
        self._is_closing = True
        if not self._unsent:
            self._close_transport()

    def _close_transport(self) -> None:
        if not self._lingers or not self._transport.can_write_eof():
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()

    def abort(self) -> None:
        """End the connection immediately; what was not sent is lost."""
        self._is_closing = True
        self._transport.abort()

    def _is_ending(self) -> bool:
        """Return whether nothing more can be written."""
        return self._is_closing or self._transport.is_closing()

    def finish(self, request: Request) -> None:
        """Record that the request has its complete answer."""
        request.is_answered = True
        if request.is_gone:
            return
        if self._reading is BETWEEN or self._reading is OVER:
            self._deadlines.begin(self._loop.time())
        if not request.keep_alive:
            self._request = request
            self._waiting.clear()  # what was sent after it is not done
            if self._reading in (HEAD, BODY):
                self._hear_out()
            self._close()
        if self._held_bytes:
            self._release(request.body_bytes if self._waiting else self._held_bytes)
        self.resume_reading()

    def pause_writing(self) -> None:
        """For the transport: the client does not take what it is sent."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """For the transport: the client has taken most of it."""
        if not self._writable.is_set():
            self._writable.set()
            self._begin_later()

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written."""
        await self._writable.wait()

    # Who is refused

    def look(self, now_s: float) -> None:
        """Refuse or cut off a client that has kept the connection waiting for too long."""
        if not self.is_connected:
            return  # the TLS handshake has a deadline of its own
        unsent_bytes = self._transport.get_write_buffer_size()
        if self._deadlines.is_stuck(now_s, self._written_bytes - unsent_bytes, unsent_bytes):
            self.abort()
        elif self._reading is not BODY and not self._request.is_answered:
            return  # it is the client that waits
        elif self._reading is not OVER and self._is_paused:
            self._deadlines.begin(now_s)  # so it does here
        elif self._deadlines.is_over(now_s, self._reading, self._body_bytes):
            if self._reading in (HEAD, BODY):
                has_stopped = self._deadlines.has_stopped(now_s)
                self._refuse(HttpError(503, STOPPING) if has_stopped else HttpError(408, LATE))
            elif self._reading is BETWEEN and not self._is_ending():
                self._close()
            else:
                self.abort()

    def _hear_out(self) -> None:
        """Discard what still arrives, for some time."""
        self._reading = OVER
        self._body_bytes = 0
        self._deadlines.begin(self._loop.time())
        if self._deadlines.stop_s is None:
            self._lingers = True

    def _refuse(self, error: BaseException) -> None:
        """Tell the client, read nothing more, and end the connection.

        Tell nothing while an earlier request awaits its answer, or has had part of it: the client
        would take this for that. Then the connection ends after that answer.
        """
        # Of a request whose body has come in part, the log and the metrics say what its client is told.
        request = self._request if self._reading is BODY else None
        # Of others only the head is known, or a part of it.
        unread = Request(self, find_request_id(self._head.headers if self._reading is HEAD else ()))
        # Before the target has come, the parser has the method of an earlier request.
        if self._reading is HEAD and self._head.target:
            unread.method = self._parser.get_method().decode("ascii")
        if isinstance(error, MemoryError):
            error = HttpError(503, UNAVAILABLE)  # nothing of it was begun
        response = public_error(error, (request or unread).id)
        was_answered = request is not None and request.is_answered
        is_answering = self._give_up()
        if self._is_ending():
            return  # after an answer that ends the connection
        self._hear_out()
        if not is_answering:
            if request is None:
                unread.respond_error(response)
            elif not was_answered:
                again = Request(self, request.id, request.method, lines=request.lines)
                again.respond_error(response)
                request.status = again.status
            self._release(self._held_bytes)
            self._close()
        self.resume_reading()

    def _give_up(self) -> bool:
        """Give up the request that has arrived in part. Return whether another awaits its answer."""
        request = self._request
        if self._reading is BODY and not request.status:
            request.leave()
            if request is self._begun:
                request = Request(self, is_answered=True)  # those before it are answered
            else:
                self._waiting.pop()
                request = self._waiting[-1] if self._waiting else self._begun
            self._request = request
        # Complete requests were sent before.
        self._begin_waiting()
        if request.is_answered:
            return False
        request.keep_alive = False
        return True
