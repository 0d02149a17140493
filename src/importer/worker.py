"""A process that imports files for an importer with a backlog.

It has a store and a slot of its own, and is told only which files to import. Batches come in on
standard input and answers go out on standard output, pickled. It ends when its input does, however
the importer ended. It is spawned, never forked: whoever goes on with what its slot's note says
knows that this process is gone (pitfalls I8).
"""

import ctypes
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection

from importer import files
from importer.batch import Left, Queues
from importer.helpers import Answer, Batch, Setup
from importer.notices import FileReport, as_report
from importer.slices import Pipeline
from importer.slots import Slot
from resumes import process_memory
from resumes.errors import ResumesError, StoreError
from resumes.store import Store, open_store

PR_SET_PDEATHSIG = 1
"""prctl(2)."""

AGAIN_S = 0.5
"""How soon is tried again what the store refused."""

IDLE_S = 60.0


class _Work:
    """Batches of its own, and what it said since it was last asked."""

    def __init__(self, store: Store, setup: Setup, slot: Slot) -> None:
        self._reports: list[FileReport] = []
        self._remarks: list[tuple[str, str]] = []
        self._is_in_trouble = False
        self._queues = Queues()
        self._pipeline = Pipeline(
            store,
            slot,
            root=setup.root,
            options=setup.options,
            queues=self._queues,
            on_filed=lambda *filed: self._reports.append(as_report(*filed)),
            remark=lambda key, sentence: self._remarks.append((key, sentence)),
            observe=setup.observe,
        )

    def take(self, batch: Batch) -> list[Left]:
        """Return the files of the batch that were not imported."""
        self._queues.by_account = dict(batch.queues)
        return self._pipeline.read(batch.candidates)

    def go_on(self) -> None:
        """Everything that can be done now with what was read is done."""
        self._is_in_trouble = False
        try:
            self._pipeline.commit()
            self._pipeline.go_on()
        except (StoreError, OSError) as error:
            self._is_in_trouble = True
            why = error.message if isinstance(error, ResumesError) else str(error)
            self._remarks.append(("trouble", why))

    @property
    def may_take(self) -> bool:
        """Whether new files may be read."""
        return not self._is_in_trouble and not self._pipeline.is_stuck

    def wait_s(self) -> float:
        """Seconds until there is something to do, apart from new files."""
        if self.may_take and self._pipeline.can_go_on:
            return 0.0
        return IDLE_S if self.may_take and not self._pipeline.under_way else AGAIN_S

    def answer(self, left: list[Left] | None) -> Answer:
        """Return what there is to say."""
        over, went_back = self._pipeline.take_ends()
        reports, self._reports = self._reports, []
        remarks, self._remarks = self._remarks, []
        return Answer(
            left,
            over,
            went_back,
            tuple(reports),
            tuple(remarks),
            self._pipeline.under_way,
            is_stuck=not self.may_take,
        )


def work(tasks: Connection, answers: Connection) -> None:
    """Batches are worked off until there are no more. The first answer is that it is ready."""
    setup: Setup = tasks.recv()
    slot = Slot(setup.root, setup.slot)
    if not slot.take():
        return
    try:
        with open_store(setup.store_url, upgrade=False) as store:
            _work_off(_Work(store, setup, slot), tasks, answers.send)
    except (EOFError, OSError):
        pass  # the importer has ended, perhaps in the middle of a batch
    finally:
        slot.leave()


def _work_off(work: _Work, tasks: Connection, send: Callable[[Answer], None]) -> None:
    send(Answer())
    waiting: deque[Batch] = deque()
    while True:
        wait_s = 0.0 if waiting and work.may_take else work.wait_s()
        if tasks.poll(wait_s):
            waiting.append(tasks.recv())
        left = work.take(waiting.popleft()) if waiting and work.may_take else None
        work.go_on()
        send(work.answer(left))


def end_with_parent() -> None:
    """Have the kernel kill this process, also a stopped one, when the importer ends.

    Elsewhere than on Linux its standard input says so, when it looks there.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Runs a worker over this process's standard input and output."""
    end_with_parent()
    # Ctrl-C and a service's stop reach the whole group; the importer says when it is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    files.ignore_breaks()
    process_memory.tune_gc()
    tasks = Connection(os.dup(0), writable=False)
    answers = Connection(os.dup(1), readable=False)
    # Whatever prints must not get between the answers.
    os.dup2(2, 1)
    sys.stdin.close()
    work(tasks, answers)
