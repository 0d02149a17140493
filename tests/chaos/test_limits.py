"""Limits of the system that a server runs into: sizes of files, open files, memory."""

import contextlib
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.recovering import Watch, note
from tests.resumes.builders import a_document
from tests.server.serving import wait_until
from tests.system.server import full_disks, load
from tests.system.server.load import Client
from tests.system.server.scenes import Scene, Server

MIB = 1024 * 1024


@pytest.mark.chaos(
    6,
    fault="files may not grow",
    promise="503, the process lives, and goes on by itself",
)
def test_files_that_may_not_grow_are_lived_through(tmp_path: Path, figures: Figures) -> None:
    """prlimit: RLIMIT_FSIZE of 1 MiB for a server whose log is that long, while four clients
    create; then it is lifted."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    watch = Watch()

    @contextlib.contextmanager
    def limit(server: Server) -> Iterator[None]:
        with full_disks.no_file_grows(server):
            yield
        watch.ended_s = time.monotonic()

    with scene.served() as server:
        writers = full_disks.make_writers(scene, server.url)
        with load.running(writers):
            wait_until(lambda: load.acknowledged(writers) >= 50, within_s=30)
            with limit(server):
                wait_until(lambda: len(full_disks.refusals(writers)) >= 50, within_s=30)
                assert load.call(server.url, load.a_request(scene.key)).status == 200
            before = load.acknowledged(writers)
            wait_until(lambda: load.acknowledged(writers) >= before + 50, within_s=30)
        assert server.process.poll() is None
        listed = scene.walk(server.url)
    full_disks.check(scene, load.attempts_of(writers), listed)
    checker.check_by_program(scene.home)
    note(figures, writers, watch)


@contextlib.contextmanager
def limited(pid: int, kind: int, most: int) -> Iterator[None]:
    """The process may have so much, and no more, during the block."""
    limits = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (most, limits[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, kind, limits)


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.mark.chaos(
    6,
    fault="no file may be opened",
    promise="who is connected is served, the process lives, and takes others again by itself",
)
def test_a_process_without_a_file_to_open_goes_on_with_who_is_there(
    tmp_path: Path, figures: Figures
) -> None:
    """prlimit: RLIMIT_NOFILE of what the server has open, while four clients create and 20 others
    want to connect; then it is lifted."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served() as server:
        writers = full_disks.make_writers(scene, server.url)
        pid = server.process.pid
        with load.running(writers):
            wait_until(lambda: load.acknowledged(writers) >= 50, within_s=30)
            with limited(pid, resource.RLIMIT_NOFILE, open_files(pid)):
                before = load.acknowledged(writers)
                knocking = [_knock(server.url) for _ in range(20)]
                wait_until(lambda: load.acknowledged(writers) >= before + 200, within_s=30)
                served = load.acknowledged(writers) - before
            lifted_s = time.monotonic()
            wait_until(lambda: _is_served(server.url, scene.key), within_s=30)
            recovery_s = time.monotonic() - lifted_s
            for one in knocking:
                one.close()
        assert server.process.poll() is None
        listed = scene.walk(server.url)
    full_disks.check(scene, load.attempts_of(writers), listed)
    statuses = {one.answer.status for one in load.attempts_of(writers) if one.answer}
    assert statuses == {201}
    figures["acknowledged_meanwhile"] = served
    figures["errors"] = 0
    figures["recovery_s"] = recovery_s


def _knock(url: str) -> load.Wire:
    return load.Wire(url)


def _is_served(url: str, key: str) -> bool:
    try:
        return load.call(url, load.a_request(key)).status == 200
    except (OSError, load.Lost):
        return False


def memory_bytes(pid: int) -> int:
    """What the process has of addresses."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.chaos(
    6,
    fault="there is no memory",
    promise="nothing acknowledged is lost, and it goes on by itself; a worker that dies is replaced",
)
def test_without_memory_nothing_acknowledged_is_lost(tmp_path: Path, figures: Figures) -> None:
    """prlimit: RLIMIT_AS of 4 MiB more than each of two workers has, while twelve clients create with
    bodies of 800 KB and two with small ones, for 5 s; then it is lifted."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    large = "x" * 800_000

    def create(name: int) -> Client:
        def make(number: int) -> tuple[str, bytes]:
            title = f"resume {name}-{number}"
            body = a_document(title, filler=large) if name < 12 else load.a_body(title)
            return title, load.a_request(scene.key, "POST", body=body)

        return Client(server.url, make)

    with scene.served("--workers", "2") as server:
        writers = [create(name) for name in range(14)]
        before = set(server.workers)
        with contextlib.ExitStack() as limits:
            for pid in before:
                most = memory_bytes(pid) + 4 * MIB
                limits.enter_context(limited(pid, resource.RLIMIT_AS, most))
            with load.running(writers):
                ends_s = time.monotonic() + 5
                wait_until(lambda: time.monotonic() > ends_s, within_s=30)
        attempts = load.attempts_of(writers)
        lifted_s = time.monotonic()
        wait_until(lambda: _is_served(server.url, scene.key), within_s=30)
        recovery_s = time.monotonic() - lifted_s
        replaced = len(before - set(server.workers))
        assert server.process.poll() is None
    told = {one.id: one.title for one in attempts if one.id}
    unknown = {one.title for one in attempts if not one.id}
    checker.check(scene.home / "resumes.db", told, unknown)
    figures["acknowledged"] = len(told)
    figures["errors_and_lost_connections"] = len(unknown)
    figures["workers_replaced"] = replaced
    figures["recovery_s"] = recovery_s
    figures["lost"] = 0
