"""Pages to open in tests, and processes to draw on them."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar, web

from tests.support.terminal.driving import LIMIT_S
from tests.support.waiting import wait_until as wait_until
from tui.web.server import END_WITHIN_S, PageServer

_ECHO = """
import os, struct, sys
def send(kind, payload):
    sys.stdout.buffer.write(kind + struct.pack(">I", len(payload)) + payload)
    sys.stdout.buffer.flush()
sys.stdout.buffer.write(b"__GANGLION__\\n")
send(b"D", f"pid {os.getpid()} {os.environ['COLUMNS']}x{os.environ['ROWS']}".encode())
while kind := sys.stdin.buffer.read(1):
    payload = sys.stdin.buffer.read(struct.unpack(">I", sys.stdin.buffer.read(4))[0])
    if b'"quit"' in payload and "deaf" not in sys.argv:
        send(b"M", b'{"type": "exit"}')
        break
    send(b"D", kind + payload)
while "deaf" in sys.argv:
    sys.stdin.buffer.read(1)
"""

ECHO = (sys.executable, "-c", _ECHO)
"""Draws its process id and the page's size, then whatever is typed; ends when told to quit."""

DEAF = (*ECHO, "deaf")
"""The same, but it never ends by itself."""

BROKEN = (sys.executable, "-c", "import sys; sys.exit('cannot draw')")


@dataclass
class Site:
    """A server on a port of its own, and somebody with a browser."""

    url: str
    server: PageServer
    browser: ClientSession

    async def enter(self) -> None:
        """The token was shown; the browser has the cookie."""
        async with self.browser.get(f"{self.url}/", params={"token": self.server.token}) as answer:
            assert answer.status == 200

    async def open_page(self, **query: str) -> ClientWebSocketResponse:
        """The socket of a page that was opened by our own page."""
        return await self.browser.ws_connect(f"{self.url}/ws", origin=self.url, params=query)


@asynccontextmanager
async def serving(
    command: tuple[str, ...] = ECHO, *, end_within_s: float = END_WITHIN_S
) -> AsyncIterator[Site]:
    """A server that shows what the command draws."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = PageServer(command, port, end_within_s=end_within_s)
    runner = web.AppRunner(await server.application(), access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        try:
            yield Site(f"http://127.0.0.1:{port}", server, browser)
        finally:
            await runner.cleanup()


@asynccontextmanager
async def entered(
    command: tuple[str, ...] = ECHO, *, end_within_s: float = END_WITHIN_S
) -> AsyncIterator[Site]:
    """The same, and the browser has the cookie."""
    async with serving(command, end_within_s=end_within_s) as site:
        await site.enter()
        yield site


async def drawn(page: ClientWebSocketResponse, awaited: bytes) -> bytes:
    """What reached the page, up to what is awaited."""
    wire = b""
    async with asyncio.timeout(LIMIT_S):
        while awaited not in wire:
            wire += await page.receive_bytes()
    return wire


async def process_of(page: ClientWebSocketResponse) -> int:
    """The id of the page's process."""
    return int((await drawn(page, b"x")).split()[1])


def is_running(pid: int) -> bool:
    """Whether there is such a process, be it one that ended and that nobody asked about yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
