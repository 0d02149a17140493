"""Importers that are killed, at every point of their work and at any moment."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.system.importer import dying
from tests.system.importer.dying import Point
from tests.system.importer.scenes import Scene, Watch, kill
from tests.system.importer.supply import Supply

SEED = "IMPORTER_CAMPAIGN_SEED"
"""The environment variable that has a campaign go as it went before."""

Drain = Callable[[Scene, Point, int], int]


@pytest.fixture(scope="module")
def drain() -> Iterator[Drain]:
    """Drains a scene in a child that dies at a point; the child's status."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.system.importer.dying"],
        cwd=Path(dying.__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        into, out_of = process.stdin, process.stdout
        assert into is not None
        assert out_of is not None

        def ask(scene: Scene, point: Point, nth: int) -> int:
            into.write(f"{point.name} {nth} {scene.home}\n")
            into.flush()
            return int(out_of.readline())

        yield ask
        into.close()


@pytest.mark.parametrize("times", [2, pytest.param(100, marks=pytest.mark.campaign)])
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
        nth = 1 if point is Point.READ else 1 + number % 3  # all are read at once
        assert drain(scene, point, nth) == signal.SIGKILL
        assert drain(scene, Point.MOVED, 1 + number % 3) in (signal.SIGKILL, 0)
        assert drain(scene, Point.MOVED, 0) == 0
        supply.check()


class Havoc:
    """Importers that are started and killed, over and over."""

    def __init__(self, scene: Scene, chosen: random.Random) -> None:
        self._scene = scene
        self._chosen = chosen
        self.kills: Counter[str] = Counter()

    def wreak(self) -> None:
        """An importer was started, and killed at some moment of its work, or the processes that
        help it were, or both."""
        importer = self._scene.start(settle_s=0.2)
        try:
            self._let_work(importer)
            victims = self._chosen.choice(["importer", "importer", "helpers", "both"])
            helpers = importer.children
            self.kills[victims if helpers else "importer"] += 1
            if victims != "importer":
                for pid in helpers:
                    kill(pid)
            if victims == "helpers":
                self._let_work(importer)
        finally:
            importer.kill()

    def _let_work(self, importer: Watch) -> None:
        # It starts in about half a second, and goes on with what was left before it takes more.
        threading.Event().wait(self._chosen.uniform(0.5, 3.0))
        assert importer.is_running, importer.log


@pytest.mark.parametrize(
    ("kills", "burst"), [(4, 2_500), pytest.param(200, 4_000, marks=pytest.mark.campaign)]
)
def test_importers_killed_at_random_moments_lose_nothing_and_double_nothing(
    scene: Scene, say: Callable[[str], None], kills: int, burst: int
) -> None:
    """Files of every kind come in all the time, and before each start there are so many that the
    importer gets helpers. The seed that is printed has the next run do the same, as far as
    processes can be made to: `IMPORTER_CAMPAIGN_SEED=… make campaign`."""
    seed = int(os.environ.get(SEED, "0")) or random.SystemRandom().randrange(1, 10**9)
    say(f"{SEED}={seed}")
    chosen = random.Random(seed)
    supply = Supply(scene, random.Random(seed + 1))
    havoc = Havoc(scene, chosen)
    over = threading.Event()

    def trickle() -> None:
        while not over.wait(0.02):
            with dropping:
                supply.drop(5)

    dropping = threading.Lock()
    supply.drop_each_kind()
    trickling = threading.Thread(target=trickle)
    trickling.start()
    try:
        for _ in range(kills):
            with dropping:
                supply.fill_up(chosen.randrange(burst // 2, burst))
            havoc.wreak()
    finally:
        over.set()
        trickling.join()
    with scene.watched(settle_s=0.2) as importer:
        scene.wait_for_all(supply.files, limit_s=60 + supply.files / 500)
        scene.wait_until(lambda: len(scene.workspaces()) == 1 + len(importer.children))
    found = supply.check()
    say(f"{found.files} files, killed {dict(havoc.kills)}: nothing lost, nothing doubled")
