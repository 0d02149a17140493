"""Importers that are killed, at every point of their work and at any moment, also while versions of a file come."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.inbox import killed_importer
from tests.support.inbox.havoc import SEED, Havoc
from tests.support.inbox.killed_importer import Point, Task
from tests.support.inbox.scenes import Scene
from tests.support.inbox.supply import Supply
from tests.support.inbox.writers import Writers, all_of

Drain = Callable[[Scene, Point, int], int]


@pytest.fixture(scope="module")
def drain() -> Iterator[Drain]:
    """Drains a scene in a child that dies at a point; the child's status."""
    with killed_importer.importers() as run:
        yield lambda scene, point, nth: run(Task(str(scene.home), nth, point=point))


@pytest.mark.parametrize(
    "times",
    [1, pytest.param(5, marks=pytest.mark.slow), pytest.param(50, marks=pytest.mark.campaign)],
)
@pytest.mark.parametrize("point", Point)
def test_an_importer_that_died_at_a_point_is_gone_on_with_and_nothing_counts_twice(
    tmp_path: Path, drain: Drain, point: Point, times: int
) -> None:
    chosen = random.Random(point.value)
    for number in range(times):
        scene = Scene(tmp_path / f"{number}")
        supply = Supply(scene, chosen)
        supply.drop_each_kind()
        supply.drop(chosen.randrange(20))
        # All are opened and read at once.
        nth = 1 if point in (Point.NOTED, Point.READ) else 1 + number % 3
        assert drain(scene, point, nth) == signal.SIGKILL
        assert drain(scene, Point.MOVED, 1 + number % 3) in (signal.SIGKILL, 0)
        assert drain(scene, Point.MOVED, 0) == 0
        supply.check()


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

    found = writers.find()
    say(f"{found.versions} versions, killed {dict(havoc.kills)}")
    assert all_of(found) == [], found
    assert found.versions > 100 * kills
