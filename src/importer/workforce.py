"""The worker processes of an importer: there while there is a backlog."""

import time
from collections.abc import Callable, Iterator

from importer.taking import Candidate
from importer.worker import Answer, Batch, Setup
from importer.workers import Worker

WORKERS_FROM = 1_000
"""A backlog of so many files is worth worker processes,"""

WORKERS_IDLE_S = 30.0
"""which end when there was nothing to do for so long. After one died none is started meanwhile."""


class Workforce:
    """Up to `most` workers. `on_answer` is called from other threads."""

    def __init__(
        self,
        make_setup: Callable[[], Setup],
        *,
        most: int,
        on_answer: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make_setup = make_setup
        self._most = most
        self._on_answer = on_answer
        self._monotonic = monotonic
        self._workers: list[Worker] = []
        self._none_before = self._last_work = monotonic()

    @property
    def claimed(self) -> int:
        """Files that workers claimed and did not bring to their end, as last said."""
        return sum(worker.claimed for worker in self._workers)

    @property
    def is_busy(self) -> bool:
        """Whether a batch is under way, or a file that was claimed."""
        return any(worker.batches or worker.claimed for worker in self._workers)

    @property
    def is_stuck(self) -> bool:
        """Whether a worker cannot go on with its files for now."""
        return any(worker.is_stuck for worker in self._workers)

    @property
    def has_answers(self) -> bool:
        """Whether a worker has something to say."""
        return any(worker.has_answers for worker in self._workers)

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [worker.pid for worker in self._workers]

    def mind(self, *, backlog: int, is_working: bool) -> None:
        """Called now and then: there are workers if the backlog is worth it, and none after a
        while without work."""
        now = self._monotonic()
        if backlog >= WORKERS_FROM and now >= self._none_before:
            while len(self._workers) < self._most:
                self._workers.append(Worker(self._make_setup(), self._on_answer))
        if is_working or backlog or self.claimed:
            self._last_work = now
        elif now >= self._last_work + WORKERS_IDLE_S:
            self.end()

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
        for worker in self._workers:
            yield from worker.iter_answers()

    def bury(self) -> list[list[Candidate]]:
        """Workers that died are gone, and their workspaces can be taken over; for each the files
        that it gave no answer to."""
        dead = [worker for worker in self._workers if not worker.is_alive]
        for worker in dead:
            worker.end()
            self._workers.remove(worker)
            self._none_before = self._monotonic() + WORKERS_IDLE_S
        return [[one for batch in worker.batches for one in batch.candidates] for worker in dead]

    def end(self) -> None:
        """There are no workers any more."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()
