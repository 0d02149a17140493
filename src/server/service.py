"""Running the API: its processes, a clean start and a clean end."""

import contextlib
import functools
import ipaddress
import logging
import multiprocessing
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from resumes.errors import ErrorCode, InvalidArgument, ResumesError, StoreError
from resumes.settings import Settings
from resumes.store import open_store
from server.app import App, create_app
from server.limits import is_rate_limited
from server.listener import BACKLOG, base_url, listen
from server.protocol import Protocol

logger = logging.getLogger("resumes.server")

KEEP_ALIVE_S = 75
"""How long a silent connection stays open: longer than the pools of common clients and proxies
keep theirs, so that none sends into a closing one."""

SWITCH_INTERVAL_S = 0.000_5
"""How long a thread may keep Python to itself: the lane, which everyone waits for, would stand
behind the event loop for 5 ms at each of its steps."""

SHUTDOWN_S = 35
"""How long a stop waits for accepted requests: longer than a write waits for its outcome."""


class WorkersFailed(StoreError):
    """No worker could start; each has logged why."""

    code = ErrorCode.STORE_UNAVAILABLE


def run(
    settings: Settings,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """The API was served until SIGTERM or SIGINT, and every accepted request is answered.

    `ready` is called once, with the base address, as soon as requests are answered. Without
    `tls_key` the key is in the certificate's file. Raises CannotListen, what `open_store`
    raises, InvalidArgument for the certificate, and WorkersFailed.
    """
    _check_tls(tls_cert, tls_key)
    # Opened before anything listens: a store that cannot be is one message, not one per worker.
    store = open_store(settings.database_url)
    with contextlib.closing(store), contextlib.closing(listen(settings)) as listener:
        _warn(settings, listener, has_tls=tls_cert is not None)
        announce = functools.partial(ready, base_url(listener, has_tls=tls_cert is not None))
        if settings.workers == 1:
            sys.setswitchinterval(SWITCH_INTERVAL_S)
            app = create_app(settings, store)
            _Server(_config(app, settings, tls_cert, tls_key), announce).run([listener])
        else:
            store.close()  # each worker opens its own
            factory = functools.partial(_worker_app, settings)
            _Workers(_config(factory, settings, tls_cert, tls_key), listener, announce).run()


def _config(
    app: App | Callable[[], App], settings: Settings, tls_cert: Path | None, tls_key: Path | None
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=not isinstance(app, App),
        workers=settings.workers,
        loop="uvloop",
        http=Protocol,
        ws="none",
        lifespan="on",
        interface="asgi3",
        # Logging is set up by whoever runs us.
        log_config=None,
        access_log=False,
        # Nothing depends on a client's address, so no header may claim another.
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )


def _check_tls(tls_cert: Path | None, tls_key: Path | None) -> None:
    if tls_cert is None:
        if tls_key is not None:
            raise InvalidArgument("Invalid --tls-key: it needs --tls-cert beside it")
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tls_cert, tls_key)
    except OSError as error:  # ssl.SSLError is one
        files = " and ".join(str(path) for path in (tls_cert, tls_key) if path)
        raise InvalidArgument(f"Cannot use the TLS files {files}: {error.strerror}") from None


def _warn(settings: Settings, listener: socket.socket, *, has_tls: bool) -> None:
    is_loopback = ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback
    if not is_loopback and not has_tls:
        logger.warning(
            "Listening beyond this machine without TLS: keys and resumes can be read on the way. "
            "Use --tls-cert, or a proxy that has TLS"
        )
    if is_rate_limited(settings, is_loopback=is_loopback):
        logger.warning("Rate limits are not enforced by this version")


class _Server(uvicorn.Server):
    """uvicorn's server, which says when it is ready, and ends by returning."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            # uvicorn would raise them once more, and the process would die before its caller
            # has cleaned up.
            self._captured_signals.clear()


class _Workers(Multiprocess):
    """uvicorn's supervisor of spawned workers: replaces one that dies, stops all together."""

    def __init__(
        self, config: uvicorn.Config, listener: socket.socket, announce: Callable[[], None]
    ) -> None:
        super().__init__(config, [listener])
        self._announce = announce
        self._is_announced = False

    def run(self) -> None:
        """Workers served until a signal. Raises WorkersFailed when one could not even start."""
        super().run()
        if any(process.exitcode == STARTUP_FAILURE for process in self.processes):
            raise WorkersFailed("The API's workers could not start; see above")

    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        if not self._is_announced and all(process.is_ready() for process in self.processes):
            self._is_announced = True
            self._announce()

    def handle_hup(self) -> None:
        # The terminal is gone. uvicorn would start anew, with the same settings, unseen.
        self.should_exit.set()


def _worker_app(settings: Settings) -> App:
    """The application of a worker process, over a store of its own."""
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    try:
        store = open_store(settings.database_url)
    except ResumesError as error:
        logger.error("%s", error.message)
        sys.exit(STARTUP_FAILURE)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return create_app(settings, store)


def _end_with_parent() -> None:
    """A supervisor that was killed leaves no worker behind."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
