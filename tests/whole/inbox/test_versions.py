"""Files that are written, replaced and moved while importers read them, and are killed."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.inbox.havoc import SEED, Havoc
from tests.support.inbox.scenes import Scene
from tests.support.inbox.writers import Writers, all_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kills", [5, pytest.param(500, marks=pytest.mark.campaign(minutes=13))])
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
