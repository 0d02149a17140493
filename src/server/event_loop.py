"""The event loop of the API's processes."""

from typing import Any

import uvloop

HANDSHAKE_S = 10.0
"""How long a client may take for its side of a TLS handshake; nothing of it is HTTP yet."""

GOODBYE_S = 5.0
"""How long it may take to agree that a TLS connection ends."""


class Loop(uvloop.Loop):
    """uvloop's, with less patience for TLS: its own is a minute, and uvicorn cannot tell it."""

    async def create_server(self, *arguments: Any, **named: Any) -> Any:
        """As uvloop's."""
        if named.get("ssl"):
            named["ssl_handshake_timeout"] = HANDSHAKE_S
            named["ssl_shutdown_timeout"] = GOODBYE_S
        return await super().create_server(*arguments, **named)
