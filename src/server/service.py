"""Running the API: start and graceful stop, in one process or with workers.

Worker processes share the listener; a supervisor starts, watches, replaces and ends them.
"""

import asyncio
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
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import uvloop

from resumes import process_memory
from resumes.errors import (
    ErrorCode,
    InvalidArgument,
    ResumesError,
    StoreError,
    StoreUnavailable,
)
from resumes.listener import BACKLOG, listen
from resumes.log_writer import LogWriter
from resumes.settings import Settings
from resumes.store import Store, open_store
from resumes.store.retention import Sweeper
from resumes.store.search_index import Indexer
from server.app import App
from server.connection import Connection
from server.metrics import Memory, Metrics, share_memory

logger = logging.getLogger("resumes.server")

READ_TIMEOUT_S = 5.0
"""How long a database across a network may take for one statement: that leaves time, within the
10 s of a request, to try another connection."""

SWITCH_INTERVAL_S = 0.000_5
"""How long a thread may keep the GIL. With the default of 5 ms, each step of the writer thread,
which all writes wait for, would wait that long for the event loop."""

STOP_CHECK_S = 0.1
"""How often to check for a signal to stop, and then whether everything has ended."""

SHUTDOWN_S = 35
"""How long a stop waits for accepted requests; longer than a write waits for its outcome."""

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
    called in each process, so with workers it must be picklable; None: requests are not logged.
    Without `tls_key` the key is in the certificate's file. Raises CannotListen, the errors of
    `open_store`, InvalidArgument for the certificate, and WorkersFailed.
    """
    tls = load_tls(tls_cert, tls_key)
    with (
        _closing(open_log() if open_log else None) as log,
        # Opened first, so that a failure is reported once and not by every worker.
        open_store(settings.database_url, read_timeout_s=READ_TIMEOUT_S) as store,
    ):
        if settings.workers == 1:
            _tune()
            serve(settings, store, tls=tls, ready=ready, log=log)
            return
        # Each worker opens its own store; this one is for work that only one process does.
        listener, settings, url = _listen(settings, has_tls=tls is not None)
        # Entered again so that the store is closed while signals are still captured.
        closing = contextlib.closing(listener)
        with _captured_signals() as signals, store, closing, Indexer(store), Sweeper(store):
            memory = share_memory(settings.workers)
            work = functools.partial(_work, settings, listener, tls_cert, tls_key, memory, open_log)
            announce = functools.partial(ready, url)
            _supervise(work, settings.workers, listener, announce, signals, store.check_threads)


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

    Other threads than the main one get no signals; there, numbers appended to `signals` count as
    such. `ready` is as in `run`; `runs_background` is whether this also fills the search index and
    erases what is due. Raises CannotListen.
    """
    captured = _captured_signals() if signals is None else contextlib.nullcontext(signals)
    with captured as signals, _closing(log), store:
        listener, settings, url = _listen(settings, has_tls=tls is not None)
        announce = functools.partial(ready, url)
        with contextlib.closing(listener):
            app = App(settings, store, log=log)
            with contextlib.ExitStack() as background:
                if runs_background:
                    background.enter_context(Indexer(store, is_busy=app.is_busy))
                    background.enter_context(Sweeper(store))
                uvloop.run(_answer(app, listener, tls, announce, signals))


def _listen(settings: Settings, *, has_tls: bool) -> tuple[socket.socket, Settings, str]:
    """Listen, and warn if keys could be read on the network. Raises CannotListen.

    Return the socket, the settings adapted to its address, and its URL for clients on this machine.
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
    """Append SIGTERM, SIGINT and SIGHUP to the list during the block. Only for the main thread.

    The block must last until everything is closed: an uncaptured second signal kills the process.
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


def load_tls(tls_cert: Path | None, tls_key: Path | None = None) -> ssl.SSLContext | None:
    """Return the TLS context of these files; None without a certificate. Raises InvalidArgument."""
    if tls_cert is None:
        return None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls_cert, tls_key)
        return context
    except OSError as error:  # includes ssl.SSLError
        files = " and ".join(str(path) for path in (tls_cert, tls_key) if path)
        problem = f"Cannot use the TLS files {files}: {error.strerror}"
        needed = "Give a certificate and its private key without a passphrase, both in PEM"
        raise InvalidArgument(f"{problem}. {needed}") from None


