"""Real worker processes, each over a store and a folder of its own."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from importer import workforce
from importer.options import Options
from importer.steps import unobserved
from importer.worker import Batch, Setup
from importer.workforce import WORKERS_IDLE_S, Workforce
from resumes.store import Store
from resumes.store.identifiers import resume_id
from tests.importer.builders import FakeMonotonic, wait_until

MakeForce = Callable[[], Workforce]


@pytest.fixture
def a_workforce(
    store: Store, root: Path, monotonic: FakeMonotonic, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workforce]:
    monkeypatch.setattr(workforce, "WORKERS_FROM", 10)

    def make_setup() -> Setup:
        return Setup(store.url, root, resume_id(store.clock()), Options(), unobserved)

    force = Workforce(make_setup, most=1, on_answer=lambda: None, monotonic=monotonic)
    yield force
    force.end()


def hear(force: Workforce) -> None:
    for _ in force.iter_answers():
        pass


def is_ready(force: Workforce) -> bool:
    hear(force)
    return next(force.iter_free(), None) is not None


def test_a_small_backlog_has_no_worker_and_a_large_one_has(a_workforce: Workforce) -> None:
    a_workforce.mind(backlog=9, is_working=False)
    assert a_workforce.pids == []
    a_workforce.mind(backlog=10, is_working=False)
    a_workforce.mind(backlog=10, is_working=False)
    assert len(a_workforce.pids) == 1


def test_a_worker_that_is_ready_has_two_batches_at_most(a_workforce: Workforce) -> None:
    a_workforce.mind(backlog=10, is_working=True)
    wait_until(lambda: is_ready(a_workforce))
    (pid,) = a_workforce.pids
    os.kill(pid, signal.SIGSTOP)  # so that it gives no answer meanwhile
    try:
        given = 0
        for worker in a_workforce.iter_free():
            worker.give(Batch([], {}))
            given += 1
        assert given == 2
        assert a_workforce.is_busy
    finally:
        os.kill(pid, signal.SIGCONT)

    def is_idle() -> bool:
        hear(a_workforce)
        return not a_workforce.is_busy

    wait_until(is_idle)


def test_nobody_to_give_to_ends_the_giving(a_workforce: Workforce) -> None:
    a_workforce.mind(backlog=10, is_working=True)
    wait_until(lambda: is_ready(a_workforce))
    assert len(list(a_workforce.iter_free())) == 1


def test_workers_end_after_a_while_without_work(
    a_workforce: Workforce, monotonic: FakeMonotonic
) -> None:
    a_workforce.mind(backlog=10, is_working=False)
    monotonic.advance(WORKERS_IDLE_S - 1)
    a_workforce.mind(backlog=0, is_working=True)
    monotonic.advance(WORKERS_IDLE_S - 1)
    a_workforce.mind(backlog=0, is_working=False)
    assert a_workforce.pids != []
    monotonic.advance(2)
    a_workforce.mind(backlog=0, is_working=False)
    assert a_workforce.pids == []


def test_a_worker_that_died_is_replaced_after_a_while_and_its_files_are_given_back(
    a_workforce: Workforce, monotonic: FakeMonotonic
) -> None:
    a_workforce.mind(backlog=10, is_working=True)
    wait_until(lambda: is_ready(a_workforce))
    (pid,) = a_workforce.pids
    os.kill(pid, signal.SIGKILL)
    buried: list[object] = []

    def is_buried() -> bool:
        hear(a_workforce)
        buried.extend(a_workforce.bury())
        return bool(buried)

    wait_until(is_buried)
    assert buried == [[]]
    a_workforce.mind(backlog=10, is_working=True)
    assert a_workforce.pids == []
    monotonic.advance(WORKERS_IDLE_S + 1)
    a_workforce.mind(backlog=10, is_working=True)
    assert len(a_workforce.pids) == 1
