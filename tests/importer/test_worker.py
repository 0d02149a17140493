import shutil
import threading
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from importer import worker, workspaces
from importer.committing import Queue
from importer.taking import Why
from importer.worker import Answer, Batch, Setup
from resumes.store import Store
from resumes.store.accounts import AccountInfo
from tests.importer.batches import WORKER, a_batch, a_setup
from tests.importer.builders import (
    WAIT_LIMIT_S,
    drop,
    filed,
    names_below,
    resume_names,
    the_report,
    wait_until,
)
from tests.resumes.builders import a_document
from tests.resumes.store.builders import Busy

MakeAccount = Callable[..., AccountInfo]


class Bench:
    """A worker at work in a thread, and the importer's ends of its two pipes."""

    def __init__(self) -> None:
        task_end, self._tasks = Pipe(duplex=False)
        self._answers, answer_end = Pipe(duplex=False)
        self._thread = threading.Thread(target=self._work, args=(task_end, answer_end))

    @staticmethod
    def _work(tasks: Connection, answers: Connection) -> None:
        with tasks, answers:
            worker.work(tasks, answers)

    def start(self, setup: Setup) -> None:
        self._thread.start()
        self._tasks.send(setup)

    def give(self, batch: Batch) -> None:
        self._tasks.send(batch)

    def hear(self) -> Answer:
        """The next answer."""
        assert self._answers.poll(WAIT_LIMIT_S), "there is no answer"
        answer: Answer = self._answers.recv()
        return answer

    def hear_until(self, is_last: Callable[[Answer], bool]) -> list[Answer]:
        """The answers up to the first of which it is true."""
        answers = [self.hear()]
        while not is_last(answers[-1]):
            answers.append(self.hear())
        return answers

    def end(self) -> None:
        """There is no more to do, and the worker has ended."""
        self._tasks.close()
        self._thread.join(WAIT_LIMIT_S)
        assert not self._thread.is_alive()
        self._answers.close()


@pytest.fixture
def start(store: Store, root: Path) -> Iterator[Callable[..., Bench]]:
    """Starts a worker on ROOT that has said that it is ready: `start(settle_s=0)`."""
    benches: list[Bench] = []

    def make(**options: Any) -> Bench:
        bench = Bench()
        benches.append(bench)
        bench.start(a_setup(store, root, **options))
        assert bench.hear() == Answer()
        return bench

    (root / ".work").mkdir()
    yield make
    for bench in benches:
        bench.end()


Start = Callable[..., Bench]


def test_the_files_of_a_batch_are_imported_and_told(
    store: Store, root: Path, an_account: MakeAccount, start: Start
) -> None:
    account = an_account()
    drop(root, "ana/1.json", a_document("1"))
    drop(root, "ana/2.json", a_document("2"))
    bench = start()
    bench.give(a_batch(root, account, "ana/1.json", "ana/2.json"))
    answer = bench.hear()
    assert answer.left == []
    assert [(one.name, one.outcome.value) for one in answer.reports] == [
        ("ana/1.json", "done"),
        ("ana/2.json", "done"),
    ]
    assert answer.claimed == 0
    assert resume_names(store, account.id) == ["1", "2"]
    assert len(filed(root, "_done")) == 2


def test_files_that_are_not_taken_are_named_with_the_reason(
    root: Path, an_account: MakeAccount, start: Start
) -> None:
    account = an_account()
    drop(root, "ana/cut.json", b"{")
    drop(root, "ana/good.json")
    bench = start()
    batch = a_batch(root, account, "ana/cut.json", "ana/gone.json", "ana/good.json")
    bench.give(batch)
    answer = bench.hear()
    assert answer.left is not None
    assert {(one.claim_id, one.why) for one in answer.left} == {
        (batch.candidates[0].claim.id, Why.SETTLING),
        (batch.candidates[1].claim.id, Why.GONE),
    }
    assert [one.name for one in answer.reports] == ["ana/good.json"]


