"""A process that helps an importer with a backlog: how the importer sees it, and what it does.

It has a store and a slot of its own, and only gets the files to import. Batches come in on
its standard input and answers go out on its standard output, pickled. It ends when its input does,
however the importer ended. It is spawned, never forked: whoever goes on with what its slot's note
says knows that this process is gone (pitfalls I8).
"""

import contextlib
import ctypes
import fcntl
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from importer import files
from importer.batch import Candidate, NotImported, QuotaBacklog
from importer.claims import Claim
from importer.failpoints import Observer
from importer.notices import FileReport
from importer.options import Options
from importer.slices import Pipeline
from importer.slots import Slot
from resumes import process_memory
from resumes.errors import ResumesError, StoreError
from resumes.store import Store, open_store

logger = logging.getLogger("resumes.importer")

SLOT = 1
"""The helper's; the importer has slot 0."""

MAX_BATCHES = 2
"""Batches that it has at once, so that it need not wait for the next."""

PIPE_BYTES = 1024 * 1024
"""Room for all of them, where the system gives as much."""

END_TIMEOUT_S = 2.0
"""How long it may take to end before it is killed."""

IDLE_S = 30.0
"""It ends after being idle for this long. After it died, none is started for this long."""

SILENT_S = 60.0
"""How long it may take for a batch."""


class Setup(NamedTuple):
    """The first thing that it is told."""

    store_url: str
    root: Path
    options: Options
    observe: Observer

    def __repr__(self) -> str:
        # Without the address, which may hold a password.
        return f"Setup({str(self.root)!r})"


class Batch(NamedTuple):
    """Files to import; and by account, what its new files queue behind."""

    candidates: list[Candidate]
    queues: dict[str, QuotaBacklog]


