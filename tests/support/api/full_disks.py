"""Disks without room while clients write."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from resumes.filesystems import DISK_FLOOR_BYTES
from tests.support.api import load
from tests.support.api.load import Attempt, Client
from tests.support.api.scenes import Scene, Server, is_unavailable
from tests.support.api.serving import wait_until
from tests.support.inbox.mounts import a_disk

DISK_BYTES = 4 * DISK_FLOOR_BYTES
BELOW_FLOOR_BYTES = DISK_FLOOR_BYTES * 3 // 4
"""Far enough below, and above nothing, for what is written until the server looks."""

WRITERS = 4
HEALS_WITHIN_S = 10
UNKNOWN = "Outcome unknown"

Fill = Callable[[Server], AbstractContextManager[None]]


@contextmanager
def filled(disk: Path, *, leave_bytes: int) -> Iterator[None]:
    """No more than that is free on the disk."""
    found = os.statvfs(disk)
    filler = disk / ".filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for _ in range((found.f_bavail * found.f_frsize - leave_bytes) // 4096 + 1):
            file.write(b"x" * 4096)
    try:
        yield
    finally:
        filler.unlink()


def status_of(server: Server, path: str) -> int:
    """What the server answers to a GET of the path."""
    return load.call(server.url, load.a_request("", path=path)).status


def make_writers(scene: Scene, url: str) -> list[Client]:
    """As many as write at once."""
    return [load.writer(url, scene.key, f"{name}") for name in range(WRITERS)]


def refusals(clients: list[Client]) -> list[Attempt]:
    """What was answered with 503."""
    attempts = load.attempts_of(clients)
    return [one for one in attempts if one.answer is not None and one.answer.status == 503]


def live_through(server: Server, writers: list[Client], key: str, fill: Fill) -> float:
    """Clients write before, while and after there is no room, which need not be told to anyone.

    Return the seconds from when there was room again to the first resume that was acknowledged.
    """
    with load.running(writers):
        wait_until(lambda: load.acknowledged(writers) >= 50, within_s=30)
        with fill(server):
            wait_until(lambda: len(refusals(writers)) >= 50, within_s=30)
            assert load.call(server.url, load.a_request(key)).status == 200
            assert status_of(server, "/healthz") == 200
            wait_until(lambda: status_of(server, "/readyz") == 503)
        again_s, before = time.monotonic(), load.acknowledged(writers)
        wait_until(lambda: load.acknowledged(writers) >= before + 50, within_s=HEALS_WITHIN_S)
        wait_until(lambda: status_of(server, "/readyz") == 200)
    assert server.process.poll() is None
    ends_s = [one.ended_s for one in load.attempts_of(writers) if one.id]
    return min(end_s for end_s in ends_s if end_s > again_s) - again_s


def live_through_a_full_disk(
    scene: Scene, folder: Path, leave_bytes: int
) -> tuple[list[Client], list[tuple[str, str]], float]:
    """The scene's store lies on a small disk, of which another program takes all but so much. Return
    who wrote, what was listed afterwards, and as `live_through`.

    The scene's home is a copy of what was on the disk then.
    """
    with a_disk(folder / "disk", DISK_BYTES) as disk:
        home, seen = folder / "disk" / "home", disk.seen(folder / "disk")
        shutil.copytree(scene.home, disk.seen(home))
        scene.home = home
        with scene.served(within=tuple(disk.enter)) as server:
            writers = make_writers(scene, server.url)
            recovery_s = live_through(
                server, writers, scene.key, lambda _: filled(seen, leave_bytes=leave_bytes)
            )
            listed = scene.walk(server.url)
        scene.home = folder / "after"
        shutil.copytree(disk.seen(home), scene.home)
    return writers, listed, recovery_s


def check(scene: Scene, attempts: list[Attempt], listed: list[tuple[str, str]]) -> None:
    """Each refusal is as it should be, and what was acknowledged was listed and is stored whole."""
    told = {one.id: one.title for one in attempts if one.id}
    answers = [one.answer for one in attempts if not one.id]
    assert all(answer is not None and is_unavailable(answer) for answer in answers)
    assert told.items() <= dict(listed).items()
    with scene.store() as store:
        assert all(scene.is_whole(store, *one) for one in told.items())
