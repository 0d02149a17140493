"""Limits of the system that a program runs into: open files and memory."""

import contextlib
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.checker import let_pass
from tests.support.api import full_disks, load
from tests.support.api.load import Attempt, Client, Wire
from tests.support.api.scenes import Scene, Server
from tests.support.api.serving import wait_until
from tests.support.resumes import a_document
from tests.support.waiting import open_files

MIB: Final = 1024 * 1024
KNOCKING: Final = 20
"""Clients that want to connect while nobody can."""

WITHOUT_MEMORY_S: Final = 5.0
LARGE: Final = 12
"""Clients whose resumes are large,"""

SMALL: Final = 2
"""and whose are not."""


@contextlib.contextmanager
def limited(pids: list[int], kind: int, most: dict[int, int]) -> Iterator[None]:
    """Each process may have so much, by its id, and no more, during the block."""
    limits = {pid: resource.prlimit(pid, kind) for pid in pids}
    for pid, (_, hard) in limits.items():
        resource.prlimit(pid, kind, (most[pid], hard))
    try:
        yield
    finally:
        for pid, before in limits.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, kind, before)


@pytest.mark.chaos(
    6,
    fault="the server cannot open any more files",
    promise="connected clients are still served, but new clients are refused until the server can open files again; the server keeps running",
)
def test_a_process_that_cannot_open_files_serves_its_connections(
    tmp_path: Path, figures: Figures
) -> None:
    """While four clients create resumes, prlimit lowers the server's RLIMIT_NOFILE to the number of
    files that are already open. Before the limit is lifted, 20 new clients connect and request the
    list of resumes."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served() as server:
        writers = full_disks.make_writers(scene, server.url)
        pid = server.process.pid
        with load.running(writers):
            wait_until(lambda: load.acknowledged(writers) >= 50, within_s=30)
            with limited([pid], resource.RLIMIT_NOFILE, {pid: len(open_files(pid))}):
                before = load.acknowledged(writers)
                with contextlib.ExitStack() as stack:
                    knocking = [stack.enter_context(Wire(server.url)) for _ in range(KNOCKING)]
                    for one in knocking:
                        one.send(load.a_request(scene.key))
                    wait_until(lambda: load.acknowledged(writers) >= before + 200, within_s=30)
                    turned_away = sum(map(is_turned_away, knocking))
                served = load.acknowledged(writers) - before
            recovery_s = wait_until_served(server, scene.key)
        assert server.process.poll() is None
        listed = scene.walk(server.url)
    attempts = load.attempts_of(writers)
    full_disks.check(scene, attempts, listed)
    figures["resumes_acknowledged_during_the_fault"] = served
    figures["errors"] = sum(one.answer is None or one.answer.status != 201 for one in attempts)
    figures["new_clients_refused"] = turned_away
    figures["recovery_time_s"] = recovery_s
    figures["lost"] = checker.check_attempts(scene.home / "resumes.db", attempts).lost
    assert figures["errors"] == 0
    assert turned_away > KNOCKING // 2


def is_turned_away(wire: Wire) -> bool:
    """Whether somebody who asked has no answer, be it that nobody took the connection."""
    wire.socket.settimeout(0.05)
    try:
        wire.read_answer()
    except load.Lost:
        return True
    return False


def wait_until_served(server: Server, key: str) -> float:
    """A new connection has its answer; after how many seconds."""
    began_s = time.monotonic()

    def is_served() -> bool:
        try:
            return load.call(server.url, load.a_request(key)).status == 200
        except (OSError, load.Lost):
            return False

    wait_until(is_served, within_s=30)
    return time.monotonic() - began_s


def memory_bytes(pid: int) -> int:
    """What the process has of addresses."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.chaos(
    6,
    fault="the server's processes cannot get more memory",
    promise="requests that need more memory get a 503 response or no response, no acknowledged resume is lost, and the service recovers automatically",
)
def test_without_memory_nothing_acknowledged_is_lost(tmp_path: Path, figures: Figures) -> None:
    """Twelve clients send create requests with 800 KB bodies, and two clients send create requests
    with small bodies. For 5 s, prlimit (RLIMIT_AS) limits each of the two workers to 4 MiB of
    additional memory. Then the limit is lifted."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served("--workers", "2") as server:
        writers = [a_writer(scene.key, server.url, name) for name in range(LARGE + SMALL)]
        workers = server.workers
        most = {pid: memory_bytes(pid) + 4 * MIB for pid in workers}
        with limited(workers, resource.RLIMIT_AS, most), load.running(writers):
            let_pass(WITHOUT_MEMORY_S)
        recovery_s = wait_until_served(server, scene.key)
        replaced = len({*workers} - {*server.workers})
        assert server.process.poll() is None
    attempts = load.attempts_of(writers)
    found = checker.check_attempts(scene.home / "resumes.db", attempts)
    figures["resumes_acknowledged"] = load.acknowledged(writers)
    figures["requests_refused_with_503"] = len(full_disks.refusals(writers))
    figures["lost_connections"] = sum(one.answer is None for one in attempts)
    figures["workers_replaced"] = replaced
    figures["recovery_time_s"] = recovery_s
    figures["lost"], figures["refused_but_stored"] = found.lost, found.uninvited
    assert statuses_of(attempts) <= {201, 503}
    assert figures["requests_refused_with_503"] + figures["lost_connections"] > 0


def a_writer(key: str, url: str, name: int) -> Client:
    """Creates resumes, large ones or small ones by its number."""
    filler = "x" * 800_000

    def make(number: int) -> tuple[str, bytes]:
        title = f"resume {name}-{number}"
        body = a_document(title, filler=filler) if name < LARGE else load.a_body(title)
        return title, load.a_request(key, "POST", body=body)

    return Client(url, make)


def statuses_of(attempts: list[Attempt]) -> set[int]:
    """All that was answered."""
    return {one.answer.status for one in attempts if one.answer is not None}
