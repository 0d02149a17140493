"""Backups: of one moment while others write, private, verified, and the oldest go."""

import signal
import threading
from pathlib import Path

import pytest

from resumes.errors import Conflict, InvalidArgument, ResumesError
from resumes.store import Store, accounts, counters, open_store
from resumes.store.creating import Created, create
from resumes.store.moving import backups, filling
from resumes.store.moving.marking import Move
from resumes.store.moving.transferring import Progress
from resumes.store.sqlite import files
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import damage, fill_store, held_by, ids_of, names_in, run_python
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for backups."""
    made = tmp_path / "backups"
    made.mkdir()
    return made


def test_a_backup_is_one_private_file_that_opens(store: Store, folder: Path) -> None:
    fill_store(store)
    told: list[Progress] = []

    made = backups.back_up(store, folder / "today.db", watcher=told.append)

    assert names_in(folder) == ["today.db"]
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert made.size_bytes == made.path.stat().st_size
    with open_store(f"sqlite:///{made.path}", upgrade=False) as copy:
        assert held_by(copy) == held_by(store)
    accounts.create_account(store, "late")  # the store goes on


def test_s11_a_backup_ends_while_others_write_and_has_all_from_before(
    store: Store, tmp_path: Path
) -> None:
    fill_store(store)
    account = accounts.get_account(store, "ana")
    stored: list[str] = []
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            (outcome,) = create(store, account.id, [a_resume()])
            assert isinstance(outcome, Created)
            stored.append(outcome.id)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(stored) < 20:
            assert writer.is_alive()
            over.wait(0.001)
        before = list(stored)
        made = backups.back_up(store, tmp_path / "backup.db")
    finally:
        over.set()
        writer.join(60)
    assert len(stored) > len(before)

    with open_store(f"sqlite:///{made.path}") as copy:
        (usage,) = [one for one in accounts.list_accounts(copy) if one.name == "ana"]
        ids = set(ids_of(copy, "ana"))
        assert counters.list_wrong(copy) == []
        assert usage.resume_count >= 20
        assert set(before[:20]) <= ids


def test_backups_in_a_folder_are_named_by_the_time_and_the_oldest_go(
    store: Store, folder: Path, clock: SteppingClock
) -> None:
    (folder / "resumes-mine.db").touch()
    for _ in range(3):
        made = backups.back_up(store, folder, keep=2, clock=clock)
        clock.advance(1.5)

    assert names_in(folder) == [
        "resumes-2027-01-15T08-00-01.500Z.db",
        "resumes-2027-01-15T08-00-03.000Z.db",
        "resumes-mine.db",
    ]
    assert [path.name for path in made.removed] == ["resumes-2027-01-15T08-00-00.000Z.db"]


def test_a_backup_named_by_a_time_to_come_pushes_none_out(
    store: Store, folder: Path, clock: SteppingClock
) -> None:
    first = backups.back_up(store, folder, clock=clock)
    ahead = backups.back_up(store, folder, clock=lambda: clock() + 10**15)
    clock.advance(60)

    made = backups.back_up(store, folder, keep=2, clock=clock)

    assert made.removed == []
    assert sorted(folder.iterdir()) == [first.path, made.path, ahead.path]


def test_what_is_no_backup_but_is_called_so_is_neither_counted_nor_removed(
    store: Store, folder: Path, clock: SteppingClock
) -> None:
    (folder / "resumes-2020-01-01T00-00-00.000Z.db").touch()
    (folder / "resumes-2020-01-02T00-00-00.000Z.db").mkdir()
    (folder / "resumes-2020-01-03T00-00-00.000Z.db").symlink_to("/etc/hostname")
    before = names_in(folder)
    first = backups.back_up(store, folder, keep=2, clock=clock)
    clock.advance(1)

    second = backups.back_up(store, folder, keep=2, clock=clock)
    clock.advance(1)
    third = backups.back_up(store, folder, keep=1, clock=clock)

    assert (second.removed, third.removed) == ([], [first.path, second.path])
    assert names_in(folder) == [*before, third.path.name]


def test_what_reading_a_backup_in_its_place_has_left_goes_with_it(
    store: Store, folder: Path, clock: SteppingClock
) -> None:
    first = backups.back_up(store, folder, clock=clock)
    with open_store(f"sqlite:///{first.path}", upgrade=False) as opened:
        accounts.list_accounts(opened)
    assert len(names_in(folder)) > 1
    clock.advance(1)

    made = backups.back_up(store, folder, keep=1, clock=clock)

    assert names_in(folder) == [made.path.name]


def test_an_older_backup_that_cannot_be_removed_is_named_with_the_new_one(
    store: Store, folder: Path, clock: SteppingClock
) -> None:
    first = backups.back_up(store, folder, clock=clock)
    first.path.with_name(f"{first.path.name}.lock").mkdir()
    clock.advance(1)
    with pytest.raises(Conflict, match=r"01\.000Z\.db is there and verified, but .*00\.000Z\.db"):
        backups.back_up(store, folder, keep=1, clock=clock)


def test_the_newest_backup_of_a_folder_is_found(
    store: Store, folder: Path, clock: SteppingClock
) -> None:
    backups.back_up(store, folder, clock=lambda: clock() + 10**15)  # a clock that was ahead
    assert backups.find_newest(folder, clock=clock) is None
    for _ in range(2):
        made = backups.back_up(store, folder, clock=clock)
        clock.advance(1)
    (folder / "resumes-mine.db").touch()
    assert backups.find_newest(folder, clock=clock) == made.path


def test_nothing_is_left_of_a_backup_that_failed(store: Store, folder: Path) -> None:
    fill_store(store)
    first = backups.back_up(store, folder, clock=lambda: 1)
    damage(store, "DELETE FROM accounts WHERE name = 'ana'")
    with pytest.raises(ResumesError):
        backups.back_up(store, folder, keep=1)
    assert names_in(folder) == [first.path.name]


KILLED = """
    import os, sys
    from pathlib import Path
    from resumes.store import open_store
    from resumes.store.moving.backups import back_up

    def die_before_it_has_its_name(event, _):
        if event == "os.link":
            os.kill(os.getpid(), 9)

    with open_store(sys.argv[1]) as store:
        sys.addaudithook(die_before_it_has_its_name)
        back_up(store, Path(sys.argv[2]))
