"""Two importers on one folder."""

import os
import signal

import pytest

from tests.support.inbox.scenes import Scene, Watch

pytestmark = pytest.mark.slow

COUNTS = [1_500, pytest.param(20_000, marks=pytest.mark.campaign)]


@pytest.mark.parametrize("count", COUNTS)
def test_of_two_importers_one_stands_by_and_finishes_what_a_killed_one_had(
    scene: Scene, count: int
) -> None:
    """Each file is imported once, whoever took it; who stood by goes on with what was under way."""
    scene.account("ana")
    scene.account("bo")
    with scene.watched() as victim, scene.watched() as survivor:
        scene.wait_until(lambda: "stands by" in survivor.log)
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
