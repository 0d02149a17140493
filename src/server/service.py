"""Running the API: a clean start and a clean end, in one process or in several.

Worker processes that answer together are started, watched, replaced, and ended with each other.
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
from resumes.store.search_index import Indexer
from server.app import App
from server.connection import Connection
from server.metrics import Memory, Metrics, share_memory

logger = logging.getLogger("resumes.server")

READ_TIMEOUT_S = 5.0
"""How long a database across a network may take for one statement: then there is time left, of the
10 s that a request waits, to try another connection."""

SWITCH_INTERVAL_S = 0.000_5
"""How long a thread may keep Python to itself: the writer thread, which everyone waits for, would stand
behind the event loop for 5 ms at each of its steps."""

LOOK_INTERVAL_S = 0.1
"""How often to check whether to stop, and then whether everything has ended."""

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
    """Serve the API until SIGTERM, SIGINT or SIGHUP; every accepted request is answered.

    `ready` is called once, with the base address, as soon as requests are answered; `open_log`
    in each process, so it must be a function of a module if there are several; without it requests
    have no lines in the log. Without `tls_key` the key is in the certificate's file. Raises
    CannotListen, what `open_store` raises, InvalidArgument for the certificate, and WorkersFailed.
    """
    tls = load_tls(tls_cert, tls_key)
    with (
        _closing(open_log() if open_log else None) as log,
        # Before anything listens: a store that cannot be is one message, not one per worker.
        open_store(settings.database_url, read_timeout_s=READ_TIMEOUT_S) as store,
    ):
        if settings.workers == 1:
            _tune()
            serve(settings, store, tls=tls, ready=ready, log=log)
            return
        # Each worker opens a store of its own; this one is for what one process does for all.
        listener, settings, url = _listen(settings, has_tls=tls is not None)
        # The store once more: it is to be closed while signals are still taken.
        with _captured_signals() as signals, store, contextlib.closing(listener), Indexer(store):
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
    runs_indexer: bool = True,
) -> None:
    """Serve an open store in this process until SIGTERM, SIGINT or SIGHUP; close it, and the log.

    A thread that is not the main one gets no signals: what is added to its `signals` counts as one.
    `ready` is as in `run`; `runs_indexer` says whether the search index is filled at the same time.
    Raises CannotListen.
    """
    captured = _captured_signals() if signals is None else contextlib.nullcontext(signals)
    with captured as signals, _closing(log), store:
        listener, settings, url = _listen(settings, has_tls=tls is not None)
        announce = functools.partial(ready, url)
        with contextlib.closing(listener):
            app = App(settings, store, log=log)
            with Indexer(store, is_busy=app.is_busy) if runs_indexer else contextlib.nullcontext():
                uvloop.run(_answer(app, listener, tls, announce, signals))


def _listen(settings: Settings, *, has_tls: bool) -> tuple[socket.socket, Settings, str]:
    """Listen, and warn if others can listen too. Raises CannotListen.

    Return the socket, the settings for where it is, and its address for clients on this machine.
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
    """Take SIGTERM, SIGINT and SIGHUP during the block, in the list. Only for the main thread.

    Until all is closed: the default of a second one would be to die half-way.
    """
    signals: list[int] = []
    before = {
        one: signal.signal(one, lambda number, _: signals.append(number))
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # the last: the terminal is gone
        if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN  # as below nohup
    }
    try:
        yield signals
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def load_tls(tls_cert: Path | None, tls_key: Path | None = None) -> ssl.SSLContext | None:
    """Return what these files say; None without a certificate. Raises InvalidArgument."""
    if tls_cert is None:
        return None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls_cert, tls_key)
        return context
    except OSError as error:  # ssl.SSLError is one
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
    """Answer requests until there is a signal, and then those that were accepted.

    `announce` is called when requests are answered, and from then on `beat` several times a second.
    After a second SIGINT no request is waited for. Raises StoreUnavailable when a thread that the
    store depends on has ended, like after a signal.
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
                await asyncio.sleep(LOOK_INTERVAL_S)
                fault = app.find_fault()
        listener.close()
        app.connections.is_stopping = True
        for shut_down in [*served]:
            shut_down()
        ends_at_s = loop.time() + SHUTDOWN_S
        await asyncio.sleep(LOOK_INTERVAL_S)
        while (served or tasks) and loop.time() < ends_at_s and signal.SIGINT not in signals[1:]:
            beat()
            await asyncio.sleep(LOOK_INTERVAL_S)
        if tasks:
            logger.error("Stopping; unanswered requests: %d", len(tasks))
        for task in tasks:
            task.cancel()
    if fault is not None:
        raise fault


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
                self._all.add(self._protocol.look, is_refused=is_full)
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
                self._all.discard(self._protocol.look)


# Several processes

Work = Callable[[int, Pipe], None]
"""Serves in a worker process: the number of that, and where it says that it lives."""

LOOKS_A_SECOND = 2
"""How often workers are looked at. Limits are counted in looks: a time in which the whole machine, or
all of our processes, stood still is not a worker's fault."""

