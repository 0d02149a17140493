"""Importers that are killed at any moment, and others that stand by and go on."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.inbox.havoc import SEED, Havoc
from tests.support.inbox.scenes import Scene, Watch
from tests.support.inbox.writers import Writers


@pytest.mark.slow
@pytest.mark.parametrize("kills", [5, pytest.param(500, marks=pytest.mark.campaign(minutes=10))])
def test_no_version_is_lost_or_doubled_however_it_is_written_and_whoever_is_killed(
    tmp_path: Path, say: Callable[[str], None], kills: int
) -> None:
    seed = int(os.environ.get(SEED, "0")) or random.SystemRandom().randrange(1, 10**9)
    say(f"{SEED}={seed}")
    chosen = random.Random(seed)
    scene = Scene(tmp_path / "home")
    havoc = Havoc(scene, chosen)

    with Writers(scene, chosen, count=4, pause_s=0.01) as writers:
        for _ in range(kills):
            havoc.wreak()
    with scene.watched(settle_s=0.2):
        scene.wait_until(lambda: not scene.tally().left, limit_s=120)

    say(f"{writers.versions} versions, killed {dict(havoc.kills)}")
    assert writers.find_wrong() == []
    assert writers.versions > 100 * kills


# Several importers on a folder


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
