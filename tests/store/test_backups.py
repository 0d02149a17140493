"""Backups of one moment, and restoring them: to an empty place, or over a store, which is kept."""

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from resumes.clock import timestamp
from resumes.errors import (
    Conflict,
    InvalidArgument,
    InvalidKey,
    ResumesError,
    StoreIncompatible,
    StoreUnavailable,
)
from resumes.store import Store, accounts, api_keys, import_requests, importers, open_store
from resumes.store.creation import Created, create
from resumes.store.import_ledger import MAX_SOURCE_BYTES
from resumes.store.row_bounds import iter_checked
from resumes.store.sqlite import files
from resumes.store.sqlite.driver import dbapi
from resumes.store.sqlite.store import sqlite_engine
from resumes.store.store import close_store, reopen_store
from resumes.store.transfer import backups, copies
from resumes.store.transfer.copies import CopyProgress, Stage
from tests.store.conftest import SteppingClock
from tests.support.resumes import a_resume
from tests.support.store.builders import (
    count_rows,
    damage,
    fill_store,
    find_flaws,
    held_by,
    ids_of,
    names_in,
    path_of,
    refused_for_want_of_room,
    run_python,
)

pytestmark = pytest.mark.engines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for backups."""
    made = tmp_path / "backups"
    made.mkdir()
    return made


def test_a_backup_is_one_private_file_that_opens(store: Store, folder: Path) -> None:
    fill_store(store)
    told: list[CopyProgress] = []

    made = backups.back_up(store, folder / "today.db", on_progress=told.append)

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
        assert accounts.list_wrong(copy) == []
        assert usage.resume_count >= 20
        assert set(before[:20]) <= ids


def test_backups_in_a_folder_are_named_by_the_time_and_the_oldest_go_when_a_new_one_is_on_the_disk(
    store: Store, folder: Path, clock: SteppingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is no backup but is called so, and one of a time to come, which may be of any age, are
    # neither counted nor removed.
    (folder / "resumes-mine.db").touch()
    (folder / "resumes-2020-01-01T00-00-00.000Z.db").touch()
    (folder / "resumes-2020-01-02T00-00-00.000Z.db").mkdir()
    (folder / "resumes-2020-01-03T00-00-00.000Z.db").symlink_to("/etc/hostname")
    backups.back_up(store, folder, clock=lambda: clock() + 10**15)
    others = names_in(folder)
    first = backups.back_up(store, folder, clock=clock)
    clock.advance(1.5)
    second = backups.back_up(store, folder, keep=2, clock=clock)
    clock.advance(1.5)
    assert second.removed == []
    synced: list[tuple[str, int]] = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        fsync(descriptor)
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        synced.append((name, len(names_in(folder)) - len(others)))

    monkeypatch.setattr(os, "fsync", record)
    third = backups.back_up(store, folder, keep=2, clock=clock)

    assert third.removed == [first.path]
    # With its scratch folder; when its name is on the disk too, the oldest is still there.
    assert synced == [("resumes.db", 3), (folder.name, 3 + 1)]
    assert [second.path.name, third.path.name] == [
        "resumes-2027-01-15T08-00-01.500Z.db",
        "resumes-2027-01-15T08-00-03.000Z.db",
    ]
    assert names_in(folder) == sorted([*others, second.path.name, third.path.name])


def test_an_older_backup_goes_with_what_reading_it_has_left_or_is_named_if_it_cannot(
    store: Store, folder: Path, clock: SteppingClock
) -> None:
    first = backups.back_up(store, folder, clock=clock)
    with open_store(f"sqlite:///{first.path}", upgrade=False) as opened:
        accounts.list_accounts(opened)
    assert names_in(folder) == [f"{first.path.name}{end}" for end in ("", ".lock", ".writer")]
    left = [path.stat() for path in folder.iterdir() if path != first.path]
    assert {(one.st_size, one.st_mode & 0o777) for one in left} == {(0, 0o600)}
    clock.advance(1)
    second = backups.back_up(store, folder, keep=1, clock=clock)
    assert names_in(folder) == [second.path.name]

    lock = second.path.with_name(f"{second.path.name}.lock")
    lock.mkdir()
    clock.advance(1)
    with pytest.raises(Conflict, match=r"02\.000Z\.db was made and verified, but .*01\.000Z\.db"):
        backups.back_up(store, folder, keep=1, clock=clock)
    lock.rmdir()


@pytest.mark.slow
def test_nothing_is_left_of_a_backup_that_failed(store: Store, folder: Path) -> None:
    fill_store(store)
    first = backups.back_up(store, folder, clock=lambda: 1)
    damage(store, "DELETE FROM accounts WHERE name = 'ana'")
    with pytest.raises(ResumesError):
        backups.back_up(store, folder, keep=1)
    assert names_in(folder) == [first.path.name]


# The signal may come while pathlib opens a folder, which Python then closes.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <posix.ScandirIterator")
@pytest.mark.sqlite("its driver, which drops what its callbacks raise")
def test_what_ends_a_backup_from_outside_is_raised_as_it_is(store: Store, folder: Path) -> None:
    fill_store(store, resumes=500)
    is_begun = threading.Event()

    def interrupt() -> None:
        is_begun.wait(60)
        # While the driver works, which holds no lock of Python.
        os.kill(os.getpid(), signal.SIGUSR1)

    def fail(progress: CopyProgress) -> None:
        raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="the terminal is gone"):
        backups.back_up(store, folder, on_progress=fail)
    assert names_in(folder) == []

    def back_up() -> None:
        backups.back_up(store, folder, on_progress=lambda _: is_begun.set())
        sender.join()

    sender = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            back_up()
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


KILLED = """
    import os, sys
    from pathlib import Path
    from resumes.store import open_store
    from resumes.store.transfer.backups import back_up

    def die_before_it_has_its_name(event, _):
        if event == "os.link":
            os.kill(os.getpid(), 9)

    with open_store(sys.argv[1]) as store:
        sys.addaudithook(die_before_it_has_its_name)
        back_up(store, Path(sys.argv[2]))
