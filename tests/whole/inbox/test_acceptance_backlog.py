"""Many files at once."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.inbox import burst
from tests.support.inbox.scenes import STOP_S, Scene

WRITERS = 8
MEMORY_BYTES = 250 * 1024 * 1024
Say = Callable[[str], None]


def write(folder: Path, count: int) -> "subprocess.Popen[bytes]":
    """A process that writes so many files into the folder, as fast as it can."""
    program = [sys.executable, str(Path(burst.__file__))]
    return subprocess.Popen([*program, str(folder), str(count)])


def names_written(folder: str, count: int) -> list[str]:
    return [f"{folder} {number}" for number in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [4_000, pytest.param(400_000, marks=pytest.mark.campaign)])
def test_of_a_burst_from_many_writers_no_file_is_missed(scene: Scene, say: Say, count: int) -> None:
    scene.account("ana")
    folders = [f"writer-{number}" for number in range(WRITERS)]
    for folder in folders:
        (scene.root / "ana" / folder).mkdir()
    each = count // WRITERS
    with scene.watched() as importer:
        began = time.monotonic()
        writers = [write(scene.root / "ana" / folder, each) for folder in folders]
        assert [writer.wait() for writer in writers] == [0] * WRITERS
        written_s = time.monotonic() - began
        scene.wait_for_all(count, limit_s=30 + count / 500)
        imported_s = time.monotonic() - began
        memory_bytes = importer.most_memory_bytes
        assert scene.health() == []
    say(
        f"{count} files written in {written_s:.1f} s and imported {imported_s:.1f} s after the "
        f"first: {count / imported_s:,.0f} a second, {memory_bytes / 2**20:.0f} MiB at most"
    )
    names = [name for folder in folders for name in names_written(folder, each)]
    assert scene.check(files=count, resumes={"ana": names}).done == count
    assert memory_bytes < MEMORY_BYTES


def latency_s(scene: Scene, name: str) -> float:
    """How long a file that is dropped now stays in the inbox."""
    path = scene.drop(name)
    began = time.monotonic()
    scene.wait_until(lambda: not path.exists())
    return time.monotonic() - began


@pytest.mark.timing
@pytest.mark.parametrize("count", [4_000, pytest.param(100_000, marks=pytest.mark.campaign)])
def test_a_backlog_makes_no_other_account_wait_and_can_be_stopped_and_gone_on_with(
    scene: Scene, say: Say, count: int
) -> None:
    scene.account("ana")
    scene.account("bo")
    assert write(scene.root / "ana", count).wait() == 0
    with scene.watched() as importer:
        latencies_s: list[float] = []
        while len(list((scene.root / "ana").iterdir())) > count * 3 // 4:
            latencies_s.append(latency_s(scene, f"bo/{len(latencies_s)}.json"))
        began = time.monotonic()
        importer.stop()
        stopped_s = time.monotonic() - began
    assert len(scene.tally().left) > 0
    fresh, slowest_s = len(latencies_s), max(latencies_s)
    say(
        f"with {count} files waiting, {fresh} files of another account took {slowest_s:.2f} s at "
        f"most; it stopped in {stopped_s:.2f} s"
    )
    assert slowest_s < 5
    assert stopped_s < STOP_S
    with scene.watched():
        scene.wait_for_all(count + fresh, limit_s=30 + count / 500)
    resumes = {"ana": names_written("ana", count), "bo": [f"{n}.json" for n in range(fresh)]}
    assert scene.check(files=count + fresh, resumes=resumes).done == count + fresh
