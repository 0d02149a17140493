"""Serving the terminal UI to a browser: what `resumes tui --web` calls."""

import asyncio
import contextlib
import errno
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from aiohttp import web

from resumes.errors import ErrorCode, StoreError
from tui.web.gate import HOST, Gate
from tui.web.server import PageServer

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
END_WITHIN_S = 15.0


class CannotListen(StoreError):
    """The port cannot be had; a later start may work."""

    code = ErrorCode.STORE_UNAVAILABLE


def run(command: Sequence[str], port: int, *, ready: Callable[[str], None]) -> None:
    """The terminal UI was served on loopback until SIGINT, SIGTERM or SIGHUP; no process is left.

    `command` is what draws it, run anew for each page. Port 0 takes a free one. `ready` is told
    the address to open, which works once. Raises CannotListen.
    """
    output = sys.stdout

    def tell(address: str) -> None:
        with contextlib.redirect_stdout(output):
            ready(address)

    # The library prints what its processes complain of, which is no data.
    with contextlib.closing(listen(port)) as listener, contextlib.redirect_stdout(sys.stderr):
        asyncio.run(_serve(listener, command, tell))


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
    listener: socket.socket, command: Sequence[str], ready: Callable[[str], None]
) -> None:
    port = listener.getsockname()[1]
    gate = Gate(port)
    runner = web.AppRunner(
        await PageServer(command, gate, port).application(),
        access_log=None,
        shutdown_timeout=END_WITHIN_S,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        stop = _stop_event()
        ready(f"http://{HOST}:{port}/?token={gate.token}")
        await stop.wait()
    finally:
        await runner.cleanup()


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
