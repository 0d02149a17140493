"""The loop by itself; what it is for is in tests/system/server/test_silent_connections.py."""

import asyncio

from server.event_loop import Loop


def test_without_tls_nothing_changes() -> None:
    async def run() -> int:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        server.close()
        return port

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(run()) > 0
