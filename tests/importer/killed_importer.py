"""Importers that are killed, one per line of standard input.

A line is a `Task` as JSON: a child drains HOME/inbox into HOME/resumes.db and is killed on the
way. The answer is a line with the child's wait status. Children are forked from a process that
has imported everything and has neither thread nor store.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from importer import bundles, inboxes, judging, workforce
from importer.changes import Changes
from importer.health import Health
from importer.intake import Intake
from importer.options import Options
from importer.outcomes import Refusal
from importer.rounds import Importer
from importer.running import Runner
from importer.steps import Step
from importer.taking import Candidate
from importer.telling import Remarks
from resumes.analyzer import Format, Resume
from resumes.store import open_store

POISON = b"poison"
"""A file with this in it ends the process that judges it, if the task says so."""


class Victim(StrEnum):
    """Who is killed at the announcement."""

    IMPORTER = "importer"
    WORKER = "worker"
    """The worker that gets all new files, while its importer lives."""
    WORKERS_IMPORTER = "workers_importer"
    """The importer, when its worker is there; the worker is stopped."""


@dataclass(frozen=True, slots=True)
class Task:
    """Where to drain, and what ends it: an announcement, of one step or of any; or poison."""

    home: str
    kill_at: int = 0
    """The number of the announcement; 0 for none."""

    step: str | None = None
    victim: str = Victim.IMPORTER
    is_poisonable: bool = False


class Killer:
    """Ends a process at an announcement. It is known by the same name in a worker."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._importer = os.getpid()
        self._announced = 0

    def __call__(self, step: Step) -> None:
        is_worker = os.getpid() != self._importer
        if is_worker and self._task.is_poisonable and judging.judge is not deadly:
            judging.judge = deadly
        if is_worker is (self._task.victim == Victim.IMPORTER):
            return
        if self._task.step in (None, step):
            self._announced += 1
            if self._announced == self._task.kill_at:
                self._kill()

    def _kill(self) -> None:
        (Path(self._task.home) / "killed").write_text(str(os.getpid()))
        if self._task.victim == Victim.WORKERS_IMPORTER:
            os.kill(self._importer, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def drain(task: Task, tell: Callable[[str], None] = lambda line: None) -> None:
    """Everything in the home's inbox is imported, as far as the process lives."""
    home = Path(task.home)
    bundles.SLICE_ITEMS = 1
    if task.is_poisonable:
        judging.judge = deadly
    has_worker = task.victim != Victim.IMPORTER
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        remarks = Remarks(lambda notice: None)
        importer = Importer(
            store,
            home / "inbox",
            Options(settle_s=0, workers=int(has_worker)),
            on_file=lambda file: None,
            remarks=remarks,
            health=Health(lambda finding: tell(f"{finding.state}: {finding.sentence}\n")),
            observe=Killer(task),
        )
        if has_worker:
            prefer_worker(importer)
        Runner(importer, Changes(), remarks).drain(threading.Event())
        importer.close()


judge_safely = judging.judge


def deadly(body: bytes, format: Format) -> Resume | Refusal:  # noqa: A002  (as in judging.judge)
    """Judges, and does not survive poison."""
    if POISON in body:
        os.kill(os.getpid(), signal.SIGKILL)
    return judge_safely(body, format)


def prefer_worker(importer: Importer) -> None:
    """There is a worker, and for as long as it lives it gets every new file."""
    inboxes.SPARE_PLACES = -1_000_000
    importer._workforce.mind(backlog=workforce.WORKERS_FROM, is_working=True)
    next_batch = Intake.next_batch

    def next_for(self: Intake, hand_id: str, *, for_worker: bool = False) -> list[Candidate]:
        if importer.worker_pids and not for_worker:
            return []
        return next_batch(self, hand_id, for_worker=for_worker)

    Intake.next_batch = next_for  # type: ignore[method-assign]


def drain_aloud(home: str) -> None:
    """Drains, and prints what is found on the way."""

    def tell(line: str) -> None:
        sys.stdout.write(line)

    drain(Task(home), tell)


def main() -> None:
    for line in sys.stdin:
        task = Task(**json.loads(line))
        child = os.fork()
        if child == 0:
            try:
                drain(task)
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


@contextmanager
def importers() -> Iterator[Callable[[Task], int]]:
    """During the block a call drains as the task says, and returns the child's wait status."""
    checkout = Path(__file__).parents[2]
    # Not -m: workers must find what they are sent under the same name.
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    with subprocess.Popen(
        command,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def run(task: Task) -> int:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(asdict(task)) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run
        assert process.stdin is not None
        process.stdin.close()
