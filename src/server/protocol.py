"""HTTP/1.1 on the wire: uvicorn's httptools protocol, where it speaks or acts for itself.

What cannot be read as HTTP never reaches the application, so the 400 for it is written here, in
the shape that all errors have.
"""

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
)

from server.responses import CLOSE, Headers, error_body, json_headers


class Protocol(HttpToolsProtocol):
    """One connection."""

    def connection_made(self, transport: Any) -> None:
        """As uvicorn's, over a transport that writes once in a turn."""
        super().connection_made(transport)
        self.transport = Outgoing(transport, self.loop)

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, but a request that offers to change the protocol keeps its body.

        Java's HttpClient offers HTTP/2 on every first request, POST too. A server may decline
        by answering in HTTP/1.1 (RFC 9110, 7.8); the parser, however, takes what follows such a
        head for the new protocol, so the request is read again without the offer.
        """
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])

    def _should_upgrade(self) -> bool:
        # Makes uvicorn leave the request alone until `data_received` has it read again.
        return True

    def _decline_upgrade(self, rest: bytes) -> None:
        if self.scope["method"] == "CONNECT":  # means to change the protocol by its name alone
            self.send_400_response("CONNECT is not supported.")
            return
        version = self.parser.get_http_version().encode()
        head = [b"%b %b HTTP/%b" % (self.scope["method"].encode(), self.url, version)]
        head += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"\r\n".join([*head, b"", rest]))

    def send_400_response(self, msg: str) -> None:
        """The client has a 400 and the connection is closed.

        Not while an earlier request awaits its answer, or has had part of it: the client would
        take the 400 for that. Then the connection is closed behind that answer.
        """
        if self.transport.is_closing() or self._is_answering():
            return
        body = error_body(400, msg)
        headers = [*self.server_state.default_headers, *json_headers(body, [CLOSE])]
        self.transport.write(_head(400, headers) + body)
        self.transport.close()

    def _is_answering(self) -> bool:
        """Whether an answer is on its way, which is then the last; a request cut short is given up."""
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        is_answering = cycle.response_started or not cycle.more_body
        cycle.keep_alive = cycle.more_body = False
        cycle.disconnected = not is_answering
        cycle.message_event.set()  # nobody waits for more of this request
        self.flow.pause_reading()
        return is_answering


class Outgoing(asyncio.Transport):
    """A connection's transport, which writes once in a turn of the event loop.

    uvicorn writes head and body of an answer each on its own, and the loop would send each at
    once. Together, and behind the other work of the turn, they cost one system call, and a busy
    client is woken once for the answers of a turn.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._is_closing = False

    def write(self, data: Any) -> None:
        """The data is sent, after what was written before, when this turn's work is done."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        if not self._transport.is_closing():  # else the client has gone meanwhile
            self._transport.write(data)
            if self._is_closing:
                self._transport.close()

    def close(self) -> None:
        """The connection is closed, behind what was written."""
        self._is_closing = True
        if not self._waiting:
            self._transport.close()

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._is_closing or bool(self._transport.is_closing())


def _head(status: int, headers: Headers) -> bytes:
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
        raise ValueError("a line break in a header")
    return STATUS_LINE[status] + lines + b"\r\n"
