"""The helper process of an importer with a backlog: the importer's handle for it, and its own code.

The process has its own store and slot, and imports only the files that it is given. It reads pickled
batches from standard input, and writes pickled answers to standard output. It exits at the end of its
input, however the importer ended. It is spawned, never forked: a fork would keep the importer's lock
open, so that a dead importer would seem to be alive (pitfalls I8).
"""

import contextlib
import ctypes
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from importer import files
from importer.claims import File
from importer.job import Job, Observer
from importer.notices import FileReport, Notices
from importer.options import Options
from importer.pipeline import Pipeline
from importer.slots import Slot
from resumes import process_memory
from resumes.errors import ResumesError, StoreError
from resumes.store import Store, open_store

logger = logging.getLogger("resumes.importer")

SLOT = 1
"""The helper's slot number; the importer has slot 0."""
MAX_BATCHES = 2
"""The maximum number of batches in the process. With two, it need not wait for the next one."""
END_TIMEOUT_S = 2.0
"""How long the process may take to exit before it is killed."""
IDLE_S = 30.0
"""How long an idle process keeps running, and the pause before a new start after a crash."""
SILENT_S = 60.0
"""How long the process may take for a batch before it is killed."""


class Setup(NamedTuple):
    """The first message to the process."""

    store_url: str
    root: Path
    options: Options
    observe: Observer

    def __repr__(self) -> str:
        # The store's URL may contain a password.
        return f"Setup({str(self.root)!r})"


