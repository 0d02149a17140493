import asyncio
import socket
import ssl

import pytest

from server import event_loop
from server.event_loop import Loop


def test_a_client_that_offers_tls_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    assert event_loop.HANDSHAKE_S == 10
    monkeypatch.setattr(event_loop, "HANDSHAKE_S", 0.05)

    async def run() -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=context)
        with socket.create_connection(server.sockets[0].getsockname()) as silent:
            silent.setblocking(False)
            async with asyncio.timeout(10):
                received = await loop.sock_recv(silent, 1)
        server.close()
        return received

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(run()) == b""


def test_without_tls_nothing_changes() -> None:
    async def run() -> int:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        server.close()
        return port

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(run()) > 0