STARTING_LOOKS = 300 * LOOKS_A_SECOND
"""How long a worker may need to start."""

SILENT_LOOKS = 60 * LOOKS_A_SECOND
"""How long the event loop of one that has started may say nothing: on a busy machine healthy ones are
silent too, and what they were asked would be lost with them."""

END_WITHIN_S = SHUTDOWN_S + 25
"""How long a worker that was asked to end may take for that: for its requests, and to close its store."""

RETRY_LOOKS = 5 * LOOKS_A_SECOND
"""How soon after a worker that could not take another's place the next one is started."""

BEAT = b"."
"""What a worker sends again and again while its event loop runs."""

MAX_REASON_BYTES = 4_000
"""As much as a pipe takes in one go, of why a worker cannot start."""

STARTUP_FAILURE = 3
"""The exit code of a worker that cannot start."""


class WorkersFailed(StoreError):
    """No worker could start; it was logged why, or the message says it."""

    code = ErrorCode.STORE_UNAVAILABLE


class Worker:
    """A worker process, and for how many looks it is starting, or has said nothing since."""

    def __init__(self, work: Work, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._heartbeats, other_end = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(number, other_end))
        self.process.start()
        other_end.close()
        self.has_started = False
        self.reason = ""
        """Why it could not start, if it said so."""
        self.looks = 0

    def find_fault(self) -> str | None:
        """Return why another has to take its place; None: it is well, or is given more time."""
        self.looks += 1
        code = self.process.exitcode  # of one that has ended, everything it said is read below
        with contextlib.suppress(OSError, EOFError):  # as good as silent
            while self._heartbeats.poll():
                said = self._heartbeats.recv_bytes()
                self.looks = 0
                self.has_started = said == BEAT
                self.reason = "" if self.has_started else said.decode(errors="replace")
        if code is not None:
            return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        if self.is_late:
            return f"it did not start within {STARTING_LOOKS // LOOKS_A_SECOND} s"
        if self.has_started and self.looks > SILENT_LOOKS:
            return f"no response for {SILENT_LOOKS // LOOKS_A_SECOND} s"
        return None

    @property
    def is_serving(self) -> bool:
        """Whether it has started, and has not ended."""
        return self.has_started and self.process.exitcode is None

    @property
    def is_late(self) -> bool:
        """Whether it has exceeded the time for starting."""
        return not self.has_started and self.looks > STARTING_LOOKS

    def kill(self) -> None:
        """End it at once."""
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
    """Serve in a worker process until SIGTERM, over a store of its own.

    It counts in its part of the memory that all workers share.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor gets it too, and ends its workers
    # A supervisor that is stopped for long must not stop its workers.
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
    # It was asked to end, and has: a thread that hangs and is not the event loop's is not waited for.
    signal.raise_signal(signal.SIGTERM)


def _beat(heartbeats: Pipe) -> None:
    """Tell the supervisor that this process answers requests; end it if there is no supervisor any more."""
    try:
        heartbeats.send_bytes(BEAT)
    except BlockingIOError:
        pass  # the supervisor has yet to read the earlier ones
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
    """Keep this many workers until there is a signal, then end them.

    One that ends or falls silent is replaced, if need be later. `ready` is called once, when all have
    started. Raises WorkersFailed when one could not even start before that, or none lives any more,
    and what `check` raises, which is called again and again.
    """
    workers: list[Worker] = []
    is_announced = False
    reasons = set[str]()
    """Why a worker could not start; each was logged, and is not again until all serve."""
    try:
        for number in range(count):
            workers.append(Worker(work, number))
        while not signals:
            time.sleep(1 / LOOKS_A_SECOND)
            check()
            for number, worker in enumerate(workers):
                fault = worker.find_fault()
                if fault is not None and not signals:
                    could_start = worker.process.exitcode != STARTUP_FAILURE
                    if not could_start:
                        if worker.reason not in reasons:
                            reasons.add(worker.reason)
                            logger.error("A worker could not start: %s", worker.reason)
                        if not (is_announced and any(one.has_started for one in workers)):
                            # What keeps one from starting keeps the next one from it as well.
                            raise WorkersFailed("The API's workers could not start; see above")
                        if worker.looks < RETRY_LOOKS:
                            continue  # the others wait for the store to come back, and so does this
                    worker.kill()
                    if worker.is_late and not is_announced:
                        start = f"Worker {worker.process.pid} could not start: {fault}"
                        raise WorkersFailed(f"{start}. Is the machine very busy?")
                    outcome = f"({fault}) and was replaced"
                    try:
                        workers[number] = Worker(work, number)
                    except OSError as error:  # no memory for one, say: the next look tries again
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
        # Workers stop listening when they are asked to end; new connections are to be refused,
        # and not left waiting behind a socket that nobody accepts from any more.
        listener.close()
        for worker in workers:
            worker.process.terminate()
        ends_at_s = time.monotonic() + END_WITHIN_S
        for worker in workers:
            worker.process.join(max(0.0, ends_at_s - time.monotonic()))
            if worker.process.is_alive():
                logger.error("Worker %s did not end; killing it", worker.process.pid)
                worker.kill()
