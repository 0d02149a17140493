"""The sending half of a connection."""

import asyncio
from collections.abc import Callable
from typing import Any


class Outgoing(asyncio.Transport):
    """A connection's transport, which writes once in a turn of the event loop.

    The loop would send each part at once. Together, and behind the other work of the turn, they
    cost one system call, and a busy client is woken once for the answers of a turn. `schedule_flush` is
    given what has something to send, to flush it at the end of the turn.
    """

    def __init__(self, transport: Any, schedule_flush: "Callable[[Outgoing], None]") -> None:
        super().__init__()
        self._transport = transport
        self._schedule_flush = schedule_flush
        self._waiting: list[bytes] = []
        self.waiting_bytes = 0
        """What was written in this turn."""
        self._is_closing = False
        self._is_left_open = False
        self._written_bytes = 0

    def write(self, data: Any) -> None:
        """Send the data, after what was written before, when this turn's work is done."""
        if not self._waiting:
            self._schedule_flush(self)
        self._waiting.append(data)
        self.waiting_bytes += len(data)

    def flush(self) -> None:
        """Send what waits."""
        waiting = self._waiting
        data = waiting[0] if len(waiting) == 1 else b"".join(waiting)
        waiting.clear()
        self.waiting_bytes = 0
        if not self._transport.is_closing():  # else the client has gone meanwhile
            self._written_bytes += len(data)
            self._transport.write(data)
            if self._is_closing:
                self._close()

    def pause_reading(self) -> None:
        """Take nothing more from the client for now."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection behind what was written."""
        self._is_closing = True
        if not self._waiting:
            self._close()

    def linger(self) -> None:
        """Let `close` mean from now on to send nothing more: what still comes is received.

        To close with something unread would reset the connection, and the client lose the answer
        that it has not read yet. Whoever calls this aborts the connection after a while.
        """
        self._is_left_open = True

    def _close(self) -> None:
        if not self._is_left_open or not self._transport.can_write_eof():
            self._transport.close()
        elif not self._transport.is_closing():
            self._transport.write_eof()

    def abort(self) -> None:
        """End the connection at once; what was not sent is lost."""
        self._is_closing = True
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._is_closing or bool(self._transport.is_closing())

    @property
    def unsent_bytes(self) -> int:
        """Return what was written and the system has not taken yet, as the client reads too slowly."""
        return int(self._transport.get_write_buffer_size())

    @property
    def sent_bytes(self) -> int:
        """Return what the system has taken since the connection was made."""
        return self._written_bytes - self.unsent_bytes
