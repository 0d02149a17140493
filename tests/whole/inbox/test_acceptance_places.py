"""Full accounts, full disks, and folders that vanish, come back or lie on another disk."""

import os
import random
import shutil
from pathlib import Path

import pytest

from resumes.store import accounts, stored_resumes
from tests.support.inbox.mounts import a_disk
from tests.support.inbox.scenes import Scene
from tests.support.inbox.slow_writers import pause
from tests.support.resumes import a_document

pytestmark = pytest.mark.slow

OFFERED = 250
STEPS = 60
MEGABYTE = 1024 * 1024


def offer(scene: Scene, count: int, account: str = "ana") -> list[str]:
    """So many files for ana, one after the other; the names on their resumes, in that order."""
    names = [f"number {number:03}" for number in range(count)]
    for number, name in enumerate(names):
        path = scene.drop(f"{account}/{(number * 37) % count}.json", a_document(name))
        os.utime(path, ns=(0, 10**18 + number))
    return names


def free_places(scene: Scene, account: str, count: int) -> list[str]:
    """The names of the account's oldest resumes, which are deleted."""
    with scene.store() as store:
        account_id = accounts.get_account(store, account).id
        oldest = stored_resumes.list_page(store, account_id, limit=count).entries
        for entry in oldest:
            stored_resumes.delete_resume(store, account_id, entry.id)
    return [entry.name or "" for entry in oldest]


def test_held_files_keep_their_order_over_deletions_plan_changes_and_a_kill(scene: Scene) -> None:
    """Of three accounts, while an importer is killed and another goes on."""
    chance = random.Random(18)
    most = {"ana": 3, "bo": 10, "cy": 40}
    for account, limit in most.items():
        scene.account(account, most=limit)
    names = {account: offer(scene, OFFERED, account) for account in most}
    gone: dict[str, list[str]] = {account: [] for account in most}
    with scene.watched(settle_s=0.3) as victim, scene.watched(settle_s=0.3):
        for step in range(STEPS):
            account = chance.choice([*most])
            if chance.random() < 0.5:
                gone[account] += free_places(scene, account, chance.randrange(1, 4))
            else:
                most[account] = max(1, most[account] + chance.randrange(-3, 9))
                scene.limit(account, most[account])
            if step == STEPS // 2:
                victim.kill()
            pause(chance.random() / 5)
        for account in most:
            scene.limit(account, None)
        scene.wait_until(lambda: scene.tally().done == 3 * OFFERED)
    for account, offered in names.items():
        assert gone[account] + scene.names(account) == offered
    kept = {account: scene.names(account) for account in most}
    assert scene.check(files=3 * OFFERED, resumes=kept).held == 0


def test_a_full_disk_below_the_store_delays_and_fails_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "inbox")
    scene.account("ana")
    home = tmp_path / "disk"
    with a_disk(home, 8 * MEGABYTE) as disk:
        # SQLite sees through the path by which we reach the disk: so a store is copied.
        inside = disk.seen(home) / "resumes.db"
        shutil.copy(scene.home / "resumes.db", inside)
        with scene.watched(settle_s=0.3, before=disk.enter, home=home) as importer:
            scene.drop("ana/before.json", a_document("before"))
            scene.wait_for(ended=1)
            with disk.full():
                for number in range(200):
                    scene.drop(f"ana/{number}.json", a_document(f"{number}", filler="x" * 9_000))
                scene.wait_until(lambda: "No new files will be imported" in importer.log)
            scene.wait_for(ended=201)
        shutil.copy(inside, scene.home / "resumes.db")
        names = ["before", *map(str, range(200))]
        assert scene.check(files=201, resumes={"ana": names}).done == 201


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


def test_i9_from_an_account_folder_on_another_disk_files_are_copied_away(tmp_path: Path) -> None:
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
