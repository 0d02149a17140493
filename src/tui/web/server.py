"""The terminal UI in a browser: who has access, the page, its socket, and a process for each page."""

import asyncio
import contextlib
import hmac
import logging
import resource
import secrets
import shlex
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server, to_int

from resumes.analyzer import attachment
from resumes.listener import listen
from tui.web.driver import environment_of

END_WITHIN_S = 5.0
"""A process that was told to quit and has not ended after this is killed."""


class PageSession(AppService):
    """One page and its process; the page is closed when the process ends."""

    def __init__(
        self,
        command: str,
        page: web.WebSocketResponse,
        downloads: DownloadManager,
        end_within_s: float,
    ) -> None:
        super().__init__(
            command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=page.close,  # type: ignore[arg-type]  # what it returns is of no use
            download_manager=downloads,
        )
        self._end_within_s = end_within_s

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        # No shell. A session of its own: Ctrl-C reaches the server alone, which ends it in order.
        self._process = process = await create_subprocess_exec(
            *shlex.split(self.command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environment_of(width, height),
            start_new_session=True,
        )
        self._stdin = process.stdin
        return process

    async def run(self) -> None:
        """Pass what the process draws to the page, until one of them ends."""
        try:
            with contextlib.suppress(ConnectionError):
                await super().run()
        finally:
            await self.remote_close()

    async def stop(self) -> None:
        """End the process; kill it if it does not end in time."""
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(super().stop(), self._end_within_s)
            if self._process is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), self._end_within_s)
        finally:
            if self._process is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()


HOST: Final = "127.0.0.1"
HERE: Final = Path(__file__).parent


def _is_same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


REFUSAL: Final = (
    "Open the link that `resumes tui --web` printed. It works once; "
    "run the command again for a new one.\n"
)
NO_DOWNLOAD: Final = "This link works once. Download the file again from the terminal UI.\n"
WRONG_ORIGIN: Final = "Only the terminal UI's own page may connect.\n"

_ENTRY: Final = '<!DOCTYPE html><meta http-equiv="refresh" content="0;url=/"><title>Resumes</title>'


async def page(_: web.Request) -> web.FileResponse:
    return web.FileResponse(HERE / "page.html")


async def script(_: web.Request) -> web.FileResponse:
    return web.FileResponse(HERE / "page.js")


def entry() -> web.Response:
    """Return a page that leads to the other one.

    A redirect would not do: a browser that was sent here by another site would count itself as
    still coming from there, and keep the new cookie back.
    """
    return web.Response(text=_ENTRY, content_type="text/html")


def refusal(line: str) -> web.Response:
    """Return 403, with one line that says what to do.

    The connection is closed after it: whoever is refused cannot leave answers unread.
    """
    response = web.Response(status=403, text=line)
    response.force_close()
    return response


logger = logging.getLogger("resumes.tui.web")

HEARTBEAT_S = 15.0
"""How often a page is asked whether it is still there."""

FAREWELL_S = 2.0
"""How long a page has to close its connection."""

MAX_CELLS = 1_000


class PageServer(Server):
    """Shows what `command` draws, to the one browser that showed the token first."""

    def __init__(
        self, command: Sequence[str], port: int, *, end_within_s: float = END_WITHIN_S
    ) -> None:
        super().__init__(shlex.join(command), host=HOST, port=port)
        self.token = secrets.token_urlsafe()
        """What the first visit has to show."""

        self.cookie_name = f"resumes-tui-{port}"
        """With the port in it, since a browser sends cookies to all ports of a host."""

        self._cookie = secrets.token_urlsafe()
        self._is_spent = False
        self._hosts = (f"{HOST}:{port}", f"localhost:{port}")
        self._end_within_s = end_within_s
        self._sessions: set[PageSession] = set()

    async def application(self) -> web.Application:
        """Return the server's routes, all of them guarded."""
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/", page),
                web.get("/page.js", script),
                web.get("/ws", self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                web.static("/static", self.statics_path),
            ]
        )
        application.on_response_prepare.append(self._add_headers)
        application.on_shutdown.append(self.on_shutdown)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request that is refused or a first visit; let others through."""
        host = request.headers.get("Host")
        if host not in self._hosts:
            return refusal(REFUSAL)
        token = request.query.get("token") if request.path == "/" else None
        is_visit = request.method == "GET"  # a HEAD request would spend the token
        if token is not None and is_visit and not self._is_spent and _is_same(token, self.token):
            self._is_spent = True
            response = entry()
            response.set_cookie(
                self.cookie_name, self._cookie, httponly=True, samesite="Strict", path="/"
            )
            return response
        if not _is_same(request.cookies.get(self.cookie_name, ""), self._cookie):
            return refusal(REFUSAL)
        if request.path == "/ws" and request.headers.get("Origin") != f"http://{host}":
            return refusal(WRONG_ORIGIN)
        return await handler(request) if token is None else entry()

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a process for the page until it disconnects."""
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, timeout=FAREWELL_S)
        await socket.prepare(request)
        session = PageSession(self.command, socket, self.download_manager, self._end_within_s)
        self._sessions.add(session)
        try:
            await session.start(_cells(request, "width", 80), _cells(request, "height", 24))
        except OSError as error:
            logger.error("Cannot start the terminal UI for a browser page: %s", error.strerror)
        else:
            await self._process_messages(socket, session)
        finally:
            self._sessions.discard(session)
            await session.stop()
        return socket

    async def handle_download(self, request: web.Request) -> web.StreamResponse:
        """Send a file of a process to its page, once."""
        key = request.match_info["key"]
        try:
            download = await self.download_manager.get_download_metadata(key)
        except KeyError:
            raise web.HTTPNotFound(text=NO_DOWNLOAD) from None
        response = web.StreamResponse(
            headers={
                "Content-Type": download.mime_type,
                # The name may be in any script (RFC 6266).
                "Content-Disposition": attachment(download.file_name),
            }
        )
        await response.prepare(request)
        async for chunk in self.download_manager.download(key):
            await response.write(chunk)
        await response.write_eof()
        return response

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        host = request.headers.get("Host", "")
        known = host if host in self._hosts else self._hosts[0]
        response.headers.update(
            {
                # The terminal makes its style sheet as it goes.
                "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
                "style-src 'self' 'unsafe-inline'; font-src 'self'; img-src data:; "
                f"connect-src ws://{known}; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cache-Control": "no-store",
            }
        )

    async def on_shutdown(self, app: web.Application) -> None:
        await asyncio.gather(*(session.remote_close() for session in self._sessions))


