"""A connection as the server sees it: its beginning, its answers, its end, and who is refused.

uvicorn's httptools protocol, where it speaks or waits for itself: `receiving` reads, `patience`
says how long a client may take, and `connections` what all of them may hold. What the
application does not get to see is answered here, in the shape that all errors have.
"""

from collections.abc import Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from server.exchange import find_request_id
from server.heads import Refused
from server.outgoing import Outgoing
from server.patience import STOP_S, Verdict
from server.receiving import BETWEEN, BODY, OVER, Flow, Receiving
from server.responses import CLOSE, UNAVAILABLE, error_body, json_headers

SETTLE_S = 0.5
"""How long, when the service stops, an idle connection is left to bring what was sent before."""

LATE = "The request took too long to arrive"
STOPPING = "The server is shutting down; nothing was done, try again later"


class Protocol(Receiving):
    """One connection."""

    is_connected = False
    """Whether HTTP has begun; over TLS that is behind the handshake."""

    # Its beginning and its end

    def connection_made(self, transport: Any) -> None:
        """As uvicorn's, over a transport that writes once in a turn; one too many is refused."""
        outgoing = Outgoing(transport, self.loop)
        self.is_connected = True
        self._all.discard(self)  # over TLS it was counted during the handshake
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

    def eof_received(self) -> bool | None:  # type: ignore[override]  # as asyncio's, unlike uvicorn's
        """A client that says only that it sends no more still has the answers to what it sent.

        Over TLS that cannot be said without ending the connection.
        """
        if self._reading is OVER or self.scheme == "https":
            return None
        if self._reading is BETWEEN and not self._is_idle():
            self.cycle.keep_alive = False
        else:
            self.transport.close()  # behind the answer that is about to be sent
        return True

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
            return
        if self._reading is BODY:
            self._hear_out()
        if self._reading is OVER:
            self.flow.resume_reading()

    def look(self, now_s: float) -> None:
        """A client that has kept the connection waiting for too long has had the consequence."""
        if not self.is_connected:
            return  # the TLS handshake, which is not over, has a deadline of its own
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

    def _hear_out(self) -> None:
        """Nothing more is read: what still comes is thrown away, for a while."""
        self._reading = OVER
        self._body_bytes = 0
        self._patience.begin(self.loop.time())
        if not self._patience.is_stopping:
            self.transport.linger()

    def _refuse(self, refused: Refused) -> None:
        """The client is told, nothing more is read, and the connection ends.

        Not told while an earlier request awaits its answer, or has had part of it: the client
        would take this for that. Then the connection ends behind that answer.
        """
        asked = [] if self._reading is BETWEEN else list(self.scope["headers"])
        was_answered = self._reading is BODY and self.cycle.response_complete
        is_answering = self._give_up()
        self._hear_out()
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
