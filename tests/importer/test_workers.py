import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from importer import workers
from importer.worker import Answer, Batch
from importer.workers import BATCHES_AHEAD, Worker
from resumes.store import Store
from resumes.store.accounts import AccountInfo
from tests.importer.batches import WORKER, a_batch, a_setup
from tests.importer.builders import drop, resume_names, wait_until
from tests.resumes.builders import a_document

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


@pytest.fixture
def heard() -> threading.Event:
    """Set when the worker has said something."""
    return threading.Event()


@pytest.fixture
def worker(store: Store, root: Path, heard: threading.Event) -> Iterator[Worker]:
    """A process on ROOT that is ready."""
    (root / ".work").mkdir()
    worker = Worker(a_setup(store, root), heard.set)
    try:
        assert not worker.is_free
        wait_until(lambda: worker.has_answers)
        assert list(worker.iter_answers()) == [(None, Answer())]
        yield worker
    finally:
        worker.end()


def hear(worker: Worker) -> list[tuple[Batch | None, Answer]]:
    """What it says next."""
    wait_until(lambda: worker.has_answers)
    return list(worker.iter_answers())


def test_a_worker_imports_the_files_of_its_batches(
    store: Store, root: Path, worker: Worker, heard: threading.Event, an_account: MakeAccount
) -> None:
    account = an_account()
    drop(root, "ana/1.json", a_document("1"))
    batch = a_batch(root, account, "ana/1.json")
    heard.clear()
    worker.give(batch)
    ((about, answer),) = hear(worker)
    assert heard.is_set()
    assert about is batch
    assert [report.outcome.value for report in answer.reports] == ["done"]
    assert resume_names(store, account.id) == ["1"]
    assert not worker.batches


def test_a_worker_has_a_few_batches_at_once_and_no_more(
    root: Path, worker: Worker, an_account: MakeAccount
) -> None:
    account = an_account()
    while worker.is_free:
        worker.give(a_batch(root, account, "ana/gone.json"))
    assert len(worker.batches) == BATCHES_AHEAD
    wait_until(lambda: bool(list(worker.iter_answers())) and not worker.batches)
    wait_until(lambda: worker.is_free)


def test_a_worker_that_dies_keeps_the_batches_that_it_did_not_answer(
    root: Path, worker: Worker, heard: threading.Event, an_account: MakeAccount
) -> None:
    account = an_account()
    os.kill(worker.pid, signal.SIGSTOP)
    batch = a_batch(root, account, "ana/1.json")
    worker.give(batch)
    heard.clear()
    os.kill(worker.pid, signal.SIGKILL)
    wait_until(heard.is_set)
    assert hear(worker) == []
    assert not worker.is_alive
    assert not worker.is_free
    assert list(worker.batches) == [batch]
    worker.give(a_batch(root, account, "ana/2.json"))
    assert len(worker.batches) == 2


def test_a_worker_ends_when_told(root: Path, worker: Worker) -> None:
    worker.end()
    assert not worker.is_alive
    assert list((root / ".work").iterdir()) == []


def test_a_worker_that_does_not_end_is_killed(
    root: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "END_S", 0.05)
    os.kill(worker.pid, signal.SIGSTOP)
    worker.end()
    assert not worker.is_alive
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)
    assert (root / ".work" / WORKER).exists()


def test_a_worker_whose_workspace_cannot_be_made_is_not_alive_for_long(
    store: Store, root: Path, heard: threading.Event
) -> None:
    (root / ".work").write_bytes(b"in the way")
    worker = Worker(a_setup(store, root), heard.set)
    wait_until(heard.is_set)
    assert hear(worker) == []
    assert not worker.is_alive
    worker.end()
