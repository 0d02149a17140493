"""Files that are too large, or would be, and how much memory they take."""

from pathlib import Path

import pytest

from tests.support.inbox.oracle import Tally, reports_of
from tests.support.inbox.scenes import Scene
from tests.support.inbox.sizes import GIGABYTE, LIMIT, SPARSE, filled, refused
from tests.support.resumes import a_document

pytestmark = pytest.mark.slow

MEMORY_BYTES = 300 * 1024 * 1024


@pytest.fixture(scope="module")
def peak(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scene, int]:
    """A folder with all of these after an importer was through with it, and what that took."""
    scene = Scene(tmp_path_factory.mktemp("sizes"))
    scene.account("ana")
    scene.account("bo")
    with scene.watched(settle_s=0.3) as importer:
        for name, (content, _) in refused().items():
            scene.drop(f"ana/{name}", content)
        for name, size_bytes in SPARSE.items():
            with (scene.root / "ana" / name).open("wb") as file:
                file.truncate(size_bytes)
        scene.drop("ana/limit.json", filled("limit", LIMIT))
        scene.drop("bo/small.json", a_document("small"))
        scene.wait_for(ended=len(refused()) + 5, limit_s=60)
        memory = importer.most_memory_bytes
    return scene, memory


def test_what_is_too_large_is_refused_and_the_rest_is_imported(peak: tuple[Scene, int]) -> None:
    scene, _ = peak
    found = scene.check(files=len(refused()) + 5, resumes={"ana": ["limit"], "bo": ["small"]})
    assert found == Tally(2, len(refused()) + 3, 0, 0, frozenset())


def test_each_is_refused_for_its_own_reason(peak: tuple[Scene, int]) -> None:
    reports = reports_of(peak[0].root, "failed")
    reasons = {name: reason for name, (_, reason) in refused().items()}
    reasons |= dict.fromkeys(SPARSE, "too_large")
    assert {name.removeprefix("ana/"): one["reason"] for name, one in reports.items()} == reasons


def test_none_of_them_is_unpacked_or_read_into_memory_whole(peak: tuple[Scene, int]) -> None:
    assert peak[1] < MEMORY_BYTES


def test_nothing_is_written_outside_of_the_folder(peak: tuple[Scene, int]) -> None:
    assert list(peak[0].home.rglob("*evil*")) == []
    assert not Path("/etc/evil.json").exists()


@pytest.mark.timing
def test_a_file_far_over_the_limit_makes_no_other_account_wait(scene: Scene) -> None:
    scene.account("ana")
    scene.account("bo")
    with scene.watched(settle_s=0.2):
        with (scene.root / "ana" / "huge.json").open("wb") as file:
            file.truncate(4 * GIGABYTE)
        for number in range(30):
            path = scene.drop(f"bo/{number}.json")
            scene.wait_until(lambda dropped=path: not dropped.exists(), limit_s=2)  # type: ignore[misc]
        scene.wait_for(ended=31)
    names = [f"{number}.json" for number in range(30)]
    scene.check(files=31, resumes={"ana": [], "bo": names})