class Answer(NamedTuple):
    """The work since the last answer. `is_read` is true if a batch was read."""

    is_read: bool = False
    departures: tuple[File, ...] = ()
    reports: tuple[FileReport, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    under_way: int = 0
    """The number of files that it has read and not finished."""
    is_stuck: bool = False
    """Whether the store is unreachable or a file could not be filed."""


class _Remarks(Notices):
    """Passes each notice on to the importer, which knows the notices that were already reported."""

    def __init__(self) -> None:
        super().__init__(logger.info)
        self.said: list[tuple[str, str]] = []

    def __call__(self, key: str, sentence: str) -> None:
        self.said.append((key, sentence))


@dataclass(eq=False)
class _Child:
    """The process, and the threads that talk to it."""

    process: subprocess.Popen[bytes]
    out: Connection
    heard_at: float
    tasks: SimpleQueue[bytes | None] = field(default_factory=SimpleQueue)
    answers: SimpleQueue[Answer | None] = field(default_factory=SimpleQueue)
    threads: list[threading.Thread] = field(default_factory=list)
    batches: int = 0
    """How many batches have no answer yet."""
    last: Answer | None = None
    is_dead: bool = False

    def send(self, message: object) -> None:
        """Queue the message. It is pickled immediately, because the caller may change it."""
        self.tasks.put(pickle.dumps(message))

    def write(self, pipe: Connection) -> None:
        """Write tasks until None. A thread does this, because a helper that hangs reads nothing."""
        with pipe, contextlib.suppress(OSError):  # the process ended, which `read` notices
            while (task := self.tasks.get()) is not None:
                pipe.send_bytes(task)

    def read(self, on_answer: Callable[[], None]) -> None:
        """Read answers. A thread does this: a helper whose answers are not read would block."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                self.answers.put(self.out.recv())
                on_answer()
        self.answers.put(None)
        on_answer()

    def iter_answers(self, now: float) -> Iterator[Answer]:
        """Yield the answers since the last call."""
        while not self.answers.empty():
            answer = self.answers.get()
            if answer is None:
                self.is_dead = True
                continue
            self.last, self.heard_at = answer, now
            self.batches -= answer.is_read
            yield answer


class Helper:
    """The handle of the process, which runs while there is a backlog.

    `on_answer` is called from another thread."""

    def __init__(
        self, setup: Setup, *, on_answer: Callable[[], None], monotonic: Callable[[], float]
    ) -> None:
        self._setup = setup
        self._on_answer = on_answer
        self._monotonic = monotonic
        self._child: _Child | None = None
        self._last_words: list[Answer] = []
        self._none_before = self._last_work = monotonic()

    @property
    def is_running(self) -> bool:
        """Whether there is a process, running or dead."""
        return self._child is not None

    @property
    def is_busy(self) -> bool:
        """Whether a batch, or a file that was read, is under way."""
        return self._child is not None and bool(self._child.batches or self.last.under_way)

    @property
    def is_free(self) -> bool:
        """Whether it should get another batch."""
        child = self._child
        if child is None or child.is_dead:
            return False
        return child.last is not None and child.batches < MAX_BATCHES

    @property
    def last(self) -> Answer:
        """Its last answer."""
        return (self._child and self._child.last) or Answer()

    def supervise(self, *, backlog: int, is_working: bool) -> None:
        """Start the process if the backlog is large enough, and stop it if it has been idle."""
        now = self._monotonic()
        is_wanted = backlog >= self._setup.options.tuning.helper_from
        if self._child is None and is_wanted and now >= self._none_before:
            self._start(now)
        if is_working or backlog or self.is_busy:
            self._last_work = now
        elif now >= self._last_work + IDLE_S:
            self.end()

    def watch_over(self) -> None:
        """Kill the process if it is stopped by a signal or hangs, even while it is stuck. Clean up
        after a process that died, so that its slot can be taken."""
        now, child = self._monotonic(), self._child
        if child is None:
            return
        if child.is_dead:
            self._none_before = now + IDLE_S
            self.end()
        elif not self.is_busy:
            child.heard_at = now
        elif now >= child.heard_at + SILENT_S:
            logger.warning("A helper did not respond for %d s; killing it", SILENT_S)
            child.process.kill()

    def _start(self, now: float) -> None:
        # -P prevents imports from the current folder. -m cannot be used: pickled classes must have
        # the same module name in both processes.
        command = [sys.executable, "-P", "-c", "from importer.helper import main; main()"]
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError:
            # Without a helper, the import only takes longer.
            logger.warning("No helper could be started", exc_info=True)
            self._none_before = now + IDLE_S
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin as tasks, process.stdout as answers:
            task_pipe = Connection(os.dup(tasks.fileno()), readable=False)
            child = _Child(process, Connection(os.dup(answers.fileno()), writable=False), now)
        self._child = child
        child.send(self._setup)
        child.threads = [
            threading.Thread(target=child.write, args=(task_pipe,), daemon=True),
            threading.Thread(target=child.read, args=(self._on_answer,), daemon=True),
        ]
        for thread in child.threads:
            thread.start()

    def give(self, batch: list[File]) -> None:
        """Have these files imported. Files of accounts with held files must not be among them."""
        assert self._child is not None
        self._child.batches += 1
        self._child.send(batch)

    def iter_answers(self) -> Iterator[Answer]:
        """Yield the answers since the last call, and the last ones of a process that has ended."""
        said, self._last_words = self._last_words, []
        yield from said
        if self._child is not None:
            yield from self._child.iter_answers(self._monotonic())

    def end(self) -> None:
        """Wait until the process has ended; kill it after two seconds."""
        child = self._child
        if child is None:
            return
        child.tasks.put(None)
        try:
            child.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()
        for thread in child.threads:
            thread.join()
        child.out.close()
        self._last_words = [*self.iter_answers()]
        self._child = None


# Code that runs in the helper process


AGAIN_S = 0.5
"""The pause before files that could not be stored or filed are retried."""
LONG_S = 60.0
"""How long the process waits for a batch when it has nothing else to do."""
PR_SET_PDEATHSIG = 1
"""prctl(2)."""


def work(store: Store, setup: Setup, slot: Slot, tasks: Connection, answers: Connection) -> None:
    """Import batches until the end of input. The first answer says that the process is ready."""
    reports: list[FileReport] = []
    remarks = _Remarks()
    root, add = str(setup.root), reports.append
    job = Job(store, root, setup.options, slot, add, remarks, setup.observe)
    pipeline = Pipeline(job)
    answers.send(Answer())
    waiting: deque[list[File]] = deque()
    is_in_trouble = False
    while True:
        store.check_threads()
        may_take = not is_in_trouble and not pipeline.pending.is_stuck
        wait_s = AGAIN_S
        if may_take and (waiting or pipeline.can_go_on):
            wait_s = 0.0
        elif may_take and not pipeline.under_way:
            wait_s = LONG_S
        if tasks.poll(wait_s):
            waiting.append(tasks.recv())
        is_read = may_take and bool(waiting)
        if is_read:
            # The leader gives no files of accounts that have a queue. But bundles that are here already may
            # have to wait for an earlier one that was held here.
            queues, bundled = pipeline.pending.queues, pipeline.bundles.account_ids
            kept = {one: queues[one] for one in queues.keys() & bundled}
            pipeline.pending.queues = pipeline.pending.with_held(kept)
            pipeline.read(waiting.popleft())
        try:
            pipeline.go_on()
            is_in_trouble = False
        except (StoreError, OSError) as error:
            is_in_trouble = True
            remarks("trouble", error.message if isinstance(error, ResumesError) else str(error))
        is_stuck = is_in_trouble or pipeline.pending.is_stuck
        said = tuple(job.departures), tuple(reports), tuple(remarks.said)
        answers.send(Answer(is_read, *said, pipeline.under_way, is_stuck))
        job.departures.clear()
        reports.clear()
        remarks.said.clear()


def main() -> None:
    """Run the helper of the importer at the other end of standard input and output."""
    # On Linux the kernel kills this process, even if it is stopped, when the importer ends. On other
    # systems the process notices that when it reads its standard input.
    if (prctl := getattr(ctypes.CDLL(None), "prctl", None)) is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # These signals reach the whole process group; the importer decides when its helper exits.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    files.ignore_breaks()
    process_memory.tune_gc()
    tasks = Connection(os.dup(0), writable=False)
    answers = Connection(os.dup(1), readable=False)
    # Printed text must not get between the answers.
    os.dup2(2, 1)
    sys.stdin.close()
    setup: Setup = tasks.recv()
    slot = Slot(setup.root, SLOT)
    try:
        if slot.take():
            with open_store(setup.store_url, upgrade=False) as store:
                work(store, setup, slot, tasks, answers)
    except (EOFError, OSError, StoreError):
        pass  # the importer has ended, perhaps during a batch, or needs no helper
    finally:
        slot.leave()
