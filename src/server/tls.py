"""TLS: the certificate, and connections during their handshake."""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Any, Final

from resumes.errors import InvalidArgument
from server.connection import Connection

GOODBYE_S: Final = 5.0
"""How long a client may take to acknowledge the end of a TLS connection."""


def load_tls(tls_cert: Path | None, tls_key: Path | None = None) -> ssl.SSLContext | None:
    """Return the files' TLS context, or None without a certificate. Raises InvalidArgument."""
    if tls_cert is None:
        return None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls_cert, tls_key)
        return context
    except OSError as error:  # includes ssl.SSLError
        files = " and ".join(str(path) for path in (tls_cert, tls_key) if path)
        problem = f"Cannot use the TLS files {files}: {error.strerror}"
        needed = "Give a certificate and its private key without a passphrase, both in PEM"
        raise InvalidArgument(f"{problem}. {needed}") from None


class Handshake(asyncio.Protocol):
    """An accepted connection during its TLS handshake.

    uvloop's own TLS servers report a connection only after its handshake, so a client could open
    any number of connections without completing a handshake (pitfalls R6).
    """

    def __init__(self, protocol: Connection, context: ssl.SSLContext) -> None:
        self._protocol = protocol
        """Gets the connection after the handshake, but is counted from the start."""
        self._context = context
        self._registry = protocol.registry
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the handshake; beyond the limit, only if a 503 can be sent afterwards."""
        is_full = self._registry.is_full
        # The transport has already started to read, so the connection is duplicated and the
        # transport is aborted. If no file descriptor is available, the connection is closed.
        with contextlib.suppress(OSError):
            if not (is_full and self._registry.is_overrun):
                connection = transport.get_extra_info("socket").dup()
                self._registry.add(self._protocol.check, is_refused=is_full)
                self._task = asyncio.create_task(self._secure(connection))
        transport.abort()

    async def _secure(self, connection: Any) -> None:
        try:
            # Ignore errors that the client caused: it left, violated the protocol or took too long.
            with contextlib.suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self._protocol,
                    connection,
                    ssl=self._context,
                    ssl_handshake_timeout=self._registry.client_timeout_s,
                    ssl_shutdown_timeout=GOODBYE_S,
                )
        finally:
            if not self._protocol.is_connected:
                self._registry.discard(self._protocol.check)
