"""HTTP/1.1 on the wire: uvicorn's httptools protocol, where it speaks, counts or waits for itself.

What must not reach the application is refused here, in the shape that all errors have: what cannot
be read as HTTP, or could be read in two ways, what is too large or too late, and what there is no
room for (docs/api.md, Limits). `heads` says which heads are served, `patience` how long a client
may take, and `connections` what all of them may hold.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from server.connections import Connections
from server.exchange import find_request_id
from server.heads import Refused, check_head, check_part, check_size
from server.limits import DRAIN_BYTES
from server.outgoing import Outgoing
from server.patience import STOP_S, Patience, Reading, Verdict
from server.responses import CLOSE, UNAVAILABLE, error_body, json_headers

BETWEEN, HEAD, BODY, OVER = Reading

SLICE_BYTES = 16 * 1024
"""How much is parsed before it is counted: a limit is passed by less than that."""

CHUNKING_BYTES = 16 * 1024
"""What a body in chunks may cost beyond its content: sizes, extensions, trailers. And besides…"""

CHUNKING_FACTOR = 8
"""…this for each byte of its content, for clients whose chunks are of one byte."""

SETTLE_S = 0.05
"""How long, when the service stops, an idle connection is left to bring what was sent before."""

MALFORMED = "Invalid HTTP request received."
LATE = "The request took too long to arrive"
STOPPING = "The server is shutting down; nothing was done, try again later"


class Protocol(HttpToolsProtocol):
    """One connection."""

    transport: Outgoing
    cycle: Any
    """The request that is being received, or was last."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._all: Connections = self.app_state["connections"]
        self._patience = Patience(
            self.loop.time(), self._all.client_timeout_s, self.timeout_keep_alive
        )
        self._reading: Reading = BETWEEN
        self._is_new = False
        """Whether the head or body that is being received began in what is being parsed."""
        self._head_bytes = self._body_bytes = self._wire_bytes = 0
        self._held_bytes = 0
        self._previous: Any = None
        """The request before that one."""

    # Its beginning and its end

    def connection_made(self, transport: Any) -> None:
        """As uvicorn's, over a transport that writes once in a turn; one too many is refused."""
        outgoing = Outgoing(transport, self.loop)
        if self._all.is_full:
            self.transport = outgoing
            self._refuse_connection()
            return
        super().connection_made(transport)
        self.transport = outgoing
        self.flow = Flow(transport, self.pipeline)
        self._all.add(self)

    def _refuse_connection(self) -> None:
        if not self._all.is_overrun:
            self._all.add(self, is_refused=True)
            self.transport.linger()
        self._reading = OVER
        self._write(Refused(503, UNAVAILABLE), ())
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn's; nothing is kept for it any more."""
        self._all.discard(self)
        self._release()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The connection ends behind the answers to what was sent before.

        A request that has come in part is waited for, but not for as long as an answer.
        """
        self._patience.stop(self.loop.time())
        self.loop.call_later(STOP_S, self._look_again)
        if self._is_idle():
            self.loop.call_later(SETTLE_S, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def _look_again(self) -> None:
        if self in self.connections:
            self.look(self.loop.time())

    def _close_if_idle(self) -> None:
        if self._reading is BETWEEN and self._is_idle():
            self.transport.close()

    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    # What comes in

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, counted, and without its timer."""
        if self._reading is OVER:
            self._throw_away(data)
            return
        try:
            if len(data) <= SLICE_BYTES:
                self._feed(data)
            else:
                for start in range(0, len(data), SLICE_BYTES):
                    self._feed(data[start : start + SLICE_BYTES])
        except Refused as refused:
            self._refuse(refused)
        except httptools.HttpParserError as error:
            # What a callback raised is the context of the parser's own error.
            cause = error.__context__
            self._refuse(cause if isinstance(cause, Refused) else Refused(400, MALFORMED))

    def _feed(self, data: bytes) -> None:
        """The data is parsed. Raises Refused and HttpParserError.

        A request that offers to change the protocol keeps its body. Java's HttpClient offers
        HTTP/2 on every first request, POST too. A server may decline by answering in HTTP/1.1
        (RFC 9110, 7.8); the parser, however, takes what follows such a head for the new protocol,
        so the request is read again without the offer.
        """
        size_bytes = len(data)
        while True:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                data = self._without_offer(data[upgrade.args[0] :])
        if self._reading is not BETWEEN:
            self._count(size_bytes)

    def _without_offer(self, rest: bytes) -> bytes:
        method: bytes = self.parser.get_method()
        if method == b"CONNECT":  # means to change the protocol by its name alone
            raise Refused(400, "CONNECT is not supported.")
        head = [b"%b %b HTTP/%b" % (method, self.url, self.parser.get_http_version().encode())]
        head += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"\r\n".join([*head, b"", rest])

    def _count(self, size_bytes: int) -> None:
        """What has come of a request that is not whole is little enough. Raises Refused."""
        is_new, self._is_new = self._is_new, False
        if self._reading is HEAD:
            if not is_new:
                self._head_bytes += size_bytes
            elif self.cycle is not None:  # the first head has had its time since the beginning
                self._patience.begin(self.loop.time())
            check_part(self._head_bytes, self.url)
        elif is_new:
            self._patience.begin(self.loop.time())
        else:
            self._wire_bytes += size_bytes
            if self._wire_bytes > CHUNKING_BYTES + (CHUNKING_FACTOR + 1) * self._body_bytes:
                raise Refused(400, "Invalid chunks: too much between them")

    def _throw_away(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > DRAIN_BYTES:
            self.transport.abort()

    # What the parser finds

    def on_message_begin(self) -> None:
        """As uvicorn's."""
        HttpToolsProtocol.on_message_begin(self)  # quicker than by super()
        self._reading = HEAD
        self._is_new = True
        self._head_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """As uvicorn's, in one call."""
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """As uvicorn's, for a head that is served. Raises Refused for others."""
        if not self._is_new:
            check_size(self.url, self.headers)
        check_head(self.parser.get_http_version(), self.url, self.headers)
        if self.parser.should_upgrade():
            return
        self._previous = self.cycle
        super().on_headers_complete()
        # What follows a body in chunks is no header, and says nothing.
        self.headers = []
        self._reading = BODY
        self._is_new = True
        self._body_bytes = self._wire_bytes = 0
        if self._patience.is_stopping:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """As uvicorn's, as long as there is room for bodies. Raises Refused."""
        size_bytes = len(body)
        self._body_bytes += size_bytes
        cycle = self.cycle
        if cycle.response_complete:
            if self._body_bytes > DRAIN_BYTES:
                raise Refused(413, "Request body too large")
            return
        self._held_bytes += size_bytes
        self._all.body_bytes += size_bytes
        if self._all.body_bytes > self._all.max_body_bytes:
            raise Refused(503, UNAVAILABLE)
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """As uvicorn's."""
        if self._reading is HEAD:
            return  # its offer is about to be declined
        self._reading = BETWEEN
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    # What goes out

    def on_response_complete(self) -> None:
        """As uvicorn's, without its timer: it is `look` that closes idle connections."""
        self.server_state.total_requests += 1
        if self._reading is BETWEEN or self._reading is OVER:
            self._patience.begin(self.loop.time())
        if self._held_bytes and not self.pipeline:
            self._release()
        if not self.transport.is_closing():
            if self.pipeline:
                cycle, app = self.pipeline.pop()
                self._start_asgi_task(cycle, app)
            self.flow.resume_reading()
        elif self._reading is OVER:
            self.flow.resume_reading()

    def _release(self) -> None:
        self._all.body_bytes -= self._held_bytes
        self._held_bytes = 0

    def look(self, now_s: float) -> None:
        """A client that has kept the connection waiting for too long has had the consequence."""
        if self._patience.is_stuck(now_s, self.transport):
            self.transport.abort()
        elif self._reading is not BODY and not self._is_idle():
            return  # it is the client that waits
        elif self._reading is not OVER and self.flow.read_paused:
            self._patience.begin(now_s)  # so it does here
        else:
            self._follow(self._patience.judge(now_s, self._reading, self._body_bytes))

    def _follow(self, verdict: Verdict) -> None:
        match verdict:
            case Verdict.STAYS:
                return
            case Verdict.LATE:
                self._refuse(Refused(408, LATE))
            case Verdict.STOPPED:
                self._refuse(Refused(503, STOPPING))
            case Verdict.CLOSED if not self.transport.is_closing():
                self.transport.close()
            case _:
                self.transport.abort()

    def _refuse(self, refused: Refused) -> None:
        """The client is told, nothing more is read, and the connection ends.

        Not told while an earlier request awaits its answer, or has had part of it: the client
        would take this for that. Then the connection ends behind that answer.
        """
        asked = [] if self._reading is BETWEEN else list(self.scope["headers"])
        was_answered = self._reading is BODY and self.cycle.response_complete
        is_answering = self._give_up()
        self._reading = OVER
        self._body_bytes = 0
        self._patience.begin(self.loop.time())
        if not self._patience.is_stopping:
            self.transport.linger()
        if not is_answering:
            if not was_answered:
                self._write(refused, asked)
            self._release()
            self.transport.close()
        self.flow.resume_reading()

    def _give_up(self) -> bool:
        """The request that has come in part is given up. Whether there is an answer on its way."""
        cycle = self.cycle
        if self._reading is BODY and not cycle.response_started:
            cycle.disconnected = True
            cycle.message_event.set()  # nobody waits for more of it
            if self.pipeline and self.pipeline[0][0] is cycle:
                self.pipeline.popleft()
            cycle = self.cycle = self._previous
        if cycle is None or cycle.response_complete:
            return False
        cycle.keep_alive = cycle.more_body = False
        cycle.message_event.set()
        return True

    def _write(self, refused: Refused, asked: Sequence[tuple[bytes, bytes]]) -> None:
        request_id = find_request_id(asked)
        body = error_body(refused.status, refused.message, request_id=request_id)
        headers = json_headers(body, [(b"x-request-id", request_id.encode()), *refused.headers])
        lines = [
            b"%b: %b\r\n" % line for line in [*self.server_state.default_headers, *headers, CLOSE]
        ]
        self.transport.write(b"".join([STATUS_LINE[refused.status], *lines, b"\r\n", body]))


class Flow(FlowControl):
    """uvicorn's, but nothing more is read while requests wait behind others on the connection."""

    def __init__(self, transport: Any, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """The client is read from again, unless it has requests waiting."""
        if self.read_paused and not self._pipeline:
            super().resume_reading()
