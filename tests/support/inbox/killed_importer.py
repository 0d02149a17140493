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
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import sqlalchemy

from importer.job import Step
from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options, Tuning
from importer.service import Runner
from resumes import analyzer
from resumes.analyzer import DEFAULT_FORMAT, Format, Resume
from resumes.store import open_store
from tests.support.inbox.builders import REPORT, wait_until

POISON = b"poison"
"""A file with this in it ends the process that judges it, if the task says so."""


class Victim(StrEnum):
    """Who is killed at a step."""

    IMPORTER = "importer"
    WORKER = "worker"
    """The process that helps an importer, which lives on."""
    WORKERS_IMPORTER = "workers_importer"
    """The importer, when its worker is there; the worker waits until the home's "killed" is
    gone."""


@dataclass(frozen=True, slots=True)
class Task:
    """Where to drain, and what ends it: a step, or poison."""

    home: str
    kill_at: int = 0
    """The number of the step, of whoever is to be killed; 0 for none."""

    victim: str = Victim.IMPORTER
    is_poisonable: bool = False


class Faults:
    """What befalls an importer at its steps; it is known by the same name in a worker."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._importer = os.getpid()
        self._killed = Path(task.home) / "killed"
        self._begun = Path(task.home) / "begun"
        self._steps = 0

    def watch_commits_and_renames(self) -> None:
        """Count the moment inside a transaction too, and that in which a report has no name yet."""

        def rename(event: str, values: tuple[object, ...]) -> None:
            if event == "os.rename" and str(values[1]).endswith(REPORT):
                self(Step.REPORT_WRITTEN)

        sqlalchemy.event.listen(sqlalchemy.Engine, "commit", lambda _: self(Step.COMMITTED))
        sys.addaudithook(rename)

    def __call__(self, step: Step) -> None:
        if self._task.is_poisonable:
            poison_parser()
        is_worker = os.getpid() != self._importer
        if is_worker is (self._task.victim == Victim.IMPORTER):
            if not is_worker and not self._killed.exists():
                self._leave_files()
            return
        self._steps += 1
        if is_worker and self._steps == 1:
            self._begun.touch()
        if self._steps == self._task.kill_at:
            self._kill()

    def _leave_files(self) -> None:
        """Go on slowly, so that there are files for the worker: until it has begun more slowly
        still, for on a busy machine it takes long to start."""
        for _ in range(10):
            threading.Event().wait(0.05)
            if self._begun.exists():
                return

    def _kill(self) -> None:
        if self._killed.exists():
            return
        self._killed.write_text(str(os.getpid()))
        if self._task.victim == Victim.WORKERS_IMPORTER:
            os.kill(self._importer, signal.SIGKILL)
            wait_until(lambda: not self._killed.exists())
        else:
            os.kill(os.getpid(), signal.SIGKILL)


WITH_WORKER = {"batch_files": 1, "helper_from": 10}


def drain(task: Task) -> None:
    """Everything in the home's inbox is imported, as far as the process lives."""
    home = Path(task.home)
    has_worker = task.victim != Victim.IMPORTER
    if task.is_poisonable:
        poison_parser()
    tuning = Tuning(slice_items=1, **(WITH_WORKER if has_worker else {}))
    observe = Faults(task)
    if not has_worker:
        observe.watch_commits_and_renames()  # before the store is opened
    with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
        importer = Importer(
            store,
            home / "inbox",
            Options(settle_s=0, account="ana", tuning=tuning),
            on_file=lambda file: None,
            notices=Notices(lambda notice: None),
            observe=observe,
        )
        Runner(importer).run(threading.Event(), until_idle=True)
        importer.close()


parse_safely = analyzer.parse_imported


def poison_parser() -> None:
    """Whoever parses poison in this process does not survive."""
    analyzer.parse_imported = deadly


def deadly(body: bytes, accepted: Format = DEFAULT_FORMAT) -> Resume:
    """Parses, and does not survive poison."""
    if POISON in body:
        os.kill(os.getpid(), signal.SIGKILL)
    return parse_safely(body, accepted)


def main() -> None:
    for line in sys.stdin:
        task = Task(**json.loads(line))
        child = os.fork()
        if child == 0:
            try:
                drain(task)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


@contextmanager
def importers() -> Iterator[Callable[[Task], int]]:
    """During the block a call drains as the task says, and returns the child's wait status."""
    checkout = Path(__file__).parents[3]
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
