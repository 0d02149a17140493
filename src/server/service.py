"""Starting and stopping the API, in one process or with workers that share a listener."""

import asyncio
import contextlib
import functools
import ipaddress
import logging
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvloop

from resumes import process_memory
from resumes.listener import BACKLOG, listen
from resumes.log_writer import LogWriter
from resumes.settings import Settings
from resumes.store import Store, open_store
from resumes.store.retention import Sweeper
from resumes.store.search_index import Indexer
from server.app import App
from server.connection import Connection
from server.connections import Connections
from server.metrics import Memory, Metrics, share_memory
from server.tls import Handshake, load_tls
from server.workers import SHUTDOWN_S, Beat, supervise

logger = logging.getLogger("resumes.server")

READ_TIMEOUT_S = 5.0
"""How long a database server may take for one statement. This leaves time to try another connection
within the 10 s of a request."""

SWITCH_INTERVAL_S = 0.000_5
"""How long a thread may keep the GIL. With the default of 5 ms, each step of the writer thread, for
which all writes wait, would wait that long for the event loop."""

STOP_CHECK_S = 0.1
"""How often to check for a stop signal, and then whether all requests have finished."""

OpenLog = Callable[[], LogWriter]
"""Sets up a process's log, and returns the writer for request lines."""


def run(
    settings: Settings,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    ready: Callable[[str], None] = lambda url: None,
    open_log: OpenLog | None = None,
) -> None:
    """Serve the API until SIGTERM, SIGINT or SIGHUP, then answer all accepted requests.

    `ready` is called once, with the base address, as soon as requests are answered. `open_log` is
    called in each process, so it must be picklable if there are workers. Without `open_log`,
    requests are not logged. Without `tls_key`, the certificate's file must contain the key. Raises
    CannotListen, WorkersFailed, InvalidArgument for the certificate, and `open_store`'s errors.
    """
    tls = load_tls(tls_cert, tls_key)
    with _closing(open_log() if open_log else None) as log:
        # The store is opened first, so that a failure is reported once and not by every worker.
        store = open_store(settings.database_url, read_timeout_s=READ_TIMEOUT_S)
        if settings.workers == 1:
            _tune()
            serve(settings, store, tls=tls, ready=ready, log=log)
            return
        # Each worker opens its own store. This store is for work that only one process does.
        with _captured_signals() as signals, store:
            listener, settings, url = _listen(settings, has_tls=tls is not None)
            with listener, Indexer(store), Sweeper(store):
                memory = share_memory(settings.workers)
                work = functools.partial(
                    _work, settings, listener, tls_cert, tls_key, memory, open_log
                )
                announce = functools.partial(ready, url)
                supervise(work, settings.workers, listener, announce, signals, store.check_threads)


def serve(
    settings: Settings,
    store: Store,
    *,
    tls: ssl.SSLContext | None = None,
    ready: Callable[[str], None] = lambda url: None,
    signals: list[int] | None = None,
    log: LogWriter | None = None,
    runs_background: bool = True,
) -> None:
    """Serve an open store in this process until SIGTERM, SIGINT or SIGHUP; close it and the log.

    Only the main thread receives signals. In other threads, numbers appended to `signals` count as
    signals. `ready` is called as in `run`. With `runs_background`, this process also fills the
    search index and erases resumes that are due. Raises CannotListen.
    """
    captured = _captured_signals() if signals is None else contextlib.nullcontext(signals)
    with captured as signals, _closing(log), store, contextlib.ExitStack() as stack:
        listener, settings, url = _listen(settings, has_tls=tls is not None)
        stack.enter_context(listener)
        app = App(settings, store, log=log)
        if runs_background:
            stack.enter_context(Indexer(store, is_busy=app.is_busy))
            stack.enter_context(Sweeper(store))
        uvloop.run(_answer(app, listener, tls, functools.partial(ready, url), signals))


