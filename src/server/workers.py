"""Worker processes that answer together: started, watched, replaced, and ended with each other."""

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import Final, TypeAlias

from uvicorn.config import STARTUP_FAILURE

from resumes.errors import ErrorCode, StoreError

logger = logging.getLogger("resumes.server")

LOOKS_A_SECOND: Final = 2
"""How often workers are looked at, and tell that they live. Limits are counted in looks: a time in
which the whole machine, or all of our processes, stood still is not a worker's fault."""

STARTING_LOOKS: Final = 300 * LOOKS_A_SECOND
"""How long a worker may need to start."""

SILENT_LOOKS: Final = 60 * LOOKS_A_SECOND
"""How long one that has started may say nothing: on a busy machine healthy ones are silent too,
and what they were asked would be lost with them."""

STARTING: Final = b"."
STARTED: Final = b"s"
"""What a worker sends before it answers requests, and from then on."""

Serve: TypeAlias = Callable[[int, Callable[[], None]], None]
"""Serves in a worker process, of which it gets the number, until that gets a SIGTERM. What it also
gets, it calls as soon as it answers requests. Exits with STARTUP_FAILURE if it cannot start."""


class WorkersFailed(StoreError):
    """No worker could start; each has logged why, or the message says it."""

    code = ErrorCode.STORE_UNAVAILABLE


class Worker:
    """A worker process, and for how many looks it has said nothing."""

    def __init__(self, serve: Serve, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._heartbeats, other_end = context.Pipe(duplex=False)
        self.process = context.Process(target=_serve, args=(serve, number, other_end))
        self.process.start()
        other_end.close()
        self.has_started = False
        self._looks = 0
        self._silent_looks = 0

    def find_fault(self) -> str | None:
        """Return why another has to take its place; None: it is well, or is given more time."""
        self._looks += 1
        self._silent_looks += 1
        with contextlib.suppress(OSError, EOFError):  # as good as silent
            while self._heartbeats.poll():
                self.has_started |= self._heartbeats.recv_bytes() == STARTED
                self._silent_looks = 0
        code = self.process.exitcode
        if code is not None:
            return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        if self.is_late:
            return f"it did not start within {STARTING_LOOKS // LOOKS_A_SECOND} s"
        if self.has_started and self._silent_looks > SILENT_LOOKS:
            return f"no answer for {SILENT_LOOKS // LOOKS_A_SECOND} s"
        return None

    @property
    def is_late(self) -> bool:
        """Whether it has had all the time that there is for starting, and has not started."""
        return not self.has_started and self._looks > STARTING_LOOKS

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.join()
        self._heartbeats.close()


def _serve(serve: Serve, number: int, heartbeats: Pipe) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor gets it too, and ends its workers
    has_started = threading.Event()
    threading.Thread(
        target=_send_heartbeats, args=(heartbeats, has_started), name="heartbeat", daemon=True
    ).start()
    serve(number, has_started.set)
    # It was asked to end, and has: a thread that hangs and is not the event loop's is not waited for.
    signal.raise_signal(signal.SIGTERM)


def _send_heartbeats(heartbeats: Pipe, has_started: threading.Event) -> None:
    """Tell the supervisor again and again that this process lives, and end it with the supervisor."""
    with contextlib.suppress(OSError):
        while not has_started.wait(1 / LOOKS_A_SECOND):
            heartbeats.send_bytes(STARTING)
        while True:
            heartbeats.send_bytes(STARTED)
            time.sleep(1 / LOOKS_A_SECOND)
    os.kill(os.getpid(), signal.SIGTERM)


def supervise(
    serve: Serve, count: int, listener: socket.socket, announce: Callable[[], None]
) -> None:
    """Keep this many workers until SIGTERM, SIGINT or SIGHUP, then end them.

    One that ends or falls silent is replaced. `announce` is called once, when all have started.
    Raises WorkersFailed when one could not even start.
    """
    signals: list[int] = []
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # the last: the terminal is gone
        signal.signal(one, lambda number, _: signals.append(number))
    workers: list[Worker] = []
    is_announced = False
    try:
        for number in range(count):
            workers.append(Worker(serve, number))
        while not signals:
            time.sleep(1 / LOOKS_A_SECOND)
            for number, worker in enumerate(workers):
                fault = worker.find_fault()
                if fault is not None and not signals:
                    worker.kill()
                    if worker.process.exitcode == STARTUP_FAILURE:
                        # What keeps one from starting keeps the next one from it as well.
                        raise WorkersFailed("The API's workers could not start; see above")
                    if worker.is_late and not is_announced:
                        start = f"Worker {worker.process.pid} could not start: {fault}"
                        raise WorkersFailed(f"{start}. Is the machine very busy?")
                    try:
                        workers[number] = Worker(serve, number)
                    except OSError as error:  # no memory for one, say: the next look tries again
                        fault = f"{fault}; it cannot be replaced yet: {error.strerror}"
                        logger.warning("Worker %s ended (%s)", worker.process.pid, fault)
                        continue
                    logger.warning(
                        "Worker %s ended (%s) and was replaced", worker.process.pid, fault
                    )
            if not is_announced and all(worker.has_started for worker in workers):
                is_announced = True
                announce()
    finally:
        # Workers stop listening when they are asked to end; new connections are to be refused,
        # and not left waiting behind a socket that nobody accepts from any more.
        listener.close()
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join()