def _cells(request: web.Request, name: str, default: int) -> int:
    return max(1, min(to_int(request.query.get(name, ""), default), MAX_CELLS))


STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHUTDOWN_TIMEOUT_S = 15.0

RESERVED_FILES = 32
"""Open files that are not for connections: those of Python, the loop, and processes being started."""

FILES_PER_CONNECTION = 4
"""Open files of a connection: its socket and, if it is a page's, three pipes to the process."""

ACCEPT_RETRY_S = 1.0
"""Interval between attempts to accept a connection when the system has no room for one."""

QUIET_S = 60.0
"""How long accepting must have worked before a failure is logged again."""

TOO_MANY = b"""HTTP/1.1 503 Service Unavailable\r
Content-Type: text/plain; charset=utf-8\r
Content-Length: 63\r
Retry-After: 1\r
Connection: close\r
\r
Too many connections; close pages that are open, or try again.
"""


def run(
    command: Sequence[str],
    port: int,
    *,
    max_connections: int,
    client_timeout_s: float,
    ready: Callable[[str], None],
) -> None:
    """Serve the terminal UI on loopback until SIGINT, SIGTERM or SIGHUP; leave no process behind.

    `command` draws it, started for each page. Port 0 takes a free one. At most
    `max_connections` are open at once, or fewer if the process may open fewer files. A connection
    has `client_timeout_s` for the whole head of its next request. `ready` gets the address to
    open, which works once. Raises CannotListen.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_limited = soft != resource.RLIM_INFINITY
    room = (soft - RESERVED_FILES) // FILES_PER_CONNECTION if is_limited else max_connections
    max_open = min(max_connections, max(1, room))
    with contextlib.closing(listen(HOST, port, option="--web")) as listener:
        asyncio.run(_serve(listener, command, ready, max_open, client_timeout_s))


async def _serve(
    listener: socket.socket,
    command: Sequence[str],
    ready: Callable[[str], None],
    max_open: int,
    client_timeout_s: float,
) -> None:
    port = listener.getsockname()[1]
    pages = PageServer(command, port)
    logger.addFilter(_is_fault_of_ours)
    runner = web.AppRunner(
        await pages.application(),
        access_log=None,
        logger=logger,
        # Counted from the connection's opening and from the last answer to the end of the next
        # head, and switched off by the library once the connection is a websocket.
        keepalive_timeout=client_timeout_s,
        shutdown_timeout=SHUTDOWN_TIMEOUT_S,
    )
    await runner.setup()
    assert runner.server is not None
    accepting = asyncio.create_task(_accept(listener, runner.server, max_open))
    _end_by_signal(accepting)
    ready(f"http://{HOST}:{port}/?token={pages.token}")
    # The library prints its processes' error output, which is not data.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await accepting
            listener.close()
        finally:
            await runner.cleanup()


def _is_fault_of_ours(record: logging.LogRecord) -> bool:
    """Return False for a request that is not HTTP: anyone on this machine can send any number."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


async def _accept(listener: socket.socket, server: web.Server, max_open: int) -> None:
    """Hand connections to `server` as they come; refuse those beyond `max_open`.

    asyncio's own servers have no limit, and log each failure to accept, many times a second
    (pitfalls R6).
    """
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    failed_s = -QUIET_S
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
            if len(server.connections) < max_open:
                await loop.connect_accepted_socket(server, connection)
            else:
                _refuse(connection)
                await asyncio.sleep(0)  # to accept need not have waited for anything
        except ConnectionError:
            continue
        except OSError as error:
            if loop.time() - failed_s >= QUIET_S:
                logger.warning(
                    "Cannot accept connections: %s. They wait until there is room", error.strerror
                )
            failed_s = loop.time()
            await asyncio.sleep(ACCEPT_RETRY_S)


def _refuse(connection: socket.socket) -> None:
    """Answer 503 and close the connection, without waiting for anything."""
    with connection, contextlib.suppress(OSError):
        with contextlib.suppress(BlockingIOError):
            # A connection that is closed with something unread is reset, and the answer lost.
            connection.recv(65_536)
        connection.send(TOO_MANY)


def _end_by_signal(task: asyncio.Task[None]) -> None:
    """Cancel the task at the first signal to stop; the second one acts as it always did."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        task.cancel()
        for number in STOPPING:
            loop.remove_signal_handler(number)

    for number in STOPPING:
        # Under nohup a closed terminal ends nothing.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end)
