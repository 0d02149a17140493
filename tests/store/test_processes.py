"""Processes: the locks that they share, how they are named, and a log that is never in the way."""

import contextlib
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes.log_writer import LogWriter
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


HOLDING = """
import sys
from pathlib import Path
from resumes.store.locks import FileLock

FileLock(Path(sys.argv[1])).acquire(timeout_s=0)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="no table of locks")
def test_the_holders_of_a_lock_are_known_by_process_id(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.acquire(timeout_s=0)
    assert find_holders(tmp_path / "lock") == {os.getpid()}
    assert lock.holders() == []  # but for this process
    table = Path("/proc/locks").read_text()
    inode = (tmp_path / "lock").stat().st_ino
    (tmp_path / "locks").write_text(
        f"{table}9: FLOCK  ADVISORY  WRITE 4711 ff:ffff:{inode} 0 EOF\n"
    )
    # Another file system has a file of this number.
    assert find_holders(tmp_path / "lock", proc=tmp_path) == {os.getpid()}
    lock.release()
    command = [sys.executable, "-c", HOLDING, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert lock.holders() == [other.pid]
        other.communicate()
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
    # Where the system tells nothing, the numbers stand.
    assert name_processes([9, 8], proc=tmp_path) == "8, 9"
    assert name_processes([], proc=tmp_path) == "unknown"


# Trying again


@pytest.mark.parametrize(
    ("failures", "error", "within_s", "tries"),
    [(3, BlockingIOError(), 20, 4), (1, BlockingIOError(), 0, 1), (1, PermissionError(), 20, 1)],
)
def test_what_may_pass_is_tried_again_until_the_timeout(
    failures: int, error: Exception, within_s: float, tries: int
) -> None:
    tried: list[int] = []

    def action() -> None:
        tried.append(1)
        if len(tried) <= failures:
            raise error

    with contextlib.nullcontext() if tries > failures else pytest.raises(type(error)):
        retry(
            action,
            is_retryable=lambda error: isinstance(error, BlockingIOError),
            timeout_s=within_s,
            delays_s=(0.0, 0.001),
        )
    assert len(tried) == tries


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        with contextlib.suppress(OSError):  # closed by the test
            os.close(descriptor)


def test_lines_are_written_in_order_and_all_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    writer = LogWriter(descriptor)
    writer.put(b"whole\nand torn")
    wait_until(lambda: path.read_bytes().endswith(b"torn"))  # without an end, too
    lines = [b"%d\n" % number for number in range(1_000)]

    for line in lines:
        writer.put(line)
    writer.close()
    writer.close()
    os.close(descriptor)

    assert path.read_bytes() == b"whole\nand torn\n" + b"".join(lines)
    assert writer.dropped_count == 0


def test_behind_a_slow_reader_lines_are_dropped_and_nobody_waits(pipe: tuple[int, int]) -> None:
    writer = LogWriter(pipe[1], max_waiting=10)
    writer.put(b"x" * 1_000_000 + b"\n")  # more than a pipe holds, and nobody reads
    select.select([pipe[0]], [], [], 60)

    for _ in range(30):
        writer.put(b"another\n")
    writer.close(timeout_s=0.01)

    assert writer.dropped_count == 20
    reader = threading.Thread(target=read_to_the_end, args=[pipe[0]])
    reader.start()
    writer.close()  # before anybody else gets the descriptor's number
    os.close(pipe[1])
    reader.join()


def test_with_a_reader_that_does_not_wait_lines_stay_whole(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    writer = LogWriter(pipe[1])
    line = b"x" * 300_000 + b"\n"

    writer.put(line)
    received = b""
    while len(received) < len(line):
        received += os.read(pipe[0], 65_536)
    writer.close()

    assert received == line


def read_to_the_end(descriptor: int) -> None:
    while os.read(descriptor, 65_536):
        pass
