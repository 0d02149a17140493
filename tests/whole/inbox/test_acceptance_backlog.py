"""Many files at once, and several importers."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.inbox import burst
from tests.support.inbox.scenes import STOP_S, Scene, Watch

WRITERS = 8
MEMORY_BYTES = 250 * 1024 * 1024
Say = Callable[[str], None]


def write(folder: Path, count: int) -> "subprocess.Popen[bytes]":
    """A process that writes so many files into the folder, as fast as it can."""
    program = [sys.executable, str(Path(burst.__file__))]
    return subprocess.Popen([*program, str(folder), str(count)])


def names_written(folder: str, count: int) -> list[str]:
    return [f"{folder} {number}" for number in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [4_000, pytest.param(400_000, marks=pytest.mark.campaign)])
def test_of_a_burst_from_many_writers_no_file_is_missed(scene: Scene, say: Say, count: int) -> None:
    scene.account("ana")
    folders = [f"writer-{number}" for number in range(WRITERS)]
    for folder in folders:
        (scene.root / "ana" / folder).mkdir()
    each = count // WRITERS
    with scene.watched() as importer:
        began = time.monotonic()
        writers = [write(scene.root / "ana" / folder, each) for folder in folders]
        assert [writer.wait() for writer in writers] == [0] * WRITERS
        written_s = time.monotonic() - began
        scene.wait_for_all(count, limit_s=30 + count / 500)
        imported_s = time.monotonic() - began
        memory_bytes = importer.most_memory_bytes
        assert scene.health() == []
    say(
        f"{count} files written in {written_s:.1f} s and imported {imported_s:.1f} s after the "
        f"first: {count / imported_s:,.0f} a second, {memory_bytes / 2**20:.0f} MiB at most"
    )
    names = [name for folder in folders for name in names_written(folder, each)]
    assert scene.check(files=count, resumes={"ana": names}).done == count
    assert memory_bytes < MEMORY_BYTES


def latency_s(scene: Scene, name: str) -> float:
    """How long a file that is dropped now stays in the inbox."""
    path = scene.drop(name)
    began = time.monotonic()
    scene.wait_until(lambda: not path.exists())
    return time.monotonic() - began


@pytest.mark.timing
@pytest.mark.parametrize("count", [4_000, pytest.param(100_000, marks=pytest.mark.campaign)])
def test_a_backlog_makes_no_other_account_wait_and_can_be_stopped_and_gone_on_with(
    scene: Scene, say: Say, count: int
) -> None:
    scene.account("ana")
    scene.account("bo")
    assert write(scene.root / "ana", count).wait() == 0
    with scene.watched() as importer:
        latencies_s: list[float] = []
        while len(list((scene.root / "ana").iterdir())) > count // 2:
            latencies_s.append(latency_s(scene, f"bo/{len(latencies_s)}.json"))
        began = time.monotonic()
        importer.stop()
        stopped_s = time.monotonic() - began
    assert len(scene.tally().left) > 0
    fresh, slowest_s = len(latencies_s), max(latencies_s)
    say(
        f"with {count} files waiting, {fresh} files of another account took {slowest_s:.2f} s at "
        f"most; it stopped in {stopped_s:.2f} s"
    )
    assert slowest_s < 5
    assert stopped_s < STOP_S
    with scene.watched():
        scene.wait_for_all(count + fresh, limit_s=30 + count / 500)
    resumes = {"ana": names_written("ana", count), "bo": [f"{n}.json" for n in range(fresh)]}
    assert scene.check(files=count + fresh, resumes=resumes).done == count + fresh


# Several importers


TAKE_OVER_S = 2.0

COUNTS = [1_500, pytest.param(20_000, marks=pytest.mark.campaign)]


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_of_two_importers_one_stands_by_and_finishes_what_a_killed_one_had(
    scene: Scene, count: int
) -> None:
    """Each file is imported once, whoever took it; who stood by goes on with what was under way."""
    scene.account("ana")
    scene.account("bo")
    with scene.watched() as victim, scene.watched() as survivor:
        scene.wait_until(lambda: "on standby" in survivor.log)
        for number in range(count // 2):
            for name in ("ana", "bo"):
                scene.drop(f"{name}/{number}.json")
            if number >= count // 8 and victim.is_running:
                kill_at_work(scene, victim)
        victim.kill()  # which was never seen at work
        scene.wait_for_all(count, limit_s=30 + count / 200)
        scene.wait_until(lambda: len(scene.slots()) == 1 + len(survivor.children))
    names = {name: [f"{number}.json" for number in range(count // 2)] for name in ("ana", "bo")}
    assert scene.check(files=count, resumes=names).done == count


def kill_at_work(scene: Scene, victim: Watch) -> None:
    """If the importer has files under way at this moment, it ends."""
    os.kill(victim.pid, signal.SIGSTOP)
    notes = (scene.root / ".importer").glob("*.files")
    if any(path.stat().st_size for path in notes):
        victim.kill()
    else:
        os.kill(victim.pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_two_importers_drain_a_backlog_together(scene: Scene, count: int) -> None:
    scene.account("ana")
    for number in range(count):
        scene.drop(f"ana/{number}.json")
    first, second = scene.start("--once"), scene.start("--once")
    try:
        assert first.process.wait(120) == 0, first.log
        assert second.process.wait(120) == 0, second.log
    finally:
        first.kill()
        second.kill()
    names = [f"{number}.json" for number in range(count)]
    assert scene.check(files=count, resumes={"ana": names}).done == count


@pytest.mark.slow
@pytest.mark.timing
def test_of_two_that_stand_by_one_takes_over_within_two_seconds(scene: Scene) -> None:
    scene.account("ana")
    with scene.watched() as victim, scene.watched() as second, scene.watched() as third:
        scene.wait_until(lambda: all("on standby" in one.log for one in (second, third)))
        for number in range(5):
            scene.drop(f"ana/{number}.json")
        scene.wait_for(ended=5)
        victim.kill()
        killed_s = time.monotonic()
        scene.drop("ana/5.json")
        scene.wait_for(ended=6)
        took_s = time.monotonic() - killed_s
    assert scene.check(files=6, resumes={"ana": [f"{n}.json" for n in range(6)]}).done == 6
    assert took_s < TAKE_OVER_S


@pytest.mark.slow
@pytest.mark.campaign
def test_of_an_importer_that_was_stopped_doctor_tells_the_process_and_nobody_takes_its_folder(
    scene: Scene,
) -> None:
    scene.account("ana")
    with scene.watched() as stopped, scene.watched() as other:
        scene.wait_until(lambda: "on standby" in other.log)
        scene.drop("ana/0.json")
        scene.wait_for(ended=1)
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            scene.drop("ana/1.json")
            silent = re.compile(rf"process {stopped.pid} on .* has not responded")
            scene.wait_until(lambda: silent.search(told(scene)) is not None, limit_s=120)
            assert scene.tally().ended == 1
        finally:
            os.kill(stopped.pid, signal.SIGCONT)
        scene.wait_for(ended=2)
    assert scene.check(files=2, resumes={"ana": ["0.json", "1.json"]}).done == 2


def told(scene: Scene) -> str:
    """What doctor says, in a line."""
    return " ".join(programs.run(scene.home, "doctor").stdout.split())
