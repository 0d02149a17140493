"""Restoring a backup: to an empty place, or over a store, which is kept."""

from pathlib import Path

import pytest
from sqlalchemy import text

from resumes.errors import Conflict, InvalidArgument, StoreIncompatible, StoreUnavailable
from resumes.store import Store, accounts, importers, open_store, requests
from resumes.store.creating import Created, create
from resumes.store.moving import backups, marking, restoring
from resumes.store.moving.marking import Move
from resumes.store.sqlite.database import sqlite_engine
from tests.resumes.builders import a_resume
from tests.resumes.store.builders import count_rows, held_by, ids_of, names_in, path_of
from tests.resumes.store.conftest import SteppingClock

pytestmark = pytest.mark.engines


@pytest.fixture
def backup(source: Store, tmp_path: Path) -> Path:
    """A backup of the source."""
    return backups.back_up(source, tmp_path / "backup.db").path


def test_a_backup_restored_to_an_empty_place_holds_the_same(
    backup: Path, source: Store, place: str
) -> None:
    assert importers.list_importers(source)
    assert requests.list_requests(source)

    restored = restoring.restore(backup, place)

    assert restored.kept is None
    assert restored.resumes == 18
    with open_store(place, upgrade=False) as store:
        changed = {
            ours.name
            for ours, theirs in zip(held_by(source), held_by(store), strict=True)
            if ours != theirs
        }
        # Whose last ids were lifted; and nobody is asked for files of another store's folders.
        assert changed == {"account_usage", "import_requests"}
        assert [count_rows(store, name) for name in ("importers", "import_requests")] == [0, 0]
        assert ids_of(store, "ana") == ids_of(source, "ana")
        accounts.create_account(store, "new")


def test_s4_ids_go_on_above_all_that_were_ever_given(
    backup: Path, source: Store, tmp_path: Path, clock: SteppingClock
) -> None:
    clock.advance(-86_400)  # the machine's clock was set back
    with open_store(f"sqlite:///{tmp_path / 'source.db'}") as replaced:
        (given,) = create(replaced, accounts.get_account(replaced, "ana").id, [a_resume("Gone")])
    assert isinstance(given, Created)
    source.close()

    url = f"sqlite:///{tmp_path / 'source.db'}"
    restoring.restore(backup, url, clock=clock)

    with open_store(url, clock=clock) as store:
        assert given.id not in ids_of(store, "ana")
        (next_one,) = create(store, accounts.get_account(store, "ana").id, [a_resume("Next")])
        assert isinstance(next_one, Created)
        assert next_one.id > given.id


def test_s4_ids_go_on_above_the_clock(backup: Path, tmp_path: Path) -> None:
    later_us = 4_000_000_000_000_000
    restoring.restore(backup, f"sqlite:///{tmp_path / 'new.db'}", clock=lambda: later_us)
    with open_store(f"sqlite:///{tmp_path / 'new.db'}") as store:
        assert accounts.get_account(store, "ana").last_id_us == later_us


def test_the_store_that_was_there_is_kept_whole(
    backup: Path, source: Store, tmp_path: Path, clock: SteppingClock
) -> None:
    accounts.create_account(source, "late")
    held = held_by(source)
    source.close()

    restored = restoring.restore(backup, source.url, clock=clock)

    assert restored.kept == tmp_path / "source.db.before-restore-2027-01-15T08-00-00.000Z"
    with open_store(f"sqlite:///{restored.kept}", upgrade=False) as kept:
        assert held_by(kept) == held
    with open_store(source.url) as store:
        assert [one.name for one in accounts.list_accounts(store)] == ["ana", "bob"]
    assert not [name for name in names_in(tmp_path) if name.startswith(".")]


def test_s4_a_store_in_use_is_not_replaced_and_its_process_is_named(
    backup: Path, source: Store
) -> None:
    before = held_by(source)
    with pytest.raises(StoreUnavailable, match=r"in use by process (\d+|unknown)"):
        restoring.restore(backup, source.url)
    assert held_by(source) == before


def test_a_store_is_one_whatever_links_lead_to_it(
    backup: Path, source: Store, tmp_path: Path
) -> None:
    linked = tmp_path / "linked" / "resumes.db"
    linked.parent.mkdir()
    linked.symlink_to(path_of(source))
    with pytest.raises(StoreUnavailable, match=r"source\.db is in use by process"):
        restoring.restore(backup, f"sqlite:///{linked}")
    accounts.create_account(source, "late")
    source.close()

    restored = restoring.restore(backup, f"sqlite:///{linked}")

    assert linked.is_symlink()
    assert restored.kept is not None
    assert restored.kept.parent == tmp_path
    for path, names in ((restored.kept, ["ana", "bob", "late"]), (linked, ["ana", "bob"])):
        with open_store(f"sqlite:///{path}", upgrade=False) as store:
            assert [one.name for one in accounts.list_accounts(store)] == names


