"""Servers that are asked to end, or have no disk, while clients write, and what is left."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.api import load
from tests.support.api.ended_servers import GRACE_S, check_stops, stop_under_load
from tests.support.api.full_disks import DISK_BYTES, filled
from tests.support.api.load import Wire
from tests.support.api.scenes import Scene, is_unavailable
from tests.support.inbox.mounts import a_disk

STOPS = 50


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "home", tmp_path / "logs")


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, pytest.param(STOPS, marks=pytest.mark.campaign(minutes=3))])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_was_accepted_is_answered_and_stored(scene: Scene, workers: str, times: int) -> None:
    check_stops(scene, [stop_under_load(scene, workers) for _ in range(times)])


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.campaign)])
def test_pipelined_requests_are_answered_up_to_the_one_that_says_close(
    scene: Scene, workers: str
) -> None:
    requests = [
        load.a_request(scene.key, "POST", body=load.a_body(f"resume {n}")) for n in range(200)
    ]
    with scene.served("--workers", workers) as server, Wire(server.url) as wire:
        wire.send(b"".join(requests))
        answers = [wire.read_answer()]
        server.process.send_signal(signal.SIGTERM)
        while not wire.has_ended():  # in order; a reset would lose some
            answers.append(wire.read_answer())

        assert server.process.wait(GRACE_S) == 0

    assert {answer.status for answer in answers} == {201}
    assert len(answers) == len(requests) or answers[-1].headers["connection"] == "close"
    assert scene.rows() == len(answers)


@pytest.mark.slow
def test_on_a_disk_without_a_byte_left_nothing_is_deleted_and_no_server_starts(
    scene: Scene, tmp_path: Path
) -> None:
    with a_disk(tmp_path / "disk", DISK_BYTES) as disk:
        home, seen = tmp_path / "disk" / "home", disk.seen(tmp_path / "disk")
        shutil.copytree(scene.home, disk.seen(home))
        scene.home = home
        with scene.served(within=tuple(disk.enter)) as server:

            def ask(method: str, path: str = load.RESUMES, body: bytes = b"") -> load.Answer:
                return load.call(server.url, load.a_request(scene.key, method, path, body))

            stored = [ask("POST", body=load.a_body("resume")).json["id"] for _ in range(20)]
            with filled(seen, leave_bytes=0):
                deleted = [ask("DELETE", f"{load.RESUMES}/{one}") for one in stored]
        with filled(seen, leave_bytes=0):
            start = [*disk.enter, *programs.command(home, "serve", "--port", "0")]
            started = subprocess.run(start, capture_output=True, text=True, timeout=60, check=False)
    assert all(map(is_unavailable, deleted))
    assert started.returncode == 3
    assert "full" in started.stderr
