"""A disk that is full while clients write: nothing is lost, reads go on, and it heals by itself."""

import contextlib
import functools
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.server.serving import wait_until
from tests.system.importer.mounts import a_disk
from tests.system.server import load
from tests.system.server.load import Attempt, Client
from tests.system.server.scenes import Scene, Server, is_unavailable

WRITERS = 4
DISK_BYTES = 64 * 1024 * 1024
FLOOR_BYTES = 32 * 1024 * 1024
LARGEST_BYTES = 1024 * 1024
HEALS_WITHIN_S = 10
UNKNOWN = "Outcome unknown"
LOW = "The server is low on disk space; nothing was stored, try again later"

Fill = Callable[[Server], AbstractContextManager[None]]


@contextmanager
def _no_file_grows(server: Server) -> Iterator[None]:
    """No file that is as large as the log of a store becomes may grow."""
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    full = (LARGEST_BYTES, limits[1])
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, full)
    try:
        yield
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)


@contextmanager
def _filled(disk: Path, *, leave_bytes: int) -> Iterator[None]:
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


def _status(server: Server, path: str) -> int:
    return load.call(server.url, load.a_request("", path=path)).status


def _writer(scene: Scene, url: str, name: int) -> Client:
    def make(number: int) -> tuple[str, bytes]:
        title = f"resume {name}-{number}"
        return title, load.a_request(scene.key, "POST", body=load.a_body(title))

    return Client(url, make)


def _writers(scene: Scene, url: str) -> list[Client]:
    return [_writer(scene, url, name) for name in range(WRITERS)]


def _refused(clients: list[Client]) -> list[Attempt]:
    attempts = load.attempts_of(clients)
    return [one for one in attempts if one.answer is not None and one.answer.status == 503]


def _live_through(server: Server, writers: list[Client], key: str, fill: Fill) -> None:
    """Clients write before, while and after there is no room, which need not be told to anyone."""
    with load.running(writers):
        wait_until(lambda: load.acknowledged(writers) >= 50, within_s=30)
        with fill(server):
            wait_until(lambda: len(_refused(writers)) >= 50, within_s=30)
            assert load.call(server.url, load.a_request(key)).status == 200
            assert _status(server, "/healthz") == 200
            if fill is not _no_file_grows:
                wait_until(lambda: _status(server, "/readyz") == 503)
        before = load.acknowledged(writers)
        wait_until(lambda: load.acknowledged(writers) >= before + 50, within_s=HEALS_WITHIN_S)
        wait_until(lambda: _status(server, "/readyz") == 200)


def _check(scene: Scene, attempts: list[Attempt], listed: list[tuple[str, str]]) -> None:
    """What was acknowledged is stored, and of the rest only what may be."""
    told = {one.id: one.title for one in attempts if one.id}
    refused = {one.title: one.answer for one in attempts if one.answer is not None and not one.id}
    unknown = {
        title for title, answer in refused.items() if answer.json["error"].startswith(UNKNOWN)
    }

    assert all(map(is_unavailable, refused.values()))
    assert not any(one.lost for one in attempts)
    assert told.items() <= dict(listed).items()
    assert {title for _, title in listed} - set(told.values()) <= unknown
    assert len(listed) == scene.rows()
    with scene.store() as store, store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
        for resume_id, title in told.items():
            assert scene.is_whole(store, resume_id, title)


@pytest.mark.parametrize("floor_bytes", [0, FLOOR_BYTES], ids=["last byte", "floor"])
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.campaign)])
def test_a_full_disk_is_lived_through(tmp_path: Path, floor_bytes: int, workers: str) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with a_disk(tmp_path / "disk", DISK_BYTES) as disk:
        home = tmp_path / "disk" / "home"
        seen = disk.seen(tmp_path / "disk")
        shutil.copytree(scene.home, disk.seen(home))
        scene.home = home
        floor = {"RESUMES_DISK_FLOOR_BYTES": str(floor_bytes)}
        with scene.served("--workers", workers, within=tuple(disk.enter), **floor) as server:
            writers = _writers(scene, server.url)
            # Far enough below, and above nothing, for what is written until the server looks.
            leave_bytes = floor_bytes * 3 // 4
            fill = functools.partial(_filled, seen, leave_bytes=leave_bytes)
            _live_through(server, writers, scene.key, lambda _: fill())
            listed = scene.walk(server.url)
        scene.home = tmp_path / "after"
        shutil.copytree(disk.seen(home), scene.home)
    _check(scene, load.attempts_of(writers), listed)
    if floor_bytes:
        assert {one.answer.json["error"] for one in _refused(writers) if one.answer} == {LOW}


def test_what_is_deleted_below_the_floor_makes_room(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served() as server:
        body = load.a_body("resume")
        create = load.a_request(scene.key, "POST", body=body)
        stored = load.call(server.url, create).json["id"]
    with scene.served(RESUMES_DISK_FLOOR_BYTES=str(1 << 60)) as server:
        refused = load.call(server.url, create)
        delete = load.a_request(scene.key, "DELETE", f"{load.RESUMES}/{stored}")

        assert load.call(server.url, delete).status == 200
        assert _status(server, "/readyz") == 503
    assert is_unavailable(refused)
    assert refused.json["error"] == LOW
    assert scene.rows() == 0


def test_files_that_cannot_grow_are_lived_through(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served() as server:
        writers = _writers(scene, server.url)
        _live_through(server, writers, scene.key, _no_file_grows)
        listed = scene.walk(server.url)
    _check(scene, load.attempts_of(writers), listed)
