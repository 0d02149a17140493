"""Full accounts, stores that are locked, and full disks."""

import os
import random
import shutil
import sys
import threading
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from resumes.store import accounts, stored_resumes
from tests.support.inbox.mounts import a_disk
from tests.support.inbox.scenes import Scene
from tests.support.inbox.slow_writers import pause
from tests.support.resumes import a_document

pytestmark = pytest.mark.slow

OFFERED = 250
STEPS = 60


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


LOCKING = """
import sys
from resumes.store.sqlite.driver import dbapi
connection = dbapi.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print(flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


@pytest.mark.parametrize("locked_s", [1.0, pytest.param(30.0, marks=pytest.mark.campaign)])
def test_while_the_store_is_locked_files_wait_and_then_all_are_imported(
    scene: Scene, locked_s: float
) -> None:
    scene.account("ana")
    with scene.watched(settle_s=0.3) as importer:
        locker = [sys.executable, "-c", LOCKING, str(scene.home / "resumes.db")]
        with Popen(locker, stdin=PIPE, stdout=PIPE) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline()
            for number in range(300):
                scene.drop(f"ana/{number}.json", a_document(f"number {number}"))
            scene.drop("ana/bad.json", b"no JSON")
            threading.Event().wait(locked_s)
            assert scene.tally().ended == 0
            other.stdin.close()
        scene.wait_for(ended=301, limit_s=60)
        assert importer.is_running
    names = [f"number {number}" for number in range(300)]
    found = scene.check(files=301, resumes={"ana": names})
    assert (found.done, found.failed) == (300, 1)


def test_a_full_disk_below_the_store_delays_and_fails_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "inbox")
    scene.account("ana")
    home = tmp_path / "disk"
    with a_disk(home, 8 * 1024 * 1024) as disk:
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


def test_a_full_disk_below_the_folder_delays_what_needs_a_report_and_counts_nothing_twice(
    tmp_path: Path,
) -> None:
    root = tmp_path / "disk"
    with a_disk(root, 8 * 1024 * 1024) as disk:
        scene = Scene(tmp_path / "home", disk.seen(root))
        scene.account("ana")
        body = a_document("twice")
        with scene.watched(settle_s=0.3, before=disk.enter, root=root) as importer:
            scene.drop("ana/first.json", body)
            scene.wait_for(ended=1)
            for number in range(20):
                scene.drop(f".new/{number}.json", a_document(f"{number}", nickname="warned"))
            scene.drop(".new/again.json", body)
            with disk.full():
                for path in (scene.root / ".new").iterdir():
                    path.rename(scene.root / "ana" / path.name)
                scene.wait_until(
                    lambda: importer.log.count("annot") > 0 or "No space" in importer.log
                )
            scene.wait_for(ended=22)
        (scene.root / ".new").rmdir()
        names = ["twice", *map(str, range(20))]
        found = scene.check(files=22, resumes={"ana": names})
        assert (found.done, found.duplicate) == (21, 1)
