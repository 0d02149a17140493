"""Limits hold whoever answers: workers of one server, servers of one home (docs/api.md)."""

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import httpx
import pytest

from tests.support.api.builders import RESUMES, a_resume
from tests.support.api.scenes import Scene, Server
from tests.support.api.serving import wait_until
from tests.support.waiting import sockets

pytestmark = pytest.mark.slow

LIMIT = 100
LIMITED = {
    "RESUMES_RATE_LIMIT": "true",
    "RESUMES_RATE_PER_MINUTE": "unlimited",
    "RESUMES_RATE_PER_HOUR": "0",
    "RESUMES_RATE_PER_DAY": str(LIMIT),  # of which none comes back within a test
}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "home", tmp_path / "logs")


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """What is closed when the test ends."""
    with ExitStack() as stack:
        yield stack


def limited(scene: Scene, *flags: str) -> AbstractContextManager[Server]:
    """A server that admits `LIMIT` requests of a key."""
    return scene.served(*flags, within=(), **LIMITED)


def clients(url: str, key: str, count: int, opened: ExitStack) -> list[httpx.Client]:
    """So many clients, each with a connection of its own that stays open."""
    headers = {"Authorization": f"Bearer {key}"}
    made = [
        opened.enter_context(httpx.Client(base_url=url, headers=headers, timeout=30))
        for _ in range(count)
    ]
    for client in made:
        # Connects, and takes no token.
        assert client.get("/api/v1/nothing").status_code == 404
    return made


def clients_of_every_worker(server: Server, key: str, opened: ExitStack) -> list[httpx.Client]:
    """Clients of whom each worker has some."""
    pids = server.workers
    assert len(pids) == 2
    before = [sockets(pid) for pid in pids]
    made = clients(server.url, key, 8, opened)

    def each_has_some() -> bool:
        made.extend(clients(server.url, key, 1, opened))
        return all(sockets(pid) > count for pid, count in zip(pids, before, strict=True))

    wait_until(each_has_some)
    return made


def ask(asking: list[httpx.Client], times: int) -> Counter[int]:
    """The statuses of so many requests in all, the clients asking at the same time.

    They read and write by turns; 0 counts connections that broke.
    """

    def take_turns(at: int) -> Counter[int]:
        statuses = Counter[int]()
        for turn in range(at, times, len(asking)):
            with contextlib.suppress(httpx.TransportError):
                json = a_resume() if turn % 2 else None
                answer = asking[at].request("POST" if turn % 2 else "GET", RESUMES, json=json)
                statuses[answer.status_code] += 1
        statuses[0] = len(range(at, times, len(asking))) - statuses.total()
        return +statuses

    with ThreadPoolExecutor(len(asking)) as pool:
        return sum(pool.map(take_turns, range(len(asking))), Counter())


def admitted(statuses: Counter[int]) -> int:
    return statuses[200] + statuses[201]


def test_r2_two_workers_or_servers_of_a_home_admit_exactly_the_limit(
    scene: Scene, opened: ExitStack
) -> None:
    with limited(scene, "--workers", "2") as server:
        statuses = ask(clients_of_every_worker(server, scene.key, opened), 400)
    assert (admitted(statuses), statuses[429]) == (LIMIT, 300)

    _, key = scene.add_account("bo")
    with limited(scene) as ours, limited(scene) as theirs:
        asking = [
            client for server in (ours, theirs) for client in clients(server.url, key, 4, opened)
        ]
        statuses = ask(asking, 400)
    assert (admitted(statuses), statuses[429]) == (LIMIT, 300)


def test_r2_a_worker_that_is_killed_keeps_nobody_from_counting(
    scene: Scene, opened: ExitStack
) -> None:
    with limited(scene, "--workers", "2") as server:
        asking = clients_of_every_worker(server, scene.key, opened)
        killed = server.workers[0]
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(ask, asking, 60)
            os.kill(killed, signal.SIGKILL)
            statuses = first.result()
        wait_until(lambda: len(set(server.workers) - {killed}) == 2)

        statuses += ask(asking, 400)

    # A request whose worker died may have been counted without an answer.
    assert LIMIT - statuses[0] <= admitted(statuses) <= LIMIT
    assert statuses[429] >= 300


def test_what_was_counted_outlives_the_server(scene: Scene, opened: ExitStack) -> None:
    with limited(scene) as server:
        assert admitted(ask(clients(server.url, scene.key, 2, opened), 90)) == 90

    with limited(scene) as server:
        assert admitted(ask(clients(server.url, scene.key, 2, opened), 20)) == LIMIT - 90

    (scene.home / "run" / "rate-limits.1").unlink()
    with limited(scene) as server:
        assert admitted(ask(clients(server.url, scene.key, 2, opened), 20)) == 20