"""


def test_what_a_killed_backup_left_is_removed_by_the_next_and_what_others_have_there_stays(
    store: Store, url: str, folder: Path
) -> None:
    (folder / ".resumes-a.scratch").symlink_to(folder.parent)
    (folder / ".resumes-b.scratch").touch()
    (folder / "resumes-c.scratch").mkdir()
    before = names_in(folder)
    assert run_python(KILLED, url, str(folder)).returncode == -signal.SIGKILL
    assert len(names_in(folder)) == 4

    with files.scratch_in(folder) as other:  # of a backup that is under way
        assert other.stat().st_mode & 0o777 == 0o700
        (other / "half").touch()
        made = backups.back_up(store, folder)
        assert (other / "half").exists()

    assert names_in(folder) == sorted([*before, made.path.name])


def test_where_a_backup_cannot_go_is_said(source: Store, tmp_path: Path, folder: Path) -> None:
    taken = tmp_path / "taken.db"
    taken.write_text("mine")
    with pytest.raises(Conflict, match="already exists"):
        backups.back_up(source, taken)
    assert taken.read_text() == "mine"
    for path, keep, why in (
        (tmp_path / "nowhere" / "backup.db", None, "Folder not found"),
        (Path("/proc/backup.db"), None, r"Cannot write to /proc: .*Choose another folder"),
        (tmp_path / "backup.db", 3, "not a folder"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            backups.back_up(source, path, keep=keep)
    with refused_for_want_of_room():
        backups.back_up(source, folder)
    assert names_in(folder) == []


@pytest.fixture
def backup(source: Store, tmp_path: Path) -> Path:
    """A backup of the source."""
    return backups.back_up(source, tmp_path / "backup.db").path


def test_a_backup_restored_to_an_empty_place_holds_the_same(
    source: Store, place: str, tmp_path: Path
) -> None:
    assert importers.list_importers(source)
    assert import_requests.list_requests(source)
    revoked_later = api_keys.create_key(source, "ana")
    held = held_by(source)
    close_store(source, "sqlite:////there.db", "0123")  # it is being moved
    backup = backups.back_up(source, tmp_path / "backup.db").path
    reopen_store(source)
    api_keys.revoke_key(source, revoked_later.id)
    created_later = api_keys.create_key(source, "ana")

    restored = backups.restore(backup, place)

    assert (restored.kept, restored.resumes) == (None, 18)
    with open_store(place, upgrade=False) as store:
        changed = {
            ours.name for ours, theirs in zip(held, held_by(store), strict=True) if ours != theirs
        }
        # Whose last ids were lifted; and nobody is asked for files of another store's folders.
        assert changed == {"account_usage", "import_requests"}
        assert [count_rows(store, name) for name in ("importers", "import_requests")] == [0, 0]
        assert ids_of(store, "ana") == ids_of(source, "ana")
        # Keys are again what they were, and it takes writes.
        assert api_keys.authenticate(store, revoked_later.secret).key_id == revoked_later.id
        with pytest.raises(InvalidKey):
            api_keys.authenticate(store, created_later.secret)
        accounts.create_account(store, "new")


def test_s4_ids_go_on_above_all_that_were_ever_given_and_above_the_clock(
    backup: Path, source: Store, clock: SteppingClock
) -> None:
    account = accounts.get_account(source, "ana")
    source.close()
    with open_store(source.url, clock=clock) as replaced:
        (given,) = create(replaced, account.id, [a_resume("Gone")])
    assert isinstance(given, Created)
    clock.advance(-86_400)  # the machine's clock was set back

    backups.restore(backup, source.url, clock=clock)

    with open_store(source.url, clock=clock) as store:
        assert given.id not in ids_of(store, "ana")
        (next_one,) = create(store, account.id, [a_resume("Next")])
        assert isinstance(next_one, Created)
        assert next_one.id > given.id

    later_us = 4_000_000_000_000_000
    backups.restore(backup, source.url, clock=lambda: later_us)
    with open_store(source.url) as store:
        ana = accounts.get_account(store, "ana")
        assert ana.last_id_us == later_us
        assert ana.last_resume_at is not None
        assert ana.last_resume_at < timestamp(later_us)


def test_s22_a_journal_that_was_left_there_is_not_taken_for_that_of_the_new_store(
    backup: Path, tmp_path: Path
) -> None:
    other = dbapi.connect(tmp_path / "other.db", isolation_level=None)
    with contextlib.closing(other):
        other.execute("CREATE TABLE t AS SELECT randomblob(200000) AS x")
        other.execute("PRAGMA cache_size = 1")
        other.execute("BEGIN")
        other.execute("UPDATE t SET x = randomblob(400000)")
        # As if its process was killed now.
        shutil.copy(tmp_path / "other.db-journal", tmp_path / "new.db-journal")

    backups.restore(backup, f"sqlite:///{tmp_path / 'new.db'}")

    with open_store(f"sqlite:///{tmp_path / 'new.db'}") as store:
        assert [one.name for one in accounts.list_accounts(store)] == ["ana", "bob"]


def test_s4_a_store_in_use_is_not_replaced_and_its_process_is_named_whatever_links_lead_to_it(
    backup: Path, source: Store, tmp_path: Path
) -> None:
    before = held_by(source)
    linked = tmp_path / "linked" / "resumes.db"
    linked.parent.mkdir()
    linked.symlink_to(path_of(source))
    for url in (source.url, f"sqlite:///{linked}"):
        with pytest.raises(StoreUnavailable, match=r"source\.db is in use \(process (\d+|unknown)"):
            backups.restore(backup, url)
    assert held_by(source) == before


def test_the_store_that_was_there_is_kept_whole_also_when_a_link_leads_to_it(
    backup: Path, source: Store, tmp_path: Path, clock: SteppingClock
) -> None:
    accounts.create_account(source, "late")
    held = held_by(source)
    source.close()
    linked = tmp_path / "linked.db"
    linked.symlink_to(path_of(source))

    restored = backups.restore(backup, f"sqlite:///{linked}", clock=clock)

    assert restored.kept == tmp_path / "source.db.before-restore-2027-01-15T08-00-00.000Z"
    assert restored.kept.stat().st_mode & 0o777 == 0o600
    with open_store(f"sqlite:///{restored.kept}", upgrade=False) as kept:
        assert held_by(kept) == held
    with open_store(source.url) as store:
        assert [one.name for one in accounts.list_accounts(store)] == ["ana", "bob"]
    assert linked.is_symlink()
    assert not [name for name in names_in(tmp_path) if name.startswith(".")]


def test_a_store_that_is_damaged_is_replaced_all_the_same(backup: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    path.write_bytes(b"this was a store once " * 1_000)
    path.with_name("damaged.db-wal").write_bytes(b"and this its log")

    restored = backups.restore(backup, f"sqlite:///{path}")

    assert not restored.is_kept_readable
    assert restored.kept is not None
    assert restored.kept.with_name(restored.kept.name + "-wal").read_bytes() == b"and this its log"
    with open_store(f"sqlite:///{path}") as store:
        assert len(ids_of(store, "ana")) == 9


def newer(backup: Path) -> None:
    engine = sqlite_engine(backup, transactions=False)
    with engine.connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()


def damaged(backup: Path) -> None:
    content = bytearray(backup.read_bytes())
    content[8192:12288] = bytes(4096)
    backup.write_bytes(content)


def another_file(backup: Path) -> None:
    backup.write_bytes(b"something else" * 1_000)


def a_folder(backup: Path) -> None:
    backup.unlink()
    backup.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "error", "why"),
    [
        (newer, StoreIncompatible, "newer version"),
        (damaged, StoreIncompatible, "damaged"),
        (another_file, StoreIncompatible, r"backup\.db"),
        (Path.unlink, InvalidArgument, "Backup not found"),
        (a_folder, InvalidArgument, r"backup\.db is a folder: choose one file$"),
    ],
)
def test_what_is_no_backup_is_refused_leaves_nothing_and_the_store_stays(
    backup: Path,
    store: Store,
    tmp_path: Path,
    harm: Callable[[Path], None],
    error: type[ResumesError],
    why: str,
) -> None:
    accounts.create_account(store, "mine")
    url = store.url
    store.close()
    home = tmp_path / "home"
    home.mkdir()
    harm(backup)
    for target in (url, f"sqlite:///{home / 'new.db'}"):
        with pytest.raises(error, match=why):
            backups.restore(backup, target)
    assert names_in(home) == []
    with open_store(url, upgrade=False) as same:
        assert [one.name for one in accounts.list_accounts(same)] == ["mine"]


def test_a_store_is_no_backup_while_it_is_in_use_nor_of_itself(
    source: Store, tmp_path: Path
) -> None:
    path, place = path_of(source), f"sqlite:///{tmp_path / 'new.db'}"
    with pytest.raises(StoreIncompatible, match="store in use"):
        backups.restore(path, place)
    source.close()
    with pytest.raises(InvalidArgument, match="the store itself"):
        backups.restore(path, source.url)
    with pytest.raises(InvalidArgument, match=r"Cannot read|Backup not found"):
        backups.restore(tmp_path / ("x" * 300), place)


KILLED_RESTORE = """
    import os, sys
    from pathlib import Path
    from resumes.store.transfer.backups import restore

    def die(progress):
        if progress.stage == "proving":
            os.kill(os.getpid(), 9)

    restore(Path(sys.argv[1]), sys.argv[2], on_progress=die)
