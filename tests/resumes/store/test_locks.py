import os
from pathlib import Path

from resumes.store.locks import FileLock, find_holders


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire(wait_s=0)
    assert not second.acquire(wait_s=0.01)
    first.release()
    assert second.acquire(wait_s=0)
    first.close()
    second.close()


def test_many_share_a_lock_and_keep_it_from_being_exclusive(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire(shared=True, wait_s=0)
    assert second.acquire(shared=True, wait_s=0)
    assert not first.acquire(wait_s=0)
    second.close()
    assert first.acquire(wait_s=0)
    first.close()


def test_a_closed_lock_is_free(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire(wait_s=0)
    first.close()
    assert second.acquire(wait_s=0)
    second.close()


def test_held_gives_the_lock_back(tmp_path: Path) -> None:
    lock, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    with lock.held(wait_s=0) as mine, other.held(wait_s=0) as theirs:
        assert (mine, theirs) == (True, False)
    assert other.acquire(wait_s=0)
    lock.close()
    other.close()


def test_the_holders_of_a_lock_are_known_by_process_id(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire(wait_s=0)
    assert find_holders(tmp_path / "lock") in ({os.getpid()}, set())  # empty where no table is
    assert lock.holders() == []
    lock.close()
    assert find_holders(tmp_path / "absent") == set()


def test_only_the_owner_may_read_a_lock_file(tmp_path: Path) -> None:
    FileLock(tmp_path / "lock").close()
    assert (tmp_path / "lock").stat().st_mode & 0o077 == 0