class Answer(NamedTuple):
    """What it did since the last answer. `left` is of a batch, and None without one."""

    left: list[NotImported] | None = None
    over: tuple[str, ...] = ()
    """Ids of files that came to their end."""
    went_back: tuple[Claim, ...] = ()
    reports: tuple[FileReport, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    under_way: int = 0
    is_stuck: bool = False
    """Whether the store is out of reach, or something could not be filed away."""


class Helper:
    """The process, while a backlog is worth it. `on_answer` is called from another thread."""

    def __init__(
        self,
        setup: Setup,
        *,
        on_answer: Callable[[], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._setup = setup
        self._on_answer = on_answer
        self._monotonic = monotonic
        self._process: subprocess.Popen[bytes] | None = None
        self._batches = 0
        """How many have no answer yet."""
        self._tasks: SimpleQueue[bytes | None] = SimpleQueue()
        self._answers: SimpleQueue[Answer | None] = SimpleQueue()
        self._last_words: list[Answer] = []
        self._is_ready = self._is_dead = False
        self.under_way = 0
        """Files that it read and did not finish, as last reported."""
        self.is_stuck = False
        """Whether it cannot continue with them for now, as last reported."""
        self._none_before = self._last_work = self._heard_at = monotonic()

    @property
    def is_running(self) -> bool:
        """Whether there is a process, dead or alive."""
        return self._process is not None

    @property
    def is_busy(self) -> bool:
        """Whether a batch is under way, or a file that was read."""
        return bool(self._batches or self.under_way)

    @property
    def is_free(self) -> bool:
        """Whether it should get another batch."""
        return self._is_ready and not self._is_dead and self._batches < MAX_BATCHES

    def supervise(self, *, backlog: int, is_working: bool) -> None:
        """Start the process if the backlog is worth it, and end it after a while without work."""
        now = self._monotonic()
        is_wanted = backlog >= self._setup.options.tuning.helper_from
        if self._process is None and is_wanted and now >= self._none_before:
            self._start(now)
        if is_working or backlog or self.is_busy:
            self._last_work = now
        elif now >= self._last_work + IDLE_S:
            self.end()

    def watch_over(self) -> None:
        """Kill the process if somebody stopped it, or it hangs: also while it is stuck."""
        if self._process is None:
            return
        now = self._monotonic()
        if not self.is_busy:
            self._heard_at = now
        elif now >= self._heard_at + SILENT_S:
            logger.warning("A helper did not respond for %d s; killing it", SILENT_S)
            self._process.kill()

    def _start(self, now: float) -> None:
        # -P: nothing in the current folder is imported. Not -m: what is pickled there
        # must be known here by the same name.
        command = [sys.executable, "-P", "-c", "from importer.helper import main; main()"]
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError:
            # Without help it takes longer; nothing else depends on it.
            logger.warning("No helper could be started", exc_info=True)
            self._none_before = now + IDLE_S
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin as tasks, process.stdout as answers:
            for pipe in (tasks, answers):
                with contextlib.suppress(OSError, AttributeError):
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            task_pipe = Connection(os.dup(tasks.fileno()), readable=False)
            self._out = Connection(os.dup(answers.fileno()), writable=False)
        self._process, self._heard_at = process, now
        self._tasks = SimpleQueue()
        self._send(self._setup)
        self._threads = [
            threading.Thread(target=_write, args=(self._tasks, task_pipe), name="helper-tasks"),
            threading.Thread(target=self._read, name="helper-answers"),
        ]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def give(self, batch: Batch) -> None:
        """Have the files of a batch imported."""
        self._batches += 1
        self._send(batch)

    def _send(self, message: object) -> None:
        self._tasks.put(pickle.dumps(message))  # as it is now

    def _read(self) -> None:
        # A thread of its own: a helper that cannot get rid of its answers takes no batches.
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._answers.put(self._out.recv())
                self._on_answer()
        self._answers.put(None)
        self._on_answer()

    def iter_answers(self) -> Iterator[Answer]:
        """Yield what came back since this was last asked."""
        said, self._last_words = self._last_words, []
        yield from said
        while not self._answers.empty():
            answer = self._answers.get()
            if answer is None:
                self._is_dead = True
                continue
            self._is_ready = True
            self._heard_at = self._monotonic()
            self.under_way = answer.under_way
            self.is_stuck = answer.is_stuck
            self._batches -= answer.left is not None
            yield answer

    def reap(self) -> None:
        """Forget a process that died; its slot can be taken then."""
        if self._is_dead:
            self._none_before = self._monotonic() + IDLE_S
            self.end()

    def end(self) -> None:
        """Wait until the process has ended; kill it after two seconds."""
        if self._process is None:
            return
        self._tasks.put(None)
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()
        self._out.close()
        self._last_words = [*self.iter_answers()]
        self._process = None
        self._batches = 0
        self._is_ready = self._is_dead = self.is_stuck = False
        self.under_way = 0


def _write(tasks: SimpleQueue[bytes | None], pipe: Connection) -> None:
    """Write tasks until None. In a thread of its own: a helper that hangs does not read them."""
    with pipe, contextlib.suppress(OSError):  # it has ended, which its answers say
        while (task := tasks.get()) is not None:
            pipe.send_bytes(task)


# In the process


AGAIN_S = 0.5
"""How soon is tried again what the store refused."""

LONG_S = 60.0
"""How long it waits for batches when there is nothing else to do."""

PR_SET_PDEATHSIG = 1
"""prctl(2)."""


def work(store: Store, setup: Setup, slot: Slot, tasks: Connection, answers: Connection) -> None:
    """Import the files of batches until there are no more. The first answer is that it is ready."""
    reports: list[FileReport] = []
    remarks: list[tuple[str, str]] = []
    pipeline = Pipeline(
        store,
        slot,
        root=setup.root,
        options=setup.options,
        on_filed=reports.append,
        remark=lambda key, sentence: remarks.append((key, sentence)),
        observe=setup.observe,
    )
    answers.send(Answer())
    waiting: deque[Batch] = deque()
    is_in_trouble = False
    while True:
        store.check_threads()
        may_take = not is_in_trouble and not pipeline.is_stuck
        wait_s = AGAIN_S
        if may_take and (waiting or pipeline.can_go_on):
            wait_s = 0.0
        elif may_take and not pipeline.under_way:
            wait_s = LONG_S
        if tasks.poll(wait_s):
            waiting.append(tasks.recv())
        left = None
        if waiting and may_take:
            batch = waiting.popleft()
            pipeline.set_queues(dict(batch.queues))
            left = pipeline.read(batch.candidates)
        try:
            pipeline.commit()
            pipeline.go_on()
            is_in_trouble = False
        except (StoreError, OSError) as error:
            is_in_trouble = True
            why = error.message if isinstance(error, ResumesError) else str(error)
            remarks.append(("trouble", why))
        over, went_back = pipeline.take_ends()
        unopened = tuple(
            one.claim for one in pipeline.take_left()
        )  # nothing of these is stored yet
        ends = over + tuple(claim.id for claim in unopened), went_back + unopened
        is_stuck = is_in_trouble or pipeline.is_stuck
        said = tuple(reports), tuple(remarks)
        answers.send(Answer(left, *ends, *said, pipeline.under_way, is_stuck))
        reports.clear()
        remarks.clear()


def main() -> None:
    """Help the importer at the other end of standard input and output."""
    # The kernel kills this process, also a stopped one, when the importer ends. Elsewhere than on
    # Linux its standard input says so, when it looks there.
    if (prctl := getattr(ctypes.CDLL(None), "prctl", None)) is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # These reach the whole group; the importer says when it is over.
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    files.ignore_breaks()
    process_memory.tune_gc()
    tasks = Connection(os.dup(0), writable=False)
    answers = Connection(os.dup(1), readable=False)
    # Whatever prints must not get between the answers.
    os.dup2(2, 1)
    sys.stdin.close()
    setup: Setup = tasks.recv()
    slot = Slot(setup.root, SLOT)
    try:
        if slot.take():
            with open_store(setup.store_url, upgrade=False) as store:
                work(store, setup, slot, tasks, answers)
    except (EOFError, OSError, StoreError):
        pass  # the importer has ended, perhaps in the middle of a batch, or does without help
    finally:
        slot.leave()
