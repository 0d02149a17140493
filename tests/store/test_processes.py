"""Processes: the locks that they share, a log that is never in the way, and memory that is given back."""

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
        (10**9, BlockingIOError(), 0.2, None),
    ],
)
def test_what_may_pass_is_tried_again_until_the_timeout(
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


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            continue  # closed by the test


def test_lines_are_written_in_order_and_all_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    writer = LogWriter(descriptor)

    for number in range(1_000):
        writer.put(b"%d\n" % number)
    writer.close()
    writer.close()
    os.close(descriptor)

    assert path.read_bytes() == b"".join(b"%d\n" % number for number in range(1_000))
    assert writer.dropped_count == 0


def test_lines_appear_without_an_end(pipe: tuple[int, int]) -> None:
    writer = LogWriter(pipe[1])

    writer.put(b"now\n")

    assert os.read(pipe[0], 100) == b"now\n"
    writer.close()


def test_a_full_disk_costs_lines_and_nothing_else() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    writer = LogWriter(descriptor)

    writer.put(b"one\ntwo\n")
    wait_until(lambda: writer.dropped_count == 2)
    writer.put(b"three\n")
    writer.close()
    os.close(descriptor)

    assert writer.dropped_count == 3


def test_a_reader_that_is_gone_costs_lines_and_nothing_else(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    writer = LogWriter(pipe[1])

    writer.put(b"nobody reads this\n")
    writer.close()

    assert writer.dropped_count == 1


def test_behind_a_slow_reader_lines_are_dropped_and_nobody_waits(
    pipe: tuple[int, int],
) -> None:
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


def test_after_a_line_that_was_cut_off_the_next_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    writer = LogWriter(descriptor)

    writer.put(b"whole\nand torn")
    wait_until(lambda: path.read_bytes().endswith(b"torn"))
    writer.put(b"next\n")
    writer.close()
    os.close(descriptor)

    assert path.read_bytes() == b"whole\nand torn\nnext\n"


def read_to_the_end(descriptor: int) -> None:
    while os.read(descriptor, 65_536):
        pass


# Memory


KNOTS = """
import gc
from resumes import process_memory

class Knot:
    freed = 0

    def __init__(self):
        self.itself = self

    def __del__(self):
        Knot.freed += 1

process_memory.tune_gc()
gc.collect()  # counts from here
knots = [Knot() for _ in range(2_000)]
del knots
print(Knot.freed)
kept = [[] for _ in range(process_memory.GC_THRESHOLD)]
print(Knot.freed)
"""


def test_reference_cycles_are_collected_at_the_raised_threshold() -> None:
    run = subprocess.run([sys.executable, "-c", KNOTS], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "2000"]


BODIES = """
import threading
from pathlib import Path
from resumes import process_memory

def held_kb():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])

def use():
    for _ in range(3):
        bodies = [b"x" * (1 << 21) + bytes([n]) for n in range(8)]
        small = [[text] for text in range(50_000)]
        del bodies, small

process_memory.limit_malloc()
use()
before = held_kb()
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(held_kb() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="read from /proc")
def test_what_large_bodies_took_is_given_back() -> None:
    run = subprocess.run([sys.executable, "-c", BODIES], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 16 * 1024
