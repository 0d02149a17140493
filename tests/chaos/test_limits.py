"""Limits of the system that a program runs into: sizes of files, open files, memory, a log that takes no more."""

import contextlib
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.spans import let_pass
from tests.support import programs
from tests.support.api import full_disks, load
from tests.support.api.builders import RESUMES, a_resume
from tests.support.api.load import Attempt, Client, Wire
from tests.support.api.scenes import Scene, Server
from tests.support.api.serving import wait_until
from tests.support.inbox.scenes import Scene as Folder
from tests.support.resumes import a_document
from tests.support.stores import make_account
from tests.support.waiting import open_files

MIB: Final = 1024 * 1024
KNOCKING: Final = 20
"""Clients that want to connect while nobody can."""

WITHOUT_MEMORY_S: Final = 5.0
LARGE: Final = 12
"""Clients whose resumes are large,"""

SMALL: Final = 2
"""and whose are not."""


@pytest.mark.chaos(
    6,
    fault="the server's files cannot grow",
    promise="create requests get 503; the server keeps running and recovers automatically",
)
def test_a_server_whose_files_cannot_grow_recovers(tmp_path: Path, figures: Figures) -> None:
    """While four clients create resumes, prlimit sets the server's RLIMIT_FSIZE to 1 MiB, a size
    that the write-ahead log has already reached. Then the limit is lifted."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    with scene.served() as server:
        writers = full_disks.make_writers(scene, server.url)
        no_file_grows = full_disks.no_file_grows
        recovery_s = full_disks.live_through(server, writers, scene.key, no_file_grows)
        listed = scene.walk(server.url)
    full_disks.check(scene, load.attempts_of(writers), listed)
    checker.note_recovery(figures, scene.home / "resumes.db", writers, recovery_s)


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
    promise="connected clients are still served, but new clients are not; the server keeps running and later accepts new clients again",
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
    figures["acknowledged_during_the_fault"] = served
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
    promise="requests that need more memory get 503 or no response, no acknowledged resume is lost, and the service recovers automatically",
)
def test_without_memory_nothing_acknowledged_is_lost(tmp_path: Path, figures: Figures) -> None:
    """Twelve clients send create requests with 800 KB bodies, and two clients send create requests
    with small bodies. For 5 s, prlimit (RLIMIT_AS) prevents each of the two workers from getting
    more than 4 MiB of additional memory. Then the limit is lifted."""
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
    figures["acknowledged"] = load.acknowledged(writers)
    figures["refused_with_503"] = len(full_disks.refusals(writers))
    figures["lost_connections"] = sum(one.answer is None for one in attempts)
    figures["workers_replaced"] = replaced
    figures["recovery_time_s"] = recovery_s
    figures["lost"], figures["refused_but_stored"] = found.lost, found.uninvited
    assert statuses_of(attempts) <= {201, 503}
    assert figures["refused_with_503"] + figures["lost_connections"] > 0


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


CREATES: Final = 200
FILES: Final = 50


LOGS: Final[dict[str, Callable[[], int]]] = {
    "closed": programs.closed_pipe,
    "stuck": programs.full_pipe,
    "full": lambda: os.open("/dev/full", os.O_WRONLY),
}


@pytest.mark.chaos(
    34,
    fault="the server's log goes to a full disk, or to a pipe that no process reads",
    promise="requests are answered as usual",
)
@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_cannot_be_written_stops_no_create(
    log: str, tmp_path: Path, figures: Figures
) -> None:
    """The server's standard error is connected to /dev/full, to a pipe without a reader, or to a
    full pipe. The server logs a line for each request."""
    key = an_account(tmp_path)
    errors = LOGS[log]()
    flags = ["--json", "--port", "0", "--log-format", "json", "--access-log"]
    with programs.running(tmp_path, "serve", *flags, stderr=errors) as program:
        assert program.stdout is not None
        url = json.loads(program.stdout.readline())["url"]
        with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=5) as client:
            names = [f"resume {number}" for number in range(CREATES)]
            created = [client.post(url + RESUMES, json=a_resume(name)) for name in names]
        program.terminate()
        code = program.wait(20)
    os.close(errors)

    failed = sum(answer.status_code != 201 for answer in created)
    figures["create_requests"] = len(created)
    figures["failed"] = failed
    assert failed == 0
    told = {answer.json()["id"]: name for answer, name in zip(created, names, strict=True)}
    figures["lost"] = checker.check(tmp_path / "resumes.db", told).lost
    assert len(told) == CREATES
    assert code == 0


def an_account(home: Path) -> str:
    """A key of the account "ada", on a plan for 1,000 resumes."""
    return make_account(home, "ada")


@pytest.mark.chaos(
    34,
    fault="the importer's log goes to a full disk, or to a pipe that no process reads",
    promise="files are imported as usual",
)
@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_cannot_be_written_stops_no_import(
    log: str, tmp_path: Path, figures: Figures
) -> None:
    """The importer's standard error is connected to /dev/full, to a pipe without a reader, or to a
    full pipe. The importer logs a line for each file."""
    scene = Folder(tmp_path / "home")
    scene.account("ada")
    errors = LOGS[log]()
    words = ("watch", str(scene.root), "--settle", "0.2", "--log-format", "json")
    with programs.running(scene.home, *words, stderr=errors) as program:
        names = [f"{number}.json" for number in range(FILES)]
        for name in names:
            scene.drop(f"ada/{name}")
        done = scene.root / "_done"
        wait_until(lambda: len(programs.files_in(done)) == FILES, within_s=60)
        program.terminate()
        code = program.wait(20)
    os.close(errors)

    assert scene.check(files=FILES, resumes={"ada": names}).done == FILES
    missing, doubled = checker.count_differences(names, scene.names("ada"))
    figures["files"] = len(names)
    figures["not_imported"], figures["duplicated"] = missing, doubled
    assert missing == doubled == 0
    assert code == 0
