"""Several importers on a folder, in processes of their own."""

import os
import re
import signal
import time

import pytest

from tests.support import programs
from tests.support.inbox.scenes import Scene, Watch

TAKE_OVER_S = 1.0

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
def test_of_two_that_stand_by_one_takes_over_within_a_second(scene: Scene) -> None:
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
