"""Folders that may not be used, vanish, come back, or lie on another disk."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.inbox.mounts import a_disk
from tests.support.inbox.permissions import bounded
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document

__all__ = ["bounded"]  # a fixture

MEGABYTE = 1024 * 1024


@pytest.fixture
def two(scene: Scene) -> Iterator[Scene]:
    """A scene with the accounts ana and bo, whose modes are put right in the end."""
    scene.account("ana")
    scene.account("bo")
    yield scene
    for path in [scene.root, *scene.root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)


@pytest.mark.slow
def test_a_file_that_may_not_be_read_fails_by_name_once_that_has_lasted(
    two: Scene, bounded: list[str]
) -> None:
    path = two.drop("ana/locked.json", a_document("locked"))
    path.chmod(0)
    with two.watched(settle_s=0.1, before=bounded):
        two.drop("ana/open.json", a_document("open"))
        two.wait_for(ended=2)
    assert two.check(files=2, resumes={"ana": ["open"], "bo": []}).failed == 1
    (failed,) = (two.root / "_failed" / "unreadable").glob("*[0-9a-f].json")
    failed.chmod(0o644)
    failed.rename(two.root / "ana" / "unlocked.json")
    two.drain()
    assert "locked" in two.names("ana")


@pytest.mark.slow
def test_a_file_that_becomes_readable_in_time_is_imported(two: Scene, bounded: list[str]) -> None:
    path = two.drop("ana/cv.json", a_document("slow rights"))
    path.chmod(0)
    with two.watched(settle_s=0.5, before=bounded):
        two.drop("ana/open.json", a_document("open"))
        two.wait_for(ended=1)
        path.chmod(0o644)
        two.wait_for(ended=2)
    assert two.check(files=2, resumes={"ana": ["open", "slow rights"], "bo": []}).done == 2


@pytest.mark.slow
def test_a_file_of_another_user_is_imported(two: Scene, bounded: list[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    for number in range(3):
        os.chown(two.drop(f"ana/{number}.json", a_document(f"foreign {number}")), 65_534, 65_534)
    with two.watched(settle_s=0.5, before=bounded):
        two.wait_for(ended=3)
    names = [f"foreign {number}" for number in range(3)]
    assert two.check(files=3, resumes={"ana": names, "bo": []}).done == 3


@pytest.mark.slow
def test_an_inbox_that_may_not_be_changed_keeps_its_files_and_is_told_of_once(
    two: Scene, bounded: list[str]
) -> None:
    two.drop("ana/1.json", a_document("one"))
    two.drop("ana/2.json", a_document("two"))
    (two.root / "ana").chmod(0o555)
    with two.watched(settle_s=0.2, before=bounded) as importer:
        two.drop("bo/cv.json", a_document("bo"))
        two.wait_for(ended=1)
        two.wait_until(lambda: "Cannot pick up" in importer.log)
        assert importer.log.count("Cannot pick up") == 1
        assert two.names("ana") == []
        (two.root / "ana").chmod(0o755)
        two.wait_for(ended=3)
    assert two.check(files=3, resumes={"ana": ["one", "two"], "bo": ["bo"]}).done == 3


@pytest.mark.slow
def test_where_nothing_can_be_put_away_nothing_more_is_taken_and_nothing_counts_twice(
    two: Scene, bounded: list[str]
) -> None:
    done = two.root / "_done"
    done.mkdir()
    done.chmod(0o555)
    two.drop("ana/first.json", a_document("first"))
    with two.watched(settle_s=0.2, before=bounded) as importer:
        two.wait_until(lambda: "Cannot move" in importer.log)
        for number in range(20):
            two.drop(f"bo/{number}.json", a_document(f"later {number}"))
        two.wait_until(lambda: len(two.tally().left) == 21)
        assert importer.log.count("Cannot move") == 1
        assert two.names("bo") == []
        done.chmod(0o755)
        two.wait_for(ended=21)
    later = [f"later {number}" for number in range(20)]
    assert two.check(files=21, resumes={"ana": ["first"], "bo": later}).done == 21


@pytest.mark.slow
def test_a_folder_that_may_not_be_written_to_is_refused_at_the_start(
    two: Scene, bounded: list[str]
) -> None:
    two.drop("ana/cv.json", a_document("Ada"))
    two.root.chmod(0o555)
    importer = two.start("--once", before=bounded)
    assert importer.process.wait(60) == 2
    assert importer.log.count("Cannot write to") == 1
    assert "Traceback" not in importer.log
    two.root.chmod(0o755)
    two.check(files=1, left=["ana/cv.json"], resumes={"ana": [], "bo": []})


def remove(root: Path) -> None:
    shutil.rmtree(root)


def move_away(root: Path) -> None:
    root.rename(root.with_name("moved away"))


def findings(scene: Scene) -> list[str]:
    """What `resumes doctor` says is wrong."""
    done = programs.run(scene.home, "doctor", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["ok"] else 1)
    return [f"{one['text']}. {one['remedy']}" for one in report["findings"] if one["remedy"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vanish", "is_made_at_once"),
    [(remove, True), (move_away, True), (remove, False)],
    ids=["removed", "moved away", "removed for a while"],
)
def test_a_watched_folder_that_vanished_and_is_made_again_needs_no_restart(
    two: Scene, vanish: Callable[[Path], None], is_made_at_once: bool
) -> None:
    with two.watched(settle_s=0.3) as importer:
        two.drop("ana/1.json", a_document("before"))
        two.wait_for(ended=1)
        vanish(two.root)
        if not is_made_at_once:
            two.wait_until(lambda: any(one.startswith("degraded") for one in two.health()))
        (two.root / "ana").mkdir(parents=True)
        two.drop("ana/2.json", a_document("after"))
        two.wait_for(ended=1)
        two.wait_until(lambda: two.health() == [])
        two.drop("ana/3.json", a_document("still"))
        two.wait_for(ended=2)
        assert importer.is_running
    two.check_resumes({"ana": ["before", "after", "still"], "bo": []})
    found = two.tally()
    assert (found.done, found.left) == (2, frozenset())
    assert two.slots() == []


@pytest.mark.slow
def test_doctor_says_that_the_watched_folder_is_gone_and_later_that_all_is_well(
    two: Scene,
) -> None:
    with two.watched(settle_s=0.3):
        two.root.rename(two.root.with_name("moved away"))
        two.wait_until(lambda: any(one.startswith("degraded") for one in two.health()))
        assert any(str(two.root) in one for one in findings(two))
        two.root.with_name("moved away").rename(two.root)
        two.wait_until(lambda: two.health() == [])
        assert findings(two) == []


@pytest.mark.slow
def test_an_account_folder_that_vanished_and_is_made_again_is_watched_again(two: Scene) -> None:
    with two.watched(settle_s=0.3):
        for number in range(3):
            shutil.rmtree(two.root / "ana")
            two.drop(f"ana/{number}.json", a_document(f"number {number}"))
            two.wait_for(ended=number + 1)
    names = [f"number {number}" for number in range(3)]
    assert two.check(files=3, resumes={"ana": names, "bo": []}).done == 3


@pytest.mark.slow
def test_a_watched_folder_that_is_unmounted_and_mounted_again_is_taken_up_again(
    tmp_path: Path,
) -> None:
    root = tmp_path / "disk"
    with a_disk(root, 8 * MEGABYTE) as disk:
        scene = Scene(tmp_path / "home", disk.seen(root))
        scene.account("ana")
        with scene.watched(settle_s=0.3, before=disk.enter, root=root) as importer:
            scene.drop("ana/1.json", a_document("on the first"))
            scene.wait_for(ended=1)
            disk.unmount()
            scene.wait_until(lambda: not (scene.root / "_done").exists())
            scene.drop("ana/0.json", a_document("below"))
            scene.wait_for(ended=1)
            disk.mount()
            scene.drop("ana/2.json", a_document("on the second"))
            scene.wait_for(ended=1)
            scene.drop("ana/3.json", a_document("still"))
            scene.wait_for(ended=2)
            scene.wait_until(lambda: scene.health() == [])
            assert importer.is_running
        scene.check_resumes({"ana": ["on the first", "below", "on the second", "still"]})
        assert scene.tally().done == 2
        assert scene.slots() == []


@pytest.mark.slow
def test_from_an_account_folder_on_another_disk_files_are_copied_away(tmp_path: Path) -> None:
    root = tmp_path / "home" / "inbox"
    with a_disk(root / "ana", 8 * MEGABYTE) as disk:
        scene = Scene(tmp_path / "home", disk.seen(root))
        scene.account("ana")
        scene.account("bo")
        with scene.watched(settle_s=0.3, before=disk.enter, root=root):
            for number in range(5):
                scene.drop(f"ana/{number}.json", a_document(f"far {number}"))
            scene.drop("ana/bad.json", b"nonsense")
            scene.drop("bo/cv.json", a_document("near"))
            scene.wait_for(ended=7)
            assert scene.health() == []
        far = [f"far {number}" for number in range(5)]
        assert scene.check(files=7, resumes={"ana": far, "bo": ["near"]}).failed == 1
