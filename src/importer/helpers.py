"""The processes that help an importer with a backlog, as the importer sees them."""

import contextlib
import fcntl
import logging
import os
import subprocess
import sys
import threading
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

logger = logging.getLogger("resumes.importer")


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


MAX_BATCHES = 2
"""Batches that a helper has at once, so that it need not wait for the next."""

PIPE_BYTES = 1024 * 1024

END_TIMEOUT_S = 2.0
"""How long a helper may take to end before it is killed."""

IDLE_S = 30.0
"""Helpers end when there was nothing to do for so long. After one died none is started meanwhile."""

SILENT_S = 60.0
"""How long a helper may take for a batch."""


class Helper:
    """A process that imports the files of batches. `on_answer` is called from another thread."""

    def __init__(self, setup: Setup, on_answer: Callable[[], None]) -> None:
        self.slot = setup.slot
        self.batches: deque[Batch] = deque()
        """Those that have no answer yet."""
        self.heard_at = 0.0
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
            self.process = subprocess.Popen(command, stdin=task_end, stdout=answer_end)
        except OSError:
            self._in.close()
            self._out.close()
            raise
        finally:
            os.close(task_end)
            os.close(answer_end)
        self.is_alive = self._send(setup)
        self._reader = threading.Thread(target=self._read, name="helper-answers", daemon=True)
        self._reader.start()

    @property
    def is_free(self) -> bool:
        """Whether it should get another batch."""
        return self.is_ready and self.is_alive and len(self.batches) < MAX_BATCHES

    @property
    def has_answers(self) -> bool:
        """Whether something came back."""
        return not self._answers.empty()

    def give(self, batch: Batch) -> None:
        """Have the helper import the files of a batch."""
        self.batches.append(batch)
        if not self._send(batch):
            self.is_alive = False

    def iter_answers(self) -> Iterator[tuple[Batch | None, Answer]]:
        """Yield what came back since this was last asked, with the batch that it is about.

        A helper that died is not alive any more.
        """
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
        """Wait until the process has ended; kill it after two seconds."""
        self._in.close()
        try:
            self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
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
        # A thread of its own: a helper that cannot get rid of its answers takes no batches.
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._answers.put(self._out.recv())
                self._on_answer()
        self._answers.put(None)
        self._on_answer()


def _pipe(*, to_child: bool) -> tuple[int, Connection]:
    """Return a child's end of a pipe, and ours."""
    reading_end, writing_end = os.pipe()
    with contextlib.suppress(OSError, AttributeError):
        # Room for all batches that a helper has, so that giving it one never waits for it.
        fcntl.fcntl(writing_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    if to_child:
        return reading_end, Connection(writing_end, readable=False)
    return writing_end, Connection(reading_end, writable=False)


class Helpers:
    """Up to `most` helpers, while the backlog is worth it. `on_answer` is called from other threads."""

    def __init__(
        self,
        make_setup: Callable[[int], Setup],
        *,
        most: int,
        min_backlog: int,
        on_answer: Callable[[], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._make_setup = make_setup
        self._most = most
        self._min_backlog = min_backlog
        self._on_answer = on_answer
        self._monotonic = monotonic
        self._helpers: list[Helper] = []
        self._last_words: list[tuple[Batch | None, Answer]] = []
        self._none_before = self._last_work = monotonic()

    @property
    def under_way(self) -> int:
        """Files that helpers read and did not bring to their end, as last said."""
        return sum(one.under_way for one in self._helpers)

    @property
    def is_busy(self) -> bool:
        """Whether a batch is under way, or a file that was read."""
        return any(one.batches or one.under_way for one in self._helpers)

    @property
    def is_stuck(self) -> bool:
        """Whether a helper cannot go on with its files for now."""
        return any(one.is_stuck for one in self._helpers)

    @property
    def has_answers(self) -> bool:
        """Whether a helper has something to say."""
        return any(one.has_answers for one in self._helpers)

    @property
    def slots(self) -> set[int]:
        """The slots of the processes."""
        return {one.slot for one in self._helpers}

    def supervise(self, *, backlog: int, is_working: bool) -> None:
        """Start helpers if the backlog is worth it, end them after a while without work, and kill
        those that somebody stopped, or that hang."""
        now = self._monotonic()
        for one in self._helpers:
            if one.batches and now >= one.heard_at + SILENT_S:
                logger.warning("A helper did not respond for %d s; killing it", SILENT_S)
                one.process.kill()
            elif not one.batches:
                one.heard_at = now
        if backlog >= self._min_backlog and now >= self._none_before:
            self._start(now)
        if is_working or backlog or self.is_busy:
            self._last_work = now
        elif now >= self._last_work + IDLE_S:
            self.end()

    def _start(self, now: float) -> None:
        try:
            for slot in sorted(set(range(1, self._most + 1)) - self.slots):
                helper = Helper(self._make_setup(slot), self._on_answer)
                helper.heard_at = now
                self._helpers.append(helper)
        except OSError:
            # Without help it takes longer; nothing else depends on it.
            logger.warning("No helper could be started", exc_info=True)
            self._none_before = now + IDLE_S

    def iter_free(self) -> Iterator[Helper]:
        """Yield helpers that should get another batch, for as long as they take one."""
        for one in self._helpers:
            while one.is_free:
                before = len(one.batches)
                yield one
                if len(one.batches) == before:
                    return

    def iter_answers(self) -> Iterator[tuple[Batch | None, Answer]]:
        """Yield what helpers said since they were last asked, with the batch that it is about."""
        said, self._last_words = self._last_words, []
        yield from said
        for one in self._helpers:
            for answer in one.iter_answers():
                one.heard_at = self._monotonic()
                yield answer

    def reap(self) -> None:
        """Forget helpers that died; their slots can be taken then."""
        dead = [one for one in self._helpers if not one.is_alive]
        if dead:
            self._none_before = self._monotonic() + IDLE_S
        self._end(dead)

    def end(self) -> None:
        """End all helpers."""
        self._end(list(self._helpers))

    def _end(self, helpers: list[Helper]) -> None:
        for one in helpers:
            one.end()
            self._last_words += one.iter_answers()
            self._helpers.remove(one)