"""


def test_what_a_killed_backup_left_is_removed_by_the_next(
    store: Store, url: str, folder: Path
) -> None:
    assert run_python(KILLED, url, str(folder)).returncode == -signal.SIGKILL
    assert len(names_in(folder)) == 1

    made = backups.back_up(store, folder)

    assert names_in(folder) == [made.path.name]


def test_what_others_have_beside_a_backup_stays(store: Store, folder: Path) -> None:
    (folder / ".resumes-a.scratch").symlink_to(folder.parent)
    (folder / ".resumes-b.scratch").touch()
    (folder / "resumes-c.scratch").mkdir()
    before = names_in(folder)

    with files.scratch_in(folder) as other:  # of a backup that is under way
        (other / "half").touch()
        made = backups.back_up(store, folder)
        assert (other / "half").exists()

    assert names_in(folder) == sorted([*before, made.path.name])


def test_where_a_backup_cannot_go_is_said(store: Store, tmp_path: Path) -> None:
    taken = tmp_path / "taken.db"
    taken.write_text("mine")
    with pytest.raises(Conflict, match="exists already"):
        backups.back_up(store, taken)
    assert taken.read_text() == "mine"
    for path, keep, why in (
        (tmp_path / "nowhere" / "backup.db", None, "Folder not found"),
        (Path("/proc/backup.db"), None, r"Cannot write in /proc: .*Name another folder"),
        (tmp_path / "backup.db", 3, "no folder"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            backups.back_up(store, path, keep=keep)
    filling.begin(store, Move("sqlite:////here.db", store.label, "0123", "a" * 16))
    with pytest.raises(Conflict, match=r"filled from sqlite:////here\.db"):
        backups.back_up(store, tmp_path / "backup.db")
