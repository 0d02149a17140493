"""Many files at once, and files that are written slowly."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.inbox.scenes import Scene
from tests.support.inbox.slow_writers import Pace, write_slowly
from tests.support.resumes import a_document

WRITERS = 8
MEMORY_BYTES = 250 * 1024 * 1024
Say = Callable[[str], None]

BURST = """
import json, sys
folder, name, count = sys.argv[1:]
for number in range(int(count)):
    document = {
        "header": {"name": f"{name} {number}", "email": "ada@example.com"},
        "sections": {"summaries": {"column": 0, "items": [{"text": "Builds things."}]}},
    }
    with open(f"{folder}/{number}.json", "w") as file:
        json.dump(document, file)
"""


def write(folder: Path, count: int) -> "subprocess.Popen[bytes]":
    """A process that writes so many files into the folder, as fast as it can."""
    return subprocess.Popen([sys.executable, "-c", BURST, str(folder), folder.name, str(count)])


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
    names = [f"{folder} {number}" for folder in folders for number in range(each)]
    assert scene.check(files=count, resumes={"ana": names}).done == count
    assert memory_bytes < MEMORY_BYTES


# The pause is shorter than the settling time; in the short form by more, for slow machines.
PACES = [
    pytest.param(Pace(settle_s=2.0, gap_s=0.04, pause_s=0.8), id="scaled"),
    pytest.param(Pace(settle_s=5.0, gap_s=0.4, pause_s=4.0), id="full", marks=pytest.mark.campaign),
]


def lines(prefix: str, count: int) -> bytes:
    return b"".join(a_document(f"{prefix} {number}") + b"\n" for number in range(count))


@pytest.mark.timing
@pytest.mark.parametrize("pace", PACES)
def test_files_that_are_written_slowly_are_each_imported_once(scene: Scene, pace: Pace) -> None:
    scene.account("ana")
    resume = a_document("slow", filler="x" * 4_000)
    half = scene.drop("ana/half.json", resume.replace(b"slow", b"half")[: len(resume) // 2])
    contents = {
        "slow.json": resume,
        "slow.ndjson": lines("line", 100),
        "array.json": b"[" + b",".join(lines("item", 50).splitlines()) + b"]",
    }
    with scene.watched(settle_s=pace.settle_s):
        writers = [
            threading.Thread(target=write_slowly, args=[scene.root / "ana" / name, content, pace])
            for name, content in contents.items()
        ]
        rest = resume.replace(b"slow", b"half")[len(resume) // 2 :]
        writers.append(threading.Thread(target=write_slowly, args=[half, rest, pace]))
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        scene.wait_for(ended=4)
    names = [f"line {n}" for n in range(100)] + [f"item {n}" for n in range(50)]
    found = scene.check(files=4, resumes={"ana": ["slow", "half", *names]})
    assert found.done == 4
