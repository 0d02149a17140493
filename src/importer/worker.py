"""A process that imports files for an importer with a backlog.

It has a store, a workspace and a pipeline of its own, and is told only which files to try.
Batches come in on standard input and answers go out on standard output, pickled. It ends when
its input does, however the importer ended. It is spawned, never forked: whoever takes over its
workspace knows that this process is gone (pitfalls I8).
"""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from importer import leases, workspaces
from importer.committing import Queue
from importer.hands import Hand
from importer.names import WORK
from importer.options import Options
from importer.pipeline import Pipeline
from importer.steps import Observer
from importer.taking import Candidate, Left, Why
from importer.telling import FileReport, as_report
from importer.trying import Trial
from resumes import memory
from resumes.errors import ResumesError, StoreError
from resumes.store import Store, open_store

AGAIN_S = 0.5
"""How soon is tried again what the store refused."""

IDLE_S = 60.0


class Setup(NamedTuple):
    """The first thing that a worker is told."""

    store_url: str
    root: Path
    importer_id: str
    options: Options
    observe: Observer

    def __repr__(self) -> str:
        # Without the address, which may hold a password.
        return f"Setup({str(self.root)!r}, {self.importer_id})"


class Batch(NamedTuple):
    """Files to try, in the worker's workspace; and by account, what its new files queue behind."""

    candidates: list[Candidate]
    queues: dict[str, Queue]


class Answer(NamedTuple):
    """What a worker did since the last answer. `left` is of a batch, and None without one."""

    left: list[Left] | None = None
    reports: tuple[FileReport, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    claimed: int = 0
    is_stuck: bool = False
    """Whether the store is out of reach, or something could not be filed away."""


class _Work:
    """A pipeline, and what it said since it was last asked."""

    def __init__(self, store: Store, setup: Setup, workspace: workspaces.Workspace) -> None:
        options = setup.options
        trial = Trial(options.format, options.settle_s)
        hand = Hand(workspace, setup.root, trial, store.clock, setup.observe)
        self._reports: list[FileReport] = []
        self._remarks: list[tuple[str, str]] = []
        self._is_in_trouble = False
        self.pipeline = Pipeline(
            store,
            hand,
            root=setup.root,
            options=options,
            on_filed=lambda *filed: self._reports.append(as_report(*filed)),
            remark=lambda key, sentence: self._remarks.append((key, sentence)),
            observe=setup.observe,
        )

    def take(self, batch: Batch) -> list[Left]:
        """The files of the batch that were not taken."""
        self.pipeline.queues = dict(batch.queues)
        try:
            return self.pipeline.take(batch.candidates)
        except OSError as error:
            return [
                Left(one.claim.id, one.path, Why.TROUBLE, None, error) for one in batch.candidates
            ]

    def go_on(self) -> None:
        """Everything that can be done now with what was taken is done."""
        self._is_in_trouble = False
        try:
            self.pipeline.go_on()
            self.pipeline.commit()
            self.pipeline.unpack()
        except (StoreError, OSError) as error:
            self._is_in_trouble = True
            why = error.message if isinstance(error, ResumesError) else str(error)
            self._remarks.append(("trouble", why))

    @property
    def may_take(self) -> bool:
        """Whether new files may be tried."""
        return not self._is_in_trouble and not self.pipeline.is_stuck

    def wait_s(self) -> float:
        """Seconds until there is something to do, apart from new files."""
        if self.may_take and self.pipeline.has_work:
            return 0.0
        return IDLE_S if self.may_take and not self.pipeline.claimed else AGAIN_S

    def answer(self, left: list[Left] | None) -> Answer:
        """What there is to say."""
        reports, self._reports = self._reports, []
        remarks, self._remarks = self._remarks, []
        return Answer(
            left,
            tuple(reports),
            tuple(remarks),
            self.pipeline.claimed,
            is_stuck=not self.may_take,
        )


def work(tasks: Connection, answers: Connection) -> None:
    """Batches are worked off until there are no more. The first answer is that it is ready."""
    setup: Setup = tasks.recv()
    workspace = workspaces.make(setup.root / WORK, setup.importer_id)
    if workspace is None:
        return
    try:
        with open_store(setup.store_url, upgrade=False) as store:
            _work_off(_Work(store, setup, workspace), tasks, answers.send)
    except (EOFError, OSError):
        pass  # the importer has ended, perhaps in the middle of a batch
    finally:
        workspace.leave()


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


def main() -> None:
    """Runs a worker over this process's standard input and output."""
    # Ctrl-C and a service's stop reach the whole group; the importer says when it is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leases.ignore_breaks()
    memory.collect_seldom()
    tasks = Connection(os.dup(0), writable=False)
    answers = Connection(os.dup(1), readable=False)
    # Whatever prints must not get between the answers.
    os.dup2(2, 1)
    sys.stdin.close()
    work(tasks, answers)
