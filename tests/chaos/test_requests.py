"""Requests that are made to cost much, or to be taken for two."""

import contextlib
import random
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.campaign import Figures
from tests.chaos.latencies import lister, took_ms
from tests.support.api import load
from tests.support.api.bombs import BOMBS, BUSY, KEPT, MIB, OTHERS_WAIT_S, TARGETS_S, TRIES
from tests.support.api.hostile_bytes import REFUSED, a_post, created, send, statuses
from tests.support.api.scenes import Scene
from tests.support.api.serving import Served, a_connection, read_all, serve

TOGETHER: Final = 8
"""So many bombs come at the same time,"""

MORE_BYTES: Final = 64 * MIB
"""and when they are over, the server may hold so much more."""

CUTS: Final = 3
"""In so many places each devious request is cut, one after the other."""


@pytest.mark.chaos(
    26,
    fault="JSON that is designed to be costly: depth, empty lists, keys, digits",
    promise="rejected quickly, its memory is freed, and others are not affected",
)
def test_json_bombs_are_refused_soon(tmp_path: Path, figures: Figures) -> None:
    """Each kind of bomb, of 1 MiB, twice while another client lists; then all of them, 8 at a time."""
    scene = Scene(tmp_path / "home", tmp_path / "logs")
    bodies = {name: make(MIB) for name, make in BOMBS.items()}
    requests = {name: load.a_request(scene.key, "POST", body=body) for name, body in bodies.items()}
    with scene.served() as server, ThreadPoolExecutor(TOGETHER) as pool:
        other = lister(server.url, scene.key)
        with load.running([other]):
            tries_s = {name: send_bomb(server.url, requests[name], name) for name in requests}
        before = server.resident_bytes()
        together = list(pool.map(lambda data: load.call(server.url, data), requests.values()))
        more_bytes = server.resident_bytes() - before

    longest_ms = max(took_ms(other.attempts))
    figures["kinds"] = len(requests)
    figures["slowest_ms"] = max(map(max, tries_s.values())) * 1_000
    figures["others_wait_at_most_ms"] = longest_ms
    figures["memory_more_mb"] = more_bytes / 1_000_000
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


@pytest.mark.chaos(
    27,
    fault="requests that could be read in two ways",
    promise="one 400 and the connection ends; nothing after it is executed",
)
def test_no_second_request_is_smuggled_in(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """A set of ambiguous headers and chunks, complete and cut in two at any byte, each before a
    create."""
    with serve(tmp_path) as served:
        probes = [*devious(served)]
        verdicts = {
            name: [send(served, request + a_post(served))]
            + [
                send_in_two(served, request + a_post(served), seed.randrange(1, len(request)))
                for _ in range(CUTS)
            ]
            for name, request in probes
        }
        stored = created(served)

    figures["probes"] = sum(map(len, verdicts.values()))
    figures["accepted"] = stored
    assert stored == 0
    for name, answers in verdicts.items():
        assert {tuple(statuses(answer)) for answer in answers} == {(400,)}, name


def devious(served: Served) -> Iterator[tuple[str, bytes]]:
    """Requests that have the answer 400, by what is wrong with them."""
    for name, (status, parts) in REFUSED.items():
        if status == 400:
            yield name, a_post(served, **parts)
    yield "line feeds", a_post(served).replace(b"\r\n", b"\n")


def send_in_two(served: Served, data: bytes, at: int) -> bytes:
    """Everything that the server says when the data comes in two pieces."""
    with a_connection(served.url) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(data[:at])
        select.select([connection], [], [], 0.02)
        with contextlib.suppress(OSError):  # the verdict was there already
            connection.sendall(data[at:])
        return read_all(connection)
