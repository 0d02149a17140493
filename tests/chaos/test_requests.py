"""Clients that are silent, and requests that are made to cost much."""

import contextlib
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.campaign import Figures
from tests.chaos.checker import between, p99_ms, took_ms
from tests.support.api import load
from tests.support.api.bombs import BOMBS, BUSY, KEPT, MIB, OTHERS_WAIT_S, TARGETS_S, TRIES
from tests.support.api.scenes import Scene
from tests.support.api.serving import a_connection, a_head, read_all, serve, wait_until

TOGETHER: Final = 8
"""So many bombs come at the same time,"""

MORE_BYTES: Final = 64 * MIB
"""and when they are over, the server may hold so much more."""


@pytest.mark.chaos(
    26,
    fault="JSON that is expensive to parse: deep nesting, empty lists, many keys, many digits",
    promise="the server rejects the JSON quickly and frees the memory used for it, and other clients are not affected",
)
def test_json_bombs_are_refused_quickly(tmp_path: Path, figures: Figures) -> None:
    """While another client lists resumes, the test sends a 1 MiB JSON bomb of each kind twice. Then
    the test sends JSON bombs of all kinds, eight at a time."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    bodies = {name: make(MIB) for name, make in BOMBS.items()}
    requests = {name: load.a_request(scene.key, "POST", body=body) for name, body in bodies.items()}
    with scene.served() as server, ThreadPoolExecutor(TOGETHER) as pool:
        other = load.lister(server.url, scene.key)
        with load.running([other]):
            tries_s = {name: send_bomb(server.url, requests[name], name) for name in requests}
        before = server.resident_bytes()
        together = list(pool.map(lambda data: load.call(server.url, data), requests.values()))
        more_bytes = server.resident_bytes() - before

    longest_ms = max(took_ms(other.attempts))
    figures["kinds_of_JSON"] = len(requests)
    figures["slowest_response_ms"] = max(map(max, tries_s.values())) * 1_000
    figures["other_clients_waited_at_most_ms"] = longest_ms
    figures["memory_growth_mb"] = more_bytes / 1_000_000
    assert max(map(min, tries_s.values())) < TARGETS_S[MIB] * BUSY, tries_s
    assert longest_ms < OTHERS_WAIT_S * 1_000
    assert {answer.status for answer in together} <= {201, 400}
    assert more_bytes < MORE_BYTES


def send_bomb(url: str, request: bytes, name: str) -> list[float]:
    """How many seconds each answer took, which is a refusal, or keeps what is one long value."""
    tries_s = []
    for _ in range(TRIES):
        began_s = time.perf_counter()
        answer = load.call(url, request)
        tries_s.append(time.perf_counter() - began_s)
        assert answer.status == (201 if name in KEPT else 400), name
    return tries_s


SILENT: Final = 1_000
FILES: Final = 3_000
GONE_S: Final = 15.0
SLACK_MS: Final = 25.0
"""What a 99th percentile of a few milliseconds may be more by chance."""

LISTS: Final = 300
"""So many lists make a 99th percentile."""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < FILES, reason=f"needs {FILES} open files"
)
@pytest.mark.chaos(
    23,
    fault="clients send no data, incomplete headers or incomplete bodies",
    promise="silent connections are closed within 15 s, and other clients still get responses within milliseconds",
)
def test_a_thousand_silent_clients_are_disconnected(tmp_path: Path, figures: Figures) -> None:
    """1,000 clients connect and then send no data, incomplete headers or an incomplete body.
    Another client lists resumes, both before the 1,000 clients connect and while they are
    connected."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    with serve(tmp_path, max_connections=SILENT + 100) as served, contextlib.ExitStack() as stack:
        other = load.lister(served.url, served.key)
        with load.running([other]):
            wait_until(lambda: len(other.attempts) >= LISTS, within_s=30)
            began_s = time.monotonic()
            silent = [stack.enter_context(a_connection(served.url)) for _ in range(SILENT)]
            parts = (b"", a_head(served, 10)[:-2], a_head(served, 10) + b"{")
            for number, connection in enumerate(silent):
                connection.sendall(parts[number % len(parts)])
            left = [one for one in silent if not is_let_go(one, began_s + GONE_S)]
            ended_s = time.monotonic()
    before_ms = p99_ms(between(other.attempts[LISTS // 10 :], 0, began_s))
    during_ms = p99_ms(between(other.attempts, began_s, ended_s))

    figures["silent_connections"] = SILENT
    figures["still_open"] = len(left)
    figures["last_closed_after_s"] = ended_s - began_s
    figures["normal_p99_ms"] = before_ms
    figures["p99_during_the_fault_ms"] = during_ms
    assert not left
    assert {one.answer.status for one in other.attempts if one.answer} == {200}
    assert during_ms < 2 * before_ms + SLACK_MS


def is_let_go(connection: socket.socket, until_s: float) -> bool:
    """Whether the server has ended the connection by then, on the monotonic clock."""
    connection.settimeout(max(0.001, until_s - time.monotonic()))
    try:
        read_all(connection)
    except TimeoutError:
        return False
    return True