def _listen(settings: Settings, *, has_tls: bool) -> tuple[socket.socket, Settings, str]:
    """Listen, and warn if keys could be read on the network. Raises CannotListen.

    Return the socket, the settings adapted to its address, and its URL for local clients.
    """
    listener = listen(settings.host, settings.port)
    host, port = listener.getsockname()[:2]
    is_loopback = ipaddress.ip_address(host.partition("%")[0]).is_loopback
    if not is_loopback and not has_tls:
        logger.warning(
            "Listening beyond this machine without TLS: keys and resumes can be read on the network. "
            "Use --tls-cert, or a proxy with TLS"
        )
    if settings.rate_limit is None:
        settings = settings.model_copy(update={"rate_limit": not is_loopback})
    shown = f"[{host}]" if ":" in host else host
    return listener, settings, f"{'https' if has_tls else 'http'}://{shown}:{port}"


def _closing(log: LogWriter | None) -> contextlib.AbstractContextManager[LogWriter | None]:
    return contextlib.closing(log) if log else contextlib.nullcontext()


@contextlib.contextmanager
def _captured_signals() -> Iterator[list[int]]:
    """Append SIGTERM, SIGINT and SIGHUP to the list during the block. Call this in the main thread.

    Leave the block only once everything is closed: an uncaught second signal kills the process.
    """
    signals: list[int] = []
    before = {
        signum: signal.signal(signum, lambda number, _: signals.append(number))
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN  # as under nohup
    }
    try:
        yield signals
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


async def _answer(
    app: App,
    listener: socket.socket,
    tls: ssl.SSLContext | None,
    announce: Callable[[], None],
    signals: Sequence[int],
    beat: Beat = lambda: None,
) -> None:
    """Answer requests until there is a signal, then finish the requests that were accepted.

    `announce` is called as soon as requests are answered, then `beat` every STOP_CHECK_S. A second
    SIGINT ends the wait for requests. If a thread of the store has ended, stop in the same way as
    after a signal and raise StoreUnavailable.
    """
    loop = asyncio.get_running_loop()

    def make_protocol() -> asyncio.Protocol:
        connection = Connection(app)
        return Handshake(connection, tls) if tls else connection

    async with app.running():
        server = await loop.create_server(make_protocol, sock=listener, backlog=BACKLOG)
        try:
            announce()
            while not signals:
                beat()
                await asyncio.sleep(STOP_CHECK_S)
                app.store.check_threads()
        finally:
            server.close()
            listener.close()
            await _finish(app.connections, signals, beat)


async def _finish(connections: Connections, signals: Sequence[int], beat: Beat) -> None:
    """Finish accepted requests within SHUTDOWN_S, or until a second SIGINT."""
    served, tasks = connections.served, connections.tasks
    connections.is_stopping = True
    for shut_down in [*served]:
        shut_down()
    ends_at_s = time.monotonic() + SHUTDOWN_S
    await asyncio.sleep(STOP_CHECK_S)
    while (served or tasks) and time.monotonic() < ends_at_s and signal.SIGINT not in signals[1:]:
        beat()
        await asyncio.sleep(STOP_CHECK_S)
    if tasks:
        logger.error("Stopping; unanswered requests: %d", len(tasks))
    for task in tasks:
        task.cancel()


def _tune() -> None:
    """Tune the process for serving. Call this once everything is loaded."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    process_memory.limit_malloc()
    process_memory.tune_gc()


def _work(
    settings: Settings,
    listener: socket.socket,
    tls_cert: Path | None,
    tls_key: Path | None,
    memory: Memory,
    open_log: OpenLog | None,
    number: int,
    beat: Beat,
) -> None:
    """Serve in a worker process, with its own store, until SIGTERM.

    Metrics are counted in the worker's slot of the shared memory.
    """
    with _closing(open_log() if open_log else None) as log:
        store = open_store(settings.database_url, read_timeout_s=READ_TIMEOUT_S)
        app = App(settings, store, metrics=Metrics(memory, number), log=log)
        tls = load_tls(tls_cert, tls_key)
        _tune()
        with _captured_signals() as signals, store:
            uvloop.run(_answer(app, listener, tls, lambda: None, signals, beat))
