"""An importer killed at every step, and killed again while it recovers, loses and doubles nothing."""

import itertools
import os
import signal
from pathlib import Path

import pytest

from importer.steps import Step
from importer.workspaces import LEASE
from resumes.store.locks import FileLock
from tests.importer.builders import wait_until
from tests.importer.homes import Drain, Fresh, check, drain, fresh, kill_at_every_step
from tests.importer.killed_importer import Task, Victim

__all__ = ["drain", "fresh"]  # fixtures


def test_left_alone_every_file_comes_to_its_end(drain: Drain, fresh: Fresh) -> None:
    home = fresh()
    assert drain(Task(str(home))) == 0
    check(home)


@pytest.mark.parametrize(("kills", "stride"), [(1, 2), (2, 9)])
def test_killed_at_every_step_each_file_is_imported_exactly_once(
    drain: Drain, fresh: Fresh, kills: int, stride: int
) -> None:
    kill_at_every_step(drain, fresh, kills=kills, stride=stride)


@pytest.mark.campaign
@pytest.mark.parametrize(("kills", "stride"), [(1, 1), (2, 1), (3, 1)])
def test_killed_at_every_single_step_and_again_and_again(
    drain: Drain, fresh: Fresh, kills: int, stride: int
) -> None:
    kill_at_every_step(drain, fresh, kills=kills, stride=stride)


@pytest.mark.parametrize("step", [Step.CLAIMED, Step.COMMITTED, Step.REPORT_WRITTEN, Step.MOVED])
def test_i8_of_a_worker_that_is_killed_its_importer_goes_on_with_everything(
    drain: Drain, fresh: Fresh, step: Step
) -> None:
    home = fresh()
    assert drain(Task(str(home), 2, step.value, Victim.WORKER)) == 0
    assert (home / "killed").exists()
    check(home)


@pytest.mark.campaign
def test_i8_of_a_worker_that_is_killed_at_any_step_its_importer_goes_on_with_everything(
    drain: Drain, fresh: Fresh
) -> None:
    for kill_at in itertools.count(1):
        home = fresh()
        assert drain(Task(str(home), kill_at, victim=Victim.WORKER)) == 0
        check(home)
        if not (home / "killed").exists():
            break
    assert kill_at > 30


@pytest.mark.slow
def test_i8_a_worker_whose_importer_is_killed_keeps_its_claims_until_it_has_ended_by_itself(
    drain: Drain, fresh: Fresh
) -> None:
    home = fresh()
    task = Task(str(home), 3, Step.CLAIMED.value, Victim.WORKERS_IMPORTER)
    assert drain(task) == signal.SIGKILL
    worker = int((home / "killed").read_text())
    try:
        (claim, *_) = (home / "inbox" / ".work").glob("*/*/" + 24 * "[0-9a-f]")
        assert drain(Task(str(home))) == 0
        assert claim.exists()
    finally:
        os.kill(worker, signal.SIGCONT)
    wait_until(lambda: is_free(claim.parents[1] / LEASE))
    assert drain(Task(str(home))) == 0
    check(home)


def is_free(lease: Path) -> bool:
    """Whether nobody holds the lease, if it is there at all."""
    if not lease.exists():
        return True
    lock = FileLock(lease)
    try:
        return lock.acquire(wait_s=0)
    finally:
        lock.close()