"""


def test_a_database_is_restored_whole_or_not_at_all(backup: Path, store: Store, url: str) -> None:
    if store.path is not None:
        pytest.skip("a file is put in place at once")
    before = held_by(store)

    def fail(progress: CopyProgress) -> None:
        if progress.stage is Stage.PROVING:
            raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="the terminal is gone"):
        backups.restore(backup, url, on_progress=fail)

    assert held_by(store) == before
    assert run_python(KILLED_RESTORE, str(backup), url).returncode == -signal.SIGKILL
    assert held_by(store) == before
    assert backups.restore(backup, url).resumes == count_rows(store, "resumes") > 0
    with pytest.raises(Conflict, match=r'already has account "(ana|bob)"'):
        backups.restore(backup, url)
    accounts.create_account(store, "still")


# Rows of strangers

LONG = "x" * 70_000

FOREIGN = {
    "a long name of a file": ("imported_files", "name", LONG),
    "a long source": ("imported_files", "source", b"x" * (MAX_SOURCE_BYTES + 1)),
    "an ID": ("imported_items", "resume_id", "../../etc/passwd"),
    "a file name": ("resumes", "filename", "../a.pdf"),
    "a time": ("resumes", "created_at", "yesterday"),
    "an account's name": ("accounts", "name", "Ana!"),
    "a last ID from the year 6537": ("account_usage", "last_id_us", 2**57),
    "a plan": ("plans", "max_resumes", -1),
    "a plan that keeps nothing": ("plans", "keep_days", 0),
    "an Idempotency-Key's hash": ("idempotency", "body_sha256", b"x"),
}
"""Of each kind of value, and of the tables that no account file has; for the others see
test_account_files.py."""


@pytest.mark.slow
@pytest.mark.sqlite("backups are files of it")
@pytest.mark.parametrize("what", FOREIGN)
def test_what_this_service_cannot_have_written_is_neither_restored_nor_copied(
    source: Store, tmp_path: Path, what: str
) -> None:
    table, column, value = FOREIGN[what]
    which = " WHERE name = 'ana'" if table == "accounts" else ""
    damage(source, f"UPDATE {table} SET {column} = :value{which}", value=value)
    path = backups.back_up(source, tmp_path / "backup.db").path
    place = f"sqlite:///{tmp_path / 'place.db'}"
    with pytest.raises(StoreIncompatible, match=f'backup.db has a row .*"{column}" in {table} '):
        backups.restore(path, place)
    with pytest.raises(StoreIncompatible, match=f'source.db has a row .*"{column}" in {table} '):
        copies.copy(source, place)
    assert not (tmp_path / "place.db").exists()
    accounts.set_plan(source, "bob", "free")  # it takes writes again


@pytest.mark.slow
@pytest.mark.sqlite("backups are files of it")
@pytest.mark.parametrize("document", ["", "{}", '{"header":{"email":5}}'])
def test_a_damaged_document_goes_along_and_the_check_names_it(
    source: Store, tmp_path: Path, document: str
) -> None:
    which = "(SELECT min(id) FROM documents)"
    damage(source, f"UPDATE documents SET document = :value WHERE id = {which}", value=document)
    flaws = find_flaws(source)
    path = backups.back_up(source, tmp_path / "backup.db").path
    restored = f"sqlite:///{tmp_path / 'restored.db'}"
    backups.restore(path, restored)
    copied = f"sqlite:///{tmp_path / 'copied.db'}"
    copies.copy(source, copied)
    for url in (restored, copied):
        with open_store(url) as store:
            assert find_flaws(store) == flaws != []


@pytest.mark.sqlite("backups are files of it")
def test_what_this_service_has_written_with_a_wrong_clock_is_restored(tmp_path: Path) -> None:
    ahead = SteppingClock()
    ahead.advance(20 * 366 * 86_400)
    with open_store(f"sqlite:///{tmp_path / 'resumes.db'}", clock=ahead) as store:
        fill_store(store)
        held = held_by(store)
        path = backups.back_up(store, tmp_path / "backup.db").path
    backups.restore(path, f"sqlite:///{tmp_path / 'place.db'}")
    with open_store(f"sqlite:///{tmp_path / 'place.db'}") as store:
        assert [one.rows for one in held_by(store)] == [
            0 if one.name == "import_requests" else one.rows for one in held
        ]


def test_each_column_that_is_moved_has_a_bound() -> None:
    for table in copies.TABLES:
        assert list(iter_checked(table, [], "a store")) == []
