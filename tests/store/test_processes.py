"""How a process that serves is kept going: its log is never in the way, its memory given back."""

import gc
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes import process_memory
from resumes.log_writer import LogWriter
from tests.support.inbox.builders import wait_until


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


@pytest.fixture
def own_collector() -> Iterator[None]:
    """Other tests keep theirs."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


class Knot:
    """Something that refers to itself."""

    freed = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        Knot.freed += 1


@pytest.mark.usefixtures("own_collector")
def test_what_refers_to_itself_is_freed_seldom_but_is_freed() -> None:
    process_memory.tune_gc()
    before = Knot.freed
    knots = [Knot() for _ in range(2_000)]
    del knots
    assert Knot.freed == before
    kept = [[] for _ in range(process_memory.GC_THRESHOLD + 1)]  # type: ignore[var-annotated]
    assert Knot.freed == before + 2_000
    assert kept


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