def test_a_store_that_is_damaged_is_replaced_all_the_same(backup: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    path.write_bytes(b"this was a store once " * 1_000)
    path.with_name("damaged.db-wal").write_bytes(b"and this its log")

    restored = restoring.restore(backup, f"sqlite:///{path}")

    assert not restored.is_kept_readable
    assert restored.kept is not None
    assert restored.kept.with_name(restored.kept.name + "-wal").read_bytes() == b"and this its log"
    with open_store(f"sqlite:///{path}") as store:
        assert len(ids_of(store, "ana")) == 9


def test_what_is_no_backup_is_refused_and_the_store_stays(store: Store, tmp_path: Path) -> None:
    accounts.create_account(store, "mine")
    url = store.url
    store.close()
    wrong = tmp_path / "wrong.db"
    wrong.write_bytes(b"something else" * 1_000)
    with pytest.raises(StoreIncompatible, match=r"wrong\.db"):
        restoring.restore(wrong, url)
    with pytest.raises(InvalidArgument, match="Backup not found"):
        restoring.restore(tmp_path / "absent.db", url)
    with open_store(url, upgrade=False) as same:
        assert [one.name for one in accounts.list_accounts(same)] == ["mine"]


def test_a_backup_of_a_newer_version_is_refused(backup: Path, tmp_path: Path) -> None:
    engine = sqlite_engine(backup, transactions=False)
    with engine.connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StoreIncompatible, match="newer version"):
        restoring.restore(backup, f"sqlite:///{tmp_path / 'new.db'}")
    assert not (tmp_path / "new.db").exists()


def test_what_is_refused_leaves_nothing_in_an_empty_place(backup: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    content = bytearray(backup.read_bytes())
    content[8192:12288] = bytes(4096)
    backup.write_bytes(content)
    with pytest.raises(StoreIncompatible, match="damaged"):
        restoring.restore(backup, f"sqlite:///{home / 'new.db'}")
    assert names_in(home) == []


def test_a_backup_that_cannot_be_used_is_named_with_the_reason(
    backup: Path, tmp_path: Path
) -> None:
    place = f"sqlite:///{tmp_path / 'new.db'}"
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(InvalidArgument, match=r"folder is a folder: name one file$"):
        restoring.restore(folder, place)
    newest = backup.rename(folder / "resumes-2026-01-31T09-00-00.000Z.db")
    with pytest.raises(InvalidArgument, match=f"name one file, such as {newest}$"):
        restoring.restore(folder, place)
    with pytest.raises(InvalidArgument, match=r"Cannot read|Backup not found"):
        restoring.restore(tmp_path / ("x" * 300), place)


def test_a_place_where_no_store_can_be_is_refused(backup: Path, tmp_path: Path) -> None:
    for place, why in (
        (tmp_path / "absent" / "new.db", "Folder not found"),
        (tmp_path, "is a folder; name a file"),
        (Path("/proc/new.db"), "Cannot write in /proc: "),
    ):
        with pytest.raises(StoreUnavailable, match=why):
            restoring.restore(backup, f"sqlite:///{place}")


def test_a_store_is_no_backup_while_it_is_in_use_nor_of_itself(
    source: Store, tmp_path: Path
) -> None:
    path = path_of(source)
    with pytest.raises(StoreIncompatible, match="store in use"):
        restoring.restore(path, f"sqlite:///{tmp_path / 'new.db'}")
    source.close()
    with pytest.raises(InvalidArgument, match="the store itself"):
        restoring.restore(path, source.url)


def test_a_database_that_is_not_empty_is_refused(backup: Path, store: Store, url: str) -> None:
    if store.path is not None:
        pytest.skip("a file is replaced, and kept")
    accounts.create_account(store, "mine")
    with pytest.raises(Conflict, match='holds account "mine" already'):
        restoring.restore(backup, url)
    accounts.create_account(store, "still")


def test_what_was_being_moved_is_not_once_it_is_restored(source: Store, tmp_path: Path) -> None:
    marking.depart(source, Move(source.label, "sqlite:////there.db", "0123", "a" * 16))
    made = backups.back_up(source, tmp_path / "backup.db")
    restoring.restore(made.path, f"sqlite:///{tmp_path / 'new.db'}")
    with open_store(f"sqlite:///{tmp_path / 'new.db'}") as store:
        accounts.create_account(store, "new")
