"""A connection: its transport, its deadlines, and the order of its responses.

`receiver` turns bytes into requests, `deadlines` says how long a client may take, `connections` how
much all connections may hold. Requests that must not reach the application are refused here, in the
common error format: those that the receiver refuses, and bodies for which there is no memory
(docs/api.md, Limits).
"""

import asyncio
import time
from collections import deque
from typing import Any, Final

from server.app import App, public_error
from server.deadlines import Deadlines, Reading
from server.receiver import SLICE_BYTES, Receiver
from server.request import UNAVAILABLE, HttpError, Request, find_request_id

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


class Connection(asyncio.Protocol):
    """A client's connection."""

    _transport: asyncio.Transport

    def __init__(self, app: App) -> None:
        self._app = app
        self.registry = app.connections
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines(self._loop.time(), self.registry.client_timeout_s)
        self.is_connected = False
        """Whether HTTP has begun (with TLS: after the handshake) and the client is connected."""

        # Receiving
        self._receiver = Receiver()
        self._receiving: Request | None = None
        """The request whose body is being received."""
        self._is_draining = False
        """Whether incoming data is discarded: no other request will be read."""
        self._drained_bytes = 0
        self._held_bytes = 0
        """The size of this connection's bodies in memory."""
        self._is_paused = False

        # Answering
        self._answering: Request | None = None
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
        self._is_draining = True
        request = Request(id=find_request_id(()))
        request.connection = self
        request.respond_error(HttpError(503, UNAVAILABLE))

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that the connection held."""
        self.is_connected = False
        self.registry.discard(self.check)
        self.registry.served.discard(self.shutdown)
        self.release(self._held_bytes)
        if self._answering is not None:
            self._waiting.appendleft(self._answering)
        for request in self._waiting:
            request.leave()
        self._waiting.clear()
        self._writable.set()

    def eof_received(self) -> bool | None:
        """Answer complete requests: the client may have only ended sending.

        With TLS it cannot do so without ending the connection.
        """
        if self._transport.get_extra_info("sslcontext") is not None:
            return None
        if self._answering is not None:
            self._answering.has_ended_sending = True
        self._is_draining = True
        self._lingers = False  # nothing is left to receive
        if not self._abandon_incomplete():
            self._close()
        return True

    def shutdown(self) -> None:
        """End the connection after the answers to requests that were already sent.

        Wait for the rest of an incomplete request, but not as long as for an answer.
        """
        self._deadlines.stop_s = self._loop.time()
        if not self._end_after_answers():
            self._loop.call_later(SETTLE_S, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._reading is Reading.BETWEEN and self._find_last() is None:
            self._close()

    # Receiving

    @property
    def _reading(self) -> Reading:
        if self._is_draining:
            return Reading.DRAINING
        if self._receiving is not None:
            return Reading.BODY
        return Reading.HEAD if self._receiver.is_in_head else Reading.BETWEEN

    def data_received(self, data: bytes) -> None:
        """Receive requests, and begin those whose turn it is."""
        for start in range(0, len(data), SLICE_BYTES):
            self._receive(data[start : start + SLICE_BYTES])

    def _receive(self, data: bytes) -> None:
        if self._is_draining:
            self._drained_bytes += len(data)
            if self._drained_bytes > DRAIN_BYTES:
                self.abort()
            return
        receiver = self._receiver
        try:
            for event in receiver.feed(data):
                if event is None:
                    self._end_body()
                elif isinstance(event, Request):
                    self._add(event)
                elif isinstance(event, bytes):
                    self._add_body(event)
                else:
                    self._refuse(event)
                    return
            if receiver.has_begun:
                self._deadlines.begin(self._loop.time(), is_head=receiver.is_in_head)
            if self._waiting:
                self._begin_waiting()
        except Exception as error:  # noqa: BLE001  (the server's edge)
            self._refuse(error)

    def _add(self, request: Request) -> None:
        request.connection = self
        request.began_s = time.perf_counter()
        request.id = find_request_id(request.headers)
        request.keep_alive &= self._deadlines.stop_s is None
        self._receiving = request
        self._waiting.append(request)

    def _add_body(self, part: bytes) -> None:
        """Add a part of the body. Raises HttpError if there is no memory for it."""
        request = self._receiving
        assert request is not None
        if request.status:  # data after the answer is discarded
            if self._receiver.body_bytes > DRAIN_BYTES:
                self.abort()
            return
        size_bytes = len(part)
        self._held_bytes += size_bytes
        self.registry.body_bytes += size_bytes
        if self.registry.body_bytes > self.registry.max_body_bytes:
            raise HttpError(503, UNAVAILABLE)
        request.receive(part)
        if request.body_bytes > AHEAD_BYTES and not request.max_bytes:
            self._pause_reading()

    def _end_body(self) -> None:
        request, self._receiving = self._receiving, None
        assert request is not None
        if not request.is_answered:
            request.complete()
            return
        if not request.keep_alive:  # because of a trailer
            self._close()
        self._deadlines.begin(self._loop.time())

    def _pause_reading(self) -> None:
        self._is_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading from the client, unless it has requests waiting."""
        if self._is_paused and not self._waiting:
            self._is_paused = False
            self._transport.resume_reading()

    def release(self, size_bytes: int) -> None:
        """Count this many bytes of this connection's bodies as no longer held in memory."""
        self.registry.body_bytes -= size_bytes
        self._held_bytes -= size_bytes

    # Answering

    def _find_last(self) -> Request | None:
        """Return the last request whose answer is not complete."""
        return self._waiting[-1] if self._waiting else self._answering

    def _end_after_answers(self) -> bool:
        """End the connection after the last pending answer. Return whether there is one."""
        last = self._find_last()
        if last is None:
            return False
        last.keep_alive = False
        return True

    def _begin_waiting(self) -> None:
        """Begin waiting requests, each after the answer to the previous one."""
        while self._waiting:
            if self._answering is not None or not self._writable.is_set():
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
        data = b"".join(self._unsent)
        self._unsent.clear()
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
        if self._lingers and self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def abort(self) -> None:
        """End the connection immediately; unsent data is lost."""
        self._transport.abort()

    def _is_ending(self) -> bool:
        """Return whether nothing can be written any more."""
        return self._is_closing or self._transport.is_closing()

    def finish(self, request: Request) -> None:
        """Record that the request has its complete answer."""
        request.is_answered = True
        self._answering = None
        if request.is_gone:
            return
        is_incomplete = not self._is_draining and (
            self._receiving is not None or self._receiver.is_in_head
        )
        if not is_incomplete:
            self._deadlines.begin(self._loop.time())
        if not request.keep_alive:
            self._waiting.clear()  # requests sent after it are not run
            if is_incomplete:
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
        reading = self._reading
        unsent_bytes = self._transport.get_write_buffer_size()
        if self._deadlines.is_stuck(now_s, self._written_bytes - unsent_bytes, unsent_bytes):
            self.abort()
        elif reading is not Reading.BODY and (unsent_bytes or self._find_last() is not None):
            return  # the client is waiting for the answer, or reading it
        elif reading is not Reading.DRAINING and self._is_paused:
            self._deadlines.begin(now_s)  # the client is waiting for this server to read
        elif self._deadlines.is_over(
            now_s, reading, self._drained_bytes if self._is_draining else self._receiver.body_bytes
        ):
            if reading in (Reading.HEAD, Reading.BODY):
                has_stopped = self._deadlines.has_stopped(now_s)
                self._refuse(HttpError(503, STOPPING) if has_stopped else HttpError(408, LATE))
            elif reading is Reading.BETWEEN:
                self._close()
            else:
                self.abort()

    def _drain_input(self) -> None:
        """Discard incoming data for a limited time."""
        self._is_draining = self._lingers = True
        self._receiving = None
        self._deadlines.begin(self._loop.time())

    def _refuse(self, error: Exception) -> None:
        """Answer with the error, read no other request, and end the connection.

        If an earlier request has no complete answer yet, do not send the error, which the client would
        take for that answer; end the connection after it.
        """
        # If a part of the body was received, log and metrics record the status for this request.
        # Otherwise only the head, or a part of it, is known.
        request = self._receiving or self._receiver.partial_request()
        request.id = request.id or find_request_id(request.headers)
        if isinstance(error, MemoryError):
            error = HttpError(503, UNAVAILABLE)  # the request was not begun
        response = public_error(error, request.id)
        was_answered = request.is_answered
        is_answering = self._abandon_incomplete()
        self._drain_input()
        if not is_answering:
            if not (was_answered or self._is_ending()):
                # As a request of its own: the application's code may still use the one that it has.
                answered = Request(request.method, id=request.id, lines=request.lines)
                answered.connection = self
                answered.respond_error(response)
                request.status = answered.status
            self.release(self._held_bytes)
            self._close()
        self.resume_reading()

    def _abandon_incomplete(self) -> bool:
        """Abandon the incomplete request. Return whether another one awaits its answer."""
        request = self._receiving
        if request is not None and not request.status:
            request.leave()
            if request is self._answering:
                self._answering = None
            else:
                self._waiting.pop()
        # Complete requests sent earlier are still answered.
        self._begin_waiting()
        return self._end_after_answers()
