"""The event loop of the API's processes, in which TLS handshakes count as connections."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Any

import uvloop

from server.connection import Connection
from server.connections import Connections

GOODBYE_S = 5.0
"""How long a client may take to agree that a TLS connection ends."""


class Handshake(asyncio.Protocol):
    """A connection that was accepted, until it has TLS.

    uvloop's own TLS servers tell nobody of a connection before its handshake is complete, so any
    number could be open that never complete theirs (pitfalls R6).
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, protocol: Connection, context: ssl.SSLContext
    ) -> None:
        self._loop = loop
        self._protocol = protocol
        """What gets the connection once it has TLS; counted from now on."""
        self._context = context
        self._all: Connections = protocol.all
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin the handshake; beyond the limit, only with as many as can be told so."""
        is_full = self._all.is_full
        # A transport has begun to read before anything else can be done with it, so the connection
        # is taken from it. Without a file left for that, the connection is closed.
        with contextlib.suppress(OSError):
            if not (is_full and self._all.is_overrun):
                connection = transport.get_extra_info("socket").dup()
                self._all.add(self._protocol, is_refused=is_full)
                self._task = self._loop.create_task(self._secure(connection))
        transport.abort()

    async def _secure(self, connection: Any) -> None:
        try:
            # An error is the client's: it left, broke the protocol or took too long.
            with contextlib.suppress(OSError):
                await self._loop.connect_accepted_socket(
                    lambda: self._protocol,
                    connection,
                    ssl=self._context,
                    ssl_handshake_timeout=self._all.client_timeout_s,
                    ssl_shutdown_timeout=GOODBYE_S,
                )
        finally:
            if not self._protocol.is_connected:
                self._all.discard(self._protocol)


class Loop(uvloop.Loop):
    """uvloop's, but connections over TLS count, and have a deadline, from their beginning."""

    async def create_server(  # type: ignore[override]  # uvicorn calls it in one way
        self,
        protocol_factory: Callable[[], Any],
        *arguments: Any,
        ssl: ssl.SSLContext | None = None,
        **named: Any,
    ) -> Any:
        """Create a server as uvloop does. With `ssl`, the protocols must be the API's."""
        if ssl is None:
            return await super().create_server(protocol_factory, *arguments, **named)
        context = ssl
        return await super().create_server(
            lambda: Handshake(self, protocol_factory(), context), *arguments, **named
        )
