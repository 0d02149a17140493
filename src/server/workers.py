"""Worker processes, and their supervisor, which starts, watches, replaces and ends them."""

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe

from resumes.errors import ErrorCode, ResumesError, StoreError

logger = logging.getLogger("resumes.server")

Beat = Callable[[], None]
"""Tells the supervisor that the event loop of a worker runs."""

Work = Callable[[int, Beat], None]
"""Serves in a worker process until SIGTERM; called with its number. Raises a ResumesError before
the first beat if it cannot start."""

CHECKS_PER_S = 2
"""How often the supervisor checks workers. Limits are counted in checks, so that time in which the
whole machine or all processes were paused is not held against a worker."""

STARTING_CHECKS = 300 * CHECKS_PER_S
"""How long a worker may take to start."""

SILENT_CHECKS = 60 * CHECKS_PER_S
"""How long a started worker may send no heartbeat: on a busy machine healthy workers are silent
too, and killing them would lose their requests."""

SHUTDOWN_S = 35
"""How long a stop waits for accepted requests; longer than a write waits for its outcome."""

END_WITHIN_S = SHUTDOWN_S + 25
"""How long a worker may take to end: to finish requests and close its store."""

RETRY_CHECKS = 5 * CHECKS_PER_S
"""The pause before the next attempt to replace a worker after one could not start."""

BEAT = b"."
"""A heartbeat, as it is sent."""

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
        self.process = context.Process(target=_run, args=(work, number, other_end))
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


def _run(work: Work, number: int, heartbeats: Pipe) -> None:
    """Work in this process, and end it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor gets it too and ends its workers
    # A supervisor that is paused must not block its workers.
    os.set_blocking(heartbeats.fileno(), False)
    has_started = False

    def beat() -> None:
        nonlocal has_started
        has_started = True
        try:
            heartbeats.send_bytes(BEAT)
        except BlockingIOError:
            pass  # the supervisor has not read the earlier ones yet
        except OSError:  # it is gone
            os.kill(os.getpid(), signal.SIGTERM)

    try:
        work(number, beat)
    except ResumesError as error:
        if has_started:
            logger.error("%s", error.message)
            sys.exit(1)
        with contextlib.suppress(OSError):
            heartbeats.send_bytes(error.message.encode(errors="replace")[:MAX_REASON_BYTES])
        sys.exit(STARTUP_FAILURE)
    # The worker was asked to end and is done; do not wait for other threads, which may hang.
    signal.raise_signal(signal.SIGTERM)


def supervise(
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
