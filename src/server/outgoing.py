"""The sending half of a connection."""

import asyncio
from typing import Any


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
        self._is_left_open = False
        self._written_bytes = 0

    def write(self, data: Any) -> None:
        """The data is sent, after what was written before, when this turn's work is done."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        if not self._transport.is_closing():  # else the client has gone meanwhile
            self._written_bytes += len(data)
            self._transport.write(data)
            if self._is_closing:
                self._close()

    def close(self) -> None:
        """The connection is closed, behind what was written."""
        self._is_closing = True
        if not self._waiting:
            self._close()

    def linger(self) -> None:
        """From now on, to close means to send nothing more; what still comes is received.

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
        """The connection is gone, and what was not sent is lost."""
        self._is_closing = True
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._is_closing or bool(self._transport.is_closing())

    @property
    def unsent_bytes(self) -> int:
        """What was written and the system has not taken yet, as the client reads too slowly."""
        return int(self._transport.get_write_buffer_size())

    @property
    def sent_bytes(self) -> int:
        """What the system has taken since the connection was made."""
        return self._written_bytes - self.unsent_bytes
