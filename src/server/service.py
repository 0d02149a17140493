"""Running the API: its processes, a clean start and a clean end."""

import asyncio
import contextlib
import functools
import ipaddress
import logging
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from resumes import process_memory
from resumes.errors import InvalidArgument, ResumesError
from resumes.listener import BACKLOG, listen
from resumes.log_writer import LogWriter
from resumes.settings import Settings
from resumes.store import Store, open_store
from resumes.store.search_index import Indexer
from server.app import App
from server.connection import Connection
from server.metrics import Memory, Metrics, share_memory
from server.workers import supervise


def base_url(listener: socket.socket, *, has_tls: bool) -> str:
    """Return the address that a client on this machine uses."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if has_tls else 'http'}://{shown}:{port}"


logger = logging.getLogger("resumes.server")

READ_TIMEOUT_S = 5.0
"""How long a database across a network may take for one statement: then there is time left, of the
10 s that a request waits, to try another connection."""

KEEP_ALIVE_S = 75
"""How long a silent connection stays open: longer than the pools of common clients and proxies
keep theirs, so that none sends into a closing one."""

SWITCH_INTERVAL_S = 0.000_5
"""How long a thread may keep Python to itself: the writer thread, which everyone waits for, would stand
behind the event loop for 5 ms at each of its steps."""

SHUTDOWN_S = 35
"""How long a stop waits for accepted requests: longer than a write waits for its outcome."""

OpenLog = Callable[[], LogWriter]
"""Sets up a process's log, and gives where lines of requests go."""


def run(
    settings: Settings,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    ready: Callable[[str], None] = lambda url: None,
    open_log: OpenLog | None = None,
) -> None:
    """Serve the API until SIGTERM or SIGINT; every accepted request is answered.

    `ready` is called once, with the base address, as soon as requests are answered; `open_log`
    in each process, so it must be a function of a module if there are several; without it requests
    have no lines in the log. Without `tls_key` the key is in the certificate's file. Raises
    CannotListen, what `open_store` raises, InvalidArgument for the certificate, and WorkersFailed.
    """
    _check_tls(tls_cert, tls_key)
    log = open_log() if open_log else None
    with (
        contextlib.closing(log) if log else contextlib.nullcontext(),
        # Before anything listens: a store that cannot be is one message, not one per worker.
        contextlib.closing(_open_store(settings)) as store,
    ):
        if settings.workers == 1:
            _tune()
            serve(settings, store, tls_cert=tls_cert, tls_key=tls_key, ready=ready, log=log)
            return
        # Each worker opens a store of its own; this one is for what one process does for all.
        with contextlib.closing(listen(settings.host, settings.port)) as listener, Indexer(store):
            settings = _adapt(settings, listener, has_tls=tls_cert is not None)
            memory = share_memory(settings.workers)
            work = functools.partial(_work, settings, listener, tls_cert, tls_key, memory, open_log)
            announce = functools.partial(ready, base_url(listener, has_tls=tls_cert is not None))
            supervise(work, settings.workers, listener, announce)


def serve(
    settings: Settings,
    store: Store,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    ready: Callable[[str], None] = lambda url: None,
    stop: threading.Event | None = None,
    log: LogWriter | None = None,
    runs_indexer: bool = True,
    grace_s: float = SHUTDOWN_S,
    keep_alive_s: float = KEEP_ALIVE_S,
) -> None:
    """Serve an open store in this process until SIGTERM, SIGINT or `stop`, and close it.

    Only `stop` ends it in a thread that is not the main one. `ready` is as in `run`; `runs_indexer`
    says whether the search index is filled at the same time, `grace_s` how long a stop waits for accepted
    requests, `keep_alive_s` how long a silent connection stays open. Raises CannotListen.
    """
    with contextlib.closing(listen(settings.host, settings.port)) as listener:
        has_tls = tls_cert is not None
        settings = _adapt(settings, listener, has_tls=has_tls)
        app = App(settings, store, log=log, runs_indexer=runs_indexer)
        ApiServer(
            app,
            tls_cert,
            tls_key,
            announce=functools.partial(ready, base_url(listener, has_tls=has_tls)),
            stop=stop,
            grace_s=grace_s,
            keep_alive_s=keep_alive_s,
        ).run([listener])


def _adapt(settings: Settings, listener: socket.socket, *, has_tls: bool) -> Settings:
    """Return the settings for where the server listens; warn where others can listen too."""
    address = listener.getsockname()[0].partition("%")[0]
    is_loopback = ipaddress.ip_address(address).is_loopback
    if not is_loopback and not has_tls:
        logger.warning(
            "Listening beyond this machine without TLS: keys and resumes can be read on the network. "
            "Use --tls-cert, or a proxy with TLS"
        )
    if settings.rate_limit is None:
        return settings.model_copy(update={"rate_limit": not is_loopback})
    return settings


