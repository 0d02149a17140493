"""A TCP proxy that does to connections what networks do: cuts, resets, silences and slows them."""

import asyncio
import re
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Final
from urllib.parse import urlsplit

CHUNK_BYTES: Final = 16 * 1024
END_S: Final = 10.0
RESETS: Final = struct.pack("ii", 1, 0)
"""SO_LINGER such that closing a socket resets its connection."""


class Cut(Enum):
    """How a connection breaks."""

    END = "both sides are told that nothing follows"
    RESET = "both sides are reset"
    SILENCE = "nothing passes any more, and neither side is told"


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of a connection, which is cut once so many bytes have passed; None is never.

    `up_bytes` are the client's, `down_bytes` the server's. It is cut in place of passing on what
    completes a match of `unsent` in all that the client has sent, or the server's answer to one of
    `unanswered`. Each piece of at most 16 KiB
    is kept for `latency_s`, and for as long as `bytes_per_s` says; 0 is no limit.
    """

    up_bytes: int | None = None
    down_bytes: int | None = None
    unsent: "re.Pattern[bytes] | None" = None
    unanswered: "re.Pattern[bytes] | None" = None
    cut: Cut = Cut.RESET
    latency_s: float = 0.0
    bytes_per_s: int = 0

    def delay_s(self, size_bytes: int) -> float:
        """How long a piece of this size is kept."""
        return self.latency_s + (size_bytes / self.bytes_per_s if self.bytes_per_s else 0.0)


class Proxy:
    """Stands before the server at `target` during a block, on a port of its own."""

    def __init__(self, target: str) -> None:
        """Nothing is wrong with its connections at first."""
        parts = urlsplit(target)
        self._target = (parts.hostname, parts.port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._links: set[asyncio.Task[None]] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self.count = 0
        """How many connections there were."""
        self.cut_count = 0
        """How many of them were cut."""
        self.choose: Callable[[], Fault] = Fault
        """What becomes of the next connection; called in another thread."""

    @property
    def url(self) -> str:
        """Its address for clients of HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._loop.call_soon_threadsafe(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(END_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._listener.close()

    def _begin(self) -> None:
        self._accepting = self._loop.create_task(self._accept())

    async def _end(self) -> None:
        """Every connection is closed, the silent ones too."""
        tasks = [self._accepting, *self._links]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            client, _ = await self._loop.sock_accept(self._listener)
            self.count += 1
            link = self._loop.create_task(self._carry(client, self.choose()))
            self._links.add(link)
            link.add_done_callback(self._links.discard)

    async def _carry(self, client: socket.socket, fault: Fault) -> None:
        with client, socket.socket() as server:
            for side in (client, server):
                side.setblocking(False)
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                await self._loop.sock_connect(server, self._target)
                if await self._pass_both(client, server, fault):
                    self.cut_count += 1
                    await self._cut(fault.cut, client, server)
            except OSError:  # one side was reset, so the other is
                _reset(client, server)

    async def _pass_both(self, client: socket.socket, server: socket.socket, fault: Fault) -> bool:
        """Whether the connection is to be cut; otherwise both sides have ended it."""
        is_cut = asyncio.Event()
        pumps = [
            self._loop.create_task(self._pass(client, server, fault, fault.up_bytes, asks=is_cut)),
            self._loop.create_task(
                self._pass(server, client, fault, fault.down_bytes, answers=is_cut)
            ),
        ]
        try:
            for pump in asyncio.as_completed(pumps):
                if await pump:
                    return True
            return False
        finally:
            for one in pumps:
                one.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pass(
        self,
        source: socket.socket,
        sink: socket.socket,
        fault: Fault,
        most_bytes: int | None,
        *,
        asks: asyncio.Event | None = None,
        answers: asyncio.Event | None = None,
    ) -> bool:
        """Whether it ended since so many bytes had passed, or with what is to have no answer; the
        source's own end is passed on."""
        left = most_bytes
        said = b""
        while left is None or left > 0:
            size_bytes = CHUNK_BYTES if left is None else min(left, CHUNK_BYTES)
            data = await self._loop.sock_recv(source, size_bytes)
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return False
            if asks is not None and (fault.unsent or fault.unanswered):
                said += data
                if fault.unsent and fault.unsent.search(said):
                    return True
                if fault.unanswered and fault.unanswered.search(said):
                    asks.set()
            if answers is not None and answers.is_set():
                return True
            await asyncio.sleep(fault.delay_s(len(data)))
            await self._loop.sock_sendall(sink, data)
            left = None if left is None else left - len(data)
        return True

    async def _cut(self, cut: Cut, client: socket.socket, server: socket.socket) -> None:
        if cut is Cut.RESET:
            _reset(client, server)
        if cut is Cut.SILENCE:
            await self._loop.create_future()  # until the block ends


def _reset(*sides: socket.socket) -> None:
    for side in sides:
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
