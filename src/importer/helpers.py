"""The processes that help an importer with a backlog, as the importer sees them."""

import contextlib
import fcntl
import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from importer.batch import Candidate, Left, Queue
from importer.claims import Claim
from importer.failpoints import Observer
from importer.notices import FileReport
from importer.options import Options


class Setup(NamedTuple):
    """The first thing that a worker is told."""

    store_url: str
    root: Path
    slot: int
    options: Options
    observe: Observer

    def __repr__(self) -> str:
        # Without the address, which may hold a password.
        return f"Setup({str(self.root)!r}, {self.slot})"


class Batch(NamedTuple):
    """Files to import; and by account, what its new files queue behind."""

    candidates: list[Candidate]
    queues: dict[str, Queue]


class Answer(NamedTuple):
    """What a worker did since the last answer. `left` is of a batch, and None without one."""

    left: list[Left] | None = None
    over: tuple[str, ...] = ()
    """Ids of files that came to their end."""
    went_back: tuple[Claim, ...] = ()
    reports: tuple[FileReport, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    under_way: int = 0
    is_stuck: bool = False
    """Whether the store is out of reach, or something could not be filed away."""


BATCHES_AHEAD = 2
"""Batches that a worker has at once, so that it need not wait for the next."""

PIPE_BYTES = 1024 * 1024

END_S = 2.0
"""How long a worker is waited for that was told to end."""


class Worker:
    """A process that imports the files of batches. `on_answer` is called from another thread."""

    def __init__(self, setup: Setup, on_answer: Callable[[], None]) -> None:
        self.slot = setup.slot
        self.batches: deque[Batch] = deque()
        """Those that are not worked off."""
        self.is_ready = False
        self.under_way = 0
        """Files that it read and did not bring to their end, as last said."""
        self.is_stuck = False
        """Whether it cannot go on with them for now, as last said."""
        self._on_answer = on_answer
        self._answers: SimpleQueue[Answer | None] = SimpleQueue()
        task_end, self._in = _pipe(to_child=True)
        answer_end, self._out = _pipe(to_child=False)
        # -P: nothing that lies in the current folder is imported. Not -m: what is pickled there
        # must be known here by the same name.
        command = [sys.executable, "-P", "-c", "from importer.worker import main; main()"]
        try:
            self._process = subprocess.Popen(command, stdin=task_end, stdout=answer_end)
        except OSError:
            self._in.close()
            self._out.close()
            raise
        finally:
            os.close(task_end)
            os.close(answer_end)
        self.is_alive = self._send(setup)
        self._reader = threading.Thread(target=self._read, name="worker-answers", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def is_free(self) -> bool:
        """Whether it should get another batch."""
        return self.is_ready and self.is_alive and len(self.batches) < BATCHES_AHEAD

    @property
    def has_answers(self) -> bool:
        """Whether something came back."""
        return not self._answers.empty()

    def kill(self) -> None:
        """The process ends at once; what it had under way is gone on with."""
        self._process.kill()

    def give(self, batch: Batch) -> None:
        """The batch is the worker's."""
        self.batches.append(batch)
        if not self._send(batch):
            self.is_alive = False

    def iter_answers(self) -> Iterator[tuple[Batch | None, Answer]]:
        """What came back since it was last asked, with the batch that it is about. A worker that
        died is not alive any more, and keeps the batches that it did not answer."""
        while self.has_answers:
            answer = self._answers.get()
            if answer is None:
                self.is_alive = False
                continue
            self.is_ready = True
            self.under_way = answer.under_way
            self.is_stuck = answer.is_stuck
            yield (None if answer.left is None else self.batches.popleft()), answer

    def end(self) -> None:
        """The process has ended; by force, if it does not within two seconds."""
        self._in.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._out.close()
        self.is_alive = False

    def _send(self, message: object) -> bool:
        try:
            self._in.send(message)
        except OSError:
            return False
        return True

    def _read(self) -> None:
        # A thread of its own: a worker that cannot get rid of its answers takes no batches.
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._answers.put(self._out.recv())
                self._on_answer()
        self._answers.put(None)
        self._on_answer()


def _pipe(*, to_child: bool) -> tuple[int, Connection]:
    """A child's end of a pipe, and ours."""
    reading_end, writing_end = os.pipe()
    with contextlib.suppress(OSError, AttributeError):
        # Room for all batches that a worker has, so that giving it one never waits for it.
        fcntl.fcntl(writing_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    if to_child:
        return reading_end, Connection(writing_end, readable=False)
    return writing_end, Connection(reading_end, writable=False)


logger = logging.getLogger("resumes.importer")

WORKERS_IDLE_S = 30.0
"""Workers end when there was nothing to do for so long. After one died none is started meanwhile."""


SILENT_S = 60.0
"""How long a worker may take for a batch."""


class Workforce:
    """Up to `most` workers. `on_answer` is called from other threads."""

    def __init__(
        self,
        make_setup: Callable[[int], Setup],
        *,
        most: int,
        workers_from: int,
        on_answer: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make_setup = make_setup
        self._most = most
        self._workers_from = workers_from
        self._on_answer = on_answer
        self._monotonic = monotonic
        self._workers: list[Worker] = []
        self._heard_at: dict[int, float] = {}
        self._last_words: list[tuple[Batch | None, Answer]] = []
        self._none_before = self._last_work = monotonic()

    @property
    def under_way(self) -> int:
        """Files that workers read and did not bring to their end, as last said."""
        return sum(worker.under_way for worker in self._workers)

    @property
    def is_busy(self) -> bool:
        """Whether a batch is under way, or a file that was read."""
        return any(worker.batches or worker.under_way for worker in self._workers)

    @property
    def is_stuck(self) -> bool:
        """Whether a worker cannot go on with its files for now."""
        return any(worker.is_stuck for worker in self._workers)

    @property
    def has_answers(self) -> bool:
        """Whether a worker has something to say."""
        return any(worker.has_answers for worker in self._workers)

    @property
    def slots(self) -> set[int]:
        """The slots of the processes."""
        return {worker.slot for worker in self._workers}

    def mind(self, *, backlog: int, is_working: bool) -> None:
        """Called now and then: there are workers if the backlog is worth it, and none after a
        while without work."""
        now = self._monotonic()
        self._kill_silent(now)
        if backlog >= self._workers_from and now >= self._none_before:
            self._start(now)
        if is_working or backlog or self.is_busy:
            self._last_work = now
        elif now >= self._last_work + WORKERS_IDLE_S:
            self.end()

    def _kill_silent(self, now: float) -> None:
        """A worker that somebody stopped, or that hangs, keeps its files no longer."""
        for worker in self._workers:
            heard_at = self._heard_at.setdefault(worker.slot, now)
            if not worker.batches:
                self._heard_at[worker.slot] = now
            elif now >= heard_at + SILENT_S:
                logger.warning("A worker was silent for %d s and is killed", SILENT_S)
                worker.kill()

    def _start(self, now: float) -> None:
        try:
            for slot in sorted(set(range(1, self._most + 1)) - self.slots):
                self._workers.append(Worker(self._make_setup(slot), self._on_answer))
        except OSError:
            # Without help it takes longer; nothing else depends on it.
            logger.warning("No worker could be started", exc_info=True)
            self._none_before = now + WORKERS_IDLE_S

    def iter_free(self) -> Iterator[Worker]:
        """The workers that should get another batch, for as long as they should."""
        for worker in self._workers:
            while worker.is_free:
                before = len(worker.batches)
                yield worker
                if len(worker.batches) == before:
                    return

    def iter_answers(self) -> Iterator[tuple[Batch | None, Answer]]:
        """What workers said since they were last asked, with the batch that it is about."""
        said, self._last_words = self._last_words, []
        yield from said
        for worker in self._workers:
            for said_now in worker.iter_answers():
                self._heard_at[worker.slot] = self._monotonic()
                yield said_now

    def bury(self) -> list[list[Candidate]]:
        """Workers that died are gone, and their slots can be taken; for each the files that it gave
        no answer to."""
        dead = [worker for worker in self._workers if not worker.is_alive]
        if dead:
            self._none_before = self._monotonic() + WORKERS_IDLE_S
        return [self._end(worker) for worker in dead]

    def end(self) -> list[Candidate]:
        """There are no workers any more; the files that they gave no answer to."""
        return [one for worker in list(self._workers) for one in self._end(worker)]

    def _end(self, worker: Worker) -> list[Candidate]:
        worker.end()
        self._last_words.extend(worker.iter_answers())
        self._workers.remove(worker)
        self._heard_at.pop(worker.slot, None)
        return [one for batch in worker.batches for one in batch.candidates]