def test_when_nothing_can_be_claimed_every_file_of_the_batch_is_left(
    root: Path, an_account: MakeAccount, start: Start
) -> None:
    account = an_account()
    drop(root, "ana/1.json")
    drop(root, "ana/2.json")
    bench = start()
    shutil.rmtree(root / ".work" / WORKER)
    bench.give(a_batch(root, account, "ana/1.json", "ana/2.json"))
    answer = bench.hear()
    assert answer.left is not None
    assert [one.why for one in answer.left] == [Why.TROUBLE] * 2
    assert all(one.error is not None for one in answer.left)
    assert names_below(root / "ana") == ["1.json", "2.json"]


def test_new_files_queue_behind_those_that_the_importer_names(
    store: Store, root: Path, an_account: MakeAccount, start: Start
) -> None:
    account = an_account()
    drop(root, "ana/late.json")
    bench = start()
    queues = {account.id: Queue("0" * 24, "Earlier ones wait")}
    bench.give(a_batch(root, account, "ana/late.json", queues=queues))
    assert [one.outcome.value for one in bench.hear().reports] == ["held"]
    assert the_report(root, "_held")["message"] == "Earlier ones wait"
    assert resume_names(store, account.id) == []


def test_a_file_of_several_is_imported_to_its_end_without_another_batch(
    store: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    start: Start,
) -> None:
    monkeypatch.setattr("importer.bundles.SLICE_ITEMS", 2)
    account = an_account()
    drop(root, "ana/many.ndjson", b"\n".join(a_document(name) for name in "12345"))
    bench = start(settle_s=0)
    bench.give(a_batch(root, account, "ana/many.ndjson"))
    answers = bench.hear_until(lambda answer: bool(answer.reports))
    assert answers[0].left == []
    assert answers[0].claimed == 1
    assert answers[-1].claimed == 0
    assert resume_names(store, account.id) == list("12345")


def test_while_the_store_is_out_of_reach_it_says_so_and_takes_nothing_more(
    store: Store,
    root: Path,
    busy: Busy,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    start: Start,
) -> None:
    monkeypatch.setattr(worker, "AGAIN_S", 0.02)
    account = an_account()
    for number in (1, 2):
        drop(root, f"ana/{number}.json", a_document(str(number)))
    bench = start()
    with busy.held():
        bench.give(a_batch(root, account, "ana/1.json"))
        answer = bench.hear()
        assert (answer.left, answer.claimed, answer.reports) == ([], 1, ())
        assert answer.is_stuck
        ((key, sentence),) = answer.remarks
        assert (key, sentence[:17]) == ("trouble", "The store is busy")
        bench.give(a_batch(root, account, "ana/2.json"))
        assert bench.hear().left is None
        assert (root / "ana/2.json").exists()
    answers = bench.hear_until(lambda answer: answer.left is not None)
    assert [one.name for answer in answers for one in answer.reports] == [
        "ana/1.json",
        "ana/2.json",
    ]
    assert not answers[-1].is_stuck
    assert resume_names(store, account.id) == ["1", "2"]


def test_it_ends_with_its_input_and_leaves_what_it_claimed_to_others(
    root: Path,
    busy: Busy,
    monkeypatch: pytest.MonkeyPatch,
    an_account: MakeAccount,
    start: Start,
) -> None:
    monkeypatch.setattr(worker, "AGAIN_S", 0.02)
    account = an_account()
    drop(root, "ana/1.json", a_document("1"))
    bench = start()
    with busy.held():
        bench.give(a_batch(root, account, "ana/1.json"))
        assert bench.hear().claimed == 1
        bench.end()
    left = names_below(root / ".work" / WORKER)
    assert any(name.startswith(account.id) for name in left)
    workspace = workspaces.take_over(root / ".work" / WORKER)
    assert workspace is not None
    workspace.leave()


def test_with_nothing_left_its_workspace_is_gone(root: Path, start: Start) -> None:
    start().end()
    wait_until(lambda: list((root / ".work").iterdir()) == [])
