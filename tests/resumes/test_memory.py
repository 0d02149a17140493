import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resumes import memory


@pytest.fixture(autouse=True)
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


def test_what_refers_to_itself_is_freed_seldom_but_is_freed() -> None:
    memory.collect_seldom()
    before = Knot.freed
    knots = [Knot() for _ in range(2_000)]
    del knots
    assert Knot.freed == before
    kept = [[] for _ in range(memory.YOUNG + 1)]  # type: ignore[var-annotated]
    assert Knot.freed == before + 2_000
    assert kept


BODIES = """
import threading
from pathlib import Path
from resumes import memory

def held_kb():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])

def use():
    for _ in range(3):
        bodies = [b"x" * (1 << 21) + bytes([n]) for n in range(8)]
        small = [[text] for text in range(50_000)]
        del bodies, small

memory.keep_little()
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