async def _answer(
    app: App,
    listener: socket.socket,
    tls: ssl.SSLContext | None,
    announce: Callable[[], None],
    signals: Sequence[int],
    beat: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until there is a signal, then finish those that were accepted.

    `announce` is called as soon as requests are answered, then `beat` every STOP_CHECK_S. A second
    SIGINT ends the wait for requests. If a thread of the store has ended, stop as after a signal and
    raise StoreUnavailable.
    """
    fault: StoreUnavailable | None = None
    loop = asyncio.get_running_loop()

    def make_protocol() -> asyncio.Protocol:
        connection = Connection(app)
        return Handshake(connection, tls) if tls else connection

    served, tasks = app.connections.served, app.connections.tasks
    async with app.running():
        server = await loop.create_server(make_protocol, sock=listener, backlog=BACKLOG)
        with contextlib.closing(server):
            announce()
            while not (signals or fault):
                beat()
                await asyncio.sleep(STOP_CHECK_S)
                fault = app.find_fault()
        listener.close()
        app.connections.is_stopping = True
        for shut_down in [*served]:
            shut_down()
        ends_at_s = loop.time() + SHUTDOWN_S
        await asyncio.sleep(STOP_CHECK_S)
        while (served or tasks) and loop.time() < ends_at_s and signal.SIGINT not in signals[1:]:
            beat()
            await asyncio.sleep(STOP_CHECK_S)
        if tasks:
            logger.error("Stopping; unanswered requests: %d", len(tasks))
        for task in tasks:
            task.cancel()
    if fault is not None:
        raise fault


def _tune() -> None:
    """Tune the process for serving; call this once everything is loaded."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    process_memory.limit_malloc()
    process_memory.tune_gc()


GOODBYE_S = 5.0
"""How long a client may take to acknowledge the end of a TLS connection."""


class Handshake(asyncio.Protocol):
    """An accepted connection during its TLS handshake.

    uvloop's own TLS servers report a connection only after its handshake, so a client could open any
    number of connections and never complete the handshake (pitfalls R6).
    """

    def __init__(self, protocol: Connection, context: ssl.SSLContext) -> None:
        self._protocol = protocol
        """Gets the connection after the handshake, but is counted from now on."""
        self._context = context
        self._registry = protocol.registry
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin the handshake; beyond the limit, only if the client can be answered with 503."""
        is_full = self._registry.is_full
        # The transport has already begun to read, so the connection is duplicated and the transport
        # aborted. If no file descriptor is left, the connection is closed.
        with contextlib.suppress(OSError):
            if not (is_full and self._registry.is_overrun):
                connection = transport.get_extra_info("socket").dup()
                self._registry.add(self._protocol.check, is_refused=is_full)
                self._task = asyncio.create_task(self._secure(connection))
        transport.abort()

    async def _secure(self, connection: Any) -> None:
        try:
            # The client caused the error: it left, violated the protocol or took too long.
            with contextlib.suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self._protocol,
                    connection,
                    ssl=self._context,
                    ssl_handshake_timeout=self._registry.client_timeout_s,
                    ssl_shutdown_timeout=GOODBYE_S,
                )
        finally:
            if not self._protocol.is_connected:
                self._registry.discard(self._protocol.check)


# Worker processes

Work = Callable[[int, Pipe], None]
"""Serves in a worker process; called with its number and the pipe for its heartbeats."""

CHECKS_PER_S = 2
"""How often the supervisor checks workers. Limits are counted in checks, so that time in which the
whole machine or all processes were paused is not held against a worker."""

STARTING_CHECKS = 300 * CHECKS_PER_S
"""How long a worker may take to start."""

SILENT_CHECKS = 60 * CHECKS_PER_S
"""How long a started worker may send no heartbeat: on a busy machine healthy workers are silent
too, and killing them would lose their requests."""

END_WITHIN_S = SHUTDOWN_S + 25
"""How long a worker may take to end: to finish requests and close its store."""

RETRY_CHECKS = 5 * CHECKS_PER_S
"""The pause before the next attempt to replace a worker after one could not start."""

BEAT = b"."
"""The heartbeat that a worker sends while its event loop runs."""

MAX_REASON_BYTES = 4_000
"""The maximum size of a worker's startup error, which a pipe accepts in one write."""

STARTUP_FAILURE = 3
"""The exit code of a worker that cannot start."""


class WorkersFailed(StoreError):
    """No worker could start; the reason is in the log or in the message."""

    code = ErrorCode.STORE_UNAVAILABLE


class Worker:
    """A worker process. `checks` counts those since its start or its last heartbeat."""

    def __init__(self, work: Work, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._heartbeats, other_end = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(number, other_end))
        self.process.start()
        other_end.close()
        self.has_started = False
        self.reason = ""
        """The worker's startup error, if it sent one."""
        self.checks = 0

    def find_fault(self) -> str | None:
        """Return why the worker must be replaced; None if it is healthy or gets more time."""
        self.checks += 1
        code = self.process.exitcode  # before its last messages are read
        with contextlib.suppress(OSError, EOFError):  # treated as silence
            while self._heartbeats.poll():
                said = self._heartbeats.recv_bytes()
                self.checks = 0
                self.has_started = said == BEAT
                self.reason = "" if self.has_started else said.decode(errors="replace")
        if code is not None:
            return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        if self.is_late:
            return f"it did not start within {STARTING_CHECKS // CHECKS_PER_S} s"
        if self.has_started and self.checks > SILENT_CHECKS:
            return f"no response for {SILENT_CHECKS // CHECKS_PER_S} s"
        return None

    @property
    def is_serving(self) -> bool:
        """Whether the worker has started and has not ended."""
        return self.has_started and self.process.exitcode is None

    @property
    def is_late(self) -> bool:
        """Whether the worker has exceeded the time for starting."""
        return not self.has_started and self.checks > STARTING_CHECKS

    def kill(self) -> None:
        """Kill the worker."""
        self.process.kill()
        self.process.join()
        self._heartbeats.close()


def _work(
    settings: Settings,
    listener: socket.socket,
    tls_cert: Path | None,
    tls_key: Path | None,
    memory: Memory,
    open_log: OpenLog | None,
    number: int,
    heartbeats: Pipe,
) -> None:
    """Serve in a worker process with its own store until SIGTERM.

    Metrics go to the worker's slot of the shared memory.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor gets it too and ends its workers
    # A supervisor that is paused must not block its workers.
    os.set_blocking(heartbeats.fileno(), False)
    with _closing(open_log() if open_log else None) as log:
        try:
            store = open_store(settings.database_url, read_timeout_s=READ_TIMEOUT_S)
            app = App(settings, store, metrics=Metrics(memory, number), log=log)
            tls = load_tls(tls_cert, tls_key)
        except ResumesError as error:
            with contextlib.suppress(OSError):
                heartbeats.send_bytes(error.message.encode(errors="replace")[:MAX_REASON_BYTES])
            sys.exit(STARTUP_FAILURE)
        _tune()
        with _captured_signals() as signals, _closing(log), store:
            beat = functools.partial(_beat, heartbeats)
            try:
                uvloop.run(_answer(app, listener, tls, lambda: None, signals, beat))
            except StoreUnavailable as error:
                logger.error("%s", error.message)
                sys.exit(1)
    # The worker was asked to end and is done; do not wait for other threads, which may hang.
    signal.raise_signal(signal.SIGTERM)


def _beat(heartbeats: Pipe) -> None:
    """Send a heartbeat to the supervisor; end this process if the supervisor is gone."""
    try:
        heartbeats.send_bytes(BEAT)
    except BlockingIOError:
        pass  # the supervisor has not read the earlier ones yet
    except OSError:
        os.kill(os.getpid(), signal.SIGTERM)


def _supervise(
    work: Work,
    count: int,
    listener: socket.socket,
    ready: Callable[[], None],
    signals: list[int],
    check: Callable[[], None],
) -> None:
    """Keep `count` workers running until there is a signal, then end them.

    A worker that ends or is silent is replaced, if necessary later. `ready` is called once, when all
    have started. Raises WorkersFailed if a worker cannot start before that, or if none is left, and
    the errors of `check`, which is called at every check.
    """
    workers: list[Worker] = []
    is_announced = False
    reasons = set[str]()
    """Reasons already logged for workers that could not start; reset once all are serving."""
    try:
        for number in range(count):
            workers.append(Worker(work, number))
        while not signals:
            time.sleep(1 / CHECKS_PER_S)
            check()
            for number, worker in enumerate(workers):
                fault = worker.find_fault()
                if fault is not None and not signals:
                    could_start = worker.process.exitcode != STARTUP_FAILURE
                    if not could_start:
                        if worker.reason not in reasons:
                            reasons.add(worker.reason)
                            logger.error("A worker could not start: %s", worker.reason)
                        if not (is_announced and any(other.has_started for other in workers)):
                            # The next worker would fail for the same reason.
                            raise WorkersFailed("The API's workers could not start; see above")
                        if worker.checks < RETRY_CHECKS:
                            continue  # retried later, as the other workers keep serving
                    worker.kill()
                    if worker.is_late and not is_announced:
                        start = f"Worker {worker.process.pid} could not start: {fault}"
                        raise WorkersFailed(f"{start}. Is the machine very busy?")
                    outcome = f"({fault}) and was replaced"
                    try:
                        workers[number] = Worker(work, number)
                    except OSError as error:  # such as ENOMEM; the next check retries
                        reason = str(error.strerror)
                        if reason in reasons:
                            continue
                        reasons.add(reason)
                        outcome = f"({fault}; it cannot be replaced yet: {reason})"
                    if could_start:
                        logger.warning("Worker %s ended %s", worker.process.pid, outcome)
            if all(worker.is_serving for worker in workers):
                reasons.clear()
                if not is_announced:
                    is_announced = True
                    ready()
    finally:
        # Ending workers stop listening. New connections must be refused instead of waiting on a
        # socket that no process accepts from.
        listener.close()
        for worker in workers:
            worker.process.terminate()
        ends_at_s = time.monotonic() + END_WITHIN_S
        for worker in workers:
            worker.process.join(max(0.0, ends_at_s - time.monotonic()))
            if worker.process.is_alive():
                logger.error("Worker %s did not end; killing it", worker.process.pid)
                worker.kill()
