"""Disks that are full, read-only or another machine's, and files of somebody else."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.recovering import Watch, note
from tests.system import programs
from tests.system.importer.mounts import a_disk
from tests.system.importer.permissions import bounded
from tests.system.server import full_disks, load
from tests.system.server.scenes import Scene, Server

MIB = 1024 * 1024
DISK_BYTES = 16 * MIB
SHARES = ["nfs4", "cifs", "ceph", "lustre", "fuse.sshfs"]

__all__ = ["bounded"]  # a fixture


@pytest.mark.parametrize("floor_bytes", [0, 8 * MIB], ids=["to the last byte", "to the floor"])
@pytest.mark.chaos(
    4,
    fault="the disk is full",
    promise="503 and nothing broken, reads go on, and creates once there is room",
)
def test_a_full_disk_loses_nothing_and_heals(
    tmp_path: Path, figures: Figures, floor_bytes: int
) -> None:
    """A tmpfs of 16 MiB with the store on it is filled by somebody else, to the last byte or to
    below `RESUMES_DISK_FLOOR_BYTES`, while four clients create; then it is cleared."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    watch = Watch()
    with a_disk(tmp_path / "disk", DISK_BYTES) as disk:
        home, seen = tmp_path / "disk" / "home", disk.seen(tmp_path / "disk")

        @contextlib.contextmanager
        def fill(_: Server) -> Iterator[None]:
            with full_disks.filled(seen, leave_bytes=floor_bytes * 3 // 4):
                yield
            watch.ended_s = time.monotonic()

        shutil.copytree(scene.home, disk.seen(home))
        scene.home = home
        floor = {"RESUMES_DISK_FLOOR_BYTES": str(floor_bytes)}
        with scene.served(within=tuple(disk.enter), **floor) as server:
            writers = full_disks.make_writers(scene, server.url)
            full_disks.live_through(server, writers, scene.key, fill)
            listed = scene.walk(server.url)
        scene.home = tmp_path / "after"
        shutil.copytree(disk.seen(home), scene.home)
    full_disks.check(scene, load.attempts_of(writers), listed)
    checker.check_by_program(scene.home)
    note(figures, writers, watch)


def refused(command: list[str], home: Path) -> tuple[float, str]:
    """How long it took a server to say that it will not start, and the line that it said."""
    began_s = time.monotonic()
    done = subprocess.run(
        [*command, *programs.command(home, "serve", "--port", "0")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    took_s = time.monotonic() - began_s
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert done.stdout == ""
    return took_s, line


@pytest.mark.chaos(
    7,
    fault="the file system is read-only",
    promise="the start fails at once, with exit code 3 and one line that says so",
)
def test_a_read_only_file_system_is_refused_in_one_line(tmp_path: Path, figures: Figures) -> None:
    """mount -o remount,ro of the tmpfs with the store on it, before `resumes serve`."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with a_disk(tmp_path / "disk", DISK_BYTES) as disk:
        home = tmp_path / "disk" / "home"
        shutil.copytree(scene.home, disk.seen(home))
        remount = ["mount", "-o", "remount,ro", str(tmp_path / "disk")]
        subprocess.run([*disk.enter, *remount], check=True)
        took_s, line = refused(disk.enter, home)
    assert str(home) in line
    figures["took_s"] = took_s


@pytest.mark.chaos(
    7,
    fault="the files are somebody else's",
    promise="the start fails at once, with exit code 3 and one line that says so",
)
def test_files_of_somebody_else_are_refused_in_one_line(
    tmp_path: Path, figures: Figures, bounded: list[str]
) -> None:
    """chown of the store's files to another user, mode 0600, before `resumes serve` without the
    rights of root."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    for path in scene.home.iterdir():
        os.chown(path, 65_534, 65_534)
    took_s, line = refused(bounded, scene.home)
    assert str(scene.home) in line
    figures["took_s"] = took_s


@pytest.mark.chaos(
    8,
    fault="the store lies on a file system of several machines",
    promise="the start fails at once, with exit code 3 and one line that says so and why",
)
def test_a_share_of_a_network_is_refused_in_one_line(tmp_path: Path, figures: Figures) -> None:
    """Another list of mounts is bound over the program's /proc/self/mountinfo, which says that the
    home lies on NFS, SMB, Ceph, Lustre or SSHFS, before `resumes serve`."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with a_disk(tmp_path / "disk", MIB) as disk:  # its namespace alone sees the other list
        mounts = tmp_path / "mountinfo"
        bind = ["sh", "-c", 'mount --bind "$0" /proc/$$/mountinfo && exec "$@"', str(mounts)]
        for kind in SHARES:
            mounts.write_text(
                "1 0 0:1 / / rw - ext4 /dev/disk rw\n"
                f"2 1 0:2 / {scene.home} rw - {kind} server:/share rw\n"
            )
            took_s, line = refused([*disk.enter, *bind], scene.home)
            assert kind in line
    figures["kinds"] = figures["refused"] = len(SHARES)
    figures["took_s"] = took_s
