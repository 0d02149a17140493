"""A disk that is full while clients write: nothing is lost, reads go on, and it heals by itself."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.api import load
from tests.support.api.full_disks import (
    check,
    filled,
    live_through,
    live_through_a_full_disk,
    make_writers,
    no_file_grows,
    refusals,
    status_of,
)
from tests.support.api.scenes import Scene, is_unavailable
from tests.support.inbox.mounts import a_disk

pytestmark = pytest.mark.slow

DISK_BYTES = 256 * 1024 * 1024
FLOOR_BYTES = 128 * 1024 * 1024
LOW = "The server is low on disk space, so nothing was stored; try again later"


@pytest.mark.parametrize("floor_bytes", [0, FLOOR_BYTES], ids=["last byte", "floor"])
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.campaign)])
def test_a_full_disk_is_lived_through(tmp_path: Path, floor_bytes: int, workers: str) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    writers, listed, _ = live_through_a_full_disk(
        scene, tmp_path, DISK_BYTES, floor_bytes, "--workers", workers
    )
    check(scene, load.attempts_of(writers), listed)
    if floor_bytes:
        assert {one.answer.json["error"] for one in refusals(writers) if one.answer} == {LOW}


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
        assert status_of(server, "/readyz") == 503
    assert is_unavailable(refused)
    assert refused.json["error"] == LOW
    assert scene.rows() == 0


def test_on_a_disk_without_a_byte_left_nothing_is_deleted_and_no_server_starts(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with a_disk(tmp_path / "disk", DISK_BYTES) as disk:
        home, seen = tmp_path / "disk" / "home", disk.seen(tmp_path / "disk")
        shutil.copytree(scene.home, disk.seen(home))
        scene.home = home
        with scene.served(within=tuple(disk.enter), RESUMES_DISK_FLOOR_BYTES="0") as server:
            create = load.a_request(scene.key, "POST", body=load.a_body("resume"))
            stored = [load.call(server.url, create).json["id"] for _ in range(20)]
            with filled(seen, leave_bytes=0):
                deleted = [
                    load.call(
                        server.url, load.a_request(scene.key, "DELETE", f"{load.RESUMES}/{one}")
                    )
                    for one in stored
                ]
        with filled(seen, leave_bytes=0):
            start = [*disk.enter, *programs.command(home, "serve", "--port", "0")]
            started = subprocess.run(start, capture_output=True, text=True, timeout=60, check=False)
    assert all(map(is_unavailable, deleted))
    assert started.returncode == 3
    assert "full" in started.stderr


def test_files_that_cannot_grow_are_lived_through(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served() as server:
        writers = make_writers(scene, server.url)
        live_through(server, writers, scene.key, no_file_grows)
        listed = scene.walk(server.url)
    check(scene, load.attempts_of(writers), listed)
