"""The worker processes of an importer: there while there is a backlog."""

import logging
import time
from collections.abc import Callable, Iterator

from importer.batch import Candidate
from importer.worker import Answer, Batch, Setup
from importer.workers import Worker

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

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [worker.pid for worker in self._workers]

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
