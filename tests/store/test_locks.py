"""Locks that processes share, who holds them, and trying until others are done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from resumes.store.locks import FileLock, find_holders, name_processes, retry
from tests.support.waiting import wait_until


def test_a_lock_has_one_holder_or_several_that_share_it(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert (tmp_path / "lock").stat().st_mode & 0o077 == 0
    assert first.acquire(timeout_s=0)
    assert not second.acquire(timeout_s=0.01)
    first.release()
    assert second.acquire(timeout_s=0)
    assert not first.acquire(timeout_s=0)
    second.release()
    assert first.acquire(shared=True, timeout_s=0)
    assert second.acquire(shared=True, timeout_s=0)
    assert not first.acquire(timeout_s=0)
    second.close()
    assert first.acquire(timeout_s=0)
    first.close()


def test_the_holders_of_a_lock_are_known_by_process_id(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire(timeout_s=0)
    assert find_holders(tmp_path / "lock") in ({os.getpid()}, set())  # empty where no table is
    assert lock.holders() == []
    lock.close()
    assert find_holders(tmp_path / "absent") == set()


# Names of processes

PYTHON = "/srv/.venv/bin/python3.11"


def a_process(proc: Path, pid: int, *words: str, parent: int = 1, name: str = "resumes") -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 4194560\n")


def test_who_was_started_by_another_of_ours_is_named_by_the_one_that_was_typed(
    tmp_path: Path,
) -> None:
    a_process(tmp_path, 10, "/bin/bash")
    a_process(tmp_path, 20, PYTHON, "/usr/bin/resumes", "up", parent=10)
    a_process(tmp_path, 30, PYTHON, "-P", "-m", "cli", "serve", "--workers", "2", parent=20)
    a_process(tmp_path, 31, PYTHON, "-c", "spawn", parent=30, name="a (bad) name) 7 8")
    a_process(tmp_path, 32, PYTHON, "-P", "-m", "cli", "watch", "/resumes", parent=20)
    a_process(tmp_path, 40, PYTHON, "/usr/bin/resumes", "tui", parent=10)
    assert name_processes([40, 32, 31], proc=tmp_path) == "20 (resumes up), 40 (resumes tui)"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([PYTHON, "/usr/bin/resumes", "--home", "/srv/h", "db", "check"], "7 (resumes db)"),
        (["resumes", "--database", "postgresql://a:pw@h/n", "tui"], "7 (resumes tui)"),
        (["/usr/bin/resumes", "--json", "--home=/srv/h", "list"], "7 (resumes list)"),
        ([PYTHON, "-m", "cli"], "7 (resumes)"),
        ([PYTHON, "other.py", "resumes"], "7"),
        (["runuser", "-u", "resumes", "--", "bash"], "7"),
        ([], "7"),
    ],
)
def test_a_process_is_named_by_its_command_alone(
    words: list[str], said: str, tmp_path: Path
) -> None:
    a_process(tmp_path, 7, *words)
    assert name_processes([7], proc=tmp_path) == said


def test_where_the_system_tells_nothing_the_numbers_stand(tmp_path: Path) -> None:
    assert name_processes([9, 8], proc=tmp_path) == "8, 9"
    assert name_processes([], proc=tmp_path) == "unknown"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no table of processes")
def test_a_process_of_ours_that_runs_is_named() -> None:
    running = subprocess.Popen(
        [sys.executable, "-P", "-m", "cli", "validate", "-"], stdin=subprocess.PIPE
    )
    try:
        # Its command line is not there at once.
        named = f"{running.pid} (resumes validate)"
        wait_until(lambda: name_processes([running.pid]) == named)
    finally:
        running.kill()
        running.communicate()


# Trying again


@pytest.mark.parametrize(
    ("failures", "error", "within_s", "tries"),
    [
        (3, BlockingIOError(), 20, 4),
        (1, BlockingIOError(), 0, 1),
        (1, PermissionError(), 20, 1),
        (10**9, BlockingIOError(), 0.02, None),
    ],
)
def test_what_passes_is_tried_until_it_has_passed_or_its_time_is_over(
    failures: int, error: Exception, within_s: float, tries: int | None
) -> None:
    tried: list[int] = []

    def action() -> int:
        tried.append(1)
        if len(tried) <= failures:
            raise error
        return len(tried)

    def is_busy(error: Exception) -> bool:
        return isinstance(error, BlockingIOError)

    def attempt() -> int:
        return retry(action, is_retryable=is_busy, timeout_s=within_s, delays_s=(0.0, 0.001))

    if tries == failures + 1:
        assert attempt() == tries
    else:
        with pytest.raises(type(error)):
            attempt()
        assert len(tried) == tries or (tries is None and len(tried) > 1)
