"""Worker processes, and the supervisor that starts, checks, replaces and stops them."""

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
"""Tells the supervisor that the worker's event loop is running."""

Work = Callable[[int, Beat], None]
"""Serves in a worker process until SIGTERM. It is called with the worker's number, and raises a
ResumesError before the first beat if it cannot start."""

CHECKS_PER_S = 2
"""The number of checks of the workers per second. Limits are counted in checks, so that time during
which the machine or all processes were paused does not count against a worker."""

STARTING_CHECKS = 300 * CHECKS_PER_S
"""How long a worker may take to start."""

SILENT_CHECKS = 60 * CHECKS_PER_S
"""How long a started worker may go without a heartbeat. On a busy machine, even healthy workers may be
silent, and killing them would lose their requests."""

SHUTDOWN_S = 35
"""How long a stop waits for accepted requests: longer than a write waits for its outcome."""

END_WITHIN_S = SHUTDOWN_S + 25
"""How long a worker may take to finish its requests, close its store and exit."""

RETRY_CHECKS = 5 * CHECKS_PER_S
"""The pause before the next attempt to replace a worker after a replacement could not start."""

MAX_ERROR_CHARS = 1_000
"""The maximum length of a worker's error, which a pipe accepts in one write."""


class WorkersFailed(StoreError):
    """Raised if no worker can start."""

    code = ErrorCode.STORE_UNAVAILABLE


class Worker:
    """A worker process. `checks` is the number of checks since its start or its last heartbeat."""

    def __init__(self, work: Work, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._heartbeats, other_end = context.Pipe(duplex=False)
        self.process = context.Process(target=_run, args=(work, number, other_end))
        self.process.start()
        other_end.close()
        self.has_started = False
        self.error = ""
        """The error with which the worker exited, if it sent an error."""
        self.checks = 0

    def find_fault(self) -> str | None:
        """Return why the worker must be replaced, or None if it is healthy or gets more time."""
        self.checks += 1
        code = self.process.exitcode  # read before the worker's last messages
        with contextlib.suppress(OSError, EOFError):  # treated as silence
            while self._heartbeats.poll():
                self.error = self._heartbeats.recv()  # an empty error is a heartbeat
                self.has_started = self.has_started or not self.error
                self.checks = 0
        if code is not None:
            return self.error or (f"killed by signal {-code}" if code < 0 else f"exit code {code}")
        limit = SILENT_CHECKS if self.has_started else STARTING_CHECKS
        return f"no response for {limit // CHECKS_PER_S} s" if self.checks > limit else None

    @property
    def cannot_start(self) -> bool:
        """Whether a worker with a fault failed to start, rather than crashed or was killed."""
        return not self.has_started and (bool(self.error) or self.process.exitcode is None)

    def kill(self) -> None:
        """Kill the worker."""
        self.process.kill()
        self.process.join()
        self._heartbeats.close()


def _run(work: Work, number: int, heartbeats: Pipe) -> None:
    """Work in this process, and exit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor gets it and stops its workers
    # A supervisor that is paused must not block its workers.
    os.set_blocking(heartbeats.fileno(), False)

    def beat() -> None:
        try:
            heartbeats.send("")
        except BlockingIOError:
            pass  # the supervisor has not read the earlier heartbeats yet
        except OSError:  # the supervisor no longer exists
            os.kill(os.getpid(), signal.SIGTERM)

    try:
        work(number, beat)
    except ResumesError as error:
        with contextlib.suppress(OSError):
            heartbeats.send(error.message[:MAX_ERROR_CHARS])
        sys.exit(1)
    # The worker was told to stop and is done. Do not wait for other threads, which may hang.
    signal.raise_signal(signal.SIGTERM)


def supervise(
    work: Work,
    count: int,
    listener: socket.socket,
    ready: Callable[[], None],
    signals: list[int],
    check: Callable[[], None],
) -> None:
    """Keep `count` workers running until there is a signal, then stop them.

    A worker that exits or is silent is replaced, if necessary later. `ready` is called once, when
    all workers have started. Raises WorkersFailed if a worker cannot start before that or if no
    worker is left, and the errors of `check`, which is called at every check.
    """
    workers: list[Worker] = []
    is_announced = False
    failures = set[str]()
    """Failures to start a worker that were already logged. They are reset once all are serving."""

    def report(failure: str) -> None:
        if failure not in failures:
            failures.add(failure)
            logger.error("A worker could not start: %s", failure)

    try:
        for number in range(count):
            workers.append(Worker(work, number))
        while not signals:
            time.sleep(1 / CHECKS_PER_S)
            check()
            for number, worker in enumerate(workers):
                fault = worker.find_fault()
                if fault is None or signals:
                    continue
                if worker.cannot_start:
                    if not (is_announced and any(other.has_started for other in workers)):
                        # The next worker would fail for the same reason.
                        worker.kill()
                        raise WorkersFailed(f"The API's workers could not start: {fault}")
                    report(fault)
                    if worker.checks < RETRY_CHECKS:
                        continue  # retried later; the other workers keep serving
                has_crashed = not worker.cannot_start
                worker.kill()
                try:
                    workers[number] = Worker(work, number)
                except OSError as error:  # such as ENOMEM; the next check retries
                    report(str(error.strerror))
                    continue
                if has_crashed:
                    logger.warning(
                        "Worker %s ended (%s) and was replaced", worker.process.pid, fault
                    )
            if all(each.has_started and each.process.exitcode is None for each in workers):
                failures.clear()
                if not is_announced:
                    is_announced = True
                    ready()
    finally:
        # Stopped workers no longer listen. New connections must be rejected, rather than wait on a
        # socket from which no process accepts connections.
        listener.close()
        for worker in workers:
            worker.process.terminate()
        ends_at_s = time.monotonic() + END_WITHIN_S
        for worker in workers:
            worker.process.join(max(0.0, ends_at_s - time.monotonic()))
            worker.find_fault()
            if worker.has_started and worker.error:
                logger.error("Worker %s: %s", worker.process.pid, worker.error)
            if worker.process.is_alive():
                logger.error("Worker %s did not end; killing it", worker.process.pid)
                worker.kill()
