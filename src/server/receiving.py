"""The receiving half of a connection: uvicorn's httptools protocol, counted.

What must not reach the application is refused here: what cannot be read as HTTP, or could be read
in two ways, what is too large, and what there is no room for (docs/api.md, Limits). `heads` says
which heads are served.
"""

from abc import abstractmethod
from collections import deque
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.connections import Connections
from server.heads import Refused, check_head, check_part, check_size
from server.limits import DRAIN_BYTES
from server.outgoing import Outgoing
from server.patience import Patience, Reading
from server.responses import UNAVAILABLE

BETWEEN, HEAD, BODY, OVER = Reading

SLICE_BYTES = 16 * 1024
"""How much is parsed before it is counted: a limit is passed by less than that."""

CHUNKING_BYTES = 16 * 1024
"""What a body in chunks may cost beyond its content: sizes, extensions, trailers. And besides…"""

CHUNKING_FACTOR = 8
"""…this for each byte of its content, for clients whose chunks are of one byte."""

MALFORMED = "Invalid HTTP request received."


class Receiving(HttpToolsProtocol):
    """A connection as far as its client speaks."""

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
        """What this connection has of the bodies in memory."""
        self._previous: Any = None
        """The request before `cycle`."""

    @abstractmethod
    def _refuse(self, refused: Refused) -> None:
        """The client is told, nothing more is read, and the connection ends."""

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
            self._refuse(_refusal(error.__context__))

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
        if cycle.response_started:
            self._release()  # nobody keeps what comes behind an answer, nor what came before it
        else:
            self._held_bytes += size_bytes
            self._all.body_bytes += size_bytes
            if self._all.body_bytes > self._all.max_body_bytes:
                raise Refused(503, UNAVAILABLE)
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def _release(self) -> None:
        """Stop counting this connection's bodies among those in memory."""
        self._all.body_bytes -= self._held_bytes
        self._held_bytes = 0

    def on_message_complete(self) -> None:
        """As uvicorn's."""
        if self._reading is HEAD:
            return  # its offer is about to be declined
        self._reading = BETWEEN
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()


def _refusal(cause: BaseException | None) -> Refused:
    if isinstance(cause, MemoryError):
        return Refused(503, UNAVAILABLE)
    return cause if isinstance(cause, Refused) else Refused(400, MALFORMED)


class Flow(FlowControl):
    """uvicorn's, but nothing more is read while requests wait behind others on the connection."""

    def __init__(self, transport: Any, pipeline: deque[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """The client is read from again, unless it has requests waiting."""
        if self.read_paused and not self._pipeline:
            super().resume_reading()
