"""Files of a store that are damaged, and backups that are taken while it is written to."""

import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from resumes.errors import ResumesError
from resumes.store import account_checking, accounts, checking, creating, listing, open_store, plans
from resumes.store.plans import PlanChange
from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.resumes.builders import a_resume
from tests.server.serving import wait_until
from tests.system import programs
from tests.system.server import full_disks, load
from tests.system.server.load import Client
from tests.system.server.scenes import Scene

PAGE_BYTES = 4096
STORED = 300
EACH = 40
"""Damaged files of each kind."""
BACKUPS = 12

Damage = Callable[[Path, random.Random], None]


def flip_a_byte(path: Path, chance: random.Random) -> None:
    """One bit of one byte is another."""
    with path.open("r+b") as file:
        at = chance.randrange(path.stat().st_size)
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1 << chance.randrange(8)]))


def zero_a_page(path: Path, chance: random.Random) -> None:
    """A page holds nothing but zeros."""
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES * chance.randrange(path.stat().st_size // PAGE_BYTES))
        file.write(bytes(PAGE_BYTES))


def fill_a_page(path: Path, chance: random.Random) -> None:
    """A page holds what chance has it hold."""
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES * chance.randrange(path.stat().st_size // PAGE_BYTES))
        file.write(chance.randbytes(PAGE_BYTES))


def cut_short(path: Path, chance: random.Random) -> None:
    """The end is missing."""
    with path.open("r+b") as file:
        file.truncate(chance.randrange(1, path.stat().st_size))


def leave_garbage(path: Path, chance: random.Random) -> None:
    """A log lies beside the file that is none."""
    path.with_name(path.name + "-wal").write_bytes(chance.randbytes(chance.randrange(1, 200_000)))


def a_full_store(path: Path) -> dict[str, str]:
    """A store with resumes, closed; their names by ids."""
    with open_store(f"sqlite:///{path}") as store:
        plans.set_plan_limits(store, PlanChange("business", None))
        account_id = accounts.create_account(store, "ada", plan="business").id
        told = {}
        for number in range(STORED):
            (outcome,) = creating.create(store, account_id, [a_resume(f"number {number}")])
            assert isinstance(outcome, creating.Created)
            told[outcome.id] = f"number {number}"
    return told


def is_found(path: Path) -> bool:
    """Whether opening the store or `db check` says that it is damaged; neither fails otherwise."""
    try:
        with open_store(f"sqlite:///{path}") as store:
            return any(checking.iter_damage(store)) or any(
                checked.flaws for checked in account_checking.iter_accounts(store)
            )
    except ResumesError:
        return True


def documents(path: Path) -> list[str]:
    """What the store's resumes say, in the order of their ids."""
    with open_store(f"sqlite:///{path}") as store:
        account_id = accounts.get_account(store, "ada").id
        return [
            listing.get_resume(store, account_id, resume_id).document
            for resume_id, _ in checker.iter_stored(store)
        ]


@pytest.mark.parametrize(
    ("damage", "least_percent"),
    [(flip_a_byte, 0), (zero_a_page, 95), (fill_a_page, 95), (cut_short, 100)],
    ids=["one bit", "a page of zeros", "a page of garbage", "the end missing"],
)
@pytest.mark.chaos(
    9,
    fault="the store's file is damaged",
    promise="opening it or `resumes db check` finds what is broken in its structure, and a backup brings everything back",
)
def test_damage_is_found_and_a_backup_restores_all(
    tmp_path: Path, figures: Figures, seed: random.Random, damage: Damage, least_percent: int
) -> None:
    """In 40 copies of a store with 300 resumes a bit is flipped, a page is zeroed or filled with
    garbage, or the end is cut off, each at random; what is found is replaced by `db restore`."""
    stored = a_full_store(tmp_path / "resumes.db")
    before = documents(tmp_path / "resumes.db")
    programs.succeed(tmp_path, "db", "backup", str(tmp_path / "backup.db"))
    found = told = changed = 0
    restoring_s: list[float] = []
    for number in range(EACH):
        home = tmp_path / f"{number}"
        home.mkdir()
        path = Path(shutil.copy(tmp_path / "resumes.db", home))
        damage(path, seed)
        if not is_found(path):
            try:
                changed += documents(path) != before
            except ResumesError:
                told += 1
            continue
        found += 1
        if len(restoring_s) < 3:
            began_s = time.monotonic()
            programs.succeed(home, "db", "restore", str(tmp_path / "backup.db"))
            restoring_s.append(time.monotonic() - began_s)
            checker.check(path, stored)
    figures["damaged"] = EACH
    figures["found_percent"] = 100 * found // EACH
    figures["told_when_read"], figures["told_never_and_changed"] = told, changed
    if restoring_s:
        figures["restored"] = len(restoring_s)
        figures["restore_at_most_s"] = max(restoring_s)
    assert figures["found_percent"] >= least_percent


@pytest.mark.chaos(
    9,
    fault="a log lies beside the store that is none",
    promise="it is not read, and nothing is lost",
)
def test_a_log_of_garbage_is_not_read(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """Random bytes as `resumes.db-wal` beside 40 copies of a store with 300 resumes."""
    told = a_full_store(tmp_path / "resumes.db")
    for number in range(EACH):
        home = tmp_path / f"{number}"
        home.mkdir()
        path = Path(shutil.copy(tmp_path / "resumes.db", home))
        leave_garbage(path, seed)
        checker.check(path, told)
    figures["stores"] = EACH
    figures["lost"] = 0


def wait_for_more(writers: list[Client], enough: int) -> None:
    """So many were acknowledged in all."""
    wait_until(lambda: load.acknowledged(writers) >= enough, within_s=30)


@pytest.mark.chaos(
    35,
    fault="backups are taken while clients write",
    promise="each is the store of one moment, and can be restored",
)
def test_backups_under_load_are_each_of_one_moment(tmp_path: Path, figures: Figures) -> None:
    """`resumes db backup` twelve times while four clients create; each is restored and compared
    with what clients were told before it began, and with the order of ids."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    folder = tmp_path / "backups"
    folder.mkdir()
    taken: list[tuple[set[str], Path]] = []
    with scene.served() as server:
        writers = [
            Client(server.url, writer.make, pause_s=0.02)
            for writer in full_disks.make_writers(scene, server.url)
        ]
        with load.running(writers):
            for _ in range(BACKUPS):
                wait_for_more(writers, load.acknowledged(writers) + 50)
                before = {one.id for one in load.attempts_of(writers) if one.id}
                said = programs.succeed(scene.home, "--json", "db", "backup", str(folder))
                taken.append((before, Path(json.loads(said)["path"])))
    told = {one.id: one.title for one in load.attempts_of(writers) if one.id}
    checker.check(scene.home / "resumes.db", told)
    in_order = sorted(told.items())
    rows = 0
    for number, (before, backup) in enumerate(taken):
        home = tmp_path / f"{number}"
        home.mkdir()
        programs.succeed(home, "db", "restore", str(backup))
        with open_store(f"sqlite:///{home / 'resumes.db'}") as store:
            restored = list(checker.iter_stored(store))
            checker.check_soundness(store)
        assert restored == in_order[: len(restored)]
        assert before <= {resume_id for resume_id, _ in restored}
        rows += len(restored)
    figures["backups"] = BACKUPS
    figures["restored_resumes"] = rows
    figures["lost"] = figures["torn"] = 0
