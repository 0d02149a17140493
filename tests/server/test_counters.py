import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.counters import Counters, SharedCounters, shared_counters

SIZE = 3
COUNT = """
import sys
from pathlib import Path
from server.counters import Counters, SharedCounters

counters = Counters.share(SharedCounters(Path(sys.argv[1]), 2), 3)
counters.mine[1] += float(sys.argv[2])
print(counters.sums(), flush=True)
sys.stdin.read()
"""


def count_in_another(path: Path, number: int) -> "subprocess.Popen[str]":
    """A process that has added to its second place, and holds its slot until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", COUNT, str(path), str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_server_of_one_process_counts_for_itself() -> None:
    counters = Counters.alone(SIZE)

    counters.mine[0] += 1
    counters.mine[2] += 0.5
    counters.close()

    assert list(counters.sums()) == [1, 0, 0.5]


def test_processes_count_in_slots_of_their_own_and_see_the_sum(tmp_path: Path) -> None:
    counters = Counters.share(SharedCounters(tmp_path / "metrics", 2), SIZE)
    counters.mine[1] += 3

    with count_in_another(tmp_path / "metrics", 4) as another:
        assert first_line(another) == "[0.0, 7.0, 0.0]"
        assert list(counters.sums()) == [0, 7, 0]
        another.communicate()
    counters.close()


def test_who_comes_after_one_that_was_killed_counts_on(tmp_path: Path) -> None:
    path = tmp_path / "metrics"
    with count_in_another(path, 1) as first, count_in_another(path, 10) as second:
        first_line(first)
        first_line(second)
        with pytest.raises(BlockingIOError):
            Counters.share(SharedCounters(path, 2), SIZE)

        first.kill()
        first.wait(60)
        counters = Counters.share(SharedCounters(path, 2), SIZE)
        counters.mine[1] += 100

        assert list(counters.sums()) == [0, 111, 0]
        counters.close()
        second.communicate()


def test_the_file_lives_as_long_as_its_supervisor_and_goes_when_abandoned(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(60)
    abandoned = folder / f"metrics-{ended.pid}"
    of_another = folder / f"metrics-{os.getppid()}"
    strange = folder / "metrics-strange"
    for path in (abandoned, of_another, strange):
        path.write_bytes(b"")

    with shared_counters(folder, workers=2) as shared:
        counters = Counters.share(shared, SIZE)
        assert shared.path.stat().st_mode & 0o777 == 0o600
        counters.close()
        assert not abandoned.exists()

    assert sorted(folder.iterdir()) == sorted([of_another, strange])
