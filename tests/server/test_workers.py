import subprocess
import sys
from pathlib import Path

import pytest
import uvicorn

from server import workers
from server.workers import SILENT_LOOKS, STARTING_LOOKS, Worker
from tests.server.serving import serve

UVICORNS_PATIENCE_S = 5

SLOW = """
import sys, time
if "--multiprocessing-fork" in sys.orig_argv:
    time.sleep({seconds})
"""
"""Makes every process that Python spawns start slowly."""

IMPATIENT = """
import sys
from pathlib import Path
from resumes.settings import Settings
from server import service, workers

workers.STARTING_LOOKS = 2
try:
    service.run(Settings(home=Path(sys.argv[1]), port=0, workers=2), ready=print)
except workers.WorkersFailed as error:
    print(error.message)
"""


def start_slowly(monkeypatch: pytest.MonkeyPatch, folder: Path, *, seconds: float) -> None:
    (folder / "sitecustomize.py").write_text(SLOW.format(seconds=seconds))
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.slow
def test_workers_that_start_slowly_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_slowly(monkeypatch, tmp_path, seconds=UVICORNS_PATIENCE_S + 2)

    with serve(tmp_path, workers=2) as served:
        served.process.terminate()
        _, said = served.process.communicate(timeout=60)

    assert served.url.startswith("http://127.0.0.1:")
    assert said == ""


def test_workers_that_never_start_are_one_line_and_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_slowly(monkeypatch, tmp_path, seconds=600)

    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT, tmp_path], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 0
    assert "could not start: it did not start within 1 s" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """One whose process was not begun, so that tests answer for it."""
    monkeypatch.setattr(workers, "ANSWER_S", 0)
    return Worker(uvicorn.Config("nothing:app", log_config=None), [])


def look(worker: Worker, times: int) -> None:
    for _ in range(times):
        worker.look()


def answer(worker: Worker, *, has_started: bool) -> None:
    worker.child_conn.recv()
    worker.child_conn.send(has_started)


def test_a_worker_is_given_up_when_all_its_time_for_starting_is_over(worker: Worker) -> None:
    look(worker, STARTING_LOOKS - 1)
    answer(worker, has_started=False)
    look(worker, 1)
    assert worker.find_fault() is None

    look(worker, 1)

    assert worker.find_fault() == "it did not start within 300 s"
    assert worker.is_late


def test_a_worker_that_has_started_may_be_silent_for_a_while(worker: Worker) -> None:
    look(worker, 1)
    answer(worker, has_started=True)
    look(worker, 1)
    assert worker.has_started

    look(worker, SILENT_LOOKS)
    assert worker.find_fault() is None

    look(worker, 1)
    assert worker.find_fault() == "no answer for 60 s"
    assert not worker.is_late


def test_an_answer_however_late_makes_up_for_the_silence_before(worker: Worker) -> None:
    look(worker, 1)
    answer(worker, has_started=True)
    look(worker, SILENT_LOOKS)
    answer(worker, has_started=True)
    look(worker, SILENT_LOOKS)

    assert worker.find_fault() is None


def test_a_worker_that_cannot_be_asked_is_silent(worker: Worker) -> None:
    worker.parent_conn.close()

    look(worker, STARTING_LOOKS + 1)

    assert worker.is_late