def _open_store(settings: Settings) -> Store:
    return open_store(settings.database_url, read_timeout_s=READ_TIMEOUT_S)


def _check_tls(tls_cert: Path | None, tls_key: Path | None) -> None:
    if tls_cert is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tls_cert, tls_key)
    except OSError as error:  # ssl.SSLError is one
        files = " and ".join(str(path) for path in (tls_cert, tls_key) if path)
        raise InvalidArgument(f"Cannot use the TLS files {files}: {error.strerror}") from None


class ApiServer(uvicorn.Server):
    """uvicorn's server, with connections of our own; it ends by returning.

    The application runs from before the first request to after the last. `announce` is called when
    requests are answered. Besides signals, which a process gets in its main thread, `stop` ends it.
    """

    def __init__(
        self,
        app: App,
        tls_cert: Path | None,
        tls_key: Path | None,
        *,
        announce: Callable[[], None],
        stop: threading.Event | None = None,
        grace_s: float = SHUTDOWN_S,
        keep_alive_s: float = KEEP_ALIVE_S,
    ) -> None:
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]  # our connections know it, and it is not an ASGI application
            loop="uvloop",
            http=Connection,  # which `startup` makes; any other protocol would be imported
            workers=1,  # whatever WEB_CONCURRENCY says
            ws="none",
            lifespan="off",
            interface="asgi3",
            # Logging is set up by whoever runs us.
            log_config=None,
            access_log=False,
            # Nothing depends on a client's address, so no header may claim another.
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=grace_s,  # type: ignore[arg-type]  # as asyncio takes it
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
        )
        super().__init__(config)
        self._app = app
        self._announce = announce
        self._stop = stop
        self._keep_alive_s = keep_alive_s
        self._running = contextlib.AsyncExitStack()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await self._running.enter_async_context(self._app.running())
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(self._make_protocol, sock=listener, backlog=BACKLOG)
            for listener in sockets or ()
        ]
        self.started = True
        self._announce()

    def _make_protocol(self) -> asyncio.Protocol:
        connection = Connection(self._app, self.server_state, self._keep_alive_s)
        return Handshake(connection, self.config.ssl) if self.config.ssl else connection

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End when the requests that were accepted are answered."""
        await super().shutdown(sockets)
        if not self.force_exit:
            await self._running.aclose()

    async def on_tick(self, counter: int) -> bool:
        """Return whether it is time to end."""
        return await super().on_tick(counter) or (self._stop is not None and self._stop.is_set())

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals during the block. uvicorn would raise them again, and the process would die
        before its caller has cleaned up."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _work(
    settings: Settings,
    listener: socket.socket,
    tls_cert: Path | None,
    tls_key: Path | None,
    memory: Memory,
    open_log: OpenLog | None,
    number: int,
    announce: Callable[[], None],
) -> None:
    """Serve in a worker process, over a store of its own.

    It counts in its part of the memory that all workers share.
    """
    log = open_log() if open_log else None
    try:
        app = App(settings, _open_store(settings), metrics=Metrics(memory, number), log=log)
    except ResumesError as error:
        logger.error("%s", error.message)
        if log is not None:
            log.close()
        sys.exit(STARTUP_FAILURE)
    _tune()
    ApiServer(app, tls_cert, tls_key, announce=announce).run([listener])


def _tune() -> None:
    """Tune the process to do nothing but serve from now on; all that it needs is loaded."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    process_memory.limit_malloc()
    process_memory.tune_gc()


GOODBYE_S = 5.0
"""How long a client may take to agree that a TLS connection ends."""


class Handshake(asyncio.Protocol):
    """A connection that was accepted, until it has TLS.

    uvloop's own TLS servers tell nobody of a connection before its handshake is complete, so any
    number could be open that never complete theirs (pitfalls R6).
    """

    def __init__(self, protocol: Connection, context: ssl.SSLContext) -> None:
        self._protocol = protocol
        """What gets the connection once it has TLS; counted from now on."""
        self._context = context
        self._all = protocol.all
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin the handshake; beyond the limit, only with as many as can get a 503."""
        is_full = self._all.is_full
        # A transport has begun to read before anything else can be done with it, so the connection
        # is taken from it. Without a file left for that, the connection is closed.
        with contextlib.suppress(OSError):
            if not (is_full and self._all.is_overrun):
                connection = transport.get_extra_info("socket").dup()
                self._all.add(self._protocol, is_refused=is_full)
                self._task = asyncio.create_task(self._secure(connection))
        transport.abort()

    async def _secure(self, connection: Any) -> None:
        try:
            # An error is the client's: it left, broke the protocol or took too long.
            with contextlib.suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self._protocol,
                    connection,
                    ssl=self._context,
                    ssl_handshake_timeout=self._all.client_timeout_s,
                    ssl_shutdown_timeout=GOODBYE_S,
                )
        finally:
            if not self._protocol.is_connected:
                self._all.discard(self._protocol)
