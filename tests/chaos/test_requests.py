"""Clients that are silent or greedy, and requests that are made to cost much, or to be taken for two."""

import contextlib
import gzip
import random
import resource
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.chaos.campaign import Figures
from tests.chaos.spans import between, p99_ms, took_ms
from tests.support.api import load
from tests.support.api.bombs import BOMBS, BUSY, KEPT, MIB, OTHERS_WAIT_S, TARGETS_S, TRIES
from tests.support.api.hostile_bytes import (
    CHUNKED,
    REFUSED,
    a_post,
    created,
    peak_kib,
    send,
    statuses,
)
from tests.support.api.scenes import Scene
from tests.support.api.serving import Served, a_connection, a_head, read_all, serve, wait_until

TOGETHER: Final = 8
"""So many bombs come at the same time,"""

MORE_BYTES: Final = 64 * MIB
"""and when they are over, the server may hold so much more."""

CUTS: Final = 3
"""In so many places each devious request is cut, one after the other."""


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


@pytest.mark.chaos(
    27,
    fault="requests that can be interpreted in two ways",
    promise="the client gets a single 400 response, and the server closes the connection without executing a second request",
)
def test_no_second_request_is_smuggled_in(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """A client sends ambiguous headers and chunks, each followed by a create request. Each sequence
    of bytes is sent once in one piece, and then several times in two pieces, split at a random
    byte."""
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


SILENT: Final = 1_000
FILES: Final = 3_000
GONE_S: Final = 15.0
SLACK_MS: Final = 25.0
"""What a 99th percentile of a few milliseconds may be more by chance."""

LISTS: Final = 300
"""So many lists make a 99th percentile."""

GREEDY: Final = 16
POURED_BYTES: Final = 64 * MIB
INFLATED_BYTES: Final = 256 * MIB
POURED_KIB: Final = 96 * 1024
"""More than this is not held for all the bodies that are poured in: they share 64 MiB."""


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


class Poured(NamedTuple):
    """What a client was told that sends without end, and how much it could send."""

    statuses: list[int]
    told_at_bytes: int | None
    """How much it had sent when the answer was there; None: it saw none while it sent."""

    sent_bytes: int


def pour(served: Served, head: bytes, block: bytes, size_bytes: int) -> Poured:
    """A client that sends to the end, whatever it is told, unless the connection ends."""
    told_at_bytes, sent_bytes, answer = None, 0, b""
    with a_connection(served.url) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(head)
            while sent_bytes < size_bytes:
                if told_at_bytes is None and select.select([connection], [], [], 0)[0]:
                    told_at_bytes = sent_bytes
                connection.sendall(block)
                sent_bytes += len(block)
        with contextlib.suppress(OSError):  # reset, behind the answer
            while chunk := connection.recv(65_536):
                answer += chunk
    return Poured(statuses(answer), told_at_bytes, sent_bytes)


@pytest.mark.chaos(
    25,
    fault="request bodies are far over the limit, have no declared length, or are compressed",
    promise="the server responds with 413 before it has read the whole body, or with 415 if the body is compressed; memory use stays bounded",
)
def test_bodies_over_the_limit_cost_little(tmp_path: Path, figures: Figures) -> None:
    """16 clients simultaneously send bodies of 64 MiB, some without a declared length. Then a
    client sends a gzip body that decompresses to 256 MiB."""
    block = b" " * 65_536
    chunk = b"%x\r\n%b\r\n" % (len(block), block)
    zeros = gzip.compress(b" " * INFLATED_BYTES, 1)
    with serve(tmp_path) as served, ThreadPoolExecutor(GREEDY) as pool:
        before = peak_kib(served)
        heads = [a_post(served, CHUNKED, b""), a_head(served, POURED_BYTES)]
        calls = [
            pool.submit(pour, served, heads[n % 2], (chunk, block)[n % 2], POURED_BYTES)
            for n in range(GREEDY)
        ]
        poured = [call.result() for call in calls]
        inflating = load.call(
            served.url, load.a_request(served.key, "POST", body=zeros, Content_Encoding="gzip")
        )
        more_kib = peak_kib(served) - before
        left = created(served)

    told_at = [one.sent_bytes if one.told_at_bytes is None else one.told_at_bytes for one in poured]
    figures["clients"] = len(poured)
    figures["responses_with_status_413"] = sum(one.statuses == [413] for one in poured)
    figures["largest_upload_before_the_response_mb"] = max(told_at) / 1_000_000
    figures["largest_upload_in_total_mb"] = max(one.sent_bytes for one in poured) / 1_000_000
    figures["memory_growth_mb"] = more_kib * 1_024 / 1_000_000
    assert figures["responses_with_status_413"] == GREEDY
    assert figures["largest_upload_in_total_mb"] < POURED_BYTES / 1_000_000
    assert inflating.status == 415
    assert more_kib < POURED_KIB
    assert left == 0
