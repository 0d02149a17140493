"""Importers that are killed at random moments while files of every kind come in."""

import os
import random
import threading
from collections import Counter
from collections.abc import Callable

from tests.support.inbox.scenes import Scene, Watch, kill
from tests.support.inbox.supply import Supply

SEED = "IMPORTER_CAMPAIGN_SEED"
"""The environment variable that has a campaign go as it went before."""


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
        # It goes on with what was left before it takes more.
        self._scene.wait_until(lambda: self._scene.is_ready(importer))
        threading.Event().wait(self._chosen.uniform(0.1, 1.5))
        assert importer.is_running, importer.log


def wreak_havoc(scene: Scene, say: Callable[[str], None], kills: int, burst: int) -> Supply:
    """Files of every kind come in all the time, and before each start there are so many that the
    importer gets helpers. Returns what came in, of which all is in its place. The seed that is said
    has the next run do the same, as far as processes can be made to: `IMPORTER_CAMPAIGN_SEED=…`
    before the command."""
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
        scene.wait_until(lambda: len(scene.slots()) == 1 + len(importer.children))
    found = supply.check()
    say(f"{found.files} files, killed {dict(havoc.kills)}: nothing lost, nothing doubled")
    return supply
