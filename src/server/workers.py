"""Worker processes that answer together: started, watched, replaced, and ended with each other.

uvicorn's supervisor asks each worker in turn whether it lives, and kills one that does not answer
within seconds, also when it is still starting on a busy machine. This one gives them time.
"""

import contextlib
import copy
import functools
import logging
import socket
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from resumes.errors import ErrorCode, StoreError

logger = logging.getLogger("resumes.server")

LOOKS_A_SECOND: Final = 2
"""How often uvicorn looks. Limits are counted in looks: a time in which the whole machine, or all of
our processes, stood still is not a worker's fault."""

STARTING_LOOKS: Final = 300 * LOOKS_A_SECOND
"""How long a worker may need to start."""

SILENT_LOOKS: Final = 60 * LOOKS_A_SECOND
"""How long one that has started may say nothing: on a busy machine healthy ones are silent too,
and what they were asked would be lost with them."""

ANSWER_S: Final = 0.05
"""How long an answer is waited for at each look; one that comes later is found at the next."""


class ApiServer(uvicorn.Server):
    """uvicorn's server of our application, which runs from before the first request to after the last."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._running = contextlib.AsyncExitStack()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await self._running.enter_async_context(self.config.loaded_app.running())
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End when the requests that were accepted are answered."""
        await super().shutdown(sockets)
        if not self.force_exit:
            await self._running.aclose()


class WorkersFailed(StoreError):
    """No worker could start; each has logged why, or the message says it."""

    code = ErrorCode.STORE_UNAVAILABLE


class Worker(Process):
    """A worker process, which tells whether it has started as soon as it can tell anything."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.has_started = False
        self._is_asked = False
        self._silent_looks = 0

    @property
    def server(self) -> uvicorn.Server:
        """What serves in the process."""
        if self._server is None:
            self._server = ApiServer(self.config)
        return self._server

    def look_for_fault(self) -> str | None:
        """Ask the worker, unless it still owes an answer. Return why another has to take its place;
        None: it is well, or is given more time."""
        self._silent_looks += 1
        with contextlib.suppress(OSError, EOFError):  # as good as silent
            if not self._is_asked:
                self.parent_conn.send(b"ping")
                self._is_asked = True
            if self.parent_conn.poll(ANSWER_S):
                self._is_asked = False
                self.has_started = bool(self.parent_conn.recv())
                if self.has_started:
                    self._silent_looks = 0
        code = None if self.process.is_alive() else self.exitcode
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
        return not self.has_started and self._silent_looks > STARTING_LOOKS


class Workers(Multiprocess):
    """As many spawned workers as the configuration says, on one socket.

    The configuration's factory is called in each with the number of its place. One that ends or
    falls silent is replaced. `announce` is called once, when all have started.
    """

    def __init__(
        self, config: uvicorn.Config, listener: socket.socket, announce: Callable[[], None]
    ) -> None:
        super().__init__(config, [listener])
        self._announce = announce
        self._is_announced = False
        self._failure: str | None = None

    def run(self) -> None:
        """Workers served until a signal. Raises WorkersFailed when one could not even start."""
        super().run()
        if self._failure is not None:
            raise WorkersFailed(self._failure)

    def init_processes(self) -> None:
        self.processes += [self._begin(place) for place in range(self.processes_num)]

    def _begin(self, place: int) -> Worker:
        config = copy.copy(self.config)
        factory: Any = config.app
        config.app = functools.partial(factory, place)
        worker = Worker(config, self.sockets)
        worker.start()
        return worker

    def keep_subprocess_alive(self) -> None:
        has_each_started = True
        for place, worker in enumerate(self.processes):
            assert isinstance(worker, Worker)
            fault = worker.look_for_fault()
            if fault is not None and not self.should_exit.is_set():
                self._replace(place, worker, fault)
            has_each_started &= fault is None and worker.has_started
        if has_each_started and not self._is_announced:
            self._is_announced = True
            self._announce()

    def _replace(self, place: int, worker: Worker, fault: str) -> None:
        worker.kill()
        worker.join()
        if worker.exitcode == STARTUP_FAILURE:
            # What keeps one from starting keeps the next one from it as well.
            self._fail("The API's workers could not start; see above")
        elif worker.is_late and not self._is_announced:
            self._fail(f"Worker {worker.pid} could not start: {fault}. Is the machine very busy?")
        else:
            self.processes[place] = self._begin(place)
            logger.warning("Worker %s ended (%s) and was replaced", worker.pid, fault)

    def _fail(self, message: str) -> None:
        self._failure = message
        self.should_exit.set()

    def terminate_all(self) -> None:
        # Workers stop listening when they are asked to end; new connections are to be refused,
        # and not left waiting behind a socket that nobody accepts from any more.
        for listener in self.sockets:
            listener.close()
        super().terminate_all()

    def handle_hup(self) -> None:
        # The terminal is gone. uvicorn would start again, with the same settings, unseen.
        self.should_exit.set()

    # uvicorn would begin one more, or end one. How many there are is a setting, and what they
    # share has room for this many.

    def handle_ttin(self) -> None:
        pass

    def handle_ttou(self) -> None:
        pass
