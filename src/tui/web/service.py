"""Serving the terminal UI to a browser: what `resumes tui --web` calls."""

import asyncio
import contextlib
import errno
import logging
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from resumes.errors import ErrorCode, StoreError
from tui.web.gate import HOST, Gate
from tui.web.server import PageServer

logger = logging.getLogger("resumes.tui.web")

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
END_WITHIN_S = 15.0

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


class CannotListen(StoreError):
    """The port cannot be had; a later start may work."""

    code = ErrorCode.STORE_UNAVAILABLE


def run(
    command: Sequence[str],
    port: int,
    *,
    max_connections: int,
    client_timeout_s: float,
    ready: Callable[[str], None],
) -> None:
    """Serve the terminal UI on loopback until SIGINT, SIGTERM or SIGHUP; leave no process behind.

    `command` draws it, started anew for each page. Port 0 takes a free one. At most
    `max_connections` are open at once, or fewer if the process may open fewer files. A connection
    has `client_timeout_s` for the whole head of its next request. `ready` is told the address to
    open, which works once. Raises CannotListen.
    """
    output = sys.stdout

    def tell(address: str) -> None:
        with contextlib.redirect_stdout(output):
            ready(address)

    # The library prints what its processes complain of, which is no data.
    with contextlib.closing(listen(port)) as listener, contextlib.redirect_stdout(sys.stderr):
        asyncio.run(
            _serve(
                listener,
                command,
                tell,
                max_open=min(max_connections, _find_room()),
                client_timeout_s=client_timeout_s,
            )
        )


def _find_room() -> int:
    """Return how many connections the process's limit of open files leaves room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(1, (soft - RESERVED_FILES) // FILES_PER_CONNECTION)


def listen(port: int) -> socket.socket:
    """A listening socket on that port of loopback. Raises CannotListen."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise CannotListen(_refusal(error, port)) from None
    return listener


def _refusal(error: OSError, port: int) -> str:
    match error:
        case OSError(errno=errno.EADDRINUSE):
            return f"Port {port} on {HOST} is in use; choose another with --web"
        case PermissionError():
            return f"Port {port} on {HOST} needs more rights; choose one above 1023 with --web"
        case _:
            return f"Cannot listen on {HOST}, port {port}: {error.strerror}"


async def _serve(
    listener: socket.socket,
    command: Sequence[str],
    ready: Callable[[str], None],
    *,
    max_open: int,
    client_timeout_s: float,
) -> None:
    port = listener.getsockname()[1]
    gate = Gate(port)
    logger.addFilter(_is_fault_of_ours)
    runner = web.AppRunner(
        await PageServer(command, gate, port).application(),
        access_log=None,
        logger=logger,
        # Counted from the connection's opening and from the last answer to the end of the next
        # head, and switched off by the library once the connection is a websocket.
        keepalive_timeout=client_timeout_s,
        shutdown_timeout=END_WITHIN_S,
    )
    await runner.setup()
    assert runner.server is not None
    try:
        stop = _stop_event()
        ready(f"http://{HOST}:{port}/?token={gate.token}")
        async with asyncio.TaskGroup() as tasks:
            accepting = tasks.create_task(_accept(listener, runner.server, max_open))
            await stop.wait()
            accepting.cancel()
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


def _stop_event() -> asyncio.Event:
    """Set by the first signal to stop; the second one acts as it always did."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def request_stop() -> None:
        stop.set()
        for number in STOPPING:
            loop.remove_signal_handler(number)

    for number in STOPPING:
        # Under nohup a closed terminal ends nothing.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, request_stop)
    return stop
