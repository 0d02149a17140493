import os
from pathlib import Path

import pytest

from resumes import mounts
from resumes.errors import StoreIncompatible, StoreUnavailable
from resumes.store import accounts, open_store
from resumes.store.sqlite.driver import dbapi
from tests.resumes.builders import a_mount, mountinfo
from tests.resumes.store.moving.builders import names_in

pytestmark = pytest.mark.sqlite("its files")


def test_the_files_of_a_store_are_its_owners_alone(place: str, tmp_path: Path) -> None:
    with open_store(place) as store:
        accounts.create_account(store, "ana")
        modes = [file.stat().st_mode for file in tmp_path.glob("resumes.db*")]
    assert len(modes) == 5
    assert all(mode & 0o077 == 0 for mode in modes)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"Folder not found: .*/absent"):
        open_store(f"sqlite:///{tmp_path}/absent/resumes.db")


def test_a_missing_file_is_not_made_when_only_an_existing_store_will_do(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="Database not found"):
        open_store(f"sqlite:///{tmp_path}/resumes.db", upgrade=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is a folder"):
        open_store(f"sqlite:///{tmp_path}")


def lie_on(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mountinfo").write_text(mountinfo(a_mount(str(folder), kind)))
    monkeypatch.setattr(mounts, "MOUNTINFO", folder / "mountinfo")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "ceph", "lustre", "fuse.sshfs"])
def test_a_file_that_other_machines_can_open_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie_on(kind, tmp_path, monkeypatch)
    with pytest.raises(StoreUnavailable, match=f"lies on {kind}, a .*PostgreSQL"):
        open_store(f"sqlite:///{tmp_path}/resumes.db")
    assert [path.name for path in tmp_path.iterdir()] == ["mountinfo"]


def test_a_link_to_such_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share, home = tmp_path / "share", tmp_path / "home"
    share.mkdir()
    home.mkdir()
    (home / "resumes.db").symlink_to(share / "resumes.db")
    lie_on("nfs4", share, monkeypatch)
    with pytest.raises(StoreUnavailable, match=f"{share}/resumes.db lies on nfs4"):
        open_store(f"sqlite:///{home}/resumes.db")
    assert names_in(home) == ["resumes.db"]
    assert names_in(share) == ["mountinfo"]


def test_a_file_that_is_a_mount_of_its_own_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mountinfo").write_text(mountinfo(a_mount(f"{tmp_path}/resumes.db", "nfs4")))
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")
    (tmp_path / "resumes.db").touch()
    with pytest.raises(StoreUnavailable, match="lies on nfs4"):
        open_store(f"sqlite:///{tmp_path}/resumes.db")


def test_those_who_come_by_a_link_share_the_locks_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "home").mkdir()
    link = tmp_path / "home" / "resumes.db"
    link.symlink_to("../store/resumes.db")  # to what is not there yet
    with open_store(f"sqlite:///{link}") as first:
        accounts.create_account(first, "ana")
        with open_store(f"sqlite:///{tmp_path}/store/resumes.db") as second:
            assert first.url == second.url
            assert accounts.get_account(second, "ana").name == "ana"
            assert names_in(tmp_path / "home") == ["resumes.db"]
    assert link.is_symlink()


def test_an_empty_file_that_becomes_a_store_becomes_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "resumes.db"
    path.touch()
    path.chmod(0o644)
    with open_store(f"sqlite:///{path}") as store:
        accounts.create_account(store, "ana")
        modes = {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {0o600}


@pytest.mark.parametrize("kind", ["ext4", "9p", "fuse.unknown"])
def test_a_file_that_this_system_alone_opens_is_not(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie_on(kind, tmp_path, monkeypatch)
    open_store(f"sqlite:///{tmp_path}/resumes.db").close()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 200)
    with pytest.raises(StoreIncompatible, match="no SQLite database"):
        open_store(f"sqlite:///{path}")
    assert path.read_text() == "not a database, " * 200
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = dbapi.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreIncompatible, match="another program"):
        open_store(f"sqlite:///{path}")


def test_a_damaged_store_is_named_when_it_is_read(url: str, tmp_path: Path) -> None:
    with open_store(url) as store:
        accounts.create_account(store, "ana")
    path = tmp_path / "resumes.db"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    with pytest.raises(StoreIncompatible, match="damaged"), open_store(url) as store:
        accounts.list_accounts(store)
