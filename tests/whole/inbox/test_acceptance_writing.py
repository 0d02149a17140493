"""Writers that take their time, pause, keep files open, or write them anew."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.inbox.oracle import iter_names
from tests.support.inbox.scenes import Scene
from tests.support.inbox.slow_writers import Pace, pause, write_slowly
from tests.support.resumes import a_document

pytestmark = pytest.mark.timing

# The pause is shorter than the settling time; in the short form by more, for slow machines.
PACES = [
    pytest.param(Pace(settle_s=2.0, gap_s=0.04, pause_s=0.8), id="scaled"),
    pytest.param(Pace(settle_s=5.0, gap_s=0.4, pause_s=4.0), id="full", marks=pytest.mark.campaign),
]


def lines(prefix: str, count: int) -> bytes:
    return b"".join(a_document(f"{prefix} {number}") + b"\n" for number in range(count))


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


def test_many_writers_that_pause_in_the_middle_of_a_resume_lose_nothing(scene: Scene) -> None:
    scene.account("ana")
    with scene.watched(settle_s=1):
        for number in range(60):
            body = a_document(f"number {number}")
            with (scene.root / "ana" / f"{number}.json").open("wb", buffering=0) as file:
                file.write(body[: 1 + number])
                pause(0.01)
                file.write(body[1 + number :])
        scene.wait_for(ended=60)
    found = scene.check(files=60, resumes={"ana": [f"number {n}" for n in range(60)]})
    assert found.done == 60


Rewrite = Callable[[Path, bytes, bytes], None]


def open_again(path: Path, first: bytes, second: bytes) -> None:
    path.write_bytes(first)
    pause(0.1)
    path.write_bytes(second)


def rename_over(path: Path, first: bytes, second: bytes) -> None:
    for version in (first, second):
        temporary = path.with_name(".writing")
        temporary.write_bytes(version)
        temporary.replace(path)
        pause(0.1)


def rewrite_in_place(path: Path, first: bytes, second: bytes) -> None:
    with path.open("wb", buffering=0) as file:
        file.write(first)
        pause(0.1)
        file.seek(0)
        file.truncate()
        file.write(second)


@pytest.mark.parametrize("rewrite", [open_again, rename_over, rewrite_in_place])
def test_of_two_whole_versions_the_newer_is_imported_and_the_older_perhaps(
    scene: Scene, rewrite: Rewrite
) -> None:
    """Two complete versions under one name, a tenth of a second apart.

    A version that was taken before the next was begun is a resume of its own: then both are
    imported, in this order, and both files are in _done. One that was not taken yet, or that its
    writer still had open, is replaced by the next, and the newer alone is imported. Never a
    mixture, never neither.
    """
    ana = scene.account("ana")
    rounds = 10
    with scene.watched(settle_s=0.5):
        for number in range(rounds):
            older = a_document(f"older {number}", filler="o" * (number % 3) * 900)
            newer = a_document(f"newer {number}", filler="n" * ((number + 1) % 3) * 900)
            rewrite(scene.root / "ana" / f"{number}.json", older, newer)
        scene.wait_until(lambda: _stored(scene, ana.id) >= _newer(rounds))
        scene.wait_until(lambda: not scene.tally().left)
    names = _stored(scene, ana.id)
    assert _newer(rounds) <= names <= _newer(rounds) | {f"older {n}" for n in range(rounds)}
    found = scene.check(files=len(names), resumes={"ana": names})
    assert found.done == len(names)


def _newer(rounds: int) -> set[str]:
    return {f"newer {number}" for number in range(rounds)}


def _stored(scene: Scene, account_id: str) -> set[str]:
    with scene.store() as store:
        return set(iter_names(store, account_id))


AGES_S = {"1970": 0, "old copy": 1_000_000_000, "2099": 4_083_955_200}


def test_the_age_of_a_file_says_nothing(scene: Scene) -> None:
    scene.account("ana")
    with scene.watched(settle_s=1):
        for name, modified_s in AGES_S.items():
            for content, ending in ((a_document(name), "json"), (b'{"header": ', "part.json")):
                path = scene.drop(f".new/{name}.{ending}", content)
                os.utime(path, (modified_s, modified_s))
                path.rename(scene.root / "ana" / path.name)
        (scene.root / ".new").rmdir()
        scene.wait_for(ended=len(AGES_S))
        assert scene.tally().failed == 0  # the halves have their quiet period
        for name in AGES_S:
            scene.drop(f"ana/{name}.part.json", a_document(f"{name}, finished"))
        scene.wait_for(ended=2 * len(AGES_S))
    names = [*AGES_S, *(f"{name}, finished" for name in AGES_S)]
    assert scene.check(files=len(names), resumes={"ana": names}).done == len(names)


def test_content_that_changed_without_a_trace_in_size_and_time_is_judged_as_it_is(
    scene: Scene,
) -> None:
    scene.account("ana")
    good = a_document("in time")
    path = scene.drop("ana/cv.json", b" " * len(good))
    before = path.stat()
    with scene.watched(settle_s=1.5):
        pause(0.5)
        with path.open("r+b") as file:
            file.write(good)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        scene.wait_for(ended=1)
    assert scene.check(files=1, resumes={"ana": ["in time"]}).done == 1
