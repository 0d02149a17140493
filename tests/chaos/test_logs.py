"""Logs that cannot be written: those who write them go on."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.support import outputs, programs
from tests.support.api.builders import RESUMES, a_resume
from tests.support.api.serving import wait_until
from tests.support.inbox.scenes import Scene
from tests.support.stores import make_account

CREATES: Final = 200
FILES: Final = 50

LOGS: Final[dict[str, Callable[[], int]]] = {
    "closed": outputs.closed_pipe,
    "stuck": outputs.full_pipe,
    "full": lambda: os.open("/dev/full", os.O_WRONLY),
}


@pytest.mark.chaos(
    34,
    fault="a log that is a full disk, or a pipe that nobody reads",
    promise="requests are answered as usual",
)
@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_cannot_be_written_stops_no_create(
    log: str, tmp_path: Path, figures: Figures
) -> None:
    """Standard error is /dev/full, a pipe without a reader, or a full one; a line for each request."""
    key = an_account(tmp_path)
    errors = LOGS[log]()
    flags = ["--log-format", "json", "--access-log"]
    with outputs.serving(tmp_path, *flags, stderr=errors) as (url, program):
        with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=5) as client:
            names = [f"resume {number}" for number in range(CREATES)]
            created = [client.post(url + RESUMES, json=a_resume(name)) for name in names]
        program.terminate()
        code = program.wait(20)
    os.close(errors)

    failed = sum(answer.status_code != 201 for answer in created)
    figures["creates"] = len(created)
    figures["failed"] = failed
    assert failed == 0
    told = {answer.json()["id"]: name for answer, name in zip(created, names, strict=True)}
    figures["lost"] = checker.check(tmp_path / "resumes.db", told).lost
    assert len(told) == CREATES
    assert code == 0


def an_account(home: Path) -> str:
    """A key of the account "ada", on a plan for 1,000 resumes."""
    return make_account(home, "ada")


@pytest.mark.chaos(
    34,
    fault="an importer's log is a full disk, or a pipe that nobody reads",
    promise="files are imported as usual",
)
@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_cannot_be_written_stops_no_import(
    log: str, tmp_path: Path, figures: Figures
) -> None:
    """Standard error is /dev/full, a pipe without a reader, or a full one; a line for each file."""
    scene = Scene(tmp_path / "home")
    scene.account("ada")
    errors = LOGS[log]()
    with watching(scene, errors) as program:
        names = [f"{number}.json" for number in range(FILES)]
        for name in names:
            scene.drop(f"ada/{name}")
        done = scene.root / "_done"
        wait_until(lambda: len(programs.files_in(done)) == FILES, within_s=60)
        program.terminate()
        code = program.wait(20)
    os.close(errors)

    assert scene.check(files=FILES, resumes={"ada": names}).done == FILES
    missing, doubled = checker.count_differences(names, scene.names("ada"))
    figures["files"] = len(names)
    figures["not_imported"], figures["doubled"] = missing, doubled
    assert missing == doubled == 0
    assert code == 0


@contextmanager
def watching(scene: Scene, errors: int) -> Iterator["subprocess.Popen[bytes]"]:
    """An importer whose standard error this is."""
    words = ["watch", str(scene.root), "--settle", "0.2", "--log-format", "json"]
    with subprocess.Popen(
        programs.command(scene.home, *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
    ) as program:
        try:
            yield program
        finally:
            program.terminate()
